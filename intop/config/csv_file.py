"""A CSV file: its columns as text, and one clear error for all that is not a table."""

import csv
import difflib
import gzip
import io
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intop.config.source import check_kind, short
from intop.errors import ConfigurationError

LARGEST_FILE = 100_000_000
"""In bytes, unpacked. 50,000 rows of 40 columns have some ten million."""
MOST_CELLS = 10_000_000
"""In the columns that are used. As text they take some seconds to read."""
LONGEST_NAME = 200
"""Longer ones are no names, and comparing them with what was asked for would take for ever."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: each text once, in order of appearance, without blanks around it.

    `codes` (rows,) are indexes into `texts`; `lines` has the line of each row in the file.
    """

    path: Path
    name: str
    texts: tuple[str, ...]
    codes: NDArray[np.int64]
    lines: Sequence[int]

    def wrong(self, code: int, what: str) -> ConfigurationError:
        """An error in the first cell that has this text."""
        line = self.lines[int(np.argmax(self.codes == code))]
        return ConfigurationError([f"{self.path}:{line}: column {short(self.name)}: {what}"])


class CsvFile:
    """A file that has been opened: its columns have names, and nothing else is read yet.

    It is comma separated, UTF-8 (a byte-order mark is taken off), and packed by gzip when its name
    ends in .gz. A column without a name is called by its number, from 1. Raises ConfigurationError
    for what can't be read, isn't text, or is empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records = _records(path, _text(path))
        first = next(self._records, None)
        if first is None:
            raise self._wrong("is empty: its first line must name the columns")
        self.names = tuple(cell.strip() or f"column {n}" for n, cell in enumerate(first[1], 1))
        if len(self.names) == 1 and (found := [m for m in ";\t|" if m in self.names[0]]):
            raise self._wrong(f"its columns are separated by {found[0]!r}: commas are needed")

    def index(self, word: str, option: str) -> int:
        """Which column a user means. Raises ConfigurationError unless it is exactly one."""
        found = self.indexes(word, option)
        if len(found) > 1:
            numbers = ", ".join(str(n + 1) for n in found[:5]) + (", ..." if found[5:] else "")
            raise self._wrong(
                f"{len(found)} columns are called {short(word)}: say which by its number, as in "
                f"{option} {found[0] + 1} (they are {numbers})"
            )
        return found[0]

    def indexes(self, word: str, option: str) -> list[int]:
        """The columns of this name, else the one of this number. Raises ConfigurationError."""
        if found := [n for n, name in enumerate(self.names) if name == word.strip()]:
            return found
        if re.fullmatch("[1-9][0-9]{0,8}", word) and int(word) <= len(self.names):
            return [int(word) - 1]
        raise self._wrong(f"has no column {short(word)} ({option}); {self._alike(word)}")

    def columns(self, chosen: Sequence[int]) -> dict[int, Column]:
        """These columns, by index; blank lines are skipped.

        Raises ConfigurationError, with the line, for rows of another length than the header's, two
        columns of one name, more than MOST_CELLS, and no row at all.
        """
        self._check_distinct(chosen)
        lines = array("q")
        growing = [_Growing() for _ in chosen]
        most = MOST_CELLS // max(1, len(chosen))
        for line, cells in self._records:
            if len(cells) != len(self.names):
                raise self._wrong(
                    f"has {len(cells)} fields for {len(self.names)} columns: a field with a comma "
                    "in it needs quotes, and an empty one its comma",
                    line,
                )
            if len(lines) == most:
                raise self._wrong(
                    f"has more than {most:,} rows of {len(chosen):,} columns, which is more than "
                    f"{MOST_CELLS:,} cells: leave columns out (--ignore), or rows"
                )
            lines.append(line)
            for column, index in zip(growing, chosen, strict=True):
                column.add(cells[index].strip())
        if not lines:
            raise self._wrong("has no rows below the names of its columns")
        return {
            index: Column(
                path=self.path,
                name=self.names[index],
                texts=tuple(column.texts),
                codes=np.frombuffer(column.codes, dtype=np.int64),
                lines=lines,
            )
            for index, column in zip(chosen, growing, strict=True)
        }

    def _check_distinct(self, chosen: Sequence[int]) -> None:
        seen: dict[str, int] = {}
        for index in chosen:
            name = self.names[index]
            if (first := seen.setdefault(name, index)) != index:
                raise self._wrong(
                    f"columns {first + 1} and {index + 1} are both called {short(name)}: rename "
                    f"one, or leave one out by its number, as in --ignore {index + 1}"
                )

    def _alike(self, word: str) -> str:
        """The names that a user may have meant, else the first ones."""
        by_name = {n.casefold(): n for n in self.names if len(n) <= LONGEST_NAME}
        wanted = word.strip().casefold()[:LONGEST_NAME]
        if near := difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.5):
            return f"near are {', '.join(short(by_name[name]) for name in near)}"
        more = ", ..." if self.names[8:] else ""
        return f"it has {', '.join(map(short, self.names[:8]))}{more}"

    def _wrong(self, what: str, line: int | None = None) -> ConfigurationError:
        where = str(self.path) if line is None else f"{self.path}:{line}"
        return ConfigurationError([f"{where}: {what}"])


class _Growing:
    """A column while it is read."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.codes = array("q")

    def add(self, text: str) -> None:
        self.codes.append(self.texts.setdefault(text, len(self.texts)))


def _records(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Lines' numbers and fields, without blank lines."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise ConfigurationError(
            [f"{path}:{line}: is not CSV: {error}; look for a quote that isn't closed"]
        ) from error


def _text(path: Path) -> str:
    """Raises ConfigurationError for what is no file of text, and for one that is too large."""
    try:
        check_kind(path)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError([f"{path}: can't be read: {why}"]) from error
    if len(data) > LARGEST_FILE:
        raise ConfigurationError(
            [f"{path}: has more than {LARGEST_FILE // 10**6} MB: leave rows or columns out"]
        )
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise ConfigurationError([f"{path}:{line}: has a NUL byte: this is no CSV file in UTF-8"])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            [f"{path}:{line}: is not UTF-8: convert it, as by iconv -f latin1 -t utf-8"]
        ) from error
