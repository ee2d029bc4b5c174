"""Times and failures of the requests on a host with real traffic, by its access log.

The host reduces the log to counts: no line leaves it. Of a busy log it reads a random sample.
"""

import math
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from intop.domain.histogram import MAX_US, Histogram
from intop.domain.nginx.access_logs import AccessLog, parts
from intop.errors import HostError, UsageError
from intop.hosts.answers import count, joined, lines
from intop.hosts.host import Host, output, parsed
from intop.hosts.lasting import LastingCommand
from intop.hosts.scripts import script

REQUIRED = ("request_time", "status")
CONNECTION = "connection"
ADVICE = (
    "Add to nginx's http block, and reload nginx: log_format intop '$msec $connection $status "
    "$request_time'; access_log /var/log/nginx/intop.log intop;"
)

_NAMES = {"request_time": "time", "status": "status", CONNECTION: "connection"}
"""The names of variables in `access_log.sh`."""
_SKIP = "{ unreadable += is_read; next }"
_FAILED = "(499|[5-9][0-9][0-9])"
_COUNTS = ("unreadable", "connection", "failed", "old")
HALF_A_MILLISECOND_US = 500
SHORTEST_S = 1.0
"""Seconds between two reads from which on they tell how busy the log is."""

NOTES = {
    "moved": "the log was moved meanwhile",
    "truncated": "the log was truncated meanwhile",
    "lost": "the log was moved away meanwhile, and its last lines with it",
}


@dataclass(frozen=True)
class LoggedRequests:
    """The requests of a part of a log."""

    histogram: Histogram
    """Times of requests that did not fail, at nginx's resolution of 1 ms."""
    failed: int = 0
    """Requests with a status from 500 on, and those whose client gave up (499)."""
    old: int = 0
    """Requests of connections from before."""
    unreadable: int = 0
    """Lines of another format."""
    connection: int = 0
    """The highest number of a connection."""
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The counted requests."""
        return self.histogram.total + self.failed

    @property
    def logged(self) -> int:
        """The counted requests, and those of connections from before."""
        return self.total + self.old

    @property
    def failed_share(self) -> float:
        """The share of counted requests that failed; 0 without any."""
        return self.failed / self.total if self.total else 0.0

    def joined(self, later: "LoggedRequests") -> "LoggedRequests":
        """Return both parts as one."""
        return LoggedRequests(
            histogram=self.histogram.merge(later.histogram),
            failed=self.failed + later.failed,
            old=self.old + later.old,
            unreadable=self.unreadable + later.unreadable,
            connection=max(self.connection, later.connection),
            notes=(*self.notes, *later.notes),
        )


NOTHING = LoggedRequests(Histogram.from_pairs([]))


@dataclass(frozen=True)
class _Answer:
    inode: str
    size: int
    requests: LoggedRequests


class LogReader:
    """Reads a log from where it last ended."""

    def __init__(
        self,
        host: Host,
        log: AccessLog,
        *,
        most_per_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Find the log's end. It reads a sample where more lines a second came than `most_per_s`.

        Raises what `read` does.
        """
        self._host = host
        self._log = log
        self._most_per_s = most_per_s
        self._clock = clock
        self._every, self._read_s = 1, clock()
        self._inode, self._size = "", 0
        self.connection = 0
        """The highest number of a connection so far."""
        self._latest = 0
        self._shell = LastingCommand(host, "sh")
        self.read()

    def read(self, *, after: int | None = None) -> LoggedRequests:
        """Return the requests that were logged since the last call.

        With `after`, it counts only connections with a higher number. In a sample one request
        stands for several, but each failure counts once. Raises CommandError for a log that can't
        be read, UnreachableError for a lost connection.
        """
        settings = {
            "inode": self._inode,
            "offset": self._size,
            "after": "" if after is None else after,
            "every": self._every,
        }
        text = self._output(" ".join(f"{n}={shlex.quote(str(v))}" for n, v in settings.items()))
        answer = parsed(self._host, text, _parsed, f"{self._log.path} can't be read")
        self._inode, self._size = answer.inode, answer.size
        self._latest = answer.requests.connection or self._latest
        self.connection = max(self.connection, self._latest)
        self._choose_sample(answer.requests)
        return answer.requests

    def close(self) -> None:
        """End the shell on the host."""
        self._shell.close()

    def _output(self, settings: str) -> str:
        """Return what the script prints with these settings. Raises what `read` does.

        A shell of its own stays for it: to start one takes the host as long as to read thousands
        of lines. Where the shell fails, another command tells why.
        """
        fixed = script("access_log.sh", path=self._log.path, fields=_fields(self._log))
        mark = self._shell.mark
        request = f"{settings}; read_log; printf 'exit %s\\n%s\\n' $? {mark}\n"
        try:
            answer = self._shell.ask(request, first=f"read_log() (\n{fixed}) </dev/null\n")
            text, _, code = answer.removesuffix(f"\n{mark}\n").rpartition("exit ")
            if code == "0":
                return text
        except HostError:
            pass
        self.close()
        return output(self._host, f"{settings}\n{fixed}")

    def _choose_sample(self, latest: LoggedRequests) -> None:
        """Decide which share of the next lines is read, by the latest ones."""
        now = self._clock()
        if (seconds := now - self._read_s) >= SHORTEST_S:
            per_s = (latest.logged + latest.unreadable) / seconds
            self._every = max(1, math.ceil(per_s / self._most_per_s))
        self._read_s = now

    def begin_anew(self) -> None:
        """Take the latest connections for the highest: after a restart nginx counts from 1 on."""
        self.connection = self._latest


