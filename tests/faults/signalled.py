"""intop that sends itself a signal at a point of its work.

SIGKILL is a controller's death, SIGSTOP lets a test do something there and go on by SIGCONT. It
comes at the COUNT-th remote command of a STEP: just before it is sent, when it is sent and its
answer not there yet, while it is at work there, or when the answer has come. `store` is the step in
which a trial goes to the database: before, in the transaction, or when it is committed. For `end` a
user stops it by Ctrl-C in its first load, and the signal comes while it gives the host back.
"""

import os
import signal
import threading
import time
from typing import Any

import paramiko
import sqlalchemy as sa

from intop.document import progress
from intop.hosts.ssh import SshHost
from intop.hosts.ssh.command import SshConversation
from intop.store.jobs import Jobs

STEPS = {
    "install": ": guard-install",
    "begin": " begin ",
    "write": " write ",
    "restart": "server-restart",
    "settle": "tcp_metrics flush",
    "load": "cat slt.lua >/dev/null",
    "renew": " renew ",
    "end": " end ",
}
"""What a remote command of each step has in it."""
COUNTERS = "counters"
"""The step in which a host's reader is asked, which is no command of its own."""

MOMENTS = ("before", "sent", "within", "after")
WITHIN_S = 0.4
"""So long after it was sent a load is at work."""


class _Current(threading.local):
    """The step of the command that a thread sends; connecting sends some of its own."""

    step = ""


_current = _Current()
_lock = threading.Lock()


class Point:
    """Counts what comes by, and sends the signal when it is time."""

    def __init__(self, number: signal.Signals, step: str, count: int, moment: str) -> None:
        if step not in {*STEPS, COUNTERS, "store"} or moment not in MOMENTS:
            raise ValueError(f"no such point: {step} {count} {moment}")
        self._signal = number
        self._step, self._left, self._moment = step, count, moment

    def reached(self, step: str, moment: str) -> None:
        """Send the signal, if this is the point."""
        if self._step == "end" and (step, moment) == ("load", "sent"):
            os.kill(os.getpid(), signal.SIGINT)
        if step != self._step or moment != self._moment:
            return
        with _lock:
            self._left -= 1
            if self._left:
                return
            if moment == "within":
                time.sleep(WITHIN_S)
            os.kill(os.getpid(), self._signal)


def watch(point: Point) -> None:
    """Watch the remote commands and the store."""
    run, half_closed = SshHost.run, paramiko.Channel.shutdown_write
    complete = Jobs.complete
    ask, send = SshConversation.ask, SshConversation._send

    def watched_run(host: SshHost, command: str, **options: Any) -> Any:
        step = next((s for s, words in STEPS.items() if words in command), "")
        _current.step = step
        point.reached(step, "before")
        done = run(host, command, **options)
        _current.step = ""
        point.reached(step, "after")
        return done

    def watched_half_close(channel: paramiko.Channel) -> None:
        # The command and its input are on their way; all that is left is to wait.
        half_closed(channel)
        point.reached(_current.step, "sent")
        point.reached(_current.step, "within")

    def watched_ask(conversation: SshConversation, *words: Any) -> str:
        _current.step = COUNTERS
        point.reached(COUNTERS, "before")
        answer = ask(conversation, *words)
        _current.step = ""
        point.reached(COUNTERS, "after")
        return answer

    def watched_send(conversation: SshConversation, text: bytes) -> None:
        send(conversation, text)
        point.reached(_current.step, "sent")

    def watched_complete(jobs: Jobs, *words: Any) -> bool:
        point.reached("store", "before")
        engine = jobs._session._engine
        sent = lambda _: point.reached("store", "sent")  # noqa: E731 - to be removed again
        sa.event.listen(engine, "commit", sent)
        done = complete(jobs, *words)
        sa.event.remove(engine, "commit", sent)
        point.reached("store", "after")
        return done

    SshHost.run = watched_run  # type: ignore[method-assign]
    paramiko.Channel.shutdown_write = watched_half_close  # type: ignore[method-assign]
    SshConversation.ask = watched_ask  # type: ignore[method-assign]
    SshConversation._send = watched_send  # type: ignore[method-assign]
    Jobs.complete = watched_complete  # type: ignore[method-assign]


def prepare(point: Point | None) -> None:
    """In the process that is to be intop: its progress is told at once, and it has its point."""
    progress.LINE_EVERY_S = 0.0
    if point is not None:
        watch(point)
