"""Texts in CSV files: no spreadsheet takes one for a formula, and each is read back as it was."""

import csv
import re
from collections.abc import Iterable

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""The beginnings of a formula, and what spreadsheets leave out before one."""
_MARK = "'"
_NUMBERS = re.compile(r"[-+]?[0-9][0-9. ]*([eE][-+]?[0-9]+)?")


def cell(text: str) -> str:
    """Return the text for a cell: an apostrophe stands before what looks like a formula.

    Numbers stay as they are, also several with blanks between.
    """
    return f"{_MARK}{text}" if _is_formula(text) and not _NUMBERS.fullmatch(text) else text


def text_of(cell: str) -> str:
    """Return the text that `cell` was made of."""
    return cell[1:] if cell.startswith(_MARK) and _is_formula(cell) else cell


def quoting(texts: Iterable[str]) -> int:
    """Return how `csv` has to quote these cells, a constant of its own.

    A carriage return ends a line for many programs, and `csv` alone leaves it without quotes.
    """
    return csv.QUOTE_NONNUMERIC if any("\r" in text for text in texts) else csv.QUOTE_MINIMAL


def _is_formula(text: str) -> bool:
    # With apostrophes before it too: else one of the text's own would be taken off.
    return text.lstrip(_MARK).startswith(_STARTS)
