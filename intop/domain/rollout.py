"""What became of a plan on the load balancers of an architecture, the canary first."""

from dataclasses import dataclass
from typing import Literal

from intop.domain.verdict import Verdict

Outcome = Literal["applied", "already", "stopped"]


@dataclass(frozen=True, kw_only=True)
class HostRollout:
    """What was done on one load balancer. It is as before where the roll-out `stopped`.

    `verdict` is of the A/B there, None where it has the values `already`. What stays over a reboot
    is in our `file` ("" for none) and in the `nginx_files`.
    """

    host: str
    outcome: Outcome
    verdict: Verdict | None = None
    file: str = ""
    nginx_files: tuple[str, ...] = ()

    @property
    def lasting(self) -> tuple[str, ...]:
        """All files that keep it over a reboot."""
        return (*filter(None, (self.file,)), *self.nginx_files)


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """What was done on the hosts so far. `untouched` are those that it did not come to.

    `series` is the last one of the stage's plan that has led to a decision.
    """

    title: str
    hosts: tuple[HostRollout, ...]
    untouched: tuple[str, ...] = ()
    series: int = 0

    @property
    def is_stopped(self) -> bool:
        """Whether a host showed too little for the roll-out to go on."""
        return any(host.outcome == "stopped" for host in self.hosts)
