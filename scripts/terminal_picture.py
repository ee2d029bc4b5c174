"""docs/images/tune.svg: the end of a real run, from the text that it printed.

    python -m scripts.terminal_picture

The text is docs/images/tune.txt, which stays beside the picture. Its first line says where it is
from: the command, the commit and the date.
"""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).parents[1] / "docs" / "images"
TEXT, PICTURE = FOLDER / "tune.txt", FOLDER / "tune.svg"
WIDTH = 112
"""Columns of the terminal."""

_FONT_OR_NOTE = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)


def picture(text: str) -> str:
    """Return the picture of a terminal with this text. Its first line is the title."""
    title, _, body = text.partition("\n")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in body.rstrip("\n").splitlines():
        console.print(_coloured(line), soft_wrap=True)
    svg = console.export_svg(title=title.lstrip("# "), unique_id="intop")
    # Fonts from elsewhere would be fetched by whoever looks at it.
    return _FONT_OR_NOTE.sub("", svg)


def _coloured(line: str) -> Text:
    text = Text(line)
    text.highlight_regex(r"^\$ .*$", "bold")
    text.highlight_regex(r"(?<=: )gain(?=[:,])|\d+\.\d+ times lower", "bold green")
    text.highlight_regex(r"(?<=: )(undecided|no gain|no significant gain)[^(;]*", "yellow")
    text.highlight_regex(r"^(Details|Compare|Next):", "dim")
    return text


if __name__ == "__main__":
    PICTURE.write_text(picture(TEXT.read_text()))
    print(f"written: {PICTURE.relative_to(FOLDER.parents[1])}")
