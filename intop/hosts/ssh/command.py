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
"""The size that fits one packet."""
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

    def __init__(self, dialogue: Dialogue | None) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self._dialogue = dialogue
        self._stdin = bytearray()
        """The command's input, while sudo has not begun the command."""
        self._is_whole = False
        """Whether no more input follows."""
        self._unsent = bytearray()
        self._is_last = False
        """Whether nothing follows after what is unsent."""
        self._is_shut = False

    def run(self, transport: paramiko.Transport, words: str, stdin: bytes, timeout_s: float) -> int:
        """Run a command to its end. Return the exit code, -1 where there is none.

        Raises TimeoutError, TooMuchError, or one of LOST.
        """
        self._stdin += stdin
        self._is_whole = True
        patience = Patience(timeout_s)
        with started(transport, words, timeout_s) as channel:
            self.listen(channel, patience)
            while not channel.status_event.wait(WAKE_S):
                patience.check()
            return channel.recv_exit_status()

    def send(self, channel: paramiko.Channel, text: bytes) -> None:
        """Send input to a command that runs; `listen` sends the part for which there is no room."""
        self._stdin += text
        with channel.lock:
            self._choose()
            self._write(channel)

    def listen(
        self,
        channel: paramiko.Channel,
        patience: "Patience",
        is_done: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Feed the command and listen to it. Return True when `is_done`, False at its end."""
        # No poll of channel.fileno(), a pipe: paramiko's thread may write to it when we have
        # closed it. That ends the connection, or goes where its number leads by then.
        woken = threading.Event()
        channel.in_buffer.set_event(woken)
        channel.in_stderr_buffer.set_event(woken)
        while True:
            woken.clear()
            # Before reading, so that nothing comes between the last look and the end.
            has_ended = channel.eof_received or channel.closed
            # See `_order`: nothing may come between a look at the channel and what is sent.
            with channel.lock:
                self.read(channel)
                self._choose()
                if is_done():
                    return True
                if has_ended and not (channel.recv_ready() or channel.recv_stderr_ready()):
                    return False
                is_waiting = self._write(channel)
            patience.check()
            woken.wait(WINDOW_S if is_waiting else WAKE_S)

    def read(self, channel: paramiko.Channel) -> None:
        """Read the output that has arrived. Raises TooMuchError."""
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
            self._stdin.clear()
            self._is_last = self._is_whole


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
        self._exchange = Exchange(dialogue)

    def start(self, words: str, timeout_s: float) -> None:
        """Start the command; with a dialogue, answer sudo first.

        Raises CommandError and UnreachableError.
        """
        try:
            self._channel = self._stack.enter_context(started(self._transport, words, timeout_s))
        except TimeoutError as error:
            raise CommandError(self._name, f"no answer within {timeout_s:g} s") from error
        except LOST as error:
            raise self._ended(str(error)) from error
        if self._dialogue is not None:
            dialogue = self._dialogue
            self._wait(lambda: dialogue.running, timeout_s)

    def ask(self, request: str, end: str, timeout_s: float) -> str:
        """See `intop.hosts.host.Conversation`."""
        self._send(request.encode())
        last, out = f"\n{end}\n".encode(), self._exchange.out
        # What comes after it, while nobody listened, is for `heard`, or for the next answer.
        self._wait(lambda: last in b"\n" + out, timeout_s)
        answer = out[: (b"\n" + out).index(last) + len(last) - 1]
        del out[: len(answer)]
        return answer.decode(errors="replace")

    def heard(self) -> str:
        """See `intop.hosts.host.Conversation`."""
        with self._in_bounds():
            while self._channel.recv_ready():
                self._exchange.read(self._channel)
        heard = self._exchange.out.decode(errors="replace")
        # A sample has no characters of several bytes, of which only some could have arrived.
        self._exchange.out.clear()
        return heard

    def close(self) -> None:
        """See `intop.hosts.host.Conversation`."""
        with suppress(*LOST):
            self._stack.close()

    def _send(self, text: bytes) -> None:
        del self._exchange.err[:-KEPT_BYTES]
        self._exchange.send(self._channel, text)

    def _wait(self, is_done: Callable[[], bool], timeout_s: float) -> None:
        """Listen until `is_done`."""
        try:
            with self._in_bounds():
                if self._exchange.listen(self._channel, Patience(timeout_s), is_done):
                    return
        except TimeoutError as error:
            raise CommandError(self._name, f"no answer within {timeout_s:g} s") from error
        except LOST as error:
            raise self._ended(str(error)) from error
        self._channel.status_event.wait(STATUS_LIMIT_S)
        raise self._ended(" ".join(self._words().split())[-300:], self._channel.exit_status)

    @contextmanager
    def _in_bounds(self) -> Iterator[None]:
        try:
            yield
        except TooMuchError as error:
            limit = OUTPUT_LIMIT_BYTES >> 20
            raise CommandError(self._name, f"said more than {limit} MB") from error

    def _words(self) -> str:
        err = self._exchange.err
        words = self._dialogue.heard(err) if self._dialogue else err
        return words.decode(errors="replace")

    def _ended(self, why: str, exit_code: int = -1) -> HostError:
        if is_over(self._transport):
            return UnreachableError(
                self._name, f"the SSH connection was lost: {self._transport.why}"
            )
        if self._dialogue is not None and not self._dialogue.running:
            user = self._transport.get_username() or "the user"
            asked = self._dialogue.asked
            refusal = sudo.refusal(user, self._words(), asked=asked, exit_code=exit_code)
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


def _order(channel: paramiko.Channel) -> None:
    """Let whoever sends on the channel hold its lock until that is sent.

    paramiko holds it while it looks at the channel, and sends after it. When the command ends in
    between, paramiko's own thread answers that the channel is closed, and then comes what was to be
    sent. Of a channel that is no more, sshd takes neither input nor its end: it says "packet
    referred to nonexistent channel", and ends the whole connection.
    """
    channel.lock = threading.RLock()  # type: ignore[assignment]
    channel.out_buffer_cv = threading.Condition(channel.lock)
