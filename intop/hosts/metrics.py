"""A host's counters before and after a load, and the metrics of the time between."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from intop.domain.trial import HostMetrics
from intop.hosts.answers import count, decimal, lines
from intop.hosts.kernel_counters import parse_tables
from intop.hosts.processes import Identity, Process, foreign_ticks, parse_processes

CPU_TIMES = 8
"""user nice system idle iowait irq softirq steal; guest time is part of user time already."""

_CPU = re.compile(r"cpu([0-9]+) ")
_PROCESS = re.compile(r"[0-9]+ \(")
"""The beginning of the first process, and of no counter."""

GROWING = (
    *("uptime_s", "listen_overflows", "listen_drops", "retransmits", "accepted"),
    "pressure_us",
)
"""The counters that never go back while a host runs."""


@dataclass(frozen=True)
class CpuTime:
    """Ticks of one processor."""

    total: int
    """All kinds of time, also idle time."""
    softirq: int
    steal: int


@dataclass(frozen=True)
class Energy:
    """The counter of a processor's package."""

    used_uj: int
    """The energy used, in µJ."""
    largest_uj: int
    """The number after which the counter begins again at 0."""


@dataclass(frozen=True, kw_only=True)
class Counters:
    """One reading of a host."""

    cpu_total: int
    """The time of all processors, in ticks."""
    cpu_idle: int
    """Their idle time, in ticks."""
    cpu_steal: int
    """Their stolen time, in ticks."""
    cpus: Mapping[int, CpuTime]
    """Each processor by its number."""
    memory_used_kib: int
    time_wait: int
    """Sockets in TIME_WAIT."""
    listen_overflows: int
    listen_drops: int
    retransmits: int
    accepted: int
    pressure_us: int
    """The time in which some process waited for a processor."""
    softnet_drops: int | None = None
    """The sum over the processors; None where the host doesn't show it."""
    softnet_squeezes: int | None = None
    """The sum over the processors; None where the host doesn't show it."""
    context_switches: int | None = None
    energy: tuple[Energy, ...] = ()
    """The processors' packages that count theirs."""
    uptime_s: float
    processes: Mapping[Identity, Process] = field(default_factory=dict)


def parse_counters(text: str) -> Counters:
    """Return counters from /proc/stat, tables and processes; the last line is the uptime.

    There may be no processes. Not everybody who can name a process is to be believed: what looks
    like a counter counts only ahead of the processes. Raises KeyError, ValueError or IndexError.
    """
    if not text.endswith("\n"):
        raise ValueError("they end in the middle of a line")
    first, *listed, last = lines(text)
    start = next((n for n, line in enumerate(listed) if _PROCESS.match(line)), len(listed))
    listed, processes = listed[:start], listed[start:]
    if not first.startswith("cpu "):
        raise ValueError(f"{first[:40]!r} is not the time of all processors")
    cpu = _ticks(first)
    named, tables = _named(listed), parse_tables(listed)
    return Counters(
        cpu_total=sum(cpu),
        cpu_idle=cpu[3] + cpu[4],
        cpu_steal=cpu[7],
        cpus=_each_cpu(listed),
        memory_used_kib=max(named["MemTotal"] - named["MemAvailable"], 0),
        time_wait=tables["sockstat.TCP.tw"],
        listen_overflows=tables["TcpExt.ListenOverflows"],
        listen_drops=tables["TcpExt.ListenDrops"],
        retransmits=tables["Tcp.RetransSegs"],
        accepted=tables["Tcp.PassiveOpens"],
        pressure_us=named.get("some", 0),  # there are kernels without it
        softnet_drops=_of_all_cpus(tables, "dropped"),
        softnet_squeezes=_of_all_cpus(tables, "time_squeeze"),
        context_switches=named.get("ctxt"),
        energy=tuple(_energy(listed)),
        uptime_s=decimal(last),
        processes=parse_processes(processes),
    )


def _ticks(line: str) -> list[int]:
    """Return a processor's times, in the order of CPU_TIMES. Raises ValueError."""
    return [count(time) for time in line.split(maxsplit=CPU_TIMES + 1)[1 : CPU_TIMES + 1]]


def _each_cpu(listed: Iterable[str]) -> dict[int, CpuTime]:
    """Return the processors' times by number. Raises ValueError or IndexError, also for none."""
    cpus: dict[int, CpuTime] = {}
    for line in listed:
        if match := _CPU.match(line):
            number, ticks = count(match[1]), _ticks(line)
            time = CpuTime(total=sum(ticks), softirq=ticks[6], steal=ticks[7])
            if cpus.setdefault(number, time) != time:
                raise ValueError(f"cpu{number} stands there twice")
    if not cpus:
        raise ValueError("no processor has a line of its own")
    return cpus


def _of_all_cpus(tables: Mapping[str, int], name: str) -> int | None:
    """Return the sum of a counter of softnet_stat; None where there is no such table."""
    numbers = [
        number
        for key, number in tables.items()
        if key.startswith("softnet.") and key.endswith(f".{name}")
    ]
    return sum(numbers) if numbers else None


def _energy(listed: Iterable[str]) -> Iterator[Energy]:
    """Return each package, from lines of our own. Raises ValueError or IndexError."""
    for line in listed:
        if line.startswith("energy "):
            _, used, largest = line.split()
            yield Energy(count(used), count(largest))


def _named(listed: Iterable[str]) -> dict[str, int]:
    """Return the host's counters that are not in a table of the network.

    Raises ValueError or IndexError, also for one with two values.
    """
    named: dict[str, int] = {}
    for line in listed:
        words = line.split()
        if line.startswith("some "):
            name, text = "some", words[-1].removeprefix("total=")
        elif line.startswith(("ctxt ", "MemTotal:", "MemAvailable:")):
            name, text = words[0].rstrip(":"), words[1]
        else:
            continue
        number = count(text)
        if named.setdefault(name, number) != number:
            raise ValueError(f"{name} stands there twice")
    return named


def between(before: Counters, after: Counters, ours: Collection[str] | None = None) -> HostMetrics:
    """Return the metrics of the time between two readings of one host.

    `ours` are the names of the programs that carry the load; None where they are not known.

    Raises:
        ValueError: A counter went back, as all do when a host starts anew.
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
    growth = _grown(before, after)
    return None if growth is None else growth / seconds


def _power_w(before: Sequence[Energy], after: Sequence[Energy], seconds: float) -> float | None:
    """Return the mean power of all packages.

    None where no package says it, or where one has come or gone.
    """
    if not before or [e.largest_uj for e in before] != [e.largest_uj for e in after]:
        return None
    used = [
        (b.used_uj - a.used_uj) % (a.largest_uj + 1) for a, b in zip(before, after, strict=True)
    ]
    return sum(used) / 1e6 / seconds


def _largest_share(kind: Literal["softirq", "steal"], before: Counters, after: Counters) -> float:
    """Return the share, from 0 to 1, of a kind of time on the processor that had most of it.

    A processor that was switched on or off between the readings has none.
    """
    shares = [0.0]
    for number in before.cpus.keys() & after.cpus.keys():
        then, now = before.cpus[number], after.cpus[number]
        growth = getattr(now, kind) - getattr(then, kind)
        shares.append(min(growth / max(now.total - then.total, 1), 1.0))
    return max(shares)


def _grown(before: int | None, after: int | None) -> int | None:
    """Return by how much a sum over the processors grew.

    It shrinks where one is switched off, or where one of its 32 bits begins again at 0.
    """
    return None if before is None or after is None else max(after - before, 0)
