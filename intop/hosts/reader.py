"""Reading a host's counters: one process a host, which answers for as long as it is connected.

`reader.sh` is that process; it says what it is asked and what it answers.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TypeVar
from urllib.parse import urlsplit

from intop.domain.counters import HostCounters
from intop.errors import CommandError, HostError, UnreachableError
from intop.hosts.answers import decimal, joined, lines
from intop.hosts.host import Host
from intop.hosts.kernel_counters import (
    grown,
    is_level,
    parse_conntrack,
    parse_stub_status,
    parse_tables,
)
from intop.hosts.lasting import LastingCommand
from intop.hosts.metrics import Counters, parse_counters
from intop.hosts.processes import Footprint, parse_footprint
from intop.hosts.scripts import script
from intop.hosts.tcp_info import SocketSample, growth, parse_sample

N = TypeVar("N", int, float)

MOST_COUNTERS = 20_000
"""The most counters of one reading. A machine of 500 processors has 6,000."""

Sections = Mapping[str, Sequence[str]]
"""The lines of each section of an answer."""


@dataclass(frozen=True)
class Sample:
    """One point of a time series."""

    uptime_s: float
    """The time of the point."""
    counters: Mapping[str, int]
    """The counters since the host started."""
    sockets: SocketSample | None = None
    """None where they were not asked for, or could not be listed."""
    asks_sockets: bool = False
    """Whether sockets were asked for."""


@dataclass(frozen=True)
class Reading:
    """A whole reading of a host."""

    counters: Counters
    now: Sample
    samples: tuple[Sample, ...] = ()
    """The samples since the reading before, the oldest first."""
    machine: str = ""
    """Equal for hosts that have the same processes; "" where that is not known."""
    footprint: Footprint | None = None
    """None where it was not asked for."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A request for a reading."""

    processes: bool = False
    """Whether to read all processes."""
    footprint: bool = False
    """Whether to read the footprint of nginx's processes, which root can see."""
    port: int | None = None
    """The port whose TCP sockets are listed; None for no list."""
    stub_status: str = ""
    """The URL of the page of nginx's own counters; "" for none."""
    points: int = 0
    """The number of samples that follow."""
    step_s: float = 0.0
    """The time from one sample to the next."""

    @property
    def request(self) -> str:
        """The line that asks for it."""
        what = ("p" if self.processes else "") + ("f" if self.footprint else "")
        what += "s" if self.port is not None else ""
        page = urlsplit(self.stub_status)
        at = f" {page.hostname} {page.port or 80} {page.path}" if self.stub_status else ""
        what += "n" if at else ""
        return f"{what or '-'} {self.points} {round(self.step_s * 1e6)}{at};\n"


READER = script("reader.sh")


class Reader:
    """The reading process of one host, which starts when it is first asked."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._command = LastingCommand(host, f"bash -c {shlex.quote(READER)}")
        self._mark = self._command.mark
        self._port: int | None = None
        self._heard = ""
        self._samples: list[Sample] = []

    def read(self, wanted: Wanted) -> Reading:
        """Read everything now.

        Raises:
            CommandError: The answer makes no sense, or can't be read.
            UnreachableError: The connection or the process is gone; the next read starts another.
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
        self._heard += self._command.heard()
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
        self._command.close()

    @contextmanager
    def _understanding(self) -> Iterator[None]:
        """End the process when its answer makes no sense."""
        try:
            yield
        except (KeyError, ValueError, IndexError) as error:
            self.close()
            name = self._host.address.name
            raise CommandError(name, f"its counters can't be read: {error!r}"[:500]) from error

    def _answer(self, wanted: Wanted) -> str:
        is_new = not self._command.is_running
        try:
            return self._command.ask(wanted.request, first=f"{self._mark}\n")
        except HostError as error:
            self.close()
            if is_new and isinstance(error, UnreachableError) and "connection" not in error.message:
                # It did not even start: the next one would not either.
                raise CommandError(
                    self._host.address.name,
                    f"its counters can't be read by bash ({error.message}): install bash there",
                ) from error
            raise


def parse_reading(text: str, mark: str, port: int | None) -> Reading:
    """Return a reading from the reader's answer. Raises KeyError, ValueError or IndexError."""
    *samples, sections = _split(text, mark)
    order = ("host", "tables", "energy", "processes", "time")
    whole = [line for name in order for line in sections.get(name, ())]
    counters = parse_counters(joined(whole))
    now = replace(_sample(sections, port), uptime_s=counters.uptime_s)
    return Reading(
        counters,
        now,
        tuple(_sample(sample, port) for sample in samples),
        machine=" ".join(sections.get("machine", ())),
        footprint=parse_footprint(sections["footprint"]) if "footprint" in sections else None,
    )


