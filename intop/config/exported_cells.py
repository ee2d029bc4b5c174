"""Cells of exported trials, held against what `intop export` writes into them."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from intop.config.quantity import quantity, rewriting
from intop.config.source import short
from intop.config.table_file import Column
from intop.domain.encoding import Variable

LARGEST_COUNT = 2**53
"""Up to here a float has all whole numbers."""
CORRECT = "correct it, or export the trials again"


def numbers(column: Column) -> NDArray[np.float64]:
    """The numbers of a column (rows,), NaN for what is none."""
    found = (quantity(text) for text in column.texts)
    by_code = [np.nan if q is None or q[1] else q[0] for q in found]
    return np.asarray(np.array(by_code, dtype=np.float64)[column.codes], dtype=np.float64)


def counts(column: Column) -> NDArray[np.float64]:
    """The numbers of a column of counts (rows,). Raises ConfigurationError for any other cell."""
    values = numbers(column)
    for row in np.flatnonzero(~(np.isfinite(values) & (values >= 0))).tolist():
        raise column.wrong_in(row, f"must be a number from 0 on{instead(column.text(row))}")
    for row in np.flatnonzero((values % 1 != 0) | (values > LARGEST_COUNT)).tolist():
        raise column.wrong_in(row, f"must be a whole number{instead(column.text(row))}")
    return values


def check_words(column: Column, words: Collection[str]) -> None:
    """Raises ConfigurationError for a cell that has none of these."""
    for code, text in enumerate(column.texts):
        if text not in words and _same_number(text, words) is None:
            raise column.wrong(code, f"must be {_any_of(words)}{instead(text)}")


def encoded(
    column: Column, variable: Variable, outside: Collection[str], rows: Iterable[int]
) -> dict[int, float]:
    """A variable's number in each of these rows.

    `outside` are values that its trials have and its range or list of choices doesn't, such as a
    default. Such a choice counts as the first one, as in a space. Raises ConfigurationError for a
    cell that has another value.
    """
    by_row: dict[int, float] = {}
    by_code: dict[int, float] = {}
    for row in rows:
        code = int(column.codes[row])
        if code not in by_code:
            number = _choice if variable.choices else _number
            by_code[code] = number(column, variable, outside, row)
        by_row[row] = by_code[code]
    return by_row


def check_equal(
    columns: Mapping[str, Column], values: Mapping[str, Mapping[int, float]], rows: Sequence[int]
) -> None:
    """Raises ConfigurationError for rows of one configuration whose values differ."""
    first = rows[0]
    for name, by_row in values.items():
        for row in rows[1:]:
            if by_row[row] != by_row[first]:
                column = columns[name]
                told = f"{short(column.text(row))} here and {short(column.text(first))} there"
                raise column.wrong_in(
                    row, f"is of the same configuration as {column.place(first)}: {told}: {CORRECT}"
                )


def _choice(column: Column, variable: Variable, outside: Collection[str], row: int) -> float:
    text = column.text(row)
    if text in variable.choices:
        return float(variable.choices.index(text))
    if text in outside:
        return 0.0
    if (choice := _same_number(text, variable.choices)) is not None:
        return float(variable.choices.index(choice))
    raise column.wrong_in(row, f"must be {_any_of(variable.choices)}{instead(text)}")


def _number(column: Column, variable: Variable, outside: Collection[str], row: int) -> float:
    text = column.text(row)
    found = quantity(text)
    if found is None or found[1]:
        raise column.wrong_in(row, f"must be a number{instead(text)}")
    number = found[0]
    if number % 1 != 0:
        raise column.wrong_in(row, f"must be a whole number{instead(text)}")
    if variable.has(number) or number in map(float, outside):
        return number
    bounds = f"{variable.low:.15g} to {variable.high:.15g}"
    raise column.wrong_in(row, f"must be from {bounds}{instead(text)}")


def _same_number(text: str, words: Iterable[str]) -> str | None:
    """The word that is the same number: a notebook may write 1 as 1.0."""
    number = quantity(text)
    return None if number is None else next((w for w in words if quantity(w) == number), None)


def _any_of(words: Collection[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def instead(text: str) -> str:
    """What a cell has in place of what it must have, and what to do."""
    advice = rewriting(text)
    return f", and is {short(text) if text else 'empty'}{advice and f', which {advice}'}: {CORRECT}"
