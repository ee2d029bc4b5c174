"""Reading a host's counters: one process a host, which answers for as long as it is connected.

`reader.sh` is that process; it says what it is asked and what it answers.
"""

import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise
from typing import TypeVar
from urllib.parse import urlsplit

from intop.domain.counters import HostCounters
from intop.errors import CommandError, HostError, UnreachableError
from intop.hosts.answers import decimal, lines
from intop.hosts.footprint import Footprint, parse_footprint
from intop.hosts.host import Conversation, Host
from intop.hosts.kernel_counters import (
    grown,
    is_level,
    parse_conntrack,
    parse_stub_status,
    parse_tables,
)
from intop.hosts.metrics import Counters, parse_counters
from intop.hosts.tcp_info import SocketSample, growth, parse_sample
from intop.hosts.trust import FUNCTIONS, without_comments

N = TypeVar("N", int, float)

ANSWER_LIMIT_S = 30.0
MARK_BYTES = 16
"""In hexadecimal digits twice that, and a program's name has 15 characters at most."""
MOST_COUNTERS = 20_000
"""Of one reading. A machine of 500 processors has 6,000."""

"""What not every host shows."""


Sections = Mapping[str, Sequence[str]]
"""The lines of each section of an answer."""


@dataclass(frozen=True)
class Sample:
    """One point of a time series: `uptime_s` says when, `counters` are since the host started.

    `sockets` is None where they were not asked for, or not listed (`asks_sockets` tells which).
    """

    uptime_s: float
    counters: Mapping[str, int]
    sockets: SocketSample | None = None
    asks_sockets: bool = False


@dataclass(frozen=True)
class Reading:
    """A whole reading, and the samples since the one before, the oldest first.

    Hosts with the same `machine` have the same processes; "" where that is not known. `footprint`
    is None where it was not asked for.
    """

    counters: Counters
    now: Sample
    samples: tuple[Sample, ...] = ()
    machine: str = ""
    footprint: Footprint | None = None


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to read. `footprint` is what nginx's processes hold, which root can see. `port` is the
    one of which TCP's sockets are listed, None for no list; `stub_status` the URL of the page where
    nginx says what it counts, "" for none.

    After the reading `points` samples follow, one every `step_s` seconds.
    """

    processes: bool = False
    footprint: bool = False
    port: int | None = None
    stub_status: str = ""
    points: int = 0
    step_s: float = 0.0

    @property
    def request(self) -> str:
        """The line that asks for it."""
        what = ("p" if self.processes else "") + ("f" if self.footprint else "")
        what += "s" if self.port is not None else ""
        page = urlsplit(self.stub_status)
        at = f" {page.hostname} {page.port or 80} {page.path}" if self.stub_status else ""
        what += "n" if at else ""
        return f"{what or '-'} {self.points} {round(self.step_s * 1e6)}{at};\n"


@cache
def script() -> str:
    """The text of `reader.sh`, without its comments, after what it calls."""
    text = resources.files("intop.hosts").joinpath("reader.sh").read_text()
    return FUNCTIONS + without_comments(text)


class Reader:
    """The reading process of one host, which starts when it is first asked."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._mark = secrets.token_hex(MARK_BYTES)
        self._conversation: Conversation | None = None
        self._port: int | None = None
        self._heard = ""
        self._samples: list[Sample] = []

    def read(self, wanted: Wanted) -> Reading:
        """Read everything now. Raises CommandError when it makes no sense, or can't be read;
        UnreachableError when the connection or the process is gone: the next one starts another.
        """
        text = self._answer(wanted)
        with self._understanding():
            reading = parse_reading(self._heard + text, self._mark, wanted.port)
        reading = replace(reading, samples=(*self._samples, *reading.samples))
        self._heard, self._samples, self._port = "", [], wanted.port
        return reading

    def follow(self) -> None:
        """Understand the samples that have arrived, so that `read` has less to do.

        Raises CommandError when they make no sense.
        """
        if self._conversation is None:
            return
        self._heard += self._conversation.heard()
        # With its time a sample is whole, unless a part of the next one has come. Else it waits.
        is_last = self._heard.split("\n")[-3:-2] == [f"{self._mark} time"]
        if is_last and self._heard.endswith("\n"):
            with self._understanding():
                arrived = _split(f"{self._heard}{self._mark}\n", self._mark)
                self._samples += [_sample(sections, self._port) for sections in arrived]
            self._heard = ""

    def close(self) -> None:
        """End the process."""
        self._heard, self._samples = "", []
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None

    @contextmanager
    def _understanding(self) -> Iterator[None]:
        """Whoever says what makes no sense is not asked again."""
        try:
            yield
        except (KeyError, ValueError, IndexError) as error:
            self.close()
            name = self._host.address.name
            raise CommandError(name, f"its counters can't be read: {error!r}"[:500]) from error

    def _answer(self, wanted: Wanted) -> str:
        name = self._host.address.name
        request, is_new = wanted.request, self._conversation is None
        try:
            if self._conversation is None:
                # Niced, since what it takes must not be felt in what is measured.
                command = f"exec nice -n 19 bash -c {shlex.quote(script())}"
                self._conversation = self._host.converse(command)
                request = f"{self._mark}\n{request}"
            return self._conversation.ask(request, self._mark, ANSWER_LIMIT_S)
        except HostError as error:
            self.close()
            if is_new and isinstance(error, UnreachableError) and "connection" not in error.message:
                # It did not even start: the next one would not either.
                raise CommandError(
                    name,
                    f"its counters can't be read by bash ({error.message}): install bash there",
                ) from error
            raise


