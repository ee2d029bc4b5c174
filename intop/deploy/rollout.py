"""Roll-outs: the outcome of a plan on the load balancers of an architecture, one by one."""

from dataclasses import dataclass
from typing import Literal

from intop.domain.verdict import Verdict

Outcome = Literal["applied", "already", "stopped"]


@dataclass(frozen=True, kw_only=True)
class HostRollout:
    """The result on one load balancer."""

    host: str
    outcome: Outcome
    """The outcome. `stopped` leaves the host as before."""
    verdict: Verdict | None = None
    """The verdict of the A/B there, None where it has the values `already`."""
    file: str = ""
    """Our file that keeps the values over a reboot, "" for none."""
    nginx_files: tuple[str, ...] = ()

    @property
    def lasting(self) -> tuple[str, ...]:
        """All files that keep it over a reboot."""
        return (*filter(None, (self.file,)), *self.nginx_files)


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """The results on the hosts so far."""

    title: str
    hosts: tuple[HostRollout, ...]
    untouched: tuple[str, ...] = ()
    """Hosts that it did not come to."""
    series: int = 0
    """The last series of the stage's plan that has led to a decision."""

    @property
    def is_stopped(self) -> bool:
        """Whether a host showed too little for the roll-out to go on."""
        return any(host.outcome == "stopped" for host in self.hosts)
