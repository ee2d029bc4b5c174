"""A host: a place where commands run and files can be put."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from intop.domain.cluster import HostAddress
from intop.errors import CommandError

T = TypeVar("T")

MOST_SHOWN = 500
"""Characters of a command's output in a message."""


@dataclass(frozen=True)
class Completed:
    """A command that ended by itself."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def message(self) -> str:
        """The end of its output, for a message, which is stored and shown: never megabytes."""
        return (self.stderr or self.stdout).strip()[-MOST_SHOWN:] or "nothing"


class Conversation(Protocol):
    """A command that runs on a host and answers requests until it is closed."""

    def ask(self, request: str, end: str, timeout_s: float) -> str:
        """Send a text, and return the answer up to and with the line `end`.

        Raises:
            UnreachableError: The connection is lost, or the command has ended.
            CommandError: No end of the answer came within `timeout_s`.
        """

    def heard(self) -> str:
        """Return the output since the last answer, without waiting; no answer repeats it."""

    def close(self) -> None:
        """End the command's input, so that it ends."""


class Host(Protocol):
    """A connected host. Commands are POSIX sh, and every word in them is already quoted."""

    @property
    def address(self) -> HostAddress:
        """Its address and name."""

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        """Run a command to its end.

        Raises:
            UnreachableError: The connection is lost.
            CommandError: The command takes longer than `timeout_s`.
        """

    def converse(self, command: str) -> Conversation:
        """Start a command that answers requests. Raises what `run` does."""

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        """Write texts to files by name in `directory`, which is made when it is missing."""

    def close(self) -> None:
        """End the connection."""


Connect = Callable[[HostAddress], Host]


def output(host: Host, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> str:
    """Return the standard output of a command that must succeed.

    Raises:
        CommandError: It fails.
    """
    completed = host.run(command, stdin=stdin, timeout_s=timeout_s)
    if completed.exit_code != 0:
        short = command if len(command) <= 100 else command[:100] + " ..."
        raise CommandError(
            host.address.name,
            f"exit code {completed.exit_code} of `{short}`, which said: {completed.message}",
        )
    return completed.stdout


def parsed_output(
    host: Host, command: str, parse: Callable[[str], T], problem: str, *, stdin: str = ""
) -> T:
    """Return the output of a command that must succeed, as `parse` understands it.

    Raises:
        CommandError: It fails, or its output makes no sense, which is the `problem`.
    """
    return parsed(host, output(host, command, stdin=stdin), parse, problem)


def parsed(host: Host, text: str, parse: Callable[[str], T], problem: str) -> T:
    """Return a host's answer as `parse` understands it. Raises CommandError with the `problem`."""
    try:
        return parse(text)
    except (KeyError, ValueError) as error:
        raise CommandError(host.address.name, f"{problem} ({error}): {text[:200]!r}") from error
