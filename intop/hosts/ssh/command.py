"""One command over a connection: fed, listened to, limited in time and in what it says."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import paramiko

from intop.hosts.ssh.sudo import Dialogue

OUTPUT_LIMIT_BYTES = 64 << 20
"""How much a command may say. Ours say some kilobytes."""
READ_BYTES = 1 << 20
WRITE_BYTES = 1 << 15
"""What fits one packet."""
WAKE_S = 0.1
"""How long to sleep at most: paramiko may, though rarely, forget to wake us."""
WINDOW_S = 0.005
"""How long to sleep while the other side has no room for what we send."""
STEP_S = 1.0
"""What counts at most between two looks at the clock, which are WAKE_S apart."""


class TooMuchError(Exception):
    """The command said more than OUTPUT_LIMIT_BYTES."""


class Exchange:
    """What goes to a command and what comes from it, all at once, so that nobody waits in vain.

    `out` and `err` are what it has said. With a `dialogue`, sudo is answered first.
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
        """The exit code, -1 where there is none.

        Raises TimeoutError, TooMuchError, or what paramiko raises for a connection that is lost.
        """
        patience = Patience(timeout_s)
        with started(transport, words, timeout_s) as channel:
            # No poll of channel.fileno(), a pipe: paramiko's thread may write to it when we have
            # closed it. That ends the connection, or goes where its number leads by then.
            woken = threading.Event()
            channel.in_buffer.set_event(woken)
            channel.in_stderr_buffer.set_event(woken)
            while True:
                woken.clear()
                # Before reading, so that nothing comes between the last look and the end.
                is_over = channel.eof_received or channel.closed
                # See `_order`: nothing may come between a look at the channel and what is sent.
                with channel.lock:
                    self._read(channel)
                    self._choose()
                    if is_over and not (channel.recv_ready() or channel.recv_stderr_ready()):
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
        """Send as much as there is room for; whether there is more."""
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
        """What is to be sent next: sudo's password, the command's input, or that there is none."""
        if self._is_last:
            return
        if self._dialogue is not None:
            answer = self._dialogue.answer(bytes(self.err))
            self._unsent += answer or b""
            self._is_last = answer is None
        if self._dialogue is None or self._dialogue.running:
            self._unsent += self._stdin
            self._is_last = True


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
    """A channel on which the command runs; closed at the end."""
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
        with suppress(paramiko.SSHException, OSError, EOFError):
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
