"""The parts of a document. Tables hold plain values, which each form words in the same way."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from intop.document.columns import Column, Value

if TYPE_CHECKING:
    from intop.document.drawing import Drawing  # with matplotlib, which text does without

Origin = Literal["measured", "predicted", ""]
"""Whether a table's values were measured or predicted, never both; "" is neither."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    name: str = ""
    """Name of its file, unique in a document that is written as HTML or to files."""
    title: str = ""
    """Caption in HTML; elsewhere the heading above it has to do."""
    origin: Origin = ""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure with the tables that have its data."""

    title: str
    draw: "Callable[[], Drawing]"
    """Draws it when it is needed."""
    label: str
    """A sentence for those who can't see it, unique in a document."""
    caption: str
    """Sentences about its content and how to read it."""
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
    """A heading with blocks below it; sections in it have smaller headings."""

    title: str
    blocks: tuple["Block", ...] = ()
    name: str = ""
    """Anchor in HTML, unique in a document."""
    folded: bool = False
    """Whether it stands behind its title, where it can: few want to see it."""
    beside: bool = False
    """Whether its other blocks stand beside its figure, where there is room."""


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
        """Return all tables in order, also those of figures."""
        return _tables(self.sections)

    def figures(self) -> Iterator[Figure]:
        """Return all figures in order."""
        return _figures(self.sections)


def _figures(blocks: Iterable[Block]) -> Iterator[Figure]:
    for block in blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Section):
            yield from _figures(block.blocks)


def _tables(blocks: Iterable[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Figure):
            yield from block.tables
        elif isinstance(block, Section):
            yield from _tables(block.blocks)


def renamed(block: Block, prefix: str) -> Block:
    """Return a block in which the names of all tables begin with a prefix."""
    match block:
        case Table():
            return replace(block, name=f"{prefix}{block.name}")
        case Figure():
            tables = tuple(replace(t, name=f"{prefix}{t.name}") for t in block.tables)
            return replace(block, tables=tables)
        case Section():
            return replace(block, blocks=tuple(renamed(b, prefix) for b in block.blocks))
    return block


def without_empty(table: Table) -> Table:
    """Return a table without the columns in which no row has anything; the first stays."""
    kept = [
        place
        for place in range(len(table.columns))
        if place == 0 or any(row[place] is not None for row in table.rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
    )


def widened(table: Table, column: Column, cells: Iterable[Value]) -> Table:
    """The table with a further column."""
    rows = tuple((*row, cell) for row, cell in zip(table.rows, cells, strict=True))
    return replace(table, columns=(*table.columns, column), rows=rows)
