"""A command over a connection that answers one request after the other."""

import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

import paramiko

from intop.errors import CommandError, HostError, UnreachableError
from intop.hosts.ssh import sudo
from intop.hosts.ssh.command import OUTPUT_LIMIT_BYTES, READ_BYTES, WAKE_S, Patience, started
from intop.hosts.ssh.sudo import Dialogue
from intop.hosts.ssh.transport import Transport, is_over

LOST = (paramiko.SSHException, OSError, EOFError)
STATUS_LIMIT_S = 2
"""How long a command that has ended may take to say its exit code."""
KEPT_BYTES = 10_000
"""Of what it says on standard error, for a message."""


class SshConversation:
    """See `intop.hosts.host.Conversation`. It ends with its connection at the latest.

    `what` is what the command is called in messages.
    """

    def __init__(
        self, name: str, what: str, transport: Transport, dialogue: Dialogue | None
    ) -> None:
        self._name = name
        self._what = what
        self._transport = transport
        self._dialogue = dialogue
        self._stack = ExitStack()
        self._woken = threading.Event()
        self._out = bytearray()
        self._err = bytearray()
        self._exit_code = -1

    def start(self, words: str, timeout_s: float) -> None:
        """Start the command; with a dialogue, answer sudo first.

        Raises CommandError and UnreachableError.
        """
        try:
            channel = self._stack.enter_context(started(self._transport, words, timeout_s))
        except TimeoutError as error:
            raise CommandError(self._name, f"no answer within {timeout_s:g} s") from error
        except LOST as error:
            raise self._ended(str(error)) from error
        self._channel = channel
        channel.in_buffer.set_event(self._woken)
        channel.in_stderr_buffer.set_event(self._woken)
        if self._dialogue is not None:
            dialogue = self._dialogue
            self._wait(lambda: self._is_running(dialogue), timeout_s)

    def ask(self, request: str, end: str, timeout_s: float) -> str:
        """See `intop.hosts.host.Conversation`."""
        self._send(request.encode())
        last = f"\n{end}\n".encode()
        # What comes after it, while nobody listened, is for `heard`, or for the next answer.
        self._wait(lambda: last in b"\n" + self._out, timeout_s)
        answer = self._out[: (b"\n" + self._out).index(last) + len(last) - 1]
        del self._out[: len(answer)]
        return answer.decode(errors="replace")

    def heard(self) -> str:
        """See `intop.hosts.host.Conversation`."""
        while self._channel.recv_ready():
            self._read()
        heard, self._out = self._out, bytearray()
        # A sample has no characters of several bytes, of which only some could have arrived.
        return heard.decode(errors="replace")

    def close(self) -> None:
        """See `intop.hosts.host.Conversation`."""
        with suppress(*LOST):
            self._stack.close()

    def _is_running(self, dialogue: Dialogue) -> bool:
        """Answer what sudo asks; whether the command runs."""
        answer = dialogue.answer(bytes(self._err))
        if answer is None:
            with suppress(*LOST), self._channel.lock:
                self._channel.shutdown_write()  # it says why, and ends
        elif answer:
            self._send(answer)
        return dialogue.running

    def _send(self, text: bytes) -> None:
        try:
            # See `command._order`: nothing may come between a look at the channel and what is sent.
            with self._channel.lock:
                self._channel.sendall(text)
        except LOST as error:
            raise self._ended(str(error)) from error

    def _wait(self, is_done: Callable[[], bool], timeout_s: float) -> None:
        """Listen until `is_done`."""
        patience = Patience(timeout_s)
        channel = self._channel
        while True:
            self._woken.clear()
            # Before reading, so that nothing comes between the last look and the end.
            has_ended = channel.eof_received or channel.closed
            self._read()
            if is_done():
                return
            if has_ended and not (channel.recv_ready() or channel.recv_stderr_ready()):
                channel.status_event.wait(STATUS_LIMIT_S)
                self._exit_code = channel.exit_status
                raise self._ended(self._words())
            try:
                patience.check()
            except TimeoutError as error:
                raise CommandError(self._name, f"no answer within {timeout_s:g} s") from error
            self._woken.wait(WAKE_S)

    def _read(self) -> None:
        if self._channel.recv_ready():
            self._out += self._channel.recv(READ_BYTES)
        if self._channel.recv_stderr_ready():
            self._err += self._channel.recv_stderr(READ_BYTES)
            del self._err[:-KEPT_BYTES]
        if len(self._out) > OUTPUT_LIMIT_BYTES:
            raise CommandError(self._name, f"said more than {OUTPUT_LIMIT_BYTES >> 20} MB")

    def _words(self) -> str:
        return " ".join(self._heard().split())[-300:]

    def _heard(self) -> str:
        heard = self._dialogue.heard(self._err) if self._dialogue else self._err
        return heard.decode(errors="replace")

    def _ended(self, why: str) -> HostError:
        if is_over(self._transport):
            return UnreachableError(
                self._name, f"the SSH connection was lost: {self._transport.why}"
            )
        if self._dialogue is not None and not self._dialogue.running:
            user = self._transport.get_username() or "the user"
            asked, code = self._dialogue.asked, self._exit_code
            refusal = sudo.refusal(user, self._heard(), asked=asked, exit_code=code)
            return CommandError(self._name, refusal)
        return UnreachableError(self._name, f"{self._what} ended: {why or 'it says nothing'}")
