"""A host's counters before and after a load, and what happened in between."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from intop.domain.trial import HostMetrics
from intop.hosts.answers import count, decimal, lines
from intop.hosts.processes import Identity, Process, foreign_ticks, parse_processes

TICKS_PER_S = 100
"""USER_HZ, the unit of CPU times in /proc: the same on all X86 and ARM Linux."""

CPU_TIMES = 8
"""user nice system idle iowait irq softirq steal; guest time is part of user time already."""

_CPU = re.compile(r"cpu([0-9]+) ")
_SOFTNET = re.compile(r"[0-9a-f]{8}( [0-9a-f]{8}){2,}")
"""Hexadecimal, a line for each CPU: packets, how many were dropped, polls that ended too early."""
_PROCESS = re.compile(r"[0-9]+ \(")
"""How the first process begins, and no counter."""

NAMED = (
    "MemTotal",
    "MemAvailable",
    "ListenOverflows",
    "ListenDrops",
    "RetransSegs",
    "PassiveOpens",
)
"""What is taken from the tables that name their numbers."""

GROWING = (
    *("uptime_s", "listen_overflows", "listen_drops", "retransmits", "accepted"),
    "pressure_us",
)
"""The counters that never go back while a host runs."""


@dataclass(frozen=True)
class CpuTime:
    """Ticks of one processor; `total` has all kinds of time, also idle time."""

    total: int
    softirq: int
    steal: int


@dataclass(frozen=True)
class Energy:
    """What a processor's package has used (µJ), and the number after which it begins again at 0."""

    used_uj: int
    largest_uj: int


@dataclass(frozen=True, kw_only=True)
class Counters:
    """One reading. CPU times in ticks, memory in KiB, pressure in µs, uptime in s.

    `cpu_total`, `cpu_idle` and `cpu_steal` are those of all processors, `cpus` has each by its
    number. `softnet_drops` and `softnet_squeezes` are sums over the processors; None where the
    host doesn't show them. `energy` has the processors' packages that count theirs.
    """

    cpu_total: int
    cpu_idle: int
    cpu_steal: int
    cpus: Mapping[int, CpuTime]
    memory_used_kib: int
    time_wait: int
    listen_overflows: int
    listen_drops: int
    retransmits: int
    accepted: int
    pressure_us: int
    softnet_drops: int | None = None
    softnet_squeezes: int | None = None
    context_switches: int | None = None
    energy: tuple[Energy, ...] = ()
    uptime_s: float
    processes: Mapping[Identity, Process] = field(default_factory=dict)


def parse_counters(text: str) -> Counters:
    """Counters from /proc/stat, tables, and all processes (none of them need be there); the last
    line is the uptime. Raises KeyError, ValueError or IndexError.

    Not everybody who can name a process is to be believed: what looks like a counter counts only
    ahead of the processes.
    """
    if not text.endswith("\n"):
        raise ValueError("they end in the middle of a line")
    first, *tables, last = lines(text)
    start = next((n for n, line in enumerate(tables) if _PROCESS.match(line)), len(tables))
    named = _named(tables[:start])
    if not first.startswith("cpu "):
        raise ValueError(f"{first[:40]!r} is not the time of all processors")
    cpu = _ticks(first)
    drops, squeezes = _softnet(tables[:start])
    return Counters(
        cpu_total=sum(cpu),
        cpu_idle=cpu[3] + cpu[4],
        cpu_steal=cpu[7],
        cpus=_each_cpu(tables[:start]),
        memory_used_kib=max(named["MemTotal"] - named["MemAvailable"], 0),
        time_wait=named["tw"],
        listen_overflows=named["ListenOverflows"],
        listen_drops=named["ListenDrops"],
        retransmits=named["RetransSegs"],
        accepted=named["PassiveOpens"],
        pressure_us=named.get("some", 0),  # there are kernels without it
        softnet_drops=drops,
        softnet_squeezes=squeezes,
        context_switches=named.get("ctxt"),
        energy=tuple(_energy(tables[:start])),
        uptime_s=decimal(last),
        processes=parse_processes(tables[start:]),
    )


def _ticks(line: str) -> list[int]:
    """A processor's times, in the order of CPU_TIMES. Raises ValueError."""
    return [count(time) for time in line.split(maxsplit=CPU_TIMES + 1)[1 : CPU_TIMES + 1]]


def _each_cpu(tables: Iterable[str]) -> dict[int, CpuTime]:
    """The processors' times by their numbers. Raises ValueError or IndexError, also for none."""
    found: dict[int, CpuTime] = {}
    for line in tables:
        if match := _CPU.match(line):
            number, ticks = count(match[1]), _ticks(line)
            time = CpuTime(total=sum(ticks), softirq=ticks[6], steal=ticks[7])
            if found.setdefault(number, time) != time:
                raise ValueError(f"cpu{number} stands there twice")
    if not found:
        raise ValueError("no processor has a line of its own")
    return found


def _softnet(tables: Iterable[str]) -> tuple[int, int] | tuple[None, None]:
    """Drops and squeezes of all processors; None each where there is no such table."""
    rows = [line.split() for line in tables if _SOFTNET.fullmatch(line)]
    if not rows:
        return None, None
    return sum(int(row[1], 16) for row in rows), sum(int(row[2], 16) for row in rows)


