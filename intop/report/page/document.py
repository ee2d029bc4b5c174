"""What a page is made of. Tables hold plain values; each form of the page words them itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from intop.domain.stats import DifferenceInterval, MeanInterval, RatioInterval
from intop.report.figures.drawing import Drawing

Origin = Literal["measured", "predicted", ""]
"""Whether a table's values were measured or predicted, never both; "" is neither."""

Form = Literal["text", "prose", "time", "key", "count", "number", "span"]
"""How a column is read: words, sentences, times, names to be copied, whole numbers, three digits,
or a value with its interval."""


@dataclass(frozen=True)
class Span:
    """A value with an interval."""

    value: float
    low: float
    high: float


Value = str | float | Span | None
"""What a cell holds; None is what there is not."""


@dataclass(frozen=True)
class Column:
    """A column; its unit belongs to the name."""

    name: str
    form: Form = "number"


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table. `name` is what its file is called, and unique in a document."""

    name: str
    title: str
    origin: Origin
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure, drawn when it is needed, with the tables that have its data.

    `label` says in a sentence what is to be seen, for those who can't see it, and is unique in a
    document; `caption` says what it shows and how to read it.
    """

    title: str
    draw: Callable[[], Drawing]
    label: str
    caption: str
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Paragraph:
    """Sentences, of which `lead` stands out."""

    text: str
    lead: str = ""


@dataclass(frozen=True)
class Commands:
    """Lines to be copied into a terminal."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Lacking:
    """What is not there yet, and the command that makes it."""

    text: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Folded:
    """Tables that few want to see: they stand behind their title."""

    title: str
    tables: tuple[Table, ...]


Block = Paragraph | Commands | Lacking | Table | Figure | Folded


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a section has to say of one subject."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with what it has to say: of all, and then of each subject.

    `name` is its anchor, and unique in a document.
    """

    name: str
    title: str
    blocks: tuple[Block, ...] = ()
    parts: tuple[Part, ...] = ()

    def tables(self) -> Iterator[Table]:
        """All tables, also those of figures and folded ones."""
        for block in (*self.blocks, *(b for part in self.parts for b in part.blocks)):
            if isinstance(block, Table):
                yield block
            elif isinstance(block, (Figure, Folded)):
                yield from block.tables


@dataclass(frozen=True, kw_only=True)
class Document:
    """A page: its title, a line below it, and its sections."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]

    def tables(self) -> Iterator[Table]:
        """All of them, in order."""
        for section in self.sections:
            yield from section.tables()


def span(found: RatioInterval | MeanInterval | DifferenceInterval | None) -> Span | None:
    """An interval of any kind as a cell."""
    if found is None:
        return None
    if isinstance(found, RatioInterval):
        return Span(found.ratio, found.low, found.high)
    value = found.mean if isinstance(found, MeanInterval) else found.difference
    return Span(value, found.low, found.high)
