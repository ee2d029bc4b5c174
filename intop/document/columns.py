"""Columns of tables, the values that stand in them, and how these are worded."""

import math
from dataclasses import dataclass
from typing import Literal

from intop.domain.stats import Interval
from intop.words import interval, number

Form = Literal[
    "text",
    "prose",
    "remark",
    "time",
    "key",
    "before",
    "after",
    "count",
    "number",
    "span",
    "difference",
]
"""Reading of a column: words, sentences, sentences about the first column's names, times, names to
be copied, a value and the value that takes its place, whole numbers, three digits, a value with its
interval, or a signed value with its interval."""

NOTHING = "-"
"""Cell without a value."""
AS_ABOVE = "as above"
"""Cell in a column of sentences where the sentence above holds, too."""


@dataclass(frozen=True)
class Link:
    """Words that lead to the table of this name in the same document, where a form has links."""

    text: str
    table: str


Value = str | float | Interval | Link | None
"""Value of a cell; None is no value. Words may stand in a column of numbers."""


@dataclass(frozen=True)
class Column:
    """A column. Text has its unit in each cell; elsewhere it belongs to the name."""

    name: str
    form: Form = "number"
    unit: str = ""

    @property
    def heading(self) -> str:
        """The name with the unit."""
        return f"{self.name} in {self.unit}" if self.unit else self.name

    @property
    def is_right(self) -> bool:
        """Return whether its values are aligned at their ends."""
        return self.form in ("count", "number", "span", "difference")


def columns(form: Form, *names: str) -> tuple[Column, ...]:
    """Return columns of the same form."""
    return tuple(Column(name, form) for name in names)


def texts(*names: str) -> tuple[Column, ...]:
    """Columns of words."""
    return columns("text", *names)


def numbers(*names: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return columns("number", *names)


def worded(value: Value, column: Column) -> str:
    """A cell's words."""
    if isinstance(value, str):
        return value
    if isinstance(value, Link):
        return value.text
    if value is None or not math.isfinite(value.value if isinstance(value, Interval) else value):
        return NOTHING
    if isinstance(value, Interval):
        sign = "+" if column.form == "difference" else ""
        return interval(value.value, value.low, value.high, sign)
    return f"{value:.0f}" if column.form == "count" else number(value)