def _energy(tables: Iterable[str]) -> Iterator[Energy]:
    """Of each package, from lines of our own. Raises ValueError or IndexError."""
    for line in tables:
        if line.startswith("energy "):
            _, used, largest = line.split()
            yield Energy(count(used), count(largest))


def _named(tables: Iterable[str]) -> dict[str, int]:
    """Counters by name. Raises ValueError or IndexError, also for one with two values."""
    named: dict[str, int] = {}
    for name, text in _pairs(tables):
        number = count(text)
        if named.setdefault(name, number) != number:
            raise ValueError(f"{name} stands there twice")
    return named


def _pairs(tables: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names and numbers, as text, of the counters that we want."""
    header: list[str] = []
    for line in tables:
        words = line.split()
        if line.startswith("TCP: "):
            yield "tw", words[words.index("tw") + 1]
        elif line.startswith(("TcpExt: ", "Tcp: ")):
            # A line of names, then one of numbers, both begun by the name of the table.
            if words[1].lstrip("-").isdigit():
                both = zip(header, words, strict=True)
                if next(both) != (words[0], words[0]):
                    raise ValueError(f"{words[0]} has no names")
                yield from (pair for pair in both if pair[0] in NAMED)
            header = words
        elif line.startswith("some "):
            yield "some", words[-1].removeprefix("total=")
        elif line.startswith("ctxt "):
            yield "ctxt", words[1]
        elif (name := line.partition(":")[0]) in NAMED:
            yield name, words[1]


def between(before: Counters, after: Counters, ours: Collection[str] | None = None) -> HostMetrics:
    """The metrics of the time between two readings of one host.

    `ours` are the names of the programs that carry the load; None where they are not known.
    Raises ValueError when a counter went back, as all do when a host starts anew.
    """
    for name in GROWING:
        if getattr(after, name) < getattr(before, name):
            raise ValueError(f"its {name} went back from {getattr(before, name)}")
    ticks = max(after.cpu_total - before.cpu_total, 1)
    seconds = max(after.uptime_s - before.uptime_s, 1e-3)
    foreign, program = (
        (None, "") if ours is None else foreign_ticks(before.processes, after.processes, ours)
    )
    return HostMetrics(
        # Idle and stolen time are estimates, which the kernel may take back a little of.
        cpu=min(max(1 - (after.cpu_idle - before.cpu_idle) / ticks, 0.0), 1.0),
        steal=min(max((after.cpu_steal - before.cpu_steal) / ticks, 0.0), 1.0),
        memory_mib=after.memory_used_kib / 1024,
        time_wait=after.time_wait,
        listen_overflows=after.listen_overflows - before.listen_overflows,
        listen_drops=after.listen_drops - before.listen_drops,
        retransmits=after.retransmits - before.retransmits,
        accepted=after.accepted - before.accepted,
        cpu_pressure=(after.pressure_us - before.pressure_us) / 1e6 / seconds,
        memory_before_mib=before.memory_used_kib / 1024,
        time_wait_before=before.time_wait,
        # Processes are listed after the host's own counters: on a busy one ticks pass in between.
        foreign_cpu=None if foreign is None else min(foreign / ticks, 1.0),
        foreign_program=program,
        cpus=len(after.cpus),
        max_cpu_steal=_largest_share("steal", before, after),
        max_cpu_softirq=_largest_share("softirq", before, after),
        softnet_drops=_grown(before.softnet_drops, after.softnet_drops),
        softnet_squeezes=_grown(before.softnet_squeezes, after.softnet_squeezes),
        context_switches_per_s=_rate(before.context_switches, after.context_switches, seconds),
        power_w=_power_w(before.energy, after.energy, seconds),
    )


def _rate(before: int | None, after: int | None, seconds: float) -> float | None:
    grown = _grown(before, after)
    return None if grown is None else grown / seconds


def _power_w(before: Sequence[Energy], after: Sequence[Energy], seconds: float) -> float | None:
    """The mean power of all packages, None where none says so, or where one has come or gone."""
    if not before or [e.largest_uj for e in before] != [e.largest_uj for e in after]:
        return None
    used = [
        (b.used_uj - a.used_uj) % (a.largest_uj + 1) for a, b in zip(before, after, strict=True)
    ]
    return sum(used) / 1e6 / seconds


def _largest_share(kind: Literal["softirq", "steal"], before: Counters, after: Counters) -> float:
    """The share, from 0 to 1, of a kind of time on the processor that had most of it.

    A processor that was switched on or off between the readings has none.
    """
    shares = [0.0]
    for number in before.cpus.keys() & after.cpus.keys():
        one, other = before.cpus[number], after.cpus[number]
        grown = getattr(other, kind) - getattr(one, kind)
        shares.append(min(grown / max(other.total - one.total, 1), 1.0))
    return max(shares)


def _grown(before: int | None, after: int | None) -> int | None:
    """By how much a sum over the processors grew; it shrinks where one is switched off, or where
    one of its 32 bits begins again at 0.
    """
    return None if before is None or after is None else max(after - before, 0)
