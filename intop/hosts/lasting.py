"""A command that stays on a host and answers requests, such as a shell with a script."""

import secrets

from intop.errors import HostError
from intop.hosts.host import Conversation, Host

ANSWER_LIMIT_S = 30.0
MARK_BYTES = 16
"""The bytes of a mark: twice as many digits, while a program's name has 15 characters at most."""


class LastingCommand:
    """The command of one host. It starts with a request, also after it was lost or closed.

    Its priority is low, since neither a user's request nor a measurement may wait for it.
    """

    def __init__(self, host: Host, command: str) -> None:
        self.mark = secrets.token_hex(MARK_BYTES)
        """The line that ends each of its answers."""
        self._host = host
        self._command = f"exec nice -n 19 {command}"
        self._conversation: Conversation | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has started. It may be lost since then."""
        return self._conversation is not None

    def ask(self, request: str, *, first: str) -> str:
        """Return the answer up to and with the mark. A command that starts gets `first` before.

        Raises:
            UnreachableError: The connection or the command is lost.
            CommandError: The host refuses the command, or no answer comes within ANSWER_LIMIT_S.
        """
        try:
            if self._conversation is None:
                self._conversation = self._host.converse(self._command)
                request = first + request
            return self._conversation.ask(request, self.mark, ANSWER_LIMIT_S)
        except HostError:
            self.close()
            raise

    def heard(self) -> str:
        """Return its output since the last answer, without waiting."""
        return "" if self._conversation is None else self._conversation.heard()

    def close(self) -> None:
        """End it."""
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None
