"""An SSH transport that remembers why it ended."""

import paramiko

from intop.hosts.host import SAID

HARMLESS = (paramiko.ChannelException, paramiko.AuthenticationException)
"""What paramiko keeps in the same place, though it ends nothing: a channel or a key was refused."""


class Transport(paramiko.Transport):
    """paramiko's, which tells what ended it once only, and the host's own words to its log."""

    _why = ""

    @property
    def why(self) -> str:
        """What ended it, in a few words. Of use once it is no longer active."""
        if not self._why:
            self.get_exception()
        return self._why or "it was closed"

    def give_up(self, why: str) -> None:
        """Close it, for this reason."""
        self._why = self._why or why
        self.close()

    def get_exception(self) -> Exception | None:
        """What went wrong last, if that wasn't asked yet."""
        error = super().get_exception()
        if error is not None and not isinstance(error, HARMLESS):
            self._why = self._why or _words(error)
        return error

    def _parse_disconnect(self, m: paramiko.Message) -> None:
        m.get_int()  # a number for the kind of reason
        self._why = f"the host ended it: {_plain(m.get_text()) or 'without a reason'}"


def _words(error: Exception) -> str:
    return _plain((isinstance(error, OSError) and error.strerror) or str(error))


def _plain(said: str) -> str:
    return " ".join(said.split())[:SAID]


def is_over(transport: Transport) -> bool:
    """Whether the connection has ended. It closes its channels a moment before it says so."""
    transport.join(timeout=1)
    return not transport.is_active()
