"""Lines of access logs: plain, gzip or from a pipe, one after the other."""

import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from intop.errors import UsageError

GZIP = b"\x1f\x8b"
LONGEST = 64 * 1024
"""Bytes of a line at most. A longer one is no request of nginx."""


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
        number = 0
        try:
            with _opened(path) as file:
                for number, line in enumerate(file, start=1):
                    if len(line) > LONGEST:
                        self.too_long += 1
                        continue
                    text = line.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
                    yield f"{path}:{number}", text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.notes.append(f"{path} is cut off or damaged after line {number}: {error}")
        except OSError as error:
            raise UsageError(f"{path}: can't be read: {error.strerror or error}") from error


def _opened(path: str) -> IO[bytes]:
    standard = cast("BufferedReader", sys.stdin.buffer)
    file = standard if path == "-" else Path(path).open("rb")  # noqa: SIM115 (the caller closes it)
    if file.peek(2)[:2] == GZIP:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    return file
