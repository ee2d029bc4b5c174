"""A document in GitHub's Markdown, where no text is taken for markup."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from textwrap import indent

from intop.document.columns import Column, Value, worded
from intop.document.model import (
    Block,
    Document,
    Figure,
    Notes,
    Paragraph,
    Section,
    Table,
    Verbatim,
)
from intop.words import inert

_PLAIN = re.compile(r"[\w .:,/+=-]+", re.ASCII)
_CODE = ("key", "before", "after")


def as_markdown(blocks: Iterable[Block], depth: int = 2) -> str:
    """The blocks, with empty lines between them; headings begin with so many signs."""
    return "\n\n".join(_block(block, depth) for block in blocks)


def as_page(document: Document) -> str:
    """A whole document, of whose figures it has captions and data."""
    title = Section(title=document.title, blocks=(Paragraph(document.subtitle),))
    return inert(f"{as_markdown((title,), depth=1)}\n\n{as_markdown(document.sections)}\n")


def _block(block: Block, depth: int) -> str:
    match block:
        case Section():
            inside = as_markdown(block.blocks, depth + 1)
            if block.folded:
                summary = f"<summary>{escape(block.title)}</summary>"
                return f"<details>\n{summary}\n\n{inside}\n\n</details>"
            return f"{'#' * depth} {escaped(block.title)}" + (f"\n\n{inside}" if inside else "")
        case Paragraph():
            lead = f"**{escaped(block.lead)}** " if block.lead else ""
            command = f" {code(block.command)}" if block.command else ""
            return f"{lead}{escaped(block.text)}{command}"
        case Notes():
            return "\n".join(f"- {escaped(line)}" for line in block.lines)
        case Verbatim():
            return indent("\n".join(block.lines), "    ", lambda _: True)
        case Figure():
            return as_markdown((Paragraph(block.caption, f"{block.title}."), *block.tables), depth)
        case Table():
            return table(block.columns, (map(_cell, block.columns, row) for row in block.rows))


def table(columns: Sequence[Column], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are Markdown already."""
    names = [escaped(column.heading) for column in columns]
    rulers = ["---:" if column.is_right else "---" for column in columns]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, rulers, *rows))


def _cell(column: Column, value: Value) -> str:
    words = worded(value, column)
    return code(words) if column.form in _CODE and value else escaped(words)


def image(title: str, place: str) -> str:
    """A figure in a file of its own."""
    return f"![{escaped(title)}]({place})"


def escaped(text: str) -> str:
    """Return a text in which nothing is markup."""
    for sign in "\\|*<[`":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")


def code(text: str) -> str:
    """Return a text as code, where nothing in it could end that."""
    return f"`{text}`" if _PLAIN.fullmatch(text) else escaped(text)
