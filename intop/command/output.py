"""Words and files: results go to stdout, all else to stderr."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from intop.command.exit_codes import INTERRUPTED
from intop.errors import UsageError
from intop.words import inert

if TYPE_CHECKING:
    from intop.document.model import Block

FIGURE_FORMAT = "intop.figure_format"
"""Click's key for the value of --figure-format."""


def output_folder(folder: Path, option: str) -> Path:
    """Return the folder of an option, made when it is missing. Raises UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder of {option} can't be made: {error}") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"the folder of {option}, {folder}, can't be written to")
    return folder


def write_page(output: Path, text: str) -> None:
    """Write a page to a file, all of it or nothing. Raises UsageError where that can't be."""
    from intop.atomic import write_atomically

    with writing(output):
        check_is_file(output)
        write_atomically(output, text.encode())


def check_is_file(output: Path) -> None:
    """Raises UsageError for a path of something that is no file."""
    if output.exists() and not output.is_file():
        raise UsageError(f"{output} can't be written: it is no file. Name another: --output PATH")


@contextmanager
def writing(output: Path) -> Iterator[None]:
    """Turn the system's errors about a file of --output into UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{output} can't be written: {error.strerror or error}. Name another: --output PATH"
        ) from error


def say_figures(folder: Path, results: Mapping[str, object]) -> dict[Path, str]:
    """Draw results by title, in the form of --figure-format, and say where.

    Returns the figures' titles by path.
    """
    from intop.document.figures import write_figures

    written = write_figures(folder, click.get_current_context().meta[FIGURE_FORMAT], results)
    for path in written:
        say(f"drawn: {path}")
    if not written:
        say("nothing of this result can be drawn")
    return written


def print_result(text: str) -> None:
    """Print a result to stdout."""
    click.echo(inert(text))


def show_result(result: Any, text_of: Callable[[Any], Iterable["Block"]], *, as_json: bool) -> None:
    """Print a result to stdout, as JSON or else as text."""
    if as_json:
        from intop.document.machine import to_json

        print_result(to_json(result))
    else:
        from intop.document.text import show

        show(*text_of(result))


def say(text: str) -> None:
    """Print a message to stderr."""
    click.echo(inert(text), err=True)


def confirm(without: str, question: str = "Go on?", lines: Sequence[str] = ()) -> None:
    """Say these lines and ask before hosts are changed; a no ends the command.

    Raises UsageError, with the lines and the text `without`, where nobody can be asked.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("\n".join([*lines, without]))
    for line in lines:
        say(line)
    if not click.confirm(question, err=True):
        say("nothing was changed")
        sys.exit(1)


def say_stopped(text: str) -> None:
    """Say the one line after Ctrl-C, below the ^C that a terminal shows."""
    before = "\n" if sys.stderr.isatty() else ""
    say(f"{before}intop: stopped{text}")


@contextmanager
def as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for Ctrl-C, also where it comes while Python takes a lock.

    `Condition.__exit__` then makes a RuntimeError of it.
    """
    try:
        yield
    except RuntimeError as error:
        is_interrupt = isinstance(error.__context__, KeyboardInterrupt)
        if is_interrupt and str(error) == "release unlocked lock":
            raise KeyboardInterrupt from error
        raise


@contextmanager
def interruptible(state: str) -> Iterator[None]:
    """Say this state when the block is stopped, in place of what is true of a campaign."""
    try:
        with as_interrupt():
            yield
    except (KeyboardInterrupt, click.Abort):
        say_stopped(f"; {state}")
        sys.exit(INTERRUPTED)