def status_answer(text: str, mark: str) -> Sequence[str]:
    """Return the answer of nginx's page, head and body, in the reader's answer.

    Raises KeyError or ValueError.
    """
    *_, sections = _split(text, mark)
    return sections["status"]


def _split(text: str, mark: str) -> list[Sections]:
    """Return the sections of each sample and of the whole reading, which comes last.

    Raises ValueError, also for an answer without its end.
    """
    listed = lines(text)
    if not listed or listed[-1] != mark:
        raise ValueError("they end too early")
    readings: list[dict[str, list[str]]] = []
    body: list[str] | None = None
    for line in listed[:-1]:
        if line.startswith(f"{mark} "):
            name, body = line.removeprefix(f"{mark} "), []
            if name in ("sample", "host"):
                readings.append({})
            elif not readings:
                raise ValueError(f"section {name[:40]} stands before all of them")
            if readings[-1].setdefault(name, body) is not body:
                raise ValueError(f"section {name[:40]} stands there twice")
        elif body is None:
            raise ValueError(f"{line[:40]!r} stands before all of them")
        else:
            body.append(line)
    return list(readings)


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
    """Return the time series between two readings of one host.

    A sample without sockets, or without nginx's page, takes those of the sample before. Sockets are
    unread where each sample under load that asked for them has none.
    """
    points = list(accumulate((before, *after.samples, after.now), _carried))[1:]
    asking = [sample for sample in after.samples if sample.asks_sockets]
    shown = {
        "conntrack": any(name.startswith("conntrack.") for name in after.now.counters),
        "sockets": any(sample.sockets is not None for sample in asking or [after.now]),
        "nginx": any(name.startswith("nginx.") for name in after.now.counters),
    }
    return HostCounters(
        at_s=tuple(round(point.uptime_s - before.uptime_s, 2) for point in points),
        growth=_transposed([_grown(*pair) for pair in pairwise((before, *points))]),
        levels=_transposed([_levels(point) for point in points]),
        unread=tuple(name for name, is_shown in shown.items() if not is_shown),
    )


def _carried(before: Sample, after: Sample) -> Sample:
    """Return a sample with the sockets and the page that only those before it had."""
    page = {name: n for name, n in before.counters.items() if name.startswith("nginx.")}
    return replace(
        after,
        counters={**page, **after.counters} if page else after.counters,
        sockets=after.sockets or before.sockets,
    )


def _grown(before: Sample, after: Sample) -> dict[str, int]:
    """Return by how much each counter grew that both samples have."""
    growths = {
        name: grown(name, then, now)
        for name, now in after.counters.items()
        if (then := before.counters.get(name)) is not None and then != now and not is_level(name)
    }
    if after.sockets is not None and after.sockets is not before.sockets:
        growths |= growth(before.sockets or SocketSample(), after.sockets)
    return growths


def _levels(sample: Sample) -> dict[str, float]:
    levels: dict[str, float] = {n: v for n, v in sample.counters.items() if is_level(n)}
    return levels | (dict(sample.sockets.levels) if sample.sockets else {})


def _transposed(points: Sequence[Mapping[str, N]]) -> dict[str, tuple[N, ...]]:
    """Return a series for each name that is not 0 at all points."""
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
        asked = [
            replace(request, processes=listing.get(name) == name)
            for name, request in wanted.items()
        ]
        with ThreadPoolExecutor(len(asked)) as pool:
            answers = pool.map(Reader.read, (self._readers[name] for name in wanted), asked)
            readings = dict(zip(wanted, answers, strict=True))
        self._machines |= {name: reading.machine for name, reading in readings.items()}
        for name, lister in self._listing(wanted).items():
            processes = readings[lister].counters.processes
            counters = replace(readings[name].counters, processes=processes)
            readings[name] = replace(readings[name], counters=counters)
        return readings

    def follow(self) -> None:
        """Follow all of them, as `Reader.follow`."""
        for reader in self._readers.values():
            reader.follow()

    def close(self) -> None:
        """End all of them."""
        for reader in self._readers.values():
            reader.close()

    def _listing(self, wanted: Mapping[str, Wanted]) -> dict[str, str]:
        """Return the host that lists the processes, for each host whose processes are wanted.

        A host whose machine is not known lists its own.
        """
        first: dict[str, str] = {}
        return {
            name: first.setdefault(self._machines.get(name) or name, name)
            for name, request in wanted.items()
            if request.processes
        }