def _fields(log: AccessLog) -> str:
    """Return rules of awk that skip lines, and give the variables of a line the reader's names.

    There is a step for each variable up to the last one that is needed: a loop over the format
    takes seven times as long.
    """
    literals, variables = parts(log.text)
    last = max(n for n, name in enumerate(variables) if name in _NAMES)
    first = _in_awk(literals[0])
    steps = [f"if (index($0, {first}) != 1) {_SKIP}"] if literals[0] else []
    steps.append(f"rest = substr($0, {_size(literals[0]) + 1})")
    for name, text in zip(variables[: last + 1], literals[1:], strict=False):
        if text:
            steps.append(f"if (!(at = index(rest, {_in_awk(text)}))) {_SKIP}")
        if name in _NAMES:
            value = "substr(rest, 1, at - 1)" if text else "rest"
            steps.append(f"{_NAMES[name]} = {value}")
        if text:
            steps.append(f"rest = substr(rest, at + {_size(text)})")
    skip = f"!is_read && !/{_failed(literals, variables)}/ {{ next }}"
    return joined([skip, "{", *steps, "}"])


def _failed(literals: Sequence[str], variables: Sequence[str]) -> str:
    """Return a regular expression that each line of a failed request has."""
    place = variables.index("status")
    before, after = literals[place], literals[place + 1]
    first = "^" if place == 0 else ""
    return f"{first}{_as_pattern(before)}{_FAILED}{_as_pattern(after)}"


def _as_pattern(text: str) -> str:
    return re.sub(r"[][\\/.^$*+?(){}|]", r"\\\g<0>", text).replace("\n", "\\n")


def _in_awk(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _size(text: str) -> int:
    """Return the bytes of a text, which are awk's characters in the locale C."""
    return len(text.encode())


def _parsed(text: str) -> _Answer:
    """Return the answer of access_log.sh. Raises KeyError or ValueError."""
    inode, size, notes = "", 0, list[str]()
    times: list[tuple[int, int]] = []
    numbers: dict[str, Any] = {}
    for name, word, *more in (line.split("\t") for line in lines(text)):
        if name == "place":
            (size,) = map(count, more)
            inode = word
        elif name == "note":
            notes.append(NOTES[word])
        elif name == "time":
            (requests,) = map(count, more)
            times.append((_microseconds(count(word)), requests))
        elif name in _COUNTS:
            numbers[name] = count(word)
        else:
            raise ValueError(f"{name[:20]!r} is no count")
    histogram = Histogram.from_pairs(times)
    return _Answer(inode, size, LoggedRequests(histogram, notes=tuple(notes), **numbers))


def _microseconds(ms: int) -> int:
    """Return a time of the log in us. nginx writes 0.000 for what took less than a millisecond."""
    return min(1000 * ms, MAX_US) or HALF_A_MILLISECOND_US


def usable_log(logs: Sequence[AccessLog], path: str = "") -> AccessLog:
    """Return the log of this path, or the only one that has what is needed. Raises UsageError."""
    named = [log for log in logs if not path or log.path == path]
    if not named:
        known = ", ".join(log.path for log in logs) or "none"
        raise UsageError(f"nginx writes no access log {path or 'to a file'}; it writes {known}")
    reasons = {log: reason for log in named if (reason := _unusable(log, logs))}
    usable = [log for log in named if log not in reasons]
    if not usable:
        listed = "\n  ".join(f"{log.path}: {reason}" for log, reason in reasons.items())
        raise UsageError(f"no access log tells how long requests took:\n  {listed}\n{ADVICE}")
    if len(usable) > 1:
        listed = ", ".join(log.path for log in usable)
        raise UsageError(f"nginx writes several access logs. Choose one of them by --log: {listed}")
    return usable[0]


def _unusable(log: AccessLog, logs: Sequence[AccessLog]) -> str:
    if not log.path.startswith("/"):
        return "its path is not absolute"
    if sum(other.path == log.path for other in logs) > 1:
        return "its lines have several formats"
    if not log.text:
        return f"log_format {log.name} is not known"
    if missing := [name for name in REQUIRED if not log.has(name)]:
        return f"log_format {log.name} lacks {', '.join(f'${name}' for name in missing)}"
    if log.is_delayed:
        return "its lines wait in a buffer (buffer= or gzip), so blocks would mix"
    if "" in _inner(log):
        return f"log_format {log.name} has two variables without a text between them"
    return ""


def _inner(log: AccessLog) -> Iterator[str]:
    literals, _ = parts(log.text)
    yield from literals[1:-1]
