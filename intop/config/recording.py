"""Recordings: files with the times and paths of an access log's requests.

A file begins with a line of 64 bytes: version, length and paths. The words of `domain/recording.py`
follow, 8 bytes each, the lowest byte first. So a trial reads only the windows that it plays.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from intop.domain.recording import MOST_PATHS, Words, paths_of, times_us
from intop.domain.workload import Recording
from intop.errors import UsageError

Integer = TypeVar("Integer", bound=np.integer)

VERSION = 1
HEAD_BYTES = 64
WORD = np.dtype("<u8")
CHUNK = 1 << 20
"""Words that are looked at together."""
_HEAD = re.compile(rb"intop recording (\d{1,9}): (\d{1,18}) us, (\d{1,7}) paths *\n")
_REMEDY = "make it again: intop workload learn LOG --record FILE"


@dataclass(frozen=True)
class Head:
    """The first line of a recording."""

    length_us: int
    paths: int
    """Paths of the workload that it is made for."""

    def __bytes__(self) -> bytes:
        text = f"intop recording {VERSION}: {self.length_us} us, {self.paths} paths"
        return text.ljust(HEAD_BYTES - 1).encode() + b"\n"


def is_recording(path: Path) -> bool:
    """Return whether a file begins as a recording of any version. Raises OSError."""
    with path.open("rb") as file:
        return _HEAD.fullmatch(file.read(HEAD_BYTES)) is not None


def recording_of(path: Path) -> tuple[Recording, int]:
    """Return a recording, all of which is checked, and the number of its paths.

    Raises ValueError with the place of what is wrong, and the next step.
    """
    try:
        head = _head(path)
        words = _words(path)
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror or error}") from error
    try:
        digest = _checked(words, head)
    except ValueError as error:
        raise ValueError(f"{path}: {error}: {_REMEDY}") from error
    recording = Recording(
        path=str(path), seconds=head.length_us / 1e6, requests=len(words), digest=digest
    )
    return recording, head.paths


def words_of(recording: Recording) -> Words:
    """Return the requests of a recording that was checked. Raises UsageError if it has changed."""
    try:
        words = _words(Path(recording.path))
    except (OSError, ValueError) as error:
        raise UsageError(f"{recording.path} can't be read any more: {error}") from error
    if len(words) != recording.requests:
        raise UsageError(f"{recording.path} has changed meanwhile: repeat the command")
    return words


def chunks(words: NDArray[Integer]) -> Iterator[NDArray[Integer]]:
    """Yield parts that fit into memory."""
    for start in range(0, len(words), CHUNK):
        yield words[start : start + CHUNK]


def _head(path: Path) -> Head:
    if not path.is_file():
        raise ValueError(f"there is no file {path}: {_REMEDY}")
    with path.open("rb") as file:
        match = _HEAD.fullmatch(file.read(HEAD_BYTES))
    if match is None:
        raise ValueError(f"{path} is no recording of intop: {_REMEDY}")
    version, length_us, paths = map(int, match.groups())
    if version != VERSION:
        raise ValueError(
            f"{path} is a recording of version {version}, and this intop reads version {VERSION}: "
            f"{_REMEDY}"
        )
    return Head(length_us, paths)


def _words(path: Path) -> Words:
    """Return the words, of which only those in use are in memory."""
    size = path.stat().st_size - HEAD_BYTES
    if size <= 0:
        raise ValueError(f"{path} has no request: {_REMEDY}")
    count, rest = divmod(size, WORD.itemsize)
    if rest:
        raise ValueError(f"{path} is cut off after request {count:,}: {_REMEDY}")
    return np.memmap(path, dtype=WORD, mode="r", offset=HEAD_BYTES, shape=(count,))


def _checked(words: Words, head: Head) -> str:
    """Return the checksum. Raises ValueError for the first request that is out of place."""
    if not head.length_us:
        raise ValueError("it covers no time")
    if head.paths > MOST_PATHS:
        raise ValueError(f"it has more than {MOST_PATHS:,} paths")
    crc, before, latest_us = zlib.crc32(bytes(head)), 0, 0
    for part in chunks(words):
        own_us, paths = times_us(part), paths_of(part)
        steps = np.diff(own_us, prepend=latest_us)
        _refuse(steps < 0, before, "it is earlier than the request before it")
        _refuse(own_us >= head.length_us, before, "its time is after the end of the recording")
        _refuse(paths >= head.paths, before, f"its path is none of the {head.paths:,}")
        crc = zlib.crc32(part.data, crc)
        before, latest_us = before + len(part), int(own_us[-1])
    return f"{crc:08x}"


def _refuse(wrong: NDArray[np.bool_], before: int, why: str) -> None:
    if wrong.any():
        raise ValueError(f"request {before + int(wrong.argmax()) + 1:,}: {why}")