def parse_reading(text: str, mark: str, port: int | None) -> Reading:
    """A reading from the reader's answer. Raises KeyError, ValueError or IndexError."""
    *samples, sections = _split(text, mark)
    order = ("host", "tables", "energy", "processes", "time")
    whole = [line for name in order for line in sections.get(name, ())]
    counters = parse_counters("".join(f"{line}\n" for line in whole))
    now = replace(_sample(sections, port), uptime_s=counters.uptime_s)
    return Reading(
        counters,
        now,
        tuple(_sample(one, port) for one in samples),
        machine=" ".join(sections.get("machine", ())),
        footprint=parse_footprint(sections["footprint"]) if "footprint" in sections else None,
    )


def status_answer(text: str, mark: str) -> Sequence[str]:
    """What nginx's page answered, head and body, in the reader's answer. Raises KeyError or
    ValueError.
    """
    *_, sections = _split(text, mark)
    return sections["status"]


def _split(text: str, mark: str) -> list[Sections]:
    """The samples and the whole reading of an answer. Raises ValueError."""
    found: list[dict[str, list[str]]] = []
    for name, body in _sections(text, mark):
        if name in ("sample", "host"):
            found.append({name: body})
        elif not found:
            raise ValueError(f"section {name[:40]} stands before all of them")
        elif name in found[-1]:
            raise ValueError(f"section {name[:40]} stands there twice")
        else:
            found[-1][name] = body
    return list(found)


def _sections(text: str, mark: str) -> Iterator[tuple[str, list[str]]]:
    """Each section's name and lines. Raises ValueError for an answer without its end."""
    listed = lines(text)
    if not listed or listed[-1] != mark:
        raise ValueError("they end too early")
    name: str | None = None
    body: list[str] = []
    for line in listed[:-1]:
        if line.startswith(f"{mark} "):
            if name is not None:
                yield name, body
            name, body = line.removeprefix(f"{mark} "), []
        elif name is None:
            raise ValueError(f"{line[:40]!r} stands before all of them")
        else:
            body.append(line)
    if name is not None:
        yield name, body


def _sample(sections: Sections, port: int | None) -> Sample:
    counters = parse_tables(sections.get("tables", ()))
    counters |= parse_stub_status(sections.get("status", ()))
    counters |= parse_conntrack(sections.get("conntrack", ()), sections.get("limits", ()))
    if len(counters) > MOST_COUNTERS:
        raise ValueError(f"there are {len(counters)} of them")
    listed = sections.get("sockets")
    return Sample(
        uptime_s=decimal(sections["time"][0]) if "time" in sections else 0.0,
        counters=counters,
        sockets=None if listed is None or port is None else parse_sample(listed, port),
        asks_sockets=listed is not None,
    )


