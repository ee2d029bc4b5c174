"""The results of a sweep's curves: the capacity at a limit of latency, and the knee.

Both are computed in each round, so that their intervals say how they scatter.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from intop.domain.overload import RATE_TOLERANCE
from intop.domain.rounds import mean_interval, ratio_interval
from intop.domain.stats import Interval
from intop.domain.sweep import Capacity, Knee
from intop.domain.trial import SeriesRound, Trial

MOST_OF_IT = 0.95
"""The share of the highest rate at which a closed loop has its knee."""

Curve = Sequence[tuple[float, Trial]]
"""The points of one round, in ascending order, each with its trial."""
Curves = Mapping[SeriesRound, Curve]
"""An arm's curve in each round."""


def capacities(
    curves: Mapping[str, Curves], reference: str, limit_ms: float, *, level: float
) -> tuple[Capacity, ...]:
    """Return each arm's capacity at a limit of latency, by the curves of each."""
    rps = {
        arm: {series_round: carried_rps(curve, limit_ms) for series_round, curve in own.items()}
        for arm, own in curves.items()
    }
    outside = {arm: _outside(list(own.values())) for arm, own in rps.items()}

    def times(arm: str) -> Interval | None:
        if arm == reference or outside[arm] or outside[reference]:
            return None
        return ratio_interval(rps[arm], rps[reference], level=level)

    return tuple(
        Capacity(
            arm=arm,
            rps=None if outside[arm] else mean_interval(list(own.values()), level=level),
            outside=outside[arm],
            ratio=times(arm),
        )
        for arm, own in rps.items()
    )


def carried_rps(curve: Curve, limit_ms: float) -> float:
    """Return the highest rate of a round at which latency is within a limit (requests/s).

    0 where already the first point is beyond it, and infinity where the last one is not. Up to the
    first point that is not `ok`, the logarithm of latency is fitted by a curve that never falls,
    since a higher rate makes no queue shorter (isotonic regression; Barlow and others, Statistical
    inference under order restrictions, 1972). It is read by straight lines between the points. A
    point that is not `ok` doesn't carry its rate.
    """
    from scipy.optimize import isotonic_regression

    carried = _while_ok(curve)
    if not carried:
        return 0.0
    rates = [rate for rate, _ in carried]
    rising = isotonic_regression([math.log(trial.judged_ms) for _, trial in carried]).x
    limit = math.log(limit_ms)
    beyond = next((n for n, log_latency in enumerate(rising) if log_latency > limit), None)
    if beyond == 0:
        return 0.0
    if beyond is not None:
        low, high = rising[beyond - 1], rising[beyond]
        step = rates[beyond] - rates[beyond - 1]
        return float(rates[beyond - 1] + step * (limit - low) / (high - low))
    return math.inf if len(carried) == len(curve) else rates[-1]


def saturations(curves: Mapping[str, Curves], *, level: float) -> tuple[Knee, ...]:
    """Return each arm's knee in an open loop over the rate."""

    def value(own: Curves) -> Interval | None:
        missed = [n for n, rps in _mean_rates(own).items() if rps < RATE_TOLERANCE * n]
        trials = [trial for curve in own.values() for place, trial in curve if place in missed]
        # Of random arrivals fewer may have been due, and all of them been answered.
        if all(trial.status == "ok" for trial in trials):
            return None
        highest = [max(trial.achieved_rps for _, trial in curve) for curve in own.values()]
        return mean_interval(highest, level=level)

    return tuple(Knee(arm=arm, value=value(own)) for arm, own in curves.items())


def bends(curves: Mapping[str, Curves], *, level: float) -> tuple[Knee, ...]:
    """Return each arm's knee in a closed loop."""

    def value(own: Curves) -> Interval | None:
        reached = _mean_rates(own)
        if len(reached) < 2 or not all(reached.values()):
            return None
        if _bend(list(reached.items())) > sorted(reached)[-2]:
            return None  # it still rises from the last point but one to the last
        places = [_bend([(at, t.achieved_rps) for at, t in curve]) for curve in own.values()]
        return mean_interval(places, level=level)

    return tuple(Knee(arm=arm, value=value(own)) for arm, own in curves.items())


def _bend(reached: Sequence[tuple[float, float]]) -> float:
    """Return where a line through these places and rates first has most of the highest rate."""
    goal = MOST_OF_IT * max(rps for _, rps in reached)
    before = reached[0]
    for place, rps in reached:
        if rps >= goal:
            rise = rps - before[1]
            share = (goal - before[1]) / rise if rise > 0 else 0.0
            return before[0] + share * (place - before[0])
        before = (place, rps)
    raise ValueError("no place has the highest rate")


def _mean_rates(curves: Curves) -> dict[float, float]:
    """Return the rate that was reached at each point, a mean over the rounds."""
    rates: dict[float, list[float]] = {}
    for curve in curves.values():
        for place, trial in curve:
            rates.setdefault(place, []).append(trial.achieved_rps)
    return {place: fmean(rates[place]) for place in sorted(rates)}


def _while_ok(curve: Curve) -> Curve:
    end = next((n for n, (_, trial) in enumerate(curve) if trial.status != "ok"), len(curve))
    return curve[:end]


def _outside(rps: Sequence[float]) -> Literal["", "below", "above", "unclear"]:
    if not rps:
        return "unclear"
    if all(map(math.isinf, rps)):
        return "above"
    if not any(rps):
        return "below"
    return "unclear" if any(rate == 0 or math.isinf(rate) for rate in rps) else ""
