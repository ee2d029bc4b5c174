"""Processes of a host: the CPU time of those without a part in the load, and nginx's footprint."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from intop.hosts.answers import count, whole

TICKS_PER_S = 100
"""USER_HZ, the unit of CPU times in /proc: the same on all X86 and ARM Linux."""
NAME_LENGTH = 15
"""The kernel keeps that much of a program's name (TASK_COMM_LEN, less the final zero)."""
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of the kernel's include/linux/sched.h, one of the flags in /proc/PID/stat."""

Identity = tuple[int, int]
"""The id of a process and its start in ticks: ids are used again."""


@dataclass(frozen=True)
class Process:
    """A process of a user. CPU times are in ticks."""

    name: str
    parent: int
    """The id of its parent."""
    own: int
    """Its own CPU time."""
    children: int
    """The CPU time of its children that ended and were waited for."""


_UNBORN = Process("", 0, 0, 0)
_FEWEST_WORDS = 20
"""Words behind the name: as many as are read, and more than a name has room for."""


def parse_processes(lines: Iterable[str]) -> dict[Identity, Process]:
    """Return the processes of one /proc/PID/stat after the other, without the kernel's threads.

    Raises ValueError or IndexError. Anybody on the host can give a process a name with line ends in
    it, which the kernel prints as they are: an entry ends with its numbers, not with its line.
    """
    processes: dict[Identity, Process] = {}
    entry: list[str] = []
    for line in lines:
        entry.append(line)
        if len(line.rpartition(") ")[2].split(" ")) < _FEWEST_WORDS:
            continue
        if process := parse_process("\n".join(entry)):
            processes[process[0]] = process[1]
        entry = []
    if entry:
        raise ValueError(f"{entry[0][:40]!r} is no process")
    return processes


def parse_process(text: str) -> tuple[Identity, Process] | None:
    """Return a process from the text of its /proc/PID/stat (see proc_pid_stat(5)).

    None is for a kernel's thread: those work for everybody. Raises ValueError or IndexError.
    """
    # A name may have blanks, brackets and line ends in it.
    head, _, tail = text.rpartition(") ")
    pid, _, name = head.partition(" (")
    words = tail.split()
    if count(words[6]) & KERNEL_THREAD:
        return None
    user, system = map(count, words[11:13])
    # The kernel's own sums of a child's times are signed.
    children_user, children_system = map(whole, words[13:15])
    process = Process(name, count(words[1]), user + system, children_user + children_system)
    return (count(pid), count(words[19])), process


def foreign_ticks(
    before: Mapping[Identity, Process], after: Mapping[Identity, Process], ours: Collection[str]
) -> tuple[int, str]:
    """Return the ticks of foreign user processes, and the name that had most of them.

    Foreign are those whose name is none of `ours`, but not this process: a lab's hosts see it,
    since it is on their machine, and it measures them all alike.

    A short-lived process is in neither reading: its time is in that of the parent that waited for
    it, and counts as the parent's. What the parent gets so of a process that was there before is
    taken off again. Not seen is what a short-lived process uses whose parent is one of ours, or
    does not wait.
    """
    ours = {name[:NAME_LENGTH] for name in ours}
    controller = _controller()

    def is_ours(identity: Identity, process: Process) -> bool:
        return process.name in ours or identity == controller

    by_name: Counter[str] = Counter()
    own = children = 0
    for identity, process in after.items():
        if is_ours(identity, process):
            continue
        then = before.get(identity, _UNBORN)
        by_name[process.name] += process.own - then.own + process.children - then.children
        own += process.own - then.own
        children += process.children - then.children
    ended = {i[0]: process for i, process in before.items() if i not in after}
    heirs = {i[0] for i, process in after.items() if is_ours(i, process)}
    for process in ended.values():
        heir = process.parent
        for _ in ended:  # a bound: the list is not of one moment, and might have a circle
            if heir not in ended:
                break
            heir = ended[heir].parent
        if heir not in heirs:
            children -= process.own + process.children
    ticks = max(own + max(children, 0), 0)
    return ticks, max(by_name, key=lambda name: by_name[name]) if ticks else ""


def _controller() -> Identity | None:
    """Return this process; None where there is no /proc."""
    try:
        process = parse_process(Path("/proc/self/stat").read_text())
    except OSError:
        return None
    return process[0] if process else None


# -- nginx's footprint ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Sums over all nginx processes of a host's network namespace, to see whether they grow."""

    memory_mib: float | None
    """Anonymous memory, which nobody shares (RssAnon of proc_pid_status(5)); None without nginx."""
    files: int | None
    """Open files; None without nginx."""
    started_s: float | None
    """The start of the last of them, in s after the kernel's; None without nginx."""
    host_files: int
    """The handles open on the whole host."""


def parse_footprint(listed: Sequence[str]) -> Footprint:
    """Return the footprint in a section of `reader.sh`. Raises ValueError or IndexError."""
    host, *rows = (line.split() for line in listed)
    if len(host) != 4 or host[0] != "files":
        raise ValueError(f"{' '.join(host)[:40]!r} is no /proc/sys/fs/file-nr")
    processes: list[tuple[int, int, int]] = []
    for name, memory, files, started in rows:
        if name != "nginx":
            raise ValueError(f"{name[:40]!r} is no process of nginx")
        processes.append((count(memory), count(files), count(started)))
    return Footprint(
        memory_mib=sum(memory for memory, _, _ in processes) / 1024 if processes else None,
        files=sum(files for _, files, _ in processes) if processes else None,
        started_s=max(start for _, _, start in processes) / TICKS_PER_S if processes else None,
        # The second number is those that are free again (see proc_sys_fs(5)).
        host_files=count(host[1]) - count(host[2]),
    )
