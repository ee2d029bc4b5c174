"""The verdict of a canary by numbers of its pairs, valid whenever it is asked for."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from intop.domain.anytime import is_above, lower_bound, upper_bound
from intop.domain.canary import Better, Outcome, SideRatio, Unit
from intop.domain.stats import exponential, geometric_interval

Numbers = tuple[float, float]
"""A quantity in the default's block and in the canary's."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A quantity with its numbers so far."""

    quantity: str
    unit: Unit = ""
    periods: Sequence[Sequence[Numbers]]
    """The pairs of all hosts at the same time, by period. One coin decides a period's orders."""
    limit: float | None
    """A harm is certainly so many times worse, above 1; None for what is only shown."""
    better: Better = "lower"
    pooled: Numbers | None = None
    """The numbers to show in place of the geometric means, such as shares of all requests."""

    @property
    def worsening(self) -> list[float]:
        """The logarithm of how many times worse the canary is, for each period."""
        sign = 1 if self.better == "lower" else -1
        return [
            sign * fmean(math.log(canary / default) for default, canary in pairs)
            for pairs in self.periods
            if pairs
        ]


@dataclass(frozen=True)
class _Rates:
    """The parts of the error rate: half is for a gain, and harms share the other half."""

    gain: float
    harm: float
    """The error rate of each quantity's harm."""

    @classmethod
    def of(cls, measured: Iterable[Measured], level: float) -> "_Rates":
        half = (1 - level) / 2
        return cls(half, half / max(1, sum(each.limit is not None for each in measured)))


def outcome(
    measured: Sequence[Measured], *, judged_by: str, margin: float, level: float
) -> Outcome:
    """Return what the pairs show.

    A gain is a certain fall of the quantity `judged_by`. `margin` is a ratio from 1 on that matters
    to it. Over all looks together the outcome is wrong with at most 1 - `level`.
    """
    rates = _Rates.of(measured, level)
    for each in measured:
        if each.limit is not None and is_above(each.worsening, math.log(each.limit), rates.harm):
            return "harm"
    judge = next((each for each in measured if each.quantity == judged_by), None)
    if judge is None:
        return "undecided"
    better = [-worse for worse in judge.worsening]
    if is_above(better, 0, rates.gain):
        return "gain"
    least = -math.log(margin)
    is_within = is_above(better, least, rates.gain) and is_above(judge.worsening, least, rates.harm)
    return "no difference" if is_within else "undecided"


def sides(measured: Sequence[Measured], *, judged_by: str, level: float) -> tuple[SideRatio, ...]:
    """Return both sides of each quantity that has pairs, with the bounds that `outcome` uses."""
    rates = _Rates.of(measured, level)
    return tuple(
        _side(each, rates, level, is_judge=each.quantity == judged_by)
        for each in measured
        if any(each.periods)
    )


def _side(measured: Measured, rates: _Rates, level: float, *, is_judge: bool) -> SideRatio:
    worsening = measured.worsening
    low, high = -math.inf, math.inf
    if measured.limit is not None:
        low = lower_bound(worsening, rates.harm)
        high = upper_bound(worsening, rates.gain if is_judge else rates.harm)
    logs = worsening
    if measured.better == "higher":
        low, high, logs = -high, -low, [-worse for worse in worsening]
    ratios = [math.exp(log) for log in logs]
    fixed = geometric_interval(ratios, level=level) if len(ratios) > 1 else None
    pairs = [pair for period in measured.periods for pair in period]
    default, canary = measured.pooled or (
        math.exp(fmean(math.log(pair[side]) for pair in pairs)) for side in range(2)
    )
    return SideRatio(
        quantity=measured.quantity,
        unit=measured.unit,
        default=default,
        canary=canary,
        ratio=math.exp(fmean(logs)),
        low=exponential(low) if math.isfinite(low) else None,
        high=exponential(high) if math.isfinite(high) else None,
        fixed_low=None if fixed is None else fixed.low,
        fixed_high=None if fixed is None else fixed.high,
        better=measured.better,
        limit=measured.limit,
    )
