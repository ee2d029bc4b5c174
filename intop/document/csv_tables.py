"""A document's tables as files for other programs: plain numbers in the unit of their column."""

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from intop.atomic import write_atomically
from intop.document.columns import Column, Link, Value
from intop.document.model import Document, Table
from intop.domain.spreadsheet import cell, quoting
from intop.domain.stats import Interval
from intop.errors import IntopError
from intop.masking import masked


def write_tables(folder: Path, document: Document) -> list[Path]:
    """Write a file for each table, such as `x86-slt-percentiles.csv`, and their paths.

    What is not there is an empty cell; an interval has three columns. Raises IntopError for a file
    that can't be written.
    """
    written: list[Path] = []
    for table in document.tables():
        path = folder / f"{table.name}.csv"
        text, lines = StringIO(), list(_lines(table))
        how: Any = quoting(part for line in lines for part in line if isinstance(part, str))
        csv.writer(text, lineterminator="\n", quoting=how).writerows(lines)
        try:
            write_atomically(path, text.getvalue().encode())
        except OSError as error:
            raise IntopError(f"the table can't be written: {error}") from error
        written.append(path)
    return written


def _lines(table: Table) -> Iterator[list[str | float]]:
    yield [cell(name) for column in table.columns for name in _names(column)]
    for row in table.rows:
        pairs = zip(table.columns, row, strict=True)
        yield [part for column, value in pairs for part in _cells(column, value)]


def _names(column: Column) -> tuple[str, ...]:
    if column.form in ("span", "difference"):
        return column.heading, f"{column.heading}, low", f"{column.heading}, high"
    return (column.heading,)


def _cells(column: Column, value: Value) -> tuple[str | float, ...]:
    if isinstance(value, Interval):
        return value.value, value.low, value.high
    value = value.text if isinstance(value, Link) else value
    first = cell(masked(value)) if isinstance(value, str) else "" if value is None else value
    return (first, *("" for _ in _names(column)[1:]))
