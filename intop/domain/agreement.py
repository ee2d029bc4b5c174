"""Whether the replicas of a cluster measure the same: an A/A comparison of the default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from intop.domain.stats import Interval, bonferroni, geometric_mean, unpaired_ratio

FEWEST = 2
"""Trials of a replica without which nothing is known of it."""


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One replica, called by its load balancer.

    `p99_ms` is the geometric mean of the default's P99 on it, None where too few trials could be
    used. `ratio` is the first replica's P99 / this one's; None for the first itself, too. One that
    `drifted` later is measured on no more, and neither is one that `disturbs` another, named here.
    """

    name: str
    trials: int
    p99_ms: float | None = None
    ratio: Interval | None = None
    drifted: bool = False
    disturbs: str = ""

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
    """The replicas in the study's order, each against the first one, all at `level` together."""

    replicas: tuple[Replica, ...]
    level: float

    @property
    def in_use(self) -> tuple[int, ...]:
        """The places of those that are measured on: the first, and all that agree with it."""
        agreeing = (n for n, r in enumerate(self.replicas) if n == 0 or r.agrees)
        return tuple(n for n in agreeing if not self.replicas[n].is_set_aside)

    def without(self, name: str, *, disturbs: str = "") -> "Agreement":
        """The same, once a replica has drifted, or is seen to disturb another one."""
        changed = {"disturbs": disturbs} if disturbs else {"drifted": True}
        return replace(
            self,
            replicas=tuple(replace(r, **changed) if r.name == name else r for r in self.replicas),
        )


def agreement(p99_ms: Mapping[str, Sequence[float]], *, level: float) -> Agreement:
    """From the default's P99s (ms) by replica, the first one first.

    Welch's intervals on the logarithms, with Bonferroni's correction for more than one. That they
    agree is never proven by that: the intervals tell what difference may still be there.
    """
    (first, reference), *_ = p99_ms.items()
    each = bonferroni(level, len(p99_ms) - 1)

    def replica(name: str, measured: Sequence[float]) -> Replica:
        enough = len(measured) >= FEWEST
        comparable = enough and name != first and len(reference) >= FEWEST
        return Replica(
            name=name,
            trials=len(measured),
            p99_ms=geometric_mean(measured) if enough else None,
            ratio=unpaired_ratio(reference, measured, level=each) if comparable else None,
        )

    return Agreement(replicas=tuple(replica(*item) for item in p99_ms.items()), level=level)
