"""A sweep: what configurations are worth along a load, or along nginx's workers.

The curves of several arms are measured in the same rounds. Two numbers are read off each curve. The
*capacity* is the highest rate at which P99 is within a limit. The *knee* is where more load brings
no more answers. Both are computed in each round, so that their intervals say how they scatter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from intop.domain.configuration import Configuration
from intop.domain.overload import RATE_TOLERANCE
from intop.domain.stats import Interval, geometric_interval, paired_ratio
from intop.domain.trial import Block, Trial
from intop.domain.verdict import Verdict, outcome_of

Axis = Literal["rate", "connections", "cores", "file"]
UNITS: Mapping[Axis, str] = {
    "rate": "requests/s",
    "connections": "connections",
    "cores": "worker processes",
    "file": "",
}
"""Of a point of each axis. A file is called by its path."""
Loop = Literal["open", "closed"]
"""Open: requests are due at a rate. Closed: a connection asks again once it has its answer."""

MOST_POINTS = 24
LOWEST_TIMES, HIGHEST_TIMES = 0.01, 100.0
"""Of what the workload has."""
MOST_OF_IT = 0.95
"""In a closed loop the knee is where this share of the highest rate is reached."""

Curve = Sequence[tuple[float, Trial]]
"""The points of one round, in ascending order, each with its trial."""
Curves = Mapping[Block, Curve]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What takes part in a sweep."""

    name: str
    configuration: Configuration


@dataclass(frozen=True, kw_only=True)
class ArmAt:
    """One arm's trials at one point.

    `p99_ms` is the geometric mean over its usable trials, None with fewer than two. The mean
    latency `mean_ms`, `achieved_rps`, `received_mb_s` (10^6 bytes/s), the load balancer's `cpu` (0
    to 1) and its `memory_mib` in use at the end are means over them, None without any. `ratio` is
    the reference's P99 / its own over the rounds that both have (above 1 is better than the
    reference), None of the reference itself and with fewer than two rounds.

    Of its `trials`, so many were `overloaded` (they missed the rate, or more than 1 % of their
    requests failed) or `failed` (nothing was answered). `fails_more` says whether more of them
    failed than of the reference's. `fewest_requests` were due in a single trial, None where there
    is none.
    """

    arm: str
    is_reference: bool
    trials: int
    overloaded: int
    failed: int
    fails_more: bool
    p99_ms: Interval | None
    mean_ms: float | None
    achieved_rps: float | None
    received_mb_s: float | None
    cpu: float | None
    memory_mib: float | None
    ratio: Interval | None
    fewest_requests: int | None

    @property
    def outcome(self) -> str:
        """`gain`, `worse` or `no significant gain` by P99, or `not measured`; "" of the reference.

        A configuration that fails more often than the reference is worse.
        """
        if self.is_reference:
            return ""
        if self.fails_more:
            return "worse"
        if self.ratio is None:
            return "not measured"
        return outcome_of(self.ratio.low, self.ratio.high, 0)


@dataclass(frozen=True, kw_only=True)
class Point:
    """All arms at one point: at a `value`, which is so many `times` what the workload has.

    `times` is None along an axis of which the workload says nothing. Of a file, `value` is its
    place among the files that were asked for, from 1 on. `label` is what a point is called.
    """

    value: float
    label: str
    times: float | None
    arms: tuple[ArmAt, ...]


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The highest rate (requests/s) at which an arm's P99 is within the limit of its sweep.

    `outside` says where it is if it is not between the first point and the last one: `below` or
    `above` them, or `unclear` where rounds disagree. `ratio` is it / the reference's, None of the
    reference itself and where one of both is outside.
    """

    arm: str
    rps: Interval | None
    outside: Literal["", "below", "above", "unclear"]
    ratio: Interval | None


@dataclass(frozen=True, kw_only=True)
class Knee:
    """Where more load brings no more answers; None where that was not seen up to the last point.

    In an open loop over the rate it is the highest rate (requests/s) that was reached, if at some
    point less than 95 % of the asked rate was reached, and a trial there was not ok. In a closed
    loop it is the place on the axis at which 95 % of the highest rate is reached, between points by
    a straight line.
    """

    arm: str
    value: Interval | None


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Arms along an axis, the lowest point first, each point with each arm once in each round.

    The first of the `arms` is the reference. Intervals have `level`, each for itself. There are
    `capacities` where a sweep over the rate has a limit of P99, and `knees` over the rate and in a
    closed loop.
    """

    axis: Axis
    loop: Loop
    arms: tuple[Arm, ...]
    points: tuple[Point, ...]
    rounds: int
    level: float
    limit_ms: float | None
    capacities: tuple[Capacity, ...]
    knees: tuple[Knee, ...]

    @property
    def reference(self) -> str:
        """The name of the arm that the others are compared with."""
        return self.arms[0].name

    @property
    def has_latencies(self) -> bool:
        """Whether there is a P99 of any arm at any point."""
        return any(one.p99_ms for point in self.points for one in point.arms)

    def is_about(self, configuration: Configuration) -> bool:
        """Whether one of the arms has this configuration."""
        return any(arm.configuration == configuration for arm in self.arms)


