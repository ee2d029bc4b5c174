"""A file with a table: its columns as text, and one clear error for all that is not a table.

pandas reads it. What pandas has no answer for is here: in which line a fault is.
"""

import csv
import difflib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from intop.config.quantity import quantity
from intop.config.source import check_kind, short
from intop.config.table_text import FEWER, LARGEST_FILE, separated, table_text
from intop.domain.table import NO_PYARROW, PARQUET
from intop.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd

MOST_CELLS = 10_000_000
"""The largest number of cells. As text they take some seconds to read."""
MOST_COLUMNS = 10_000
"""Models take a tenth of these."""
LONGEST_NAME = 200
"""Longer ones are no names, and comparing them with what was asked for would take for ever."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a file."""

    path: Path
    name: str
    texts: tuple[str, ...]
    """Each text once, in order of appearance, without blanks around it."""
    codes: NDArray[np.intp]
    """(rows,): indexes into `texts`."""
    place: Callable[[int], str]
    """Returns where a row is, such as `line 4`."""

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return self.texts[int(self.codes[row])]

    def where(self, row: int) -> str:
        """Return a row with its file, such as `a.csv:4` or `a.parquet: row 3`."""
        place = self.place(row)
        line = place.removeprefix("line ")
        return f"{self.path}: {place}" if line == place else f"{self.path}:{line}"

    def wrong(self, code: int, what: str) -> ConfigurationError:
        """Return an error in the first cell that has this text."""
        return self.wrong_in(int(np.argmax(self.codes == code)), what)

    def wrong_in(self, row: int, what: str) -> ConfigurationError:
        """Return an error in the cell of this row."""
        return ConfigurationError([f"{self.where(row)}: column {short(self.name)}: {what}"])


class TableFile:
    """A file that has been opened: its columns have names, and no row is checked yet.

    Text is comma separated, UTF-8 or UTF-16 with its byte-order mark, and packed when the file's
    name ends in .gz, .bz2, .xz or .zip; one that ends in .parquet is Parquet, in any case of
    letters. A first line `sep=,`, as Excel takes it, is no row. A column without a name is called
    by its number, from 1. Raises ConfigurationError for what can't be read, isn't a
    table, is empty, or has more than LARGEST_FILE, MOST_COLUMNS or MOST_CELLS.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text = None if path.suffix.lower() == PARQUET else table_text(path)
        first, self._cells = _parquet(path) if self._text is None else _csv(path, self._text)
        self.names = tuple(cell.strip() or f"column {n}" for n, cell in enumerate(first, 1))
        if self._text is not None and _are_numbers(self.names):
            raise self._wrong(
                "has numbers in its first line, which must name the columns: put a line of names "
                "before it"
            )
        if self._cells.empty:
            raise self._wrong("has no rows below the names of its columns")

    def index(self, word: str, option: str) -> int:
        """Return which column a user means. Raises ConfigurationError unless it is exactly one."""
        places = self.indexes(word, option)
        if len(places) > 1:
            numbers = ", ".join(str(n + 1) for n in places[:5]) + (", ..." if places[5:] else "")
            raise self._wrong(
                f"{len(places)} columns are called {short(word)}: say which by its number, as in "
                f"{option} {places[0] + 1} (they are {numbers})"
            )
        return places[0]

    def indexes(self, word: str, option: str) -> list[int]:
        """Return the columns of this name, or of this number. Raises ConfigurationError."""
        if places := [n for n, name in enumerate(self.names) if name == word.strip()]:
            return places
        if re.fullmatch("[1-9][0-9]{0,8}", word) and int(word) <= len(self.names):
            return [int(word) - 1]
        what = f"has no column {short(word)} ({option}); {self._alike(word)}"
        if len(self.names) == 1:
            only = short(self.names[0])
            what = f"has one column only, {only}: a comma has to separate columns ({option})"
        raise self._wrong(what)

    def named(self, name: str) -> int:
        """Return the column that a schema names. Raises ConfigurationError unless it is one."""
        places = [n for n, own in enumerate(self.names) if own == name]
        if len(places) > 1:
            numbers = " and ".join(str(n + 1) for n in places[:2])
            raise self._wrong(
                f"columns {numbers} are both called {short(name)}: take one of them out, or export "
                "the trials again"
            )
        if not places:
            what = f"has no column {short(name)}, which its schema names; {self._alike(name)}"
            raise self._wrong(what)
        return places[0]

    def columns(self, chosen: Sequence[int]) -> dict[int, Column]:
        """Return these columns, by index. Raises ConfigurationError for two of one name."""
        self._check_distinct(chosen)
        return {index: self._column(index) for index in chosen}

    def _column(self, index: int) -> Column:
        import pandas as pd

        cells = self._cells.iloc[:, index].astype(object)
        codes, texts = pd.factorize(cells.where(cells.notna(), "").map(lambda c: str(c).strip()))
        return Column(
            path=self.path,
            name=self.names[index],
            texts=tuple(texts),
            codes=codes,
            place=self._place,
        )

    def _place(self, row: int) -> str:
        """Return where a row is, from 0. pandas doesn't say in which line a row began."""
        if self._text is None:
            return f"row {row + 1}"
        lines = (line for line, _ in _records(self._text))
        return f"line {next(islice(lines, row + 1, None))}"

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
        """Return the names that a user may have meant, or else the first names."""
        by_name = {n.casefold(): n for n in self.names if len(n) <= LONGEST_NAME}
        wanted = word.strip().casefold()[:LONGEST_NAME]
        if near := difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.5):
            is_near = "near is" if len(near) == 1 else "near are"
            return f"{is_near} {', '.join(short(by_name[name]) for name in near)}"
        more = ", ..." if self.names[8:] else ""
        return f"it has {', '.join(map(short, self.names[:8]))}{more}"

    def _wrong(self, what: str) -> ConfigurationError:
        return ConfigurationError([f"{self.path}: {what}"])


