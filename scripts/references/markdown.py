"""Markdown that all reference pages share."""

import re
from collections.abc import Iterable, Sequence

from intop.document.columns import texts
from intop.document.markdown import table as table_of

MADE = "<!-- Made by `make docs`: change {source} and run it again. -->\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell stays a bar."""
    cells = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return table_of(texts(*head), cells) + "\n"


def anchor(title: str) -> str:
    """What a link to a heading ends with, by GitHub's rule."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
