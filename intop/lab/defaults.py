"""Defaults of a lab's hosts, where they would inherit something else from the machine.

A network namespace inherits its congestion control from the machine. What distributions ship is
cubic, and whether another one gains anything depends on what a host comes with.
"""

from collections.abc import Collection
from pathlib import Path

from intop.errors import LabError
from intop.lab import network
from intop.lab.commands import run

CONGESTION_CONTROL = "cubic"
KEY = "net.ipv4.tcp_congestion_control"
SETTINGS = Path("/proc/sys/net/ipv4")


def allow(record: Path, settings: Path = SETTINGS) -> str | None:
    """Let namespaces choose cubic, and remember in `record` that it was us. Return why not, if not.

    They can only choose what is in the machine's list. All else on the machine stays as it is.
    """
    allowed = settings / "tcp_allowed_congestion_control"
    try:
        before = allowed.read_text().split()
        if CONGESTION_CONTROL in before:
            return None
        record.touch(mode=0o600)
        allowed.write_text(" ".join([*before, CONGESTION_CONTROL]))
    except OSError as problem:
        record.unlink(missing_ok=True)
        return f"{CONGESTION_CONTROL} is not allowed to namespaces here ({problem})"
    return None


def disallow(record: Path, settings: Path = SETTINGS) -> None:
    """Take it off the list again if it was us, and the machine does not use it by now."""
    if not record.exists():
        return
    allowed = settings / "tcp_allowed_congestion_control"
    if (settings / "tcp_congestion_control").read_text().strip() != CONGESTION_CONTROL:
        algorithms = [name for name in allowed.read_text().split() if name != CONGESTION_CONTROL]
        allowed.write_text(" ".join(algorithms))
    record.unlink()


def set_on(lab: str, hosts: Collection[str]) -> str | None:
    """Give these namespaces what a distribution has. Return why not, if not."""
    try:
        for host in hosts:
            run(network.inside(lab, host, "sysctl", "-q", "-w", f"{KEY}={CONGESTION_CONTROL}"))
    except LabError as problem:
        return str(problem)
    return None
