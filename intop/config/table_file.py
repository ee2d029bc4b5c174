"""A file with a table: its columns as text, and one clear error for all that is not a table.

pandas reads it. What pandas has no answer for is here: how much a small packed file may unpack to,
and in which line a fault is.
"""

import bz2
import csv
import difflib
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from intop.config.quantity import quantity
from intop.config.source import UTF_16, check_kind, short
from intop.domain.table import NO_PYARROW, PARQUET
from intop.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd

LARGEST_FILE = 100_000_000
"""In bytes, unpacked. 50,000 rows of 40 columns have some ten million."""
MOST_CELLS = 10_000_000
"""As text they take some seconds to read."""
MOST_COLUMNS = 10_000
"""Models take a tenth of these."""
FEWER = "leave rows or columns out"
LONGEST_NAME = 200
"""Longer ones are no names, and comparing them with what was asked for would take for ever."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: each text once, in order of appearance, without blanks around it.

    `codes` (rows,) are indexes into `texts`; `place` says where a row is, such as `line 4`.
    """

    path: Path
    name: str
    texts: tuple[str, ...]
    codes: NDArray[np.intp]
    place: Callable[[int], str]

    def text(self, row: int) -> str:
        """What a row has."""
        return self.texts[int(self.codes[row])]

    def where(self, row: int) -> str:
        """A row with its file, such as `a.csv:4` or `a.parquet: row 3`."""
        place = self.place(row)
        line = place.removeprefix("line ")
        return f"{self.path}: {place}" if line == place else f"{self.path}:{line}"

    def wrong(self, code: int, what: str) -> ConfigurationError:
        """An error in the first cell that has this text."""
        return self.wrong_in(int(np.argmax(self.codes == code)), what)

    def wrong_in(self, row: int, what: str) -> ConfigurationError:
        """An error in the cell of this row."""
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
        self._text = None if path.suffix.lower() == PARQUET else _text(path)
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
        what = f"has no column {short(word)} ({option}); {self._alike(word)}"
        if len(self.names) == 1:
            only = short(self.names[0])
            what = f"has one column only, {only}: a comma has to separate columns ({option})"
        raise self._wrong(what)

    def named(self, name: str) -> int:
        """The column that a table's schema names. Raises ConfigurationError unless it is one."""
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
        """These columns, by index. Raises ConfigurationError for two of one name."""
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
        """Where a row is, from 0. pandas doesn't say in which line one began."""
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
        """The names that a user may have meant, else the first ones."""
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
    """Whether names are a row of numbers. Columns may be numbered: 0, 1, 2."""
    numbers = [quantity(name) for name in names]
    counted = [(float(n), "") for n in range(len(names) + 1)]
    return len(names) > 1 and None not in numbers and numbers not in (counted[:-1], counted[1:])


def _csv(path: Path, text: str) -> "tuple[list[str], pd.DataFrame]":
    """The cells of the first row, and all other rows. Raises ConfigurationError, with the line."""
    import pandas as pd

    head = re.match(r"\s*(.*)", text)
    if head and head[1].count(",") >= MOST_COLUMNS:
        raise ConfigurationError([f"{path}: has more than {MOST_COLUMNS:,} columns: {FEWER}"])
    if mark := next((m for m in MARKS if _separates(m, text)), ""):
        raise _separated(path, mark)
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
"""What else separates columns. A table of one column has nothing to learn from."""


def _separates(mark: str, text: str) -> bool:
    """Whether a mark and no comma separates the names, or the mark does so alike in all rows.

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


def _separated(path: Path, mark: str) -> ConfigurationError:
    what = f"its columns are separated by {mark!r}: commas are needed, and a point before decimals"
    return ConfigurationError([f"{path}: {what}"])


def _faulty(path: Path, text: str, why: str) -> ConfigurationError:
    """What pandas found fault with, and the line, which it doesn't say for all faults."""
    records = list(_records(text))
    width = records[0][1] if records else None
    for line, count in records:
        if count is None:
            break
        if count != width:
            told = f"has {_some(count, 'field')} for {_some(width or 0, 'column')}"
            remedy = _remedy(count, width or 0, {n for _, n in records[1:]})
            return ConfigurationError([f"{path}:{line}: {told}: {remedy}"])
    told = f"{path}:{line}: is not CSV: {why}; look for a quote that isn't closed"
    return ConfigurationError([told])