def series(before: Sample, after: Reading) -> HostCounters:
    """The time series between two readings of one host.

    Where a sample has no sockets, or no page of nginx, they are taken to be what they were before.
    Sockets are unread where each sample under load that asked for them has none.
    """
    points = list(accumulate((before, *after.samples, after.now), _carried))[1:]
    asking = [one for one in after.samples if one.asks_sockets]
    shown = {
        "conntrack": any(name.startswith("conntrack.") for name in after.now.counters),
        "sockets": any(one.sockets is not None for one in asking or [after.now]),
        "nginx": any(name.startswith("nginx.") for name in after.now.counters),
    }
    return HostCounters(
        at_s=tuple(round(point.uptime_s - before.uptime_s, 2) for point in points),
        growth=_transposed([_grown(*pair) for pair in pairwise((before, *points))]),
        levels=_transposed([_levels(point) for point in points]),
        unread=tuple(name for name, is_shown in shown.items() if not is_shown),
    )


def _carried(before: Sample, after: Sample) -> Sample:
    """A sample with what only those before it had."""
    page = {name: n for name, n in before.counters.items() if name.startswith("nginx.")}
    return replace(
        after,
        counters={**page, **after.counters} if page else after.counters,
        sockets=after.sockets or before.sockets,
    )


def _grown(before: Sample, after: Sample) -> dict[str, int]:
    """By how much each counter grew that both samples have."""
    found = {
        name: grown(name, then, now)
        for name, now in after.counters.items()
        if (then := before.counters.get(name)) is not None and then != now and not is_level(name)
    }
    if after.sockets is not None and after.sockets is not before.sockets:
        found |= growth(before.sockets or SocketSample(), after.sockets)
    return found


def _levels(sample: Sample) -> dict[str, float]:
    found: dict[str, float] = {n: v for n, v in sample.counters.items() if is_level(n)}
    return found | (dict(sample.sockets.levels) if sample.sockets else {})


def _transposed(points: Sequence[Mapping[str, N]]) -> dict[str, tuple[N, ...]]:
    """A series for each name that is not 0 at all points."""
    names = sorted({name for point in points for name, value in point.items() if value})
    return {name: tuple(point.get(name, 0) for point in points) for name in names}


class Readers:
    """The readers of a cluster's hosts."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._readers = {host.address.name: Reader(host) for host in hosts}
        self._machines: dict[str, str] = {}

    def read(self, wanted: Mapping[str, Wanted]) -> dict[str, Reading]:
        """Read hosts by name, all at once.

        Where several hosts are one machine and see the same processes, as namespaces of a lab do,
        the first one lists them for all: that costs more than all the rest. Raises what
        `Reader.read` does.
        """
        listing = self._listing(wanted)
        asked = [replace(one, processes=listing.get(n) == n) for n, one in wanted.items()]
        with ThreadPoolExecutor(len(asked)) as pool:
            readings = pool.map(Reader.read, (self._readers[name] for name in wanted), asked)
            found = dict(zip(wanted, readings, strict=True))
        self._machines |= {name: reading.machine for name, reading in found.items()}
        for name, other in self._listing(wanted).items():
            processes = found[other].counters.processes
            counters = replace(found[name].counters, processes=processes)
            found[name] = replace(found[name], counters=counters)
        return found

    def follow(self) -> None:
        """What `Reader.follow` does, for all of them."""
        for reader in self._readers.values():
            reader.follow()

    def close(self) -> None:
        """End all of them."""
        for reader in self._readers.values():
            reader.close()

    def _listing(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        """For each host whose processes are wanted, the one that lists them. A host of which it is
        not known which machine it is lists its own.
        """
        first: dict[str, str] = {}
        return {
            name: first.setdefault(self._machines.get(name) or name, name)
            for name, one in wanted.items()
            if one.processes
        }
