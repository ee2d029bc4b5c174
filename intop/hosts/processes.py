"""CPU time by process, and how much of it went to programs that have no part in the load."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from intop.hosts.answers import count, whole

NAME_LENGTH = 15
"""The kernel keeps that much of a program's name (TASK_COMM_LEN, less the final zero)."""
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of the kernel's include/linux/sched.h, one of the flags in /proc/PID/stat."""

Identity = tuple[int, int]
"""A process's id and its start in ticks: ids are used again."""


@dataclass(frozen=True)
class Process:
    """CPU times in ticks: `own`, and `children` for those that ended and were waited for."""

    name: str
    parent: int
    own: int
    children: int


_UNBORN = Process("", 0, 0, 0)
_FEWEST_WORDS = 20
"""Behind the name: what is read of them, and more than a name has room for."""


def parse_processes(lines: Iterable[str]) -> dict[Identity, Process]:
    """The processes of one /proc/PID/stat after the other, without the kernel's threads.

    Raises ValueError or IndexError. Anybody on the host can give a process a name with line ends in
    it, which the kernel prints as they are: an entry ends with its numbers, not with its line.
    """
    found: dict[Identity, Process] = {}
    entry: list[str] = []
    for line in lines:
        entry.append(line)
        if len(line.rpartition(") ")[2].split(" ")) < _FEWEST_WORDS:
            continue
        if process := parse_process("\n".join(entry)):
            found[process[0]] = process[1]
        entry = []
    if entry:
        raise ValueError(f"{entry[0][:40]!r} is no process")
    return found


def parse_process(text: str) -> tuple[Identity, Process] | None:
    """A process from the text of its /proc/PID/stat (see proc_pid_stat(5)); None for a kernel's
    thread, since those work for everybody. Raises ValueError or IndexError.
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
    """The ticks of user processes whose name is none of `ours`, and which name had most of them.

    Nor is it this process, which a lab's hosts see, since it is on their machine: that measures
    them all alike.

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
    """This process; None where there is no /proc."""
    try:
        found = parse_process(Path("/proc/self/stat").read_text())
    except OSError:
        return None
    return found[0] if found else None
