"""What the curves of a sweep come to, and what a user types."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from builders.results import SWEEP, VERDICT
from builders.trials import trial
from intop.domain.configuration import Configuration
from intop.domain.stats import Interval
from intop.domain.sweep import Arm, Sweeps, winners_sweeps
from intop.domain.trial import Status, Trial
from intop.experiment.sweep.curves import Curve, Curves, bends, capacities, carried_rps, saturations
from intop.experiment.sweep.request import points_of
from intop.experiment.sweep.stage import arms_at


def at(rate: float, judged_ms: float, status: Status = "ok", reached: float | None = None) -> Trial:
    made = trial(p99_us=round(1000 * judged_ms), status=status)
    return replace(made, achieved_rps=rate if reached is None else reached)


def curve(**p99s: float) -> Curve:
    return [(float(rate[1:]), at(float(rate[1:]), p99)) for rate, p99 in p99s.items()]


def rounds(*curves: Curve) -> Curves:
    return {(1, number): one for number, one in enumerate(curves, 1)}


# What is typed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "own", "points"),
    [
        ("1", None, (1.0,)),
        ("100,50", 80.0, (50.0, 100.0)),
        ("0.5x, 1x,1.5x", 150.0, (75.0, 150.0, 225.0)),
        ("1x,200", 150.0, (150.0, 200.0)),
        ("0.49x", 101.0, (49.0,)),
        ("0.1", None, (1.0,)),
    ],
)
def test_points_are_typed_as_numbers_or_multiples(
    text: str, own: float | None, points: tuple[float, ...]
) -> None:
    assert points == points_of(text, own)


@pytest.mark.parametrize(
    ("text", "own", "message"),
    [
        ("", 100.0, "'' is no point such as 100 or 0.5x"),
        ("1;2", 100.0, "'1;2' is no point"),
        ("x", 100.0, "'x' is no point"),
        ("50,0.5x", 100.0, "has a point twice"),
        ("0.001x", 100.0, "0.001x is not in 0.01x to 100x of what the workload has"),
        ("20000", 100.0, "20000 is not in 0.01x to 100x"),
        ("-1", 100.0, "-1 is not in 0.01x"),
        ("nan", 100.0, "nan is not in"),
        ("inf", None, "inf is no number above 0"),
        ("2x", None, "the workload says nothing of it, so say a number"),
        (",".join(map(str, range(10, 35))), 100.0, "25 points are more than 24"),
    ],
)
def test_what_is_no_list_of_points_is_refused(text: str, own: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        points_of(text, own)


ARMS = ("default", "tuned")

# One point ----------------------------------------------------------------------------------------


def numbered(trials: Sequence[Trial], arm: str) -> list[Trial]:
    return [
        replace(one, planned=replace(one.planned, arm=arm, round=number))
        for number, one in enumerate(trials, 1)
    ]


def test_an_arm_says_what_its_trials_did_and_where_they_failed() -> None:
    default = numbered([trial(p99_us=1000), trial(p99_us=1000), trial(status="failed")], "default")
    late = replace(trial(p99_us=500, status="overloaded"), achieved_rps=80.0)
    tuned = numbered([trial(p99_us=500), late, trial(status="failed")], "tuned")
    base, other = arms_at([*default, *tuned], ARMS, "default", level=0.9)
    assert (
        base.is_reference,
        base.ratio,
        base.outcome,
        base.trials,
        base.overloaded,
        base.failed,
    ) == (True, None, "", 3, 0, 1)
    assert base.judged_ms is not None
    assert (pytest.approx(base.judged_ms.value), base.achieved_rps) == (1.0, 100.0)
    assert (
        other.achieved_rps,
        other.overloaded,
        other.failed,
        other.fails_more,
        other.fewest_requests,
    ) == (90.0, 1, 1, False, 100)
    assert other.ratio is not None
    assert Interval(2, 2, 2) == Interval(*map(round, vars(other.ratio).values()))
    assert other.outcome == "gain"
    assert (tuned[0].balancer.cpu, tuned[0].balancer.memory_mib) == (other.cpu, other.memory_mib)


def test_an_arm_that_always_fails_has_no_latency_and_is_worse() -> None:
    failed = [trial(status="failed")] * 2
    sides = [*numbered([trial()] * 2, "default"), *numbered(failed, "tuned")]
    _, alone = arms_at(sides, ARMS, "default", level=0.95)
    assert (
        alone.ratio,
        alone.judged_ms,
        alone.achieved_rps,
        alone.fewest_requests,
        alone.outcome,
    ) == (None, None, None, None, "worse")
    both = [*numbered(failed, "default"), *numbered(failed, "tuned")]
    arms = arms_at(both, ARMS, "default", level=0.95)
    assert [one.outcome for one in arms] == ["", "not measured"]


def test_an_unclear_ratio_is_no_gain() -> None:
    arm = SWEEP.points[0].arms[1]
    assert arm.outcome == "gain"
    assert replace(arm, ratio=Interval(1.0, 0.5, 2.0)).outcome == "no significant gain"
    assert replace(arm, fails_more=True).outcome == "worse"


# Capacity -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "limit", "expected"),
    [
        (curve(r50=10, r100=20, r150=80), 40.0, 125.0),  # half of the way from 20 to 80, in logs
        (curve(r50=10, r100=20, r150=80), 20.1, 100.0),
        (curve(r50=10, r100=20, r150=80), 5.0, 0.0),
        (curve(r50=10, r100=20, r150=80), 100.0, math.inf),
        # Noise: 40 and 10 are 20 on a curve that never falls.
        (curve(r50=40, r100=10, r150=80), 40.0, 125.0),
        (curve(r50=40, r100=10, r150=80), 15.0, 0.0),
        # What does not carry its rate is beyond the limit, whatever its latency.
        ([*curve(r50=10, r100=20), (150.0, at(150, 5, "overloaded"))], 40.0, 100.0),
        ([*curve(r50=10, r100=20), (150.0, trial(status="failed"))], 15.0, 79.248),
        ([(50.0, at(50, 5, "overloaded")), *curve(r100=20)], 40.0, 0.0),
    ],
)
def test_the_capacity_of_a_round_is_where_its_curve_meets_the_limit(
    points: Curve, limit: float, expected: float
) -> None:
    assert expected == pytest.approx(carried_rps(points, limit), rel=1e-2)


def test_a_capacity_has_an_interval_and_a_ratio_to_the_references() -> None:
    slow = rounds(*[curve(r50=10, r100=20, r200=80)] * 2, curve(r50=10, r100=21, r200=80))
    quick = rounds(*[curve(r50=5, r100=10, r200=40)] * 2, curve(r50=5, r100=10, r200=41))
    base, other = capacities({"default": slow, "tuned": quick}, "default", 30.0, level=0.95)
    assert base.rps is not None
    assert other.rps is not None
    assert other.ratio is not None
    assert base.ratio is None
    assert base.rps.low < base.rps.value < base.rps.high
    assert other.rps.value / base.rps.value == pytest.approx(other.ratio.value)
    assert 1 < other.ratio.low < other.ratio.high


@pytest.mark.parametrize(
    ("limits", "outside"),
    [((50, 50), "above"), ((5, 5), "below"), ((50, 5), "unclear"), ((15, 50), "unclear")],
)
def test_a_capacity_that_is_not_between_the_points_is_no_number(
    limits: tuple[float, float], outside: str
) -> None:
    """Curves of which the limit of 20 ms is as far away as the limits are from 10 to 20 ms."""
    curves = rounds(*(curve(r50=200 / limit, r100=400 / limit) for limit in limits))
    (result,) = capacities({"default": curves}, "default", 20.0, level=0.95)
    assert (None, outside) == (result.rps, result.outside)


# Knees --------------------------------------------------------------------------------------------


def reached(pairs: Mapping[float, float]) -> Curve:
    return [
        (place, at(place, 10, "ok" if rps >= 0.95 * place else "overloaded", rps))
        for place, rps in pairs.items()
    ]


def test_an_open_loop_has_its_knee_at_the_highest_rate_that_was_reached() -> None:
    one = reached({50: 50, 100: 100, 150: 121, 200: 119})
    two = reached({50: 50, 100: 100, 150: 118, 200: 120})
    (result,) = saturations({"default": rounds(one, two)}, level=0.95)
    assert result.value is not None
    assert pytest.approx(result.value.value, rel=1e-3) == 120.5


def test_an_open_loop_that_reaches_its_rates_has_no_knee() -> None:
    # In one round by chance only 94 of 100 were due.
    curves = rounds(reached({50: 50, 100: 94}), reached({50: 50, 100: 104}))
    assert saturations({"default": curves}, level=0.95)[0].value is None
    # In all of them, and each was answered.
    few = [(place, at(place, 10, "ok", 0.9 * place)) for place in (50.0, 100.0)]
    assert saturations({"default": rounds(few, few)}, level=0.95)[0].value is None


def test_a_closed_loop_bends_where_most_of_its_highest_rate_is_reached() -> None:
    one = reached({1: 100, 2: 200, 4: 300, 8: 300})
    (result,) = bends({"default": rounds(one, one)}, level=0.95)
    assert result.value is not None
    assert pytest.approx(result.value.value) == 3.7  # 285 of 300


@pytest.mark.parametrize(
    "pairs", [{1: 100, 2: 200, 4: 400}, {1: 100}, {1: 0, 2: 0, 4: 0}, {1: 100, 2: 0, 4: 100}]
)
def test_a_closed_loop_that_still_rises_or_answers_nothing_has_no_knee(
    pairs: Mapping[float, float],
) -> None:
    curves = rounds(reached(pairs), reached(pairs))
    assert bends({"default": curves}, level=0.95)[0].value is None


# All of them --------------------------------------------------------------------------------------


def test_a_sweep_takes_the_place_of_an_earlier_one_of_its_kind() -> None:
    closed = replace(SWEEP, axis="connections", loop="closed")
    again = replace(SWEEP, rounds=7)
    result = Sweeps().with_one(SWEEP).with_one(closed).with_one(again)
    assert (closed, again) == result.sweeps


def test_sweeps_are_a_winners_if_it_took_part() -> None:
    other = Arm(name="tuned", configuration=Configuration({"net.core.somaxconn": "1"}))
    without = replace(SWEEP, arms=(SWEEP.arms[0], other))
    assert winners_sweeps(Sweeps((SWEEP, without)), VERDICT) == (SWEEP,)
    assert winners_sweeps(None, VERDICT) == ()
    assert winners_sweeps(Sweeps((SWEEP,)), None) == ()
