"""Explanations: which of a winner's changes its gain is made of, found by measurement."""

import math
from dataclasses import dataclass

from intop.domain.configuration import Configuration
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict

KEPT = 0.9
"""The share of the gain that a smaller set has to keep."""

WANTED_KEYS = 5
"""More keys than that are no short answer."""


@dataclass(frozen=True, kw_only=True)
class Promised:
    """A winner's changes by name, ranked by the effect that the models predict, largest first."""

    order: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """The effect of one change, as ratios of latency that are above 1 where it helps.

    Each ratio has an interval for itself, and is None where it was not measured.
    """

    keys: tuple[str, ...]
    """One key, or several that only go together."""
    before: tuple[str, ...]
    """The values of the keys without the winner."""
    after: tuple[str, ...]
    """The values of the keys with the winner."""
    left_out: Interval | None = None
    """Latency of the winner without the change / latency of the winner."""
    alone: Interval | None = None
    """Latency of the default / latency of the default with the change."""
    missed: Interval | None = None
    """Latency of the smallest set without the change / latency of the smallest set."""
    dropped: str = ""
    """The reason why it is not in the smallest set, "" if it is."""

    @property
    def name(self) -> str:
        """The keys, joined."""
        return " + ".join(self.keys)

    @property
    def is_kept(self) -> bool:
        """Whether it is in the smallest set."""
        return not self.dropped


@dataclass(frozen=True, kw_only=True)
class Interaction:
    """Two changes together: the ratio that both bring / the product of what each brings alone.

    Above 1 they need each other, below 1 one does in part what the other does.
    """

    first: str
    second: str
    ratio: Interval


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The share of the winner's gain (ratio of latency less 1) that a smaller set has."""

    share: float
    """NaN where the winner had no gain in these rounds."""
    low: float
    high: float
    full: Interval
    """Default latency / the winner's latency over the rounds."""
    smaller: Interval
    """Default latency / the smaller set's latency over the same rounds."""
    rounds: int
    was_seen: bool = True
    """Whether the search that found the set saw it keep enough, in other rounds."""

    @property
    def is_enough(self) -> bool:
        """Whether the share may be what is wanted (KEPT): its interval is not all below that.

        Where the set was seen to keep enough in other rounds, these only have to say nothing else:
        their point estimate alone would often refuse a set that keeps all of the gain. Where it was
        not, the estimate has to be enough. Where the winner had no gain in these rounds, there is
        no share, and the smaller set keeps enough if it was not clearly worse.
        """
        if math.isnan(self.share):
            return self.smaller.high >= self.full.low
        return (self.high if self.was_seen else self.share) >= KEPT

    @property
    def lack(self) -> str:
        """The reason why it is not enough, "" where it is."""
        if self.is_enough:
            return ""
        clearly = "clearly " if math.isnan(self.high) or self.high < KEPT else ""
        return f"{clearly}less than {KEPT:.0%} of the gain"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The best few of a smallest set that has more keys than are wanted."""

    configuration: Configuration
    kept: Kept


@dataclass(frozen=True, kw_only=True)
class Point:
    """Latency at one value of a parameter, or at the name of a choice."""

    value: float | str
    judged_ms: float


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """Latency by one number or choice of the winner."""

    name: str
    scale: str
    predicted: tuple[Point, ...]
    """The models' line."""
    measured: tuple[Point, ...]
    """Trials of the explanation: the winner, and the winner without the change."""
    elsewhere: tuple[Point, ...]
    """Geometric means of collected configurations, which differ in all other parameters, too."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The smallest set of changes that was found to keep a winner's gain."""

    winner: Configuration
    minimal: Configuration
    """The configuration of the smallest set."""
    contributions: tuple[Contribution, ...]
    """The smallest set by evidence, then the others by evidence or by what models expect."""
    interactions: tuple[Interaction, ...]
    same: tuple[str, ...]
    """Keys of the winner whose value is the default's."""
    verdict: Verdict
    """The worth of the smallest set against the default in fresh rounds."""
    kept: Kept
    """The smallest set against the winner in the same rounds."""
    offer: Offer | None
    """The best few changes where more than WANTED_KEYS are needed."""
    level: float
    """The level of the intervals of contributions and interactions, each for itself."""
    trials: int
    """Trials that were measured, those of the verdict included."""
    curves: tuple[Dependence, ...] = ()
    without_curves: str = ""
    """The reason why there are no curves."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the smallest set, the strongest first."""
        return tuple(key for c in self.contributions if c.is_kept for key in c.keys)

    @property
    def obstacle(self) -> str:
        """The reason why the smallest set is not what leaves the campaign; "" where it is.

        Its own verdict has to be a gain within the guardrails, and it has to keep the share that is
        wanted. The only larger set that was judged in the same way is the whole winner.
        """
        if self.verdict.latency_outcome != "gain":
            return f"the smallest set is no gain by itself ({self.verdict.latency_outcome})"
        if self.verdict.broken:
            return f"the smallest set costs more than is accepted: {self.verdict.costs}"
        return f"the smallest set keeps {self.kept.lack}" if self.kept.lack else ""
