"""Lines of access logs: plain, gzip or from a pipe, one after the other."""

import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import cast

from intop.errors import UsageError

GZIP = b"\x1f\x8b"
LONGEST = 64 * 1024
"""Bytes of a line at most. A longer one is no request of nginx."""
PART = 256 * 1024
"""Bytes that are read at once."""


class LineCutter:
    """Cuts the parts of a log into lines, and leaves out those that are too long."""

    def __init__(self) -> None:
        self.number = 0
        """The lines so far."""
        self.too_long = 0
        """Those that were left out."""
        self._begun = b""
        self._is_too_long = False

    def cut(self, part: bytes) -> Iterator[tuple[int, str]]:
        """Yield number and text of each line that ends in the next part of the log."""
        *whole, self._begun = (self._begun + part).split(b"\n")
        for line in whole:
            self.number += 1
            if self._is_too_long or len(line) > LONGEST:
                self.too_long += 1
                self._is_too_long = False
            else:
                yield self.number, line.rstrip(b"\r").decode("utf-8", "backslashreplace")
        if len(self._begun) > LONGEST:
            self._begun, self._is_too_long = b"", True

    @property
    def is_in_line(self) -> bool:
        """Whether the parts so far end in the middle of a line."""
        return bool(self._begun) or self._is_too_long


@dataclass
class Lines:
    """The lines of some logs, and what could not be read of them."""

    paths: Sequence[str]
    """Files, or `-` for standard input."""
    notes: list[str] = field(default_factory=list)
    too_long: int = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield the place of each line, such as access.log:7, and its text without the line end.

        Raises UsageError for a file that can't be opened.
        """
        for path in self.paths:
            yield from self._file(path)

    def _file(self, path: str) -> Iterator[tuple[str, str]]:
        cutter = LineCutter()
        try:
            for part in _parts(path):
                for number, text in cutter.cut(part):
                    yield f"{path}:{number}", text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.notes.append(f"{path} is cut off or damaged after line {cutter.number}: {error}")
        except OSError as error:
            raise UsageError(f"{path}: can't be read: {error.strerror or error}") from error
        else:
            if cutter.is_in_line:
                for number, text in cutter.cut(b"\n"):
                    yield f"{path}:{number}", text
        self.too_long += cutter.too_long


def _parts(path: str) -> Iterator[bytes]:
    with _opened(path) as file:
        yield from iter(partial(file.read1, PART), b"")


def _opened(path: str) -> BufferedReader:
    standard = cast("BufferedReader", sys.stdin.buffer)
    file = standard if path == "-" else Path(path).open("rb")  # noqa: SIM115 (the caller closes it)
    if file.peek(2)[:2] == GZIP:
        return cast("BufferedReader", gzip.GzipFile(fileobj=file))
    return file
