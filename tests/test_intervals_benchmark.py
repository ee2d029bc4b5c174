"""The simulation that intervals and looks are judged by."""

import numpy as np
import pytest

from benchmarks import intervals
from intop.domain.stats import paired_ratio

LEVEL = intervals.LEVEL
SAME, TUNED = ("default", "default"), ("default", "tuned")


def covered(
    method: intervals.Method, pairs: int, correlation: str, sides: tuple[str, str]
) -> float:
    ratios = intervals.log_ratios(intervals.RUNS, pairs, correlation, sides)
    truth = intervals.true_log_ratio(sides)
    return intervals.coverage(method, ratios, truth, LEVEL)[0]


def test_students_t_there_is_the_one_that_verdicts_use() -> None:
    ratios = np.random.default_rng(1).standard_normal((3, 10))
    low, high = intervals.student(ratios, LEVEL)
    for row, one, other in zip(ratios, low, high, strict=True):
        found = paired_ratio(list(np.exp(row)), [1.0] * 10, level=LEVEL)
        assert (found.low, found.high) == pytest.approx((np.exp(one), np.exp(other)))


@pytest.mark.parametrize("sides", [SAME, TUNED])
@pytest.mark.parametrize("correlation", intervals.CORRELATIONS)
def test_the_truth_is_the_mean_of_what_is_measured(
    correlation: str, sides: tuple[str, str]
) -> None:
    ratios = intervals.log_ratios(4000, 10, correlation, sides)
    error = ratios.mean(axis=1).std() / 4000**0.5
    assert abs(ratios.mean() - intervals.true_log_ratio(sides)) < 4 * error


@pytest.mark.parametrize("pairs", intervals.PAIRS)
def test_students_t_covers_where_rounds_are_independent_or_correlated_in_time(pairs: int) -> None:
    for correlation in ("none", "in time"):
        # The order within a round is random: what is correlated in time is not in the ratios.
        assert 0.94 <= covered(intervals.student, pairs, correlation, SAME)
        # Few and large lumps on one side only: somewhat less.
        assert 0.91 <= covered(intervals.student, pairs, correlation, TUNED)


@pytest.mark.parametrize("sides", [SAME, TUNED])
def test_percentiles_of_a_bootstrap_cover_too_little_at_ten_pairs(sides: tuple[str, str]) -> None:
    for method in (intervals.percentile, intervals.bca):
        assert 0.91 >= covered(method, 10, "none", sides)


def test_a_block_bootstrap_t_has_no_bounds_where_there_are_few_blocks() -> None:
    ratios = intervals.log_ratios(200, 6, "none", SAME)
    widths = {
        method: intervals.coverage(method, ratios, 0.0, LEVEL)[1]
        for method in (intervals.student, intervals.studentised)
    }
    assert widths[intervals.studentised] > 1e6 * widths[intervals.student]


def test_a_verdict_that_may_stop_early_holds_the_truth_as_often_as_one_that_may_not() -> None:
    for correlation in ("none", "in time"):
        ratios = intervals.log_ratios(intervals.RUNS, 10, correlation, TUNED)
        truth = intervals.true_log_ratio(TUNED)
        once, twice = (intervals.reported(ratios, count, LEVEL, truth) for count in (1, 2))
        assert twice >= once


def test_looks_there_are_those_of_verdicts() -> None:
    ratios = intervals.log_ratios(2000, 10, "none", SAME)
    shares = [(intervals.judged(ratios, count, LEVEL)[1] != 0).mean() for count in (1, 2, 3)]
    # The binomial standard deviation of 5 % of 2,000 is 0.5 %.
    assert all(share <= 0.065 for share in shares)
    taken, outcome = intervals.judged(np.full((1, 10), 1.0) + ratios[:1] * 1e-3, 2, LEVEL)
    assert (7.0, 1.0) == (taken[0], outcome[0])
