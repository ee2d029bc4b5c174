"""Further files that a lab's backends serve: made up, with the sizes of somebody's own."""

from collections.abc import Sequence
from urllib.parse import unquote

LabFiles = tuple[tuple[str, float], ...]
"""Paths of requests, each with its size in KB (1,000 bytes)."""

MOST_KB = 1_000_000
"""The size of all files together."""
LONGEST_NAME = 200
"""Bytes of a part of a path, whose file has a longer name than that."""


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
    return f"{name.removeprefix('/')}.lab"


def check_files(files: Sequence[tuple[str, float]]) -> None:
    """Raises ValueError for paths that can't be files, and for too much of them."""
    for path, kb in files:
        file_name(path)
        if kb <= 0:
            raise ValueError(f"files: {path} must be larger than 0 KB, got {kb:g}")
    if (total := sum(kb for _, kb in files)) > MOST_KB:
        raise ValueError(f"files: at most {MOST_KB:,} KB together, got {total:,.0f}")
