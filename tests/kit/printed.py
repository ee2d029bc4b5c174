"""What gets printed, as a file has it."""

import pytest

from intop.document.model import Block
from intop.document.text import show


def shown(capsys: pytest.CaptureFixture[str], *blocks: Block) -> str:
    """What gets into a file; nothing is cut, and nothing is coloured."""
    show(*blocks)
    out = capsys.readouterr().out
    assert "…" not in out
    assert "\x1b" not in out
    return out


def cells(out: str, start: str) -> list[str]:
    """The words of the one line that starts so."""
    (line,) = [line for line in out.splitlines() if line.strip().startswith(start)]
    return line.split()
