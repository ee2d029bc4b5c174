"""What a document is made of. Tables hold plain values; each form words them in the same way."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from intop.domain.stats import DifferenceInterval, MeanInterval, RatioInterval
from intop.report.numbers import interval, number

if TYPE_CHECKING:
    from intop.report.figures.drawing import Drawing  # with matplotlib, which text does without

Origin = Literal["measured", "predicted", ""]
"""Whether a table's values were measured or predicted, never both; "" is neither."""

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
"""How a column is read: words, sentences, sentences about what the first column names, times, names
to be copied, a value and next to it the one that takes its place, whole numbers, three digits, a
value with its interval, or a signed one."""

NOTHING = "-"
"""In a cell of what there is not."""
AS_ABOVE = "as above"
"""In a column of sentences where that of the row above holds, too."""


@dataclass(frozen=True)
class Span:
    """A value with an interval."""

    value: float
    low: float
    high: float


Value = str | float | Span | None
"""What a cell holds; None is what there is not. Words may stand in a column of numbers."""


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
        """Whether its values are aligned at their ends."""
        return self.form in ("count", "number", "span", "difference")


def columns(form: Form, *names: str) -> tuple[Column, ...]:
    """Several that are read alike."""
    return tuple(Column(name, form) for name in names)


def texts(*names: str) -> tuple[Column, ...]:
    """Columns of words."""
    return columns("text", *names)


def numbers(*names: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return columns("number", *names)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table.

    `title` is its caption in HTML; elsewhere the heading above it has to do. `name` is what its
    file is called, and unique in a document that is written as HTML or to files.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    name: str = ""
    title: str = ""
    origin: Origin = ""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure, drawn when it is needed, with the tables that have its data.

    `label` says in a sentence what is to be seen, for those who can't see it, and is unique in a
    document; `caption` says what it shows and how to read it.
    """

    title: str
    draw: "Callable[[], Drawing]"
    label: str
    caption: str
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Paragraph:
    """Sentences, of which `lead` stands out; a `command` to be copied ends them."""

    text: str
    lead: str = ""
    command: str = ""


@dataclass(frozen=True)
class Notes:
    """Sentences, each on a line of its own."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Verbatim:
    """Lines that are commands to be copied, or may hold one; they are never broken."""

    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with what stands below it; sections in it have smaller headings.

    `name` is its anchor in HTML, and unique in a document. What is `folded` few want to see: where
    it can, it stands behind its title.
    """

    title: str
    blocks: tuple["Block", ...] = ()
    name: str = ""
    folded: bool = False


def tabled(
    title: str,
    columns: tuple[Column, ...],
    rows: Iterable[tuple[Value, ...]],
    notes: Iterable[str] = (),
) -> Section:
    """A heading, a table, and sentences below it, as far as there are rows and notes."""
    table, below = Table(columns=columns, rows=tuple(rows)), Notes(tuple(notes))
    blocks = (*((table,) if table.rows else ()), *((below,) if below.lines else ()))
    return Section(title=title, blocks=blocks)


Block = Paragraph | Notes | Verbatim | Table | Figure | Section


@dataclass(frozen=True, kw_only=True)
class Document:
    """A page: its title, a line below it, and its sections."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]

    def tables(self) -> Iterator[Table]:
        """All of them, in order, also those of figures."""
        return _tables(self.sections)


def _tables(blocks: Iterable[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Figure):
            yield from block.tables
        elif isinstance(block, Section):
            yield from _tables(block.blocks)


def widened(table: Table, column: Column, cells: Iterable[Value]) -> Table:
    """The table with a further column."""
    rows = tuple((*row, cell) for row, cell in zip(table.rows, cells, strict=True))
    return replace(table, columns=(*table.columns, column), rows=rows)


def span(found: RatioInterval | MeanInterval | DifferenceInterval | None) -> Span | None:
    """An interval of any kind as a cell."""
    if found is None:
        return None
    if isinstance(found, RatioInterval):
        return Span(found.ratio, found.low, found.high)
    value = found.mean if isinstance(found, MeanInterval) else found.difference
    return Span(value, found.low, found.high)


def worded(value: Value, column: Column) -> str:
    """A cell's words."""
    if isinstance(value, str):
        return value
    if value is None or not math.isfinite(value.value if isinstance(value, Span) else value):
        return NOTHING
    if isinstance(value, Span):
        sign = "+" if column.form == "difference" else ""
        return interval(value.value, value.low, value.high, sign)
    return f"{value:.0f}" if column.form == "count" else number(value)
