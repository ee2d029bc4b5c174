"""A document as text for a terminal or a file."""

from collections.abc import Iterable, Iterator
from textwrap import fill

import rich.table
from rich.box import SIMPLE
from rich.console import RenderableType
from rich.text import Text

from intop.document.columns import AS_ABOVE, NOTHING, Column, Value, worded
from intop.document.model import Block, Figure, Notes, Paragraph, Section, Table, Verbatim
from intop.document.terminal import console
from intop.words import inert

NARROWEST = 120
"""Characters of a file's line at least."""
WIDEST = 100
"""Characters of a line of sentences at most."""
REMARK = 46
"""Characters of a line of a remark."""
LONG = 24
"""Characters of two values from which on they don't stand in one line."""


def show(*blocks: Block, stderr: bool = False) -> None:
    """Print to stdout or stderr: coloured on a terminal, plain and never cut in a file.

    A terminal obeys nothing of what is printed: cells hold what hosts said, so nothing in them is
    markup, and control characters are shown.
    """
    out = console(stderr=stderr)
    if not out.is_terminal:
        out = console(stderr=stderr, width=max(NARROWEST, out.width), colour=False)
    before: RenderableType = ""
    for part in _parts(blocks, min(out.width, WIDEST)):
        # A table brings its empty lines along.
        if part != "" or (before != "" and not isinstance(before, rich.table.Table)):
            out.print(part, soft_wrap=isinstance(part, Text))
        before = part


def _parts(blocks: Iterable[Block], width: int) -> Iterator[RenderableType]:
    """Lines of text, tables, and empty lines as ""."""
    for block in blocks:
        match block:
            case Section():
                yield ""
                yield Text(inert(block.title), style="bold")
                yield from _parts(block.blocks, width)
                yield ""
            case Paragraph():
                parts = (block.lead, block.text, block.command)
                yield _filled(" ".join(words for words in parts if words), width)
            case Notes():
                yield from (_filled(line, width) for line in block.lines)
            case Verbatim():
                yield from (Text(inert(line)) for line in block.lines)
            case Figure():
                yield from _parts(
                    (Paragraph(block.caption, f"{block.title}."), *block.tables), width
                )
            case Table():
                yield from _table(block, width)


def _filled(line: str, width: int) -> Text:
    """A sentence, in which no path and no command is broken; what follows a line is indented."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return Text(
        fill(
            inert(line),
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _table(table: Table, width: int) -> Iterator[RenderableType]:
    """Sentences of a column follow below the table, in which they would be too narrow."""
    shown: list[tuple[Column, list[str]]] = []
    below: list[Text] = []
    for place, column in enumerate(table.columns):
        cells = [_cell(row[place], column) for row in table.rows]
        if column.form == "prose" and place:
            below += [
                _filled(f"{row[0]}: {cell}", width)
                for row, cell in zip(table.rows, cells, strict=True)
                if cell not in (AS_ABOVE, NOTHING)
            ]
        elif column.form == "remark":
            name, above = shown[0]
            shown[0] = name, [f"{n}\n{_remark(c)}" for n, c in zip(above, cells, strict=True)]
        elif column.form == "after":
            name, values = shown.pop()
            both = [_changes(*pair) for pair in zip(values, cells, strict=True)]
            shown.append((Column(f"{name.name} -> {column.name}", "text"), both))
        else:
            shown.append((column, cells))
    grid = rich.table.Table(box=SIMPLE)
    for place, (column, _) in enumerate(shown):
        grid.add_column(
            Text(inert(column.name)),
            justify="right" if column.is_right else "left",
            overflow="fold",  # nothing is cut
            no_wrap=column.form == "key" and place == 0,  # what is copied from here
        )
    for row in zip(*(cells for _, cells in shown), strict=True):
        grid.add_row(*map(Text, row))
    yield grid
    yield from below


def _cell(value: Value, column: Column) -> str:
    words = inert(worded(value, column))
    has_unit = column.unit and words != NOTHING and not isinstance(value, str)
    return f"{words} {column.unit}" if has_unit else words


def _remark(text: str) -> str:
    return fill(text, REMARK, initial_indent="  ", subsequent_indent="  ")


def _changes(before: str, after: str) -> str:
    return "\n".join(map(_change, before.split("\n"), after.split("\n")))


def _change(before: str, after: str) -> str:
    if before == after:
        return after
    return f"{before}{chr(10) if len(before + after) > LONG else ' '}-> {after}"
