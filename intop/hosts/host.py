"""What a host is to the rest of us: a place where commands run and files can be put."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from intop.domain.cluster import HostAddress
from intop.errors import CommandError

SAID = 500
"""Characters of what a command said that get into a message."""


@dataclass(frozen=True)
class Completed:
    """A command that ended by itself."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """The end of what it said, for a message, which is stored and shown: never megabytes."""
        return (self.stderr or self.stdout).strip()[-SAID:] or "nothing"


class Conversation(Protocol):
    """A command that runs on a host and answers requests until it is closed."""

    def ask(self, request: str, end: str, timeout_s: float) -> str:
        """Send a text, and return all that is said up to and with the line `end`.

        Raises UnreachableError when the connection is lost or the command has ended, CommandError
        after `timeout_s` or for an answer without end.
        """

    def heard(self) -> str:
        """What has been said since the last answer, without waiting; no answer repeats it."""

    def close(self) -> None:
        """End the command's input, so that it ends."""


class Host(Protocol):
    """A connected host. Commands are POSIX sh, and every word in them is already quoted."""

    @property
    def address(self) -> HostAddress:
        """Where it is and what it is called."""

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        """Run a command to its end. Raises UnreachableError, or CommandError after `timeout_s`."""

    def converse(self, command: str) -> Conversation:
        """Start a command that is to answer. Raises what `run` does."""

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        """Write texts to files by name in `directory`, which is made when it is missing."""

    def close(self) -> None:
        """End the connection."""


Connect = Callable[[HostAddress], Host]


def output(host: Host, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> str:
    """Standard output of a command that must succeed. Raises CommandError when it doesn't."""
    completed = host.run(command, stdin=stdin, timeout_s=timeout_s)
    if completed.exit_code != 0:
        short = command if len(command) <= 100 else command[:100] + " ..."
        raise CommandError(
            host.address.name,
            f"exit code {completed.exit_code} of `{short}`, which said: {completed.said}",
        )
    return completed.stdout