def _are_numbers(names: Sequence[str]) -> bool:
    """Return whether names are a row of numbers. Columns may be numbered: 0, 1, 2."""
    numbers = [quantity(name) for name in names]
    counted = [(float(n), "") for n in range(len(names) + 1)]
    return len(names) > 1 and None not in numbers and numbers not in (counted[:-1], counted[1:])


def _csv(path: Path, text: str) -> "tuple[list[str], pd.DataFrame]":
    """Return the cells of the first row, and the other rows. Raises ConfigurationError."""
    import pandas as pd

    head = re.match(r"\s*(.*)", text)
    if head and head[1].count(",") >= MOST_COLUMNS:
        raise ConfigurationError([f"{path}: has more than {MOST_COLUMNS:,} columns: {FEWER}"])
    if mark := next((m for m in MARKS if _separates(m, text)), ""):
        raise separated(path, mark)
    try:
        # The first row is read as one of them: as names, pandas would change those that are equal.
        # Its parser in Python tells a cell that isn't there (NaN) from an empty one.
        reader = pd.read_csv(
            io.StringIO(text, newline=""),
            header=None,
            dtype=str,
            keep_default_na=False,
            engine="python",
            iterator=True,
        )
        first = reader.get_chunk(1)
        most = MOST_CELLS // first.shape[1]
        rows = reader.get_chunk(most + 1)
    except pd.errors.EmptyDataError as error:
        what = "is empty: its first line must name the columns"
        raise ConfigurationError([f"{path}: {what}"]) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise _faulty(path, text, str(error)) from error
    except StopIteration:
        rows = first.iloc[:0]
    if rows.isna().to_numpy().any():
        raise _faulty(path, text, "a row is too short")
    if len(rows) > most:
        raise ConfigurationError([f"{path}: has more than {MOST_CELLS:,} cells: {FEWER}"])
    return first.iloc[0].tolist(), rows


MARKS = (";", "\t", "|", " ")
"""Further marks that separate columns. A table of one column has nothing to learn from."""


def _separates(mark: str, text: str) -> bool:
    """Return whether a mark and no comma separates the names, or it does so in all rows.

    A blank, which may be part of a name or of a value with its unit, has to do both.
    """
    widths = (fields for _, fields in _records(text, mark))
    if (width := next(widths, None) or 0) < 2:
        return False
    _, by_comma = next(_records(text), (0, None))
    if by_comma == 1 and mark != " ":
        return True
    by_comma = by_comma or 1  # quotes that are none to commas
    rows = set(widths)
    # R leaves out the name of the first column.
    return (by_comma == 1 or mark != " ") and (rows == {width} or rows == {width + 1})


def _faulty(path: Path, text: str, why: str) -> ConfigurationError:
    """Return the fault that pandas found with its line, which pandas doesn't always say."""
    records = list(_records(text))
    width = records[0][1] if records else None
    for line, count in records:
        if count is None:
            break
        if count != width:
            what = f"has {_some(count, 'field')} for {_some(width or 0, 'column')}"
            remedy = _remedy(count, width or 0, {n for _, n in records[1:]})
            return ConfigurationError([f"{path}:{line}: {what}: {remedy}"])
    what = f"{path}:{line}: is not CSV: {why}; look for a quote that isn't closed"
    return ConfigurationError([what])


def _some(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _remedy(count: int, width: int, counts: set[int | None]) -> str:
    """Return what to do about a row that has another number of fields than the first line.

    `counts` are the numbers of all rows.
    """
    if width == 1:
        return "the first line must name the columns: take out what is before their names"
    if counts == {width + 1}:
        return (
            "so has each row: name the first column, too (R leaves that name out), or take out "
            "the comma at the end of each row"
        )
    if count == 1:
        return "take it out if it is no row of the table, else give its empty fields their commas"
    return "a field with a comma in it needs quotes, and an empty one its comma"


def _records(text: str, mark: str = ",") -> Iterator[tuple[int, int | None]]:
    """Yield the first line of each record that isn't blank, and its number of fields.

    None, and the end, where it can't be read.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    line = 1
    try:
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                yield line, len(cells)
            line = reader.line_num + 1
    except csv.Error:
        yield line, None


_DAMAGED = (ValueError, TypeError, LookupError, NotImplementedError)
"""Errors of pandas for Parquet whose description of itself is wrong."""


def _parquet(path: Path) -> "tuple[list[str], pd.DataFrame]":
    """Return the columns' names, and all rows. Raises ConfigurationError."""
    import pandas as pd

    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ConfigurationError([f"{path}: {NO_PYARROW}"]) from error
    try:
        check_kind(path)
        with ParquetFile(path) as file:
            about, names = file.metadata, file.schema_arrow.names
        groups = [about.row_group(n) for n in range(about.num_row_groups)]
        if len(names) > MOST_COLUMNS or about.num_rows * len(names) > MOST_CELLS:
            raise ConfigurationError([f"{path}: has more than {MOST_CELLS:,} cells: {FEWER}"])
        if sum(group.total_byte_size for group in groups) > LARGEST_FILE:
            raise ConfigurationError([f"{path}: has more than {LARGEST_FILE // 10**6} MB: {FEWER}"])
        # As a dictionary, a long text is in memory once, as in the file.
        frame = pd.read_parquet(path, engine="pyarrow", read_dictionary=names)
        if any(name is not None for name in frame.index.names):
            frame = frame.reset_index()  # pandas has some of the columns there
    except (OSError, *_DAMAGED, ArrowException) as error:
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ConfigurationError([f"{path}: can't be read: {why}"]) from error
    return [str(name) for name in frame.columns], frame
