"""Quantities: numbers as people write them, with a unit or without."""

import re
from collections.abc import Iterable
from functools import lru_cache

UNITS: dict[str, dict[str, float]] = {
    "bytes": {"b": 1, "byte": 1, "bytes": 1}
    | {
        prefix + end: 1024.0**power
        for power, prefix in enumerate("kmgt", start=1)
        for end in ("", "b", "ib")
    },
    "seconds": {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "sec": 1}
    | {"m": 60, "min": 60, "h": 3600, "d": 86400},
    "per cent": {"%": 1},
    "Hz": {"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
}
"""How many of its dimension's unit each word stands for, in any case of letters.

A kilobyte is 1,024 bytes, in all spellings: what a program means by each of them differs, and is
the same throughout a column. The first dimension that has all words of a column is the one, so that
m are minutes only beside other times.
"""

_PATTERN = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([a-zµμ%]*)")


@lru_cache(maxsize=10_000)  # the columns of a wide table have the same few numbers
def quantity(text: str) -> tuple[float, str] | None:
    """The number and its unit in small letters, "" where there is none; None for another text.

    The number is infinite where a float can't hold it.
    """
    found = _PATTERN.fullmatch(text.lower())
    if found is None or dimension([found[2]]) is None:
        return None
    return float(found[1]), found[2]


def dimension(words: Iterable[str]) -> str | None:
    """The key of UNITS that has all of these, "" where all are ""; None where none has."""
    named = {word for word in words if word}
    if not named:
        return ""
    return next((name for name, units in UNITS.items() if named <= units.keys()), None)


def in_unit(number: float, word: str, of: str) -> float:
    """A number in its dimension's unit. One without a word has that unit already."""
    return number * UNITS[of][word] if word else number
