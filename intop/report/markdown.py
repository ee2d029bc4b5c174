"""GitHub's Markdown: tables, and text in which nothing is taken for markup."""

import re
from collections.abc import Iterable, Sequence

_PLAIN = re.compile(r"[\w .:,/+=-]+", re.ASCII)


def table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; columns are of a name and "left" or "right"."""
    names = [escaped(name) for name, _ in columns]
    rulers = ["---:" if justify == "right" else "---" for _, justify in columns]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, rulers, *rows))


def escaped(text: str) -> str:
    """Without what Markdown would take for its own."""
    for sign in "\\|*<[`":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")


def code(text: str) -> str:
    """As code, where nothing in it could end that."""
    return f"`{text}`" if _PLAIN.fullmatch(text) else escaped(text)
