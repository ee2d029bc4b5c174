"""Commands over a connection: fed, listened to, limited in time and in their output."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import paramiko

from intop.errors import CommandError, HostError, UnreachableError
from intop.hosts.ssh import sudo
from intop.hosts.ssh.sudo import Dialogue
from intop.hosts.ssh.transport import LOST, Transport, is_over

OUTPUT_LIMIT_BYTES = 64 << 20
"""The most output of a command. Ours print some kilobytes."""
READ_BYTES = 1 << 20
WRITE_BYTES = 1 << 15
"""As much as fits one packet."""
WAKE_S = 0.1
"""The longest sleep: paramiko may, though rarely, forget to wake us."""
WINDOW_S = 0.005
"""The sleep while the other side has no room for our input."""
STEP_S = 1.0
"""The time that counts at most between two looks at the clock, which are WAKE_S apart."""
STATUS_LIMIT_S = 2
"""The time in which a command that has ended says its exit code."""
KEPT_BYTES = 10_000
"""The part of a conversation's standard error that is kept for a message."""


class TooMuchError(Exception):
    """The command printed more than OUTPUT_LIMIT_BYTES."""


class Exchange:
    """The input and the outputs of a command, all at once, so that nobody waits in vain.

    With a `dialogue`, sudo is answered first.
    """

    def __init__(self, stdin: bytes, dialogue: Dialogue | None) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self._stdin = stdin
        self._dialogue = dialogue
        self._unsent = bytearray()
        self._is_last = False
        self._is_shut = False

    def run(self, transport: paramiko.Transport, words: str, timeout_s: float) -> int:
        """Return the exit code, -1 where there is none.

        Raises TimeoutError, TooMuchError, or one of LOST.
        """
        patience = Patience(timeout_s)
        with started(transport, words, timeout_s) as channel:
            # No poll of channel.fileno(), a pipe: paramiko's thread may write to it when we have
            # closed it. That ends the connection, or goes where its number leads by then.
            woken = threading.Event()
            _wake(woken, channel)
            while True:
                woken.clear()
                # Before reading, so that nothing comes between the last look and the end.
                has_ended = channel.eof_received or channel.closed
                # See `_order`: nothing may come between a look at the channel and what is sent.
                with channel.lock:
                    self._read(channel)
                    self._choose()
                    if has_ended and not (channel.recv_ready() or channel.recv_stderr_ready()):
                        break
                    is_waiting = self._write(channel)
                patience.check()
                woken.wait(WINDOW_S if is_waiting else WAKE_S)
            while not channel.status_event.wait(WAKE_S):
                patience.check()
            return channel.recv_exit_status()

    def _read(self, channel: paramiko.Channel) -> None:
        if channel.recv_ready():
            self.out += channel.recv(READ_BYTES)
        if channel.recv_stderr_ready():
            self.err += channel.recv_stderr(READ_BYTES)
        if len(self.out) + len(self.err) > OUTPUT_LIMIT_BYTES:
            raise TooMuchError

    def _write(self, channel: paramiko.Channel) -> bool:
        """Send as much as there is room for; return whether there is more."""
        # A command may end, or close its input, without having read all of it.
        try:
            while self._unsent and channel.send_ready():
                sent = channel.send(bytes(self._unsent[:WRITE_BYTES]))
                del self._unsent[:sent]
                if channel.recv_ready() or channel.recv_stderr_ready():
                    break
            if self._is_last and not self._unsent and not self._is_shut:
                self._is_shut = True
                channel.shutdown_write()
        except OSError:
            self._unsent.clear()
            self._is_last = self._is_shut = True
        return bool(self._unsent)

    def _choose(self) -> None:
        """Choose the next part to send: sudo's password, the command's input, or its end."""
        if self._is_last:
            return
        if self._dialogue is not None:
            answer = self._dialogue.answer(bytes(self.err))
            self._unsent += answer or b""
            self._is_last = answer is None
        if self._dialogue is None or self._dialogue.running:
            self._unsent += self._stdin
            self._is_last = True


class SshConversation:
    """See `intop.hosts.host.Conversation`. It ends with its connection at the latest."""

    def __init__(
        self, host: str, program: str, transport: Transport, dialogue: Dialogue | None
    ) -> None:
        """Take the names of the host and of the command's program, for messages."""
        self._name = host
        self._program = program
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
        _wake(self._woken, channel)
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
        """Answer sudo; return whether the command runs."""
        answer = dialogue.answer(bytes(self._err))
        if answer is None:
            with suppress(*LOST), self._channel.lock:
                self._channel.shutdown_write()  # it says why, and ends
        elif answer:
            self._send(answer)
        return dialogue.running

    def _send(self, text: bytes) -> None:
        try:
            # See `_order`: nothing may come between a look at the channel and what is sent.
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
                raise self._ended(" ".join(self._heard().split())[-300:])
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
        return UnreachableError(self._name, f"{self._program} ended: {why or 'it says nothing'}")


class Patience:
    """A time limit that does not count the time for which we were stopped ourselves.

    Else, after a suspension, an answer that has long been there would come too late.
    """

    def __init__(self, limit_s: float) -> None:
        self._left_s = limit_s
        self._looked = time.monotonic()

    def check(self) -> None:
        """Raises TimeoutError when it is over."""
        now = time.monotonic()
        self._left_s -= min(now - self._looked, STEP_S)
        self._looked = now
        if self._left_s <= 0:
            raise TimeoutError


@contextmanager
def started(
    transport: paramiko.Transport, words: str, timeout_s: float
) -> Iterator[paramiko.Channel]:
    """Return a channel on which the command runs; closed at the end."""
    channel = transport.open_session(timeout=timeout_s)
    _order(channel)
    try:
        # paramiko waits for the answer for ever, unless the channel is closed meanwhile.
        timer = threading.Timer(timeout_s, channel.close)
        timer.daemon = True
        timer.start()
        try:
            channel.exec_command(words)
        except paramiko.SSHException:
            if transport.is_active() and not timer.is_alive():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()
        yield channel
    finally:
        with suppress(*LOST):
            channel.close()


def _wake(woken: threading.Event, channel: paramiko.Channel) -> None:
    """Let the event be set by whatever arrives on the channel."""
    channel.in_buffer.set_event(woken)
    channel.in_stderr_buffer.set_event(woken)


def _order(channel: paramiko.Channel) -> None:
    """Let whoever sends on the channel hold its lock until that is sent.

    paramiko holds it while it looks at the channel, and sends after it. When the command ends in
    between, paramiko's own thread answers that the channel is closed, and then comes what was to be
    sent. Of a channel that is no more, sshd takes neither input nor its end: it says "packet
    referred to nonexistent channel", and ends the whole connection.
    """
    channel.lock = threading.RLock()  # type: ignore[assignment]
    channel.out_buffer_cv = threading.Condition(channel.lock)
