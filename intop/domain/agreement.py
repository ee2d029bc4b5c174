"""Whether the replicas of a cluster measure the same: an A/A comparison of the default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from intop.domain.stats import Interval, bonferroni, geometric_mean, unpaired_ratio

FEWEST = 2
"""Trials of a replica without which nothing is known of it."""


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One replica."""

    name: str
    """The name of its load balancer."""
    trials: int
    judged_ms: float | None = None
    """The geometric mean of the default's latency on it, None with too few usable trials."""
    ratio: Interval | None = None
    """The first replica's latency / this one's, None for the first and with too few trials."""
    drifted: bool = False
    """Whether it drifted later. Nothing is measured on it any more."""
    disturbs: str = ""
    """The replica that its load makes slower. Nothing is measured on it any more."""

    @property
    def is_set_aside(self) -> bool:
        """Whether nothing is measured on it any more, though it agreed at first."""
        return self.drifted or bool(self.disturbs)

    @property
    def agrees(self) -> bool:
        """Whether the interval holds that it measures what the first one does."""
        return self.ratio is not None and self.ratio.low <= 1 <= self.ratio.high


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The replicas in the study's order, each compared with the first one."""

    replicas: tuple[Replica, ...]
    level: float
    """The level of all comparisons together."""

    @property
    def in_use(self) -> tuple[int, ...]:
        """The places of those that are measured on: the first, and all that agree with it."""
        agreeing = (n for n, r in enumerate(self.replicas) if n == 0 or r.agrees)
        return tuple(n for n in agreeing if not self.replicas[n].is_set_aside)

    def as_json(self) -> dict[str, object]:
        """Return the agreement for programs, with the names of the replicas in use."""
        in_use = [self.replicas[place].name for place in self.in_use]
        return {"replicas": self.replicas, "level": self.level, "in_use": in_use}

    def without(self, name: str, *, disturbs: str = "") -> "Agreement":
        """Return the same, once a replica has drifted, or is seen to disturb another one."""
        changed = {"disturbs": disturbs} if disturbs else {"drifted": True}
        return replace(
            self,
            replicas=tuple(replace(r, **changed) if r.name == name else r for r in self.replicas),
        )


def agreement(judged_ms: Mapping[str, Sequence[float]], *, level: float) -> Agreement:
    """Return the agreement by the default's latencies (ms) on each replica, the first one first.

    Intervals are Welch's on the logarithms, with Bonferroni's correction for more than one. They
    never prove that replicas agree, but tell what difference may still be there.
    """
    (first, reference), *_ = judged_ms.items()
    each = bonferroni(level, len(judged_ms) - 1)

    def replica(name: str, measured: Sequence[float]) -> Replica:
        enough = len(measured) >= FEWEST
        comparable = enough and name != first and len(reference) >= FEWEST
        return Replica(
            name=name,
            trials=len(measured),
            judged_ms=geometric_mean(measured) if enough else None,
            ratio=unpaired_ratio(reference, measured, level=each) if comparable else None,
        )

    return Agreement(replicas=tuple(replica(*item) for item in judged_ms.items()), level=level)