def _some(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _remedy(count: int, width: int, others: set[int | None]) -> str:
    """What to do about a row that has another number of fields than the first line.

    `others` are the numbers of all rows.
    """
    if width == 1:
        return "the first line must name the columns: take out what is before their names"
    if others == {width + 1}:
        return (
            "so has each row: name the first column, too (R leaves that name out), or take out "
            "the comma at the end of each row"
        )
    if count == 1:
        return "take it out if it is no row of the table, else give its empty fields their commas"
    return "a field with a comma in it needs quotes, and an empty one its comma"


def _records(text: str, mark: str = ",") -> Iterator[tuple[int, int | None]]:
    """The first line of each record that isn't blank, and how many fields it has by a mark.

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


def _parquet(path: Path) -> "tuple[list[str], pd.DataFrame]":
    """The columns' names, and all rows. Raises ConfigurationError."""
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


def _opened(path: Path) -> IO[bytes]:
    """Raises OSError and its like, also for an archive of several files."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        archive = zipfile.ZipFile(path)
        names = [member for member in archive.infolist() if _is_meant(member)]
        if len(names) != 1:
            raise OSError(0, f"the archive has {len(names)} files, and one is needed")
        return archive.open(names[0])
    packed: dict[str, Callable[[Path], Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
    }
    opened: IO[bytes] = packed.get(suffix, partial(open, mode="rb"))(path)
    return opened


def _is_meant(member: zipfile.ZipInfo) -> bool:
    """Whether a file of an archive is more than what macOS adds to each."""
    return not (member.is_dir() or member.filename.startswith("__MACOSX/"))


_DAMAGED = (ValueError, TypeError, LookupError, NotImplementedError)
"""What pandas makes of Parquet whose description of itself is wrong."""
_BROKEN = (OSError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def _text(path: Path) -> str:
    """Raises ConfigurationError for what is no file of text, and for one that is too large."""
    try:
        check_kind(path)
        # pandas would unpack without a limit, and say no line of what isn't text.
        with _opened(path) as file:
            data = file.read(LARGEST_FILE + 1)
    except _BROKEN as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError([f"{path}: can't be read: {why}"]) from error
    if len(data) > LARGEST_FILE:
        raise ConfigurationError([f"{path}: has more than {LARGEST_FILE // 10**6} MB: {FEWER}"])
    if data.startswith(UTF_16):
        return _without_mark(path, _utf_16(path, data))
    if kind := next((kind for start, kind in _OTHERS.items() if data.startswith(start)), ""):
        raise ConfigurationError([f"{path}: {kind}"])
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        if set(data[:40:2]) == {0} or set(data[1:40:2]) == {0}:
            told = f"{path}: is UTF-16 without its byte-order mark: save it as UTF-8"
            raise ConfigurationError([told])
        raise ConfigurationError([f"{path}:{line}: has a NUL byte: this is no CSV file in UTF-8"])
    try:
        return _without_mark(path, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            [f"{path}:{line}: is not UTF-8: convert it, as by iconv -f latin1 -t utf-8"]
        ) from error


_WORKBOOK = "is a workbook, not CSV: save its sheet as CSV (UTF-8)"
_OTHERS = {
    b"PK\x03\x04": f"{_WORKBOOK}; of a packed file, the name has to end in .zip",
    b"\xd0\xcf\x11\xe0": _WORKBOOK,
    b"\x1f\x8b": "is packed by gzip: its name has to end in .gz",
    b"BZh": "is packed by bzip2: its name has to end in .bz2",
    b"\xfd7zXZ": "is packed by xz: its name has to end in .xz",
    b"\x28\xb5\x2f\xfd": "is packed by zstd: unpack it, or pack it by gzip",
    b"PAR1": "is Parquet: its name has to end in .parquet",
}
_OTHERS |= dict.fromkeys((b'{"', b"{\n", b"{\r", b"[{", b"[\n", b"[\r"), "is JSON: save it as CSV")
_OTHERS |= dict.fromkeys((b"<!", b"<?", b"<html", b"<table"), "is HTML or XML: save it as CSV")
"""What files of another kind begin with."""


def _utf_16(path: Path, data: bytes) -> str:
    """As Excel and PowerShell write text. Raises ConfigurationError for what is damaged."""
    try:
        text = data.decode("utf-16")
    except UnicodeDecodeError as error:
        line = data[: error.start].decode("utf-16", errors="replace").count("\n") + 1
        told = f"{path}:{line}: is not UTF-16, as its first two bytes say: save it as UTF-8"
        raise ConfigurationError([told]) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ConfigurationError([f"{path}:{line}: has a NUL character: this is no CSV file"])
    return text


def _without_mark(path: Path, text: str) -> str:
    """A table with a blank line in place of the one that tells Excel how columns are separated.

    Raises ConfigurationError where that is not by commas.
    """
    match = re.match(r'"?sep=(.)"?[ \t]*(?=\r|\n|\Z)', text, re.IGNORECASE)
    if match is None:
        return text
    if match[1] != ",":
        raise _separated(path, match[1])
    return text[match.end() :]
