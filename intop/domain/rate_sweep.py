"""A sweep over rates: what a winner is worth where the load is another than it was tuned for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from intop.domain.configuration import Configuration
from intop.domain.stats import RatioInterval, geometric_mean, paired_ratio
from intop.domain.trial import Trial
from intop.domain.verdict import outcome_of

LOWEST_TIMES, HIGHEST_TIMES, MOST_RATES = 0.1, 10.0, 8
"""Of the workload's rate; and how many rates there may be."""


@dataclass(frozen=True, kw_only=True)
class SideAtRate:
    """One side's trials at one rate.

    `p99_ms` is the geometric mean over its usable trials, `achieved_rps` their mean rate; None
    where there are none. Of its `trials`, so many were `overloaded` (they missed the rate, or more
    than 1 % of their requests failed) or `failed` (nothing was answered).
    """

    p99_ms: float | None
    achieved_rps: float | None
    trials: int
    overloaded: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class AtRate:
    """Both sides at one rate, which is so many `times` the workload's.

    `ratio` is default P99 / tuned P99 (above 1: a gain) over `pairs`, with an interval; None with
    fewer than two. `fewest_requests` were answered in a single trial, None where there is none.
    """

    rate_rps: float
    times: float
    pairs: int
    default: SideAtRate
    tuned: SideAtRate
    ratio: RatioInterval | None
    fewest_requests: int | None

    @property
    def outcome(self) -> str:
        """`gain`, `worse` or `no significant gain` by P99, or `not measured`.

        A configuration that fails more often than the default is worse.
        """
        if self.tuned.failed > self.default.failed:
            return "worse"
        if self.ratio is None:
            return "not measured"
        return outcome_of(self.ratio.low, self.ratio.high, 0)


@dataclass(frozen=True, kw_only=True)
class RateSweep:
    """A configuration against the default at several rates, the lowest first.

    All of them were measured in each of `rounds`, the same number at each. Intervals have `level`,
    each for itself. `against` names the baseline that stood for the default, and is empty for the
    host's own values.
    """

    configuration: Configuration
    against: str
    rates: tuple[AtRate, ...]
    rounds: int
    level: float

    @property
    def reference(self) -> str:
        """What the tuned side is held against: `default`, or the baseline that stood for it."""
        return self.against or "default"


def at_rate(
    rate_rps: float,
    times: float,
    sides: tuple[Sequence[Trial], Sequence[Trial]],
    pairs: tuple[Sequence[Trial], Sequence[Trial]],
    *,
    level: float,
) -> AtRate:
    """Both `sides` (the default's trials and the tuned ones), and their usable `pairs`."""
    before, after = ([t.p99_ms for t in side] for side in pairs)
    requests = [t.histogram.total for side in sides for t in side if t.histogram is not None]
    return AtRate(
        rate_rps=rate_rps,
        times=times,
        pairs=len(before),
        default=_side(sides[0]),
        tuned=_side(sides[1]),
        ratio=paired_ratio(before, after, level=level) if len(before) >= 2 else None,
        fewest_requests=min(requests, default=None),
    )


def times_of(text: str) -> tuple[float, ...]:
    """Multiples of a rate from a list such as 0.5,1,1.5, in ascending order.

    Raises ValueError for what is no such list, with a rate twice, or with one that is too low or
    too high.
    """
    try:
        found = sorted(float(word) for word in text.split(","))
    except ValueError as error:
        raise ValueError(f"{text!r} is no list of numbers such as 0.5,1,1.5") from error
    if len(set(found)) < len(found):
        raise ValueError(f"{text!r} has a rate twice")
    if len(found) > MOST_RATES:
        raise ValueError(f"{len(found)} rates are more than {MOST_RATES}")
    for times in found:
        if not (math.isfinite(times) and LOWEST_TIMES <= times <= HIGHEST_TIMES):
            raise ValueError(
                f"{times:g} is not in {LOWEST_TIMES:g} to {HIGHEST_TIMES:g} times the rate"
            )
    return tuple(found)


def _side(trials: Sequence[Trial]) -> SideAtRate:
    usable = [t for t in trials if t.usable]
    return SideAtRate(
        p99_ms=geometric_mean([t.p99_ms for t in usable]) if usable else None,
        achieved_rps=fmean(t.achieved_rps for t in usable) if usable else None,
        trials=len(trials),
        overloaded=sum(t.status == "overloaded" for t in trials),
        failed=sum(t.status == "failed" for t in trials),
    )
