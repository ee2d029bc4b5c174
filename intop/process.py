"""This process, by a name for people and by one that tells whether it still runs."""

import getpass
import os
import socket
from pathlib import Path

PROC = Path("/proc")
_START_TIME = 18
"""The place of the start time in /proc/PID/stat, after the process's state. See proc(5)."""
ENDED = "ZX"
"""The states of a process that has ended, and whose parent has not asked for its exit code yet."""


def title() -> str:
    """Return such as: root@controller (process 812)."""
    return " ".join(f"{_user()}@{socket.gethostname()} (process {os.getpid()})".split())


def identity() -> str:
    """Return a name that no other process has, here or on another machine, now or later."""
    pid = os.getpid()
    return "/".join((_place(), str(pid), _started(pid)))


def is_gone(other: str) -> bool:
    """Return whether a process with this identity has ended; False where it can't be known."""
    rest, _, started = other.rpartition("/")
    place, _, pid = rest.rpartition("/")
    if place != _place() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)  # only asks
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # another user's, whose start time may be hidden
    return _started(int(pid)) != started


def _place() -> str:
    """Return the boot of this machine and the namespace in which process ids count."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{(PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return f"{socket.gethostname()}:unknown"


def _started(pid: int) -> str:
    """Return a process's start time in clock ticks since boot; "" where none runs."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return ""
    # A command's name may contain blanks and parentheses.
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in ENDED else fields[_START_TIME]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # of a container, perhaps, that has no name for its user
        return f"user {os.getuid()}"