@dataclass(frozen=True)
class Sweeps:
    """A campaign's sweeps, the latest one of each axis and loop."""

    found: tuple[Sweep, ...] = ()

    def with_one(self, sweep: Sweep) -> "Sweeps":
        """With this one in place of an earlier one of its kind."""
        others = (s for s in self.found if (s.axis, s.loop) != (sweep.axis, sweep.loop))
        return Sweeps((*others, sweep))


def winners_sweeps(sweeps: Sweeps | None, verdict: Verdict | None) -> tuple[Sweep, ...]:
    """Those that have the winner of a verdict among their arms."""
    if sweeps is None or verdict is None:
        return ()
    return tuple(sweep for sweep in sweeps.found if sweep.is_about(verdict.configuration))


# -- what trials come to -------------------------------------------------------------------------


def arms_at(
    trials: Mapping[str, Sequence[Trial]], reference: str, *, level: float
) -> tuple[ArmAt, ...]:
    """All arms at one point, by the trials of each, which have rounds."""
    base = trials[reference]
    failed = _count(base, "failed")
    p99s = {
        arm: {t.planned.block: t.p99_ms for t in own if t.usable} for arm, own in trials.items()
    }

    def ratio(arm: str) -> Interval | None:
        common = [block for block in p99s[reference] if block in p99s[arm]]
        if arm == reference or len(common) < 2:
            return None
        sides = ([p99s[name][block] for block in common] for name in (reference, arm))
        return paired_ratio(*sides, level=level)

    return tuple(
        ArmAt(
            arm=arm,
            is_reference=arm == reference,
            trials=len(own),
            overloaded=_count(own, "overloaded"),
            failed=_count(own, "failed"),
            fails_more=_count(own, "failed") > failed,
            p99_ms=_interval(list(p99s[arm].values()), level),
            mean_ms=_mean([t.histogram.mean_ms for t in own if t.usable and t.histogram]),
            achieved_rps=_mean([t.achieved_rps for t in own if t.usable]),
            received_mb_s=_mean([t.received_mb_s for t in own if t.usable and t.received_mb_s]),
            cpu=_mean([t.balancer.cpu for t in own if t.usable and t.metrics]),
            memory_mib=_mean([t.balancer.memory_mib for t in own if t.usable and t.metrics]),
            ratio=ratio(arm),
            fewest_requests=min(
                (t.histogram.total for t in own if t.histogram is not None), default=None
            ),
        )
        for arm, own in trials.items()
    )


def capacities(
    curves: Mapping[str, Curves], reference: str, limit_ms: float, *, level: float
) -> tuple[Capacity, ...]:
    """Each arm's capacity at a limit of P99, by the curves of each."""
    rps = {
        arm: {block: carried_rps(curve, limit_ms) for block, curve in own.items()}
        for arm, own in curves.items()
    }
    outside = {arm: _outside(list(own.values())) for arm, own in rps.items()}

    def ratio(arm: str) -> Interval | None:
        if arm == reference or outside[arm] or outside[reference]:
            return None
        common = [block for block in rps[reference] if block in rps[arm]]
        if len(common) < 2:
            return None
        sides = ([rps[name][block] for block in common] for name in (arm, reference))
        return paired_ratio(*sides, level=level)

    return tuple(
        Capacity(
            arm=arm,
            rps=None if outside[arm] else _interval(list(own.values()), level),
            outside=outside[arm],
            ratio=ratio(arm),
        )
        for arm, own in rps.items()
    )


def carried_rps(curve: Curve, limit_ms: float) -> float:
    """The highest rate of a round at which P99 is within a limit (requests/s).

    0 where already the first point is beyond it, and infinity where the last one is not. Up to the
    first point that is not `ok`, the logarithm of P99 is fitted by a curve that never falls, since
    a higher rate makes no queue shorter (isotonic regression; Barlow and others, Statistical
    inference under order restrictions, 1972). It is read by straight lines between the points. A
    point that is not `ok` doesn't carry its rate.
    """
    from scipy.optimize import isotonic_regression

    carried = list(_while_ok(curve))
    if not carried:
        return 0.0
    rates = [rate for rate, _ in carried]
    rising = isotonic_regression([math.log(trial.p99_ms) for _, trial in carried]).x
    limit = math.log(limit_ms)
    beyond = next((n for n, log_p99 in enumerate(rising) if log_p99 > limit), None)
    if beyond == 0:
        return 0.0
    if beyond is not None:
        low, high = rising[beyond - 1], rising[beyond]
        step = rates[beyond] - rates[beyond - 1]
        return float(rates[beyond - 1] + step * (limit - low) / (high - low))
    return math.inf if len(carried) == len(curve) else rates[-1]


