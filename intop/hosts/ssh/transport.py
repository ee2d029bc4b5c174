"""An SSH transport that remembers why it ended."""

import paramiko

from intop.hosts.host import MOST_SHOWN

LOST = (paramiko.SSHException, OSError, EOFError)
"""paramiko's errors for a connection that can't be made, or has ended."""
HARMLESS = (paramiko.ChannelException, paramiko.AuthenticationException)
"""Errors that end nothing, though paramiko keeps them in the same place: a refusal."""


class Transport(paramiko.Transport):
    """paramiko's transport, which keeps the reason of its end."""

    _why = ""

    @property
    def why(self) -> str:
        """The reason of its end, in a few words. Of use once it is no longer active."""
        if not self._why:
            self.get_exception()
        return self._why or "it was closed"

    def give_up(self, why: str) -> None:
        """Close it, for this reason."""
        self._why = self._why or why
        self.close()

    def get_exception(self) -> Exception | None:
        """Return the last error, once."""
        error = super().get_exception()
        if error is not None and not isinstance(error, HARMLESS):
            self._why = self._why or _words(error)
        return error

    def _parse_disconnect(self, m: paramiko.Message) -> None:
        m.get_int()  # a number for the kind of reason
        self._why = f"the host ended it: {_plain(m.get_text()) or 'without a reason'}"


def _words(error: Exception) -> str:
    return _plain((isinstance(error, OSError) and error.strerror) or str(error))


def _plain(text: str) -> str:
    return " ".join(text.split())[:MOST_SHOWN]


def is_over(transport: Transport) -> bool:
    """Return whether the connection has ended. It closes its channels a moment before that."""
    transport.join(timeout=1)
    return not transport.is_active()
