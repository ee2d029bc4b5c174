"""The processes of a lab: found by the network namespace they live in, and ended."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from intop.domain.cluster import MAX_CLIENTS
from intop.errors import LabError
from intop.lab import network

PROC = Path("/proc")
Identity = tuple[int, int]
"""Device and inode of a namespace: equal for two processes in the same one."""


def identity(path: Path) -> Identity | None:
    """Return a file's identity; None when a process has ended and waits for its parent."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def namespace_of(pid: int | str) -> Identity | None:
    """Return the network namespace that a process lives in."""
    return identity(PROC / str(pid) / "ns/net")


def arguments(pid: int) -> list[str]:
    """Return the command line of a process; empty when it has ended."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def command_name(pid: int) -> str:
    """Return the name of a process's program; empty when it is gone."""
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def all_processes() -> Iterator[int]:
    """Return the ids of all processes of this machine."""
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def runs(command: str) -> bool:
    """Whether a program of this name runs; one that has ended and waits for its parent doesn't."""
    return any(command_name(pid) == command and namespace_of(pid) for pid in all_processes())


def members(lab: str, state_dir: str) -> set[int]:
    """Return the lab's processes.

    - those in its namespaces;
    - what an `up` that was killed leaves at work on the machine: an `ip` that is about to enter
      or make a namespace of the lab, an `ssh-keygen` that writes the lab's keys;
    - those in a namespace whose name was deleted under them, where one of them was started
      with a path of the lab's own state directory.
    """
    mine = _identities(network.existing_namespaces(lab))
    known = _identities(network.all_namespaces()) | {namespace_of("self")}
    where = {pid: namespace_of(pid) for pid in all_processes() if pid != os.getpid()}
    where = {pid: space for pid, space in where.items() if space is not None}
    nameless = {
        space
        for pid, space in where.items()
        if space not in known and _names_path_in(state_dir, pid)
    }
    inside = {pid for pid, space in where.items() if space in mine | nameless}
    own_names = set(network.namespaces(lab, count=MAX_CLIENTS))
    left_at_work = {
        pid
        for pid in where.keys() - inside
        if (
            (command_name(pid) == "ip" and own_names & set(arguments(pid)))
            or (command_name(pid) == "ssh-keygen" and _names_path_in(state_dir, pid))
        )
    }
    return inside | left_at_work


def _identities(names: Iterable[str]) -> set[Identity | None]:
    """Return the identities of namespaces, which may be deleted just now."""
    return {identity(network.NAMESPACE_FOLDER / name) for name in names} - {None}


def _names_path_in(state_dir: str, pid: int) -> bool:
    """Whether a process was started with a path of this directory."""
    return any(f"{state_dir}/" in argument for argument in arguments(pid))


def end(find: Callable[[], set[int]], *, patience_s: float = 3.0) -> set[int]:
    """Ask all that `find` returns to end, force those that don't. Return all of them."""
    seen: set[int] = set()
    for kind in (signal.SIGTERM, signal.SIGKILL):
        signalled: set[int] = set()
        deadline = time.monotonic() + patience_s
        while left := find():
            for pid in left - signalled:
                _signal(pid, kind)
            signalled |= left
            seen |= left
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        else:
            return seen
    raise LabError(f"processes {sorted(left)} of the lab don't end, not even by SIGKILL")


def _signal(pid: int, kind: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended just now
        os.kill(pid, kind)