def saturations(curves: Mapping[str, Curves], *, level: float) -> tuple[Knee, ...]:
    """Each arm's knee in an open loop over the rate."""

    def value(own: Curves) -> Interval | None:
        missed = [n for n, rps in _mean_rates(own).items() if rps < RATE_TOLERANCE * n]
        trials = [trial for curve in own.values() for place, trial in curve if place in missed]
        # Of random arrivals fewer may have been due, and all of them been answered.
        if all(trial.status == "ok" for trial in trials):
            return None
        return _interval([max(t.achieved_rps for _, t in curve) for curve in own.values()], level)

    return tuple(Knee(arm=arm, value=value(own)) for arm, own in curves.items())


def bends(curves: Mapping[str, Curves], *, level: float) -> tuple[Knee, ...]:
    """Each arm's knee in a closed loop."""

    def value(own: Curves) -> Interval | None:
        reached = _mean_rates(own)
        if len(reached) < 2 or not all(reached.values()):
            return None
        if _bend(list(reached.items())) > sorted(reached)[-2]:
            return None  # it still rises from the last point but one to the last
        places = [_bend([(at, t.achieved_rps) for at, t in curve]) for curve in own.values()]
        return _interval(places, level)

    return tuple(Knee(arm=arm, value=value(own)) for arm, own in curves.items())


def _bend(reached: Sequence[tuple[float, float]]) -> float:
    """Where a line through these places and rates first has most of the highest rate."""
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
    """The rate that was reached at each point, a mean over the rounds."""
    found: dict[float, list[float]] = {}
    for curve in curves.values():
        for place, trial in curve:
            found.setdefault(place, []).append(trial.achieved_rps)
    return {place: fmean(found[place]) for place in sorted(found)}


def _while_ok(curve: Curve) -> Sequence[tuple[float, Trial]]:
    end = next((n for n, (_, trial) in enumerate(curve) if trial.status != "ok"), len(curve))
    return curve[:end]


def _outside(rps: Sequence[float]) -> Literal["", "below", "above", "unclear"]:
    if not rps:
        return "unclear"
    if all(math.isinf(one) for one in rps):
        return "above"
    if all(one == 0 for one in rps):
        return "below"
    return "unclear" if any(one == 0 or math.isinf(one) for one in rps) else ""


def _interval(values: Sequence[float], level: float) -> Interval | None:
    """None with fewer than two values, and where nothing was answered."""
    if len(values) < 2 or min(values) <= 0:
        return None
    return geometric_interval(values, level=level)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _count(trials: Sequence[Trial], status: str) -> int:
    return sum(trial.status == status for trial in trials)


# -- what a user types ---------------------------------------------------------------------------


def points_of(text: str, own: float | None) -> tuple[float, ...]:
    """Points from a list such as `50,100,200` or `0.5x,1x,2x`, in ascending order.

    `x` is times the workload's `own` value, which is None where it has none. All are whole numbers
    in the end, as load tools and nginx take them. Raises ValueError for what is no such list, for a
    point that it has twice, and for one that is out of reach.
    """
    found = sorted(_point(word.strip(), own) for word in text.split(","))
    if len(set(found)) < len(found):
        raise ValueError(f"{text!r} has a point twice")
    if len(found) > MOST_POINTS:
        raise ValueError(f"{len(found)} points are more than {MOST_POINTS}")
    return tuple(found)


def is_in_reach(point: float, own: float) -> bool:
    """Whether a sweep could have this point where the workload has `own`, see `points_of`."""
    return max(1, math.floor(LOWEST_TIMES * own)) <= point <= math.ceil(HIGHEST_TIMES * own)


def _point(word: str, own: float | None) -> float:
    is_multiple = word.endswith("x")
    try:
        number = float(word.removesuffix("x"))
    except ValueError as error:
        raise ValueError(f"{word!r} is no point such as 100 or 0.5x") from error
    if is_multiple and own is None:
        raise ValueError(f"{word}: the workload says nothing of it, so say a number")
    value = number * (own or 1.0) if is_multiple else number
    times = value / own if own else 1.0
    if not (math.isfinite(value) and value > 0 and LOWEST_TIMES <= times <= HIGHEST_TIMES):
        raise ValueError(
            f"{word} is not in {LOWEST_TIMES:g}x to {HIGHEST_TIMES:g}x of what the workload has"
            if own
            else f"{word} is no number above 0"
        )
    return float(max(1, round(value)))
