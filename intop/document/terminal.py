"""Terminals: whether text may be coloured, and whether it may be redrawn.

NO_COLOR with any value but an empty one turns colours and bold letters off, on a terminal too
(no-color.org), and so does CLICOLOR=0 (bixense.com/clicolors).
"""

import os
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

DUMB = ("dumb", "unknown")
"""Values of TERM for what can only print one line after the other."""


def is_live(stream: TextIO) -> bool:
    """Return whether printed text can be redrawn in place."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in DUMB


def is_plain() -> bool:
    """Return whether the user wants no colours anywhere."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("CLICOLOR") == "0"


def console(*, stderr: bool = False, width: int | None = None, colour: bool = True) -> "Console":
    """Rich's console for stdout or stderr. Nothing in what is printed is markup."""
    from rich.console import Console

    return Console(
        stderr=stderr,
        width=width,
        color_system="auto" if colour and not is_plain() else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
