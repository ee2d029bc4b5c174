"""What a winner's gain is made of, found by measurement."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from intop.domain.ablation import KEPT
from intop.domain.configuration import Configuration
from intop.domain.stats import Interval, paired_ratio, student_quantile
from intop.domain.verdict import Verdict

WANTED_KEYS = 5
"""More keys than that are no short answer."""


@dataclass(frozen=True, kw_only=True)
class Promised:
    """A winner's changes by name, ranked by the effect that the models predict, largest first."""

    order: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What one change does, as ratios of P99 that are above 1 where it helps.

    `keys` is one key, or several that only go together; `before` and `after` are their values
    without and with the winner. `left_out` is P99 of the winner without it / that of the winner,
    `alone` P99 of the default / that of the default with it, `missed` P99 of the smallest set
    without it / that of the smallest set. Each has an interval for itself, and is None where it
    was not measured. `dropped` says why it is not in the smallest set, and is empty if it is.
    """

    keys: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    left_out: Interval | None = None
    alone: Interval | None = None
    missed: Interval | None = None
    dropped: str = ""

    @property
    def name(self) -> str:
        """Its keys."""
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

    one: str
    other: str
    ratio: Interval


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The share of the winner's gain (ratio of P99 less 1) that a smaller set has.

    `full` and `smaller` are default P99 / their P99 over the same `rounds`; the interval of
    `share` comes from those rounds, too. `was_seen` says whether the search that found the set saw
    it keep enough, in other rounds.
    """

    share: float
    low: float
    high: float
    full: Interval
    smaller: Interval
    rounds: int
    was_seen: bool = True

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
        """What is wrong with it in words; "" where it is enough."""
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
    """What was measured at one place: the value (or the name of a choice) and P99 in ms."""

    value: float | str
    p99_ms: float


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """How P99 hangs on one number or choice about the winner.

    `predicted` is the models' line, `measured` are trials of the explanation (the winner, and where
    that was measured the winner without the change), `elsewhere` geometric means of collected
    configurations, which differ in all other parameters, too.
    """

    name: str
    scale: str
    predicted: tuple[Point, ...]
    measured: tuple[Point, ...]
    elsewhere: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The smallest set of changes that was found to keep a winner's gain.

    `contributions` begin with those of the smallest set, by evidence; the others follow, by
    evidence or by what the models expect of them. `minimal` is the configuration of the smallest
    set, and `verdict` what it is worth against the default in fresh rounds; `kept` holds it against
    the winner in the same rounds, `offer` the best few where more than WANTED_KEYS are needed.
    `same` are the winner's keys whose value is the default's. Intervals of contributions and
    interactions have `level`, each for itself; `trials` were measured, verdict included.
    """

    winner: Configuration
    minimal: Configuration
    contributions: tuple[Contribution, ...]
    interactions: tuple[Interaction, ...]
    same: tuple[str, ...]
    verdict: Verdict
    kept: Kept
    offer: Offer | None
    level: float
    trials: int
    curves: tuple[Dependence, ...] = ()
    without_curves: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the smallest set, the strongest first."""
        return tuple(key for c in self.contributions if c.is_kept for key in c.keys)

    @property
    def obstacle(self) -> str:
        """Why the smallest set is not what leaves the campaign; "" where it is.

        Its own verdict has to be a gain within the guardrails, and it has to keep the share that is
        wanted. The only larger set that was judged in the same way is the whole winner.
        """
        if self.verdict.p99_outcome != "gain":
            return f"by itself it is no gain ({self.verdict.p99_outcome})"
        if self.verdict.broken:
            return f"by itself it costs more than is accepted: {self.verdict.costs}"
        return f"it keeps {self.kept.lack}" if self.kept.lack else ""


def kept(
    default: Sequence[float], full: Sequence[float], smaller: Sequence[float], *, level: float
) -> Kept:
    """The share of the gain that a smaller set keeps, from P99s (ms) of the same rounds.

    The interval is Student's t on the linearised share (the delta method): both ratios hang on
    the same default, which the rounds account for. Raises ValueError for fewer than two rounds or
    lists of different lengths. Where the winner has no gain in these rounds, the share is NaN.
    """
    ratios = [paired_ratio(default, side, level=level) for side in (full, smaller)]
    gain, less = (found.value - 1 for found in ratios)
    rounds = len(default)
    share = low = high = math.nan
    if gain > 0:
        share = less / gain
        slopes = -share * ratios[0].value / gain, ratios[1].value / gain
        linear = [
            slopes[0] * math.log(d / f) + slopes[1] * math.log(d / s)
            for d, f, s in zip(default, full, smaller, strict=True)
        ]
        half = student_quantile(level, rounds - 1) * stdev(linear) / math.sqrt(rounds)
        low, high = share - half, share + half
    return Kept(share=share, low=low, high=high, full=ratios[0], smaller=ratios[1], rounds=rounds)
