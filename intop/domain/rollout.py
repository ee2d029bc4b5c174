"""A deployment on its way over the load balancers of an architecture, the canary first."""

from dataclasses import dataclass
from typing import Literal

from intop.domain.applied import Drift
from intop.domain.deployment import Deployment
from intop.domain.results import Verdict

Outcome = Literal["applied", "already", "stopped"]


@dataclass(frozen=True, kw_only=True)
class HostStep:
    """What is to be done on one load balancer, and what was seen there before.

    It `has_it` already, or has a `problem` in whose way nothing may be done. `overruled` are keys
    that something else on the host sets after our persistent `file`, which is "" where none is
    wanted.
    """

    host: str
    has_it: bool = False
    problem: str = ""
    file: str = ""
    overruled: tuple[Drift, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RolloutPlan:
    """A deployment and where it is to go, in this order, the first one being the canary.

    On each host it is measured against the default in up to `rounds` rounds.
    """

    deployment: Deployment
    hosts: tuple[HostStep, ...]
    rounds: int


@dataclass(frozen=True, kw_only=True)
class HostRollout:
    """What was done on one load balancer. It is as before where the roll-out `stopped`.

    `verdict` is of the A/B there, None where it has the values `already`.
    """

    host: str
    outcome: Outcome
    verdict: Verdict | None = None
    file: str = ""


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
