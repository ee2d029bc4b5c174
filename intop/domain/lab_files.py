"""Further files that a lab's backends serve: made up, with the sizes and waits of real ones."""

from collections.abc import Sequence
from urllib.parse import unquote

LabFiles = tuple[tuple[str, float], ...]
"""Paths of requests, each with its size in KB (1,000 bytes)."""

LabWaits = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
"""Paths of files that are pages of an application: the times (ms) after which such a page is there,
each with its weight."""

MOST_KB = 1_000_000
"""The size of all files together."""
LONGEST_NAME = 200
"""Bytes of a part of a path, whose file has a longer name than that."""
MOST_WAIT_MS = 1000
"""The longest that a lab's application waits."""
MOST_WEIGHT = 1000
ENDING, WAITS_ENDING = ".lab", ".waits"
"""The ends of the names of a path's file, and of the file with its waits."""


def file_name(path: str) -> str:
    """Return the name of a path's file below the folder of all files.

    It ends in .lab, so that a path and what is below it may both be files. nginx decodes a path
    before it looks for the file. Raises ValueError for a path that can't be a file.
    """
    name = unquote(path)
    parts = name.split("/")
    if not path.startswith("/") or "?" in path:
        raise ValueError(f"files: {path!r} is no path of a file, which begins with /")
    if not name.isprintable() or {".", ".."} & set(parts):
        raise ValueError(f"files: {path!r} leaves its folder, or has control characters")
    if any(len(part.encode()) > LONGEST_NAME for part in parts):
        raise ValueError(f"files: {path!r} has a part of more than {LONGEST_NAME} bytes")
    return f"{name.removeprefix('/')}{ENDING}"


def check_files(files: Sequence[tuple[str, float]]) -> None:
    """Raises ValueError for paths that can't be files, and for too much of them."""
    for path, kb in files:
        file_name(path)
        if kb <= 0:
            raise ValueError(f"files: {path} must be larger than 0 KB, got {kb:g}")
    if (total := sum(kb for _, kb in files)) > MOST_KB:
        raise ValueError(f"files: at most {MOST_KB:,} KB together, got {total:,.0f}")


def check_waits(waits: LabWaits, files: LabFiles) -> None:
    """Raises ValueError for waits of a path without a file, or that no application waits for."""
    known = {path for path, _ in files}
    for path, weights in waits:
        if path not in known:
            raise ValueError(f"waits: {path} is none of the files: give it a size there")
        if not weights:
            raise ValueError(f"waits: {path} has no wait")
        for ms, weight in weights:
            if not 0 <= ms <= MOST_WAIT_MS:
                raise ValueError(f"waits: {path} waits from 0 to {MOST_WAIT_MS:,} ms, got {ms}")
            if not 1 <= weight <= MOST_WEIGHT:
                raise ValueError(
                    f"waits: {path}: the weight of {ms} must be 1 to {MOST_WEIGHT:,}, got {weight}"
                )
