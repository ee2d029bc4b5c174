"""What nginx's processes hold on a host: memory and open files, to see whether they grow."""

from collections.abc import Sequence
from dataclasses import dataclass

from intop.hosts.answers import count
from intop.hosts.metrics import TICKS_PER_S


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Sums over all processes of the nginx of a host's network namespace.

    `memory_mib` is their anonymous memory (RssAnon of proc_pid_status(5)): what nobody else shares,
    and no file gives back. `started_s` is when the last of them started, in s after the kernel did.
    All three are None where no nginx runs. `host_files` are the handles open on the whole host.
    """

    memory_mib: float | None
    files: int | None
    started_s: float | None
    host_files: int


def parse_footprint(lines: Sequence[str]) -> Footprint:
    """From the section `footprint` of `reader.sh`. Raises ValueError or IndexError."""
    host, *rows = (line.split() for line in lines)
    if len(host) != 4 or host[0] != "files":
        raise ValueError(f"{' '.join(host)[:40]!r} is no /proc/sys/fs/file-nr")
    found: list[tuple[int, int, int]] = []
    for name, memory, files, started in rows:
        if name != "nginx":
            raise ValueError(f"{name[:40]!r} is no process of nginx")
        found.append((count(memory), count(files), count(started)))
    return Footprint(
        memory_mib=sum(memory for memory, _, _ in found) / 1024 if found else None,
        files=sum(files for _, files, _ in found) if found else None,
        started_s=max(started for _, _, started in found) / TICKS_PER_S if found else None,
        # The second number is those that are free again (see proc_sys_fs(5)).
        host_files=count(host[1]) - count(host[2]),
    )
