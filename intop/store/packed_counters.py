"""The counters of a trial, compressed: thousands of small numbers in some kilobytes."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

from intop.domain.counters import HostCounters

MOST_BYTES = 64 << 20
"""Unpacked. A trial has some 50 KB."""


def packed(counters: Mapping[str, HostCounters]) -> bytes | None:
    """Return the counters by host as zlib of JSON; None where there are none."""
    if not counters:
        return None
    document = {
        host: {"at": of.at_s, "growth": of.growth, "levels": of.levels, "unread": of.unread}
        for host, of in counters.items()
    }
    data = json.dumps(document, separators=(",", ":")).encode()
    return zlib.compress(data, 6)


def unpacked(stored: bytes | None) -> dict[str, HostCounters]:
    """Return the counters that were packed. Raises ValueError or TypeError for anything else."""
    if stored is None:
        return {}
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(stored, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"its counters can't be unpacked: {error}") from error
    if not unpacking.eof:
        raise ValueError("its counters can't be unpacked: they end early, or are too many")
    document = json.loads(data, parse_constant=_refused)
    return {str(host): _counters(of) for host, of in document.items()}


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _counters(document: Mapping[str, Any]) -> HostCounters:
    if set(document) != {"at", "growth", "levels", "unread"}:
        raise ValueError(f"counters have {sorted(document)}")
    growth = {name: _series(of, int) for name, of in document["growth"].items()}
    return HostCounters(
        at_s=_series(document["at"], int, float),
        growth=growth,
        levels={name: _series(of, int, float) for name, of in document["levels"].items()},
        unread=tuple(str(name) for name in document["unread"]),
    )


def _series(values: Any, *kinds: type) -> tuple[Any, ...]:
    if not isinstance(values, list) or any(type(value) not in kinds for value in values):
        raise ValueError("a series of counters has what is no number")
    return tuple(values)
