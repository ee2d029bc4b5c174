"""Sysctl keys, their paths below /proc/sys, and reading them in bulk."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from intop.domain.parameter import normalised
from intop.domain.probing import Reading
from intop.errors import CommandError
from intop.hosts.answers import joined, lines
from intop.hosts.host import Host, output
from intop.hosts.scripts import script

KEY = re.compile(r"[a-z0-9_]+(\.[A-Za-z0-9_-]+)+")
"""The form of a key; nothing else ever becomes part of a remote path."""
VALUE = re.compile(r"(?P<path>[^\t:\n]+)[\t:](?P<value>[^\n]*)")


def path_of(key: str) -> str:
    """Return the path below /proc/sys. Raises ValueError for what is not a key."""
    if not KEY.fullmatch(key):
        raise ValueError(f"not a sysctl key: {key!r}")
    return key.replace(".", "/")


def key_of(path: str) -> str:
    """Return the key of a path below /proc/sys; the path of another file stays as it is."""
    return path if path.startswith("/") else path.replace("/", ".")


def parse_values(listed: Iterable[str]) -> dict[str, str]:
    """Return values by key from lines of path, tab or colon, value, as the guard prints them.

    A key with several lines has no value that could be written again, and is left out.
    """
    values: dict[str, str] = {}
    several: set[str] = set()
    for line in listed:
        if match := VALUE.fullmatch(line):
            key, value = key_of(match["path"]), normalised(match["value"])
            if values.setdefault(key, value) != value:
                several.add(key)
    return {key: value for key, value in values.items() if key not in several}


PROBE, WRITE_BACK = script("sysctl_probe.sh"), script("sysctl_write_back.sh")

Access = Literal["missing", "unreadable", "readable", "writable"]
ACCESS: Sequence[Access] = ("missing", "unreadable", "readable", "writable")


def probe(host: Host, keys: Iterable[str]) -> dict[str, Reading]:
    """Return a reading of each key. Nothing is written.

    Raises:
        CommandError: The host can't be asked, or says nothing of a key.
    """
    asked = sorted(set(keys))
    readings = parse_probe(output(host, PROBE, stdin=joined(map(path_of, asked))))
    if silent := [key for key in asked if key not in readings]:
        raise CommandError(
            host.address.name, f"says nothing of {len(silent)} keys, such as {silent[0]}"
        )
    return {key: readings[key] for key in asked}


def parse_probe(text: str) -> dict[str, Reading]:
    """Return readings by key from the lines that `PROBE` prints."""
    readings: dict[str, Reading] = {}
    for line in lines(text):
        path, access, value = [*line.split("\t", 2), "", ""][:3]
        for known in ACCESS:
            if access == known:
                readings.setdefault(key_of(path), Reading(known, normalised(value)))
    return readings


def write_back(host: Host, keys: Iterable[str]) -> dict[str, str]:
    """Write the keys' own values to them; return the reasons why some are not taken, by key.

    Raises:
        CommandError: The host can't be asked.
    """
    asked = sorted(set(keys))
    if not asked:
        return {}
    refusals = parse_refusals(output(host, WRITE_BACK, stdin=joined(map(path_of, asked))))
    return {key: refusals[key] for key in asked if key in refusals}


def parse_refusals(text: str) -> dict[str, str]:
    """Return reasons by key from the lines that `WRITE_BACK` prints."""
    refusals: dict[str, str] = {}
    for line in lines(text):
        path, tab, words = line.partition("\t")
        if tab:
            refusals[key_of(path)] = normalised(words) or "without saying why"
    return refusals
