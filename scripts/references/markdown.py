"""Pieces of Markdown that both documents have."""

import re
from collections.abc import Iterable, Sequence

MADE = "<!-- Made by `make docs`: change {source} and make it anew. -->\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell stays a bar."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(c.replace("|", r"\|") for c in line) + " |\n" for line in lines
    )


def anchor(title: str) -> str:
    """What a link to a heading ends with, by GitHub's rule."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
