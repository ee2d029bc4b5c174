"""The congestion control of a lab's hosts, which would inherit the machine's.

A network namespace inherits its congestion control from the machine. Distributions ship cubic, and
what a key gains depends on what each host comes with.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from intop.domain.cluster import LabSpec
from intop.errors import LabError
from intop.lab import network
from intop.lab.commands import run

KEY = "net.ipv4.tcp_congestion_control"
SETTINGS = Path("/proc/sys/net/ipv4")


def allow(record: Path, algorithms: Collection[str], settings: Path = SETTINGS) -> str | None:
    """Let namespaces choose these, and write to `record` which the machine had not allowed.

    They can only choose what is in the machine's list. All else on the machine stays as it is.
    Return the problem, if there is one.
    """
    allowed = settings / "tcp_allowed_congestion_control"
    try:
        before = allowed.read_text().split()
        missing = sorted(set(algorithms).difference(before))
        if not missing:
            return None
        ours = record.read_text().split() if record.exists() else []
        record.touch(mode=0o600)
        record.write_text(" ".join([*ours, *missing]))
        allowed.write_text(" ".join([*before, *missing]))
    except OSError as problem:
        names = ", ".join(sorted(algorithms))
        return f"namespaces may not choose {names} here ({problem}): modprobe tcp_NAME may help"
    return None


def disallow(record: Path, settings: Path = SETTINGS) -> None:
    """Take off the list what is in `record`, unless the machine uses it by now."""
    if not record.exists():
        return
    allowed = settings / "tcp_allowed_congestion_control"
    ours = set(record.read_text().split())
    ours.discard((settings / "tcp_congestion_control").read_text().strip())
    before = allowed.read_text().split()
    if ours.intersection(before):
        allowed.write_text(" ".join(name for name in before if name not in ours))
    record.unlink()


def choices(spec: LabSpec) -> dict[str, str]:
    """Return the algorithm of each host that is a namespace; a guest keeps its own kernel's."""
    chosen = spec.congestion_control
    hosts = dict.fromkeys(network.clients(len(spec.client_links)), chosen.clients)
    hosts |= dict.fromkeys(network.BACKENDS, chosen.backends)
    if not network.guests_of(spec):
        hosts[network.BALANCER] = chosen.load_balancer
    return hosts


def set_on(lab: str, algorithms: Mapping[str, str]) -> str | None:
    """Give each namespace its algorithm. Return the problem, if there is one."""
    try:
        for host, algorithm in algorithms.items():
            run(network.inside(lab, host, "sysctl", "-q", "-w", f"{KEY}={algorithm}"))
    except LabError as problem:
        return str(problem)
    return None
