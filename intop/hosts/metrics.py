"""A host's counters before and after a load, and what happened in between."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from intop.domain.trial import HostMetrics
from intop.errors import CommandError
from intop.hosts.host import Host, output
from intop.hosts.processes import Identity, Process, foreign_ticks, parse_process

COUNTERS = """
read -r line < /proc/stat && echo "$line"
cat /proc/meminfo /proc/net/sockstat /proc/net/netstat /proc/net/snmp \\
    /proc/pressure/cpu 2>/dev/null
read -r uptime rest < /proc/uptime && echo "$uptime"
"""
"""One process only: on a small or emulated host each is felt in what is measured."""

PROCESSES = COUNTERS.replace("/pressure/cpu", "/pressure/cpu /proc/[0-9]*/stat")
"""The same with all processes, in that one process; 5 ms more where there are 170 of them.

A process that ends while it is listed is no error: only the last line decides on the exit code.
"""

TICKS_PER_S = 100
"""USER_HZ, the unit of CPU times in /proc: the same on all X86 and ARM Linux."""


@dataclass(frozen=True, kw_only=True)
class Counters:
    """One reading. CPU times in ticks, memory in KiB, pressure in µs, uptime in s."""

    cpu_total: int
    cpu_idle: int
    cpu_steal: int
    memory_used_kib: int
    time_wait: int
    listen_overflows: int
    listen_drops: int
    retransmits: int
    pressure_us: int
    uptime_s: float
    processes: Mapping[Identity, Process] = field(default_factory=dict)


def read_counters(host: Host, *, processes: bool = False) -> Counters:
    """Read them all at once. Raises CommandError when they make no sense."""
    text = output(host, PROCESSES if processes else COUNTERS)
    try:
        return parse_counters(text)
    except (KeyError, ValueError, IndexError) as error:
        raise CommandError(host.address.name, f"its counters can't be read: {error!r}") from error


def parse_counters(text: str) -> Counters:
    """Counters from what either command prints. Raises KeyError, ValueError or IndexError."""
    lines = text.splitlines()
    # user nice system idle iowait irq softirq steal; guest time is part of user time already.
    cpu = [int(v) for v in lines[0].split()[1:9]]
    named: dict[str, int] = {}
    header: list[str] = []
    processes: dict[Identity, Process] = {}
    time_wait = pressure = 0
    for line in lines[1:]:
        words = line.split()
        if line.startswith("TCP: "):
            time_wait = int(words[words.index("tw") + 1])
        elif line.startswith(("TcpExt: ", "Tcp: ")):
            if words[1].lstrip("-").isdigit():
                named |= dict(zip(header, map(int, words[1:]), strict=True))
            header = words[1:]
        elif line.startswith("some "):
            pressure = int(words[-1].removeprefix("total="))
        elif line.startswith("Mem"):
            named[words[0].rstrip(":")] = int(words[1])
        elif line[:1].isdigit() and " (" in line and (found := parse_process(line)):
            processes[found[0]] = found[1]
    return Counters(
        cpu_total=sum(cpu),
        cpu_idle=cpu[3] + cpu[4],
        cpu_steal=cpu[7],
        memory_used_kib=named["MemTotal"] - named["MemAvailable"],
        time_wait=time_wait,
        listen_overflows=named["ListenOverflows"],
        listen_drops=named["ListenDrops"],
        retransmits=named["RetransSegs"],
        pressure_us=pressure,
        uptime_s=float(lines[-1]),
        processes=processes,
    )


def between(before: Counters, after: Counters, ours: Collection[str] | None = None) -> HostMetrics:
    """The metrics of the time between two readings of one host.

    `ours` are the names of the programs that carry the load; None where they are not known.
    """
    ticks = max(after.cpu_total - before.cpu_total, 1)
    seconds = max(after.uptime_s - before.uptime_s, 1e-3)
    foreign, program = (
        (None, "") if ours is None else foreign_ticks(before.processes, after.processes, ours)
    )
    return HostMetrics(
        cpu=1 - (after.cpu_idle - before.cpu_idle) / ticks,
        steal=(after.cpu_steal - before.cpu_steal) / ticks,
        memory_mib=after.memory_used_kib / 1024,
        time_wait=after.time_wait,
        listen_overflows=after.listen_overflows - before.listen_overflows,
        listen_drops=after.listen_drops - before.listen_drops,
        retransmits=after.retransmits - before.retransmits,
        cpu_pressure=(after.pressure_us - before.pressure_us) / 1e6 / seconds,
        memory_before_mib=before.memory_used_kib / 1024,
        time_wait_before=before.time_wait,
        # Processes are listed after the host's own counters: on a busy one ticks pass in between.
        foreign_cpu=None if foreign is None else min(foreign / ticks, 1.0),
        foreign_program=program,
    )
