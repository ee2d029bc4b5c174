"""Further pairs: all looks together err no more than allowed, and the advised number decides."""

import math
import random

import pytest

from intop.domain.further import (
    FEWEST,
    MATTERS,
    MOST,
    RESERVE,
    first_level,
    further_level,
    looks_with_reserve,
    pairs_to_decide,
    pairs_to_settle,
)
from intop.domain.stats import geometric_interval, looks, student_quantile

LEVEL = 0.95
MOST_LOOKS = 6
"""Times that somebody asks for further pairs at most."""
SCATTER = 0.33
"""The sd of log ratios: six pairs of it have the interval 0.95 to 1.91 about 1.35."""


def test_the_looks_share_the_error_rate_out_however_many_follow() -> None:
    schedule = looks_with_reserve(10, 2, [10, 5, 5, 20], level=LEVEL)
    assert [look.rounds for look in schedule] == [7, 10, 20, 25, 30, 50]
    spent = [1 - look.level for look in schedule]
    assert sum(spent[:2]) == pytest.approx((1 - LEVEL) * (1 - RESERVE))
    assert spent[2:] == pytest.approx([0.005, 0.0025, 0.00125, 0.000625])
    assert sum(1 - further_level(LEVEL, n) for n in range(1, 60)) == pytest.approx(0.01)


def test_without_further_pairs_the_looks_are_those_at_the_first_level() -> None:
    assert looks_with_reserve(10, 2, [], level=LEVEL) == looks(10, 2, level=first_level(LEVEL))


def verdict(rng: random.Random, habit: str, pairs: int, gain: float) -> tuple[str, int]:
    """The outcome of a verdict after up to MOST_LOOKS times of further pairs, and all its pairs.

    By `habit` somebody asks for ten more, for as many as are advised, or for few where it looks
    promising, and for many where it does not. Nobody stops before a difference is called.
    """

    def more(count: int) -> list[float]:
        return [gain * math.exp(rng.gauss(0, SCATTER)) for _ in range(count)]

    ratios, further = more(pairs), list[int]()
    while True:
        for look in looks_with_reserve(pairs, 2, further, level=LEVEL)[-2 if not further else -1 :]:
            interval = geometric_interval(ratios[: look.rounds], level=look.level)
            if not interval.low <= 1 <= interval.high:
                return ("gain" if interval.low > 1 else "worse"), len(ratios[: look.rounds])
        if len(further) == MOST_LOOKS:
            return "none", len(ratios)
        level = further_level(LEVEL, len(further) + 1)
        is_promising = abs(math.log(interval.value)) > 0.35 * math.log(interval.high / interval.low)
        count = {
            "ten": 10,
            "advised": pairs_to_decide(ratios, level=level),
            "contrary": 2 if is_promising else 30,
        }[habit]
        ratios, further = ratios + more(count), [*further, count]


@pytest.mark.parametrize(
    ("pairs", "habit"), [(6, "ten"), (6, "advised"), (6, "contrary"), (10, "advised")]
)
def test_the_same_on_both_sides_is_called_a_difference_no_more_often_than_said(
    pairs: int, habit: str
) -> None:
    rng, verdicts = random.Random(48), 2000
    called = sum(verdict(rng, habit, pairs, 1.0)[0] != "none" for _ in range(verdicts))
    # Binomial: the standard deviation of the share is 0.0049; three of them.
    assert called / verdicts <= 0.05 + 0.0146


def test_a_gain_that_was_undecided_is_shown_by_the_advised_pairs() -> None:
    """P99 is 1.4 times lower, and six pairs show that in less than half of the cases."""
    rng, verdicts = random.Random(48), 400
    outcomes = [verdict(rng, "advised", 6, 1.4) for _ in range(verdicts)]
    shown_at_once = sum(taken == 6 for _, taken in outcomes) / verdicts
    shown = sum(outcome == "gain" for outcome, _ in outcomes) / verdicts
    assert shown_at_once < 0.6
    assert shown > 0.95


@pytest.mark.parametrize("mean", [1.0, 1.1, 1.35, 0.8])
def test_more_scatter_takes_more_pairs(mean: float) -> None:
    def advised(scatter: float) -> int:
        half = [mean * math.exp(scatter), mean * math.exp(-scatter)]
        return pairs_to_decide(half * 4, level=0.99)

    result = [advised(scatter) for scatter in (0.001, 0.1, 0.2, 0.3, 5.0)]
    assert result == sorted(result)
    assert (result[0], result[-1]) == (FEWEST, MOST)


def test_a_gain_in_sight_takes_fewer_pairs_than_one_that_is_half_of_what_matters() -> None:
    far, near = (
        [value * math.exp(s) for s in (0.2, -0.2, 0.1, -0.1)] for value in (1.5, MATTERS**0.5)
    )
    assert pairs_to_decide(far, level=0.99) < pairs_to_decide(near, level=0.99)


def half_width(pairs: int, level: float) -> float:
    """The half of an interval's width at a scatter of 1."""
    return student_quantile(level, pairs - 1) / math.sqrt(pairs)


@pytest.mark.parametrize("distance", [0.9, 0.7, 0.5])
def test_a_guardrail_gets_the_fewest_pairs_that_bring_its_interval_to_the_margin(
    distance: float,
) -> None:
    pairs = pairs_to_settle([distance, 0.95], 8, level=0.96, next_level=0.995)
    narrow = distance * half_width(8, 0.96)
    assert half_width(8 + pairs, 0.995) <= narrow < half_width(7 + pairs, 0.995)


def test_a_guardrail_at_its_margin_gets_the_most_pairs() -> None:
    assert pairs_to_settle([0.0], 8, level=0.96, next_level=0.995) == MOST
