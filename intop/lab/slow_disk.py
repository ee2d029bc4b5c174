"""A disk that is slow for one lab's load balancer: limited by the kernel, and busy.

The limit belongs to a control group (blkio of version 1, io of version 2) in which the host's
servers run. It counts operations that reach the block device, and holds for writes that wait for
the disk; in version 2 it also holds for what the kernel writes back later.

What has not been used yet may be used later, so a limit alone delays nobody who stays below it. A
neighbour in the same group writes all the time: each write waits behind its writes, and where the
tenth of a second is used up, for the next one.
"""

import os
from pathlib import Path

from intop.errors import LabError
from intop.lab.commands import wait_until

MOUNTS = Path("/proc/self/mounts")
DEVICES = Path("/sys/dev/block")
GROUP = "intop-{lab}"


def limit(lab: str, folder: Path, iops: int) -> None:
    """Make a group whose members write to the disk of `folder` at most `iops` times a second.

    Raises LabError where the folder is on no block device, or the machine has no groups that limit
    writes.
    """
    device = _device(folder)
    for root, is_unified in _hierarchies():
        if not _has_limits(root, is_unified=is_unified):
            continue
        group = root / GROUP.format(lab=lab)
        file, text = (
            ("io.max", f"{device} wiops={iops}")
            if is_unified
            else ("blkio.throttle.write_iops_device", f"{device} {iops}")
        )
        try:
            group.mkdir(exist_ok=True)
            (group / file).write_text(text)
        except OSError as error:
            raise LabError(f"disk_iops: this machine lets nobody limit a disk: {error}") from error
        return
    raise LabError("disk_iops needs control groups that limit writes (blkio or io); mount one")


def entering(lab: str) -> list[str]:
    """Return what to put before a command to run it in the lab's group; nothing without one.

    It belongs before what enters a network namespace, where /sys has no groups.
    """
    for root, _ in _hierarchies():
        members = root / GROUP.format(lab=lab) / "cgroup.procs"
        if members.exists():
            return ["sh", "-c", f'echo $$ >{members} && exec "$@"', "sh"]
    return []


def neighbour(file: Path) -> list[str]:
    """Return the command that writes to this file all the time, a few MB over and over."""
    write = f"dd if=/dev/zero of={file} bs=4k count=1000 oflag=sync conv=notrunc status=none"
    return ["setsid", "--fork", "sh", "-c", f"while {write}; do :; done"]


def discard(lab: str) -> None:
    """Remove the lab's group, if there is one. Its processes have ended."""
    for root, _ in _hierarchies():
        group = root / GROUP.format(lab=lab)

        def still_there(group: Path = group) -> str | None:
            if not group.exists():  # which a read-only /sys would not say
                return None
            try:
                group.rmdir()
            except OSError as error:  # a process that was ended is not gone at once
                return f"disk_iops: {group} can't be removed: {error}"
            return None

        wait_until(still_there, limit_s=10)


def _hierarchies() -> list[tuple[Path, bool]]:
    """Return folders where groups with limits may be made, and whether that is version 2."""
    lines = [line.split() for line in MOUNTS.read_text().splitlines()]
    return [
        (Path(place), kind == "cgroup2")
        for _, place, kind, options, *_ in lines
        if kind == "cgroup2" or (kind == "cgroup" and "blkio" in options.split(","))
    ]


def _has_limits(root: Path, *, is_unified: bool) -> bool:
    if not is_unified:
        return True
    if "io" not in (root / "cgroup.controllers").read_text().split():
        return False
    try:
        (root / "cgroup.subtree_control").write_text("+io")
    except OSError:
        return False
    return True


def _device(folder: Path) -> str:
    """Return the disk below a folder as MAJOR:MINOR. A limit is on a whole disk, not a part."""
    number = folder.stat().st_dev
    entry = DEVICES / f"{os.major(number)}:{os.minor(number)}"
    if not entry.exists():
        raise LabError(f"disk_iops: {folder} is on no disk of its own; mount one there")
    entry = entry.resolve()
    if (entry / "partition").exists():
        entry = entry.parent
    return (entry / "dev").read_text().strip()
