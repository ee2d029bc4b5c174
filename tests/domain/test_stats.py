import math
import random

import pytest
from scipy import stats

from intop.domain.stats import (
    Interval,
    bonferroni,
    difference,
    geometric_interval,
    geometric_mean,
    paired_difference,
    paired_ratio,
    unpaired_ratio,
)


def test_geometric_mean_of_1_10_100_is_10() -> None:
    assert pytest.approx(geometric_mean([1, 10, 100])) == 10


def test_a_ratio_in_words() -> None:
    assert str(Interval(3.456, 1.55, 7.7)) == "3.46 (1.55 to 7.70)"


def test_geometric_mean_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        geometric_mean([])


def test_paired_ratio_by_hand() -> None:
    # Logs to base 2: 1, 2, 3; mean 2, sd 1, standard error 1/sqrt(3); t(0.975, 2) = 4.302653.
    result = paired_ratio([2, 4, 8], [1, 1, 1], level=0.95)
    half = 4.302653 / math.sqrt(3)
    expected = Interval(4, 2 ** (2 - half), 2 ** (2 + half))
    assert expected.value == pytest.approx(result.value)
    assert expected.low == pytest.approx(result.low, rel=1e-6)
    assert expected.high == pytest.approx(result.high, rel=1e-6)


def test_paired_difference_by_hand() -> None:
    # Differences 1, 2, 3; mean 2, sd 1, standard error 1/sqrt(3); t(0.975, 2) = 4.302653.
    result = paired_difference([1.0, 12.0, 103.0], [0.0, 10.0, 100.0], level=0.95)
    half = 4.302653 / math.sqrt(3)
    expected = Interval(2, 2 - half, 2 + half)
    assert vars(expected) == pytest.approx(vars(result), rel=1e-6)
    assert Interval(0, 0, 0) == paired_difference([0.0, 0.0], [0.0, 0.0], level=0.95)


@pytest.mark.parametrize(("one", "other"), [([1.0], [1.0]), ([1.0, 2.0], [1.0])])
def test_a_difference_takes_pairs_and_two_of_them(one: list[float], other: list[float]) -> None:
    with pytest.raises(ValueError, match=r"two values or more|2 values against 1"):
        paired_difference(one, other, level=0.95)


@pytest.mark.parametrize(
    ("level", "comparisons", "expected"),
    [(0.95, 0, 0.95), (0.95, 1, 0.95), (0.95, 5, 0.99), (0.9, 2, 0.95)],
)
def test_bonferroni_shares_the_error_out(level: float, comparisons: int, expected: float) -> None:
    assert expected == pytest.approx(bonferroni(level, comparisons))


def test_pairs_belong_together() -> None:
    # Blocks differ by a factor of 100, the ratio within each is exactly 2.
    result = paired_ratio([2, 20, 200], [1, 10, 100], level=0.95)
    assert pytest.approx((result.value, result.low, result.high)) == (2, 2, 2)


def test_swapped_sides_give_the_inverse() -> None:
    one, other = [30.0, 42.0, 25.0, 61.0], [11.0, 9.0, 12.0, 10.0]
    there, back = paired_ratio(one, other, level=0.9), paired_ratio(other, one, level=0.9)
    assert there.value == pytest.approx(1 / back.value)
    assert (there.low, there.high) == pytest.approx((1 / back.high, 1 / back.low))


def test_a_higher_level_is_a_wider_interval() -> None:
    one, other = [30.0, 42.0, 25.0], [11.0, 9.0, 12.0]
    narrow, wide = (paired_ratio(one, other, level=level) for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


@pytest.mark.parametrize("pairs", [3, 8])
def test_the_interval_covers_the_true_ratio_as_often_as_it_says(pairs: int) -> None:
    rng = random.Random(5)
    true, rounds, covered = 1.5, 800, 0
    for _ in range(rounds):
        blocks = [rng.gauss(3, 1) for _ in range(pairs)]
        default = [math.exp(b + math.log(true) + rng.gauss(0, 0.5)) for b in blocks]
        tuned = [math.exp(b + rng.gauss(0, 0.5)) for b in blocks]
        result = paired_ratio(default, tuned, level=0.9)
        covered += result.low <= true <= result.high
    # Binomial: the standard deviation of the share is 0.011.
    assert pytest.approx(covered / rounds, abs=0.035) == 0.9


@pytest.mark.parametrize(
    ("numerators", "denominators", "message"),
    [
        ([1, 2], [1], "2 values against 1"),
        ([1], [1], "an interval needs two values or more, got 1"),
        ([], [], "an interval needs two values or more, got 0"),
        ([0, 1], [1, 1], "domain"),
    ],
)
def test_what_gives_no_interval_is_refused(
    numerators: list[float], denominators: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=f"{message}|expected a positive input"):
        paired_ratio(numerators, denominators, level=0.95)


# One geometric mean -------------------------------------------------------------------------------


def test_interval_of_a_geometric_mean_by_hand() -> None:
    # Logs to base 2: 1, 2, 3, as above.
    result = geometric_interval([2, 4, 8], level=0.95)
    half = 4.302653 / math.sqrt(3)
    assert (4, 2 ** (2 - half), 2 ** (2 + half)) == pytest.approx(
        (result.value, result.low, result.high), rel=1e-6
    )


def test_interval_of_a_geometric_mean_is_scipys_on_logs() -> None:
    values = [31.0, 42.5, 25.1, 61.7, 38.0]
    result = geometric_interval(values, level=0.9)
    expected = stats.ttest_1samp([math.log(v) for v in values], 0).confidence_interval(0.9)
    assert (math.exp(expected.low), math.exp(expected.high)) == pytest.approx(
        (result.low, result.high)
    )


def test_equal_values_leave_no_room() -> None:
    result = geometric_interval([5, 5, 5], level=0.95)
    assert pytest.approx((result.value, result.low, result.high)) == (5, 5, 5)


@pytest.mark.parametrize("level", [0.99, 0.9999, 0.9999999])
def test_two_values_at_a_high_level_have_an_interval_that_a_float_can_hold(level: float) -> None:
    pairs = paired_ratio([200.0, 900.0], [200.0, 1.0], level=level)
    for interval in (pairs, unpaired_ratio([200.0, 900.0], [200.0, 1.0], level=level)):
        assert 0 < interval.low < interval.value < interval.high < math.inf
        assert interval.inverse.high < math.inf
        assert interval.limits == "0.00 to over 1,000,000"


@pytest.mark.parametrize("values", [[], [1.0]])
def test_an_interval_needs_two_values(values: list[float]) -> None:
    with pytest.raises(ValueError, match=f"two values or more, got {len(values)}"):
        geometric_interval(values, level=0.95)


# Two independent ones -----------------------------------------------------------------------------


def test_unpaired_ratio_by_hand() -> None:
    # Logs to base 2: 1, 2, 3 and 0, 0, 0: only one side has a variance, so 2 degrees of freedom.
    result = unpaired_ratio([2, 4, 8], [1, 1, 1], level=0.95)
    half = 4.302653 / math.sqrt(3)
    assert (4, 2 ** (2 - half), 2 ** (2 + half)) == pytest.approx(
        (result.value, result.low, result.high), rel=1e-6
    )


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_unpaired_ratio_is_scipys_welch_on_logs(level: float) -> None:
    one, other = [31.0, 42.5, 25.1, 61.7, 38.0], [11.0, 9.5, 14.0]
    result = unpaired_ratio(one, other, level=level)
    test = stats.ttest_ind(
        [math.log(v) for v in one], [math.log(v) for v in other], equal_var=False
    )
    expected = test.confidence_interval(level)
    assert geometric_mean(one) / geometric_mean(other) == pytest.approx(result.value)
    assert (math.exp(expected.low), math.exp(expected.high)) == pytest.approx(
        (result.low, result.high)
    )


def test_unpaired_sides_swapped_give_the_inverse() -> None:
    one, other = [30.0, 42.0, 25.0, 61.0], [11.0, 9.0, 12.0]
    there, back = (unpaired_ratio(a, b, level=0.9) for a, b in ((one, other), (other, one)))
    assert (there.value, there.low, there.high) == pytest.approx(
        (1 / back.value, 1 / back.high, 1 / back.low)
    )


def test_sides_without_any_spread_have_an_exact_ratio() -> None:
    result = unpaired_ratio([1, 1], [2, 2], level=0.95)
    assert Interval(0.5, 0.5, 0.5) == result


@pytest.mark.parametrize(("one", "other"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0])])
def test_an_unpaired_ratio_needs_two_values_on_both_sides(
    one: list[float], other: list[float]
) -> None:
    with pytest.raises(ValueError, match="two values or more on both sides, got 1"):
        unpaired_ratio(one, other, level=0.95)


def test_difference_by_hand() -> None:
    result = difference(Interval(10, 8, 13), Interval(4, 3, 6))
    # Down: 2 below the one, 2 above the other. Up: 3 above the one, 1 below the other.
    assert (6, 6 - math.sqrt(8), 6 + math.sqrt(10)) == pytest.approx(
        (result.value, result.low, result.high)
    )


def test_a_difference_turned_round_is_its_negative() -> None:
    one, other = Interval(10, 8, 13), Interval(4, 3, 6)
    there, back = difference(one, other), difference(other, one)
    assert (there.value, there.low, there.high) == pytest.approx(
        (-back.value, -back.high, -back.low)
    )


def test_intervals_of_independent_sides_cover_the_truth_as_often_as_they_say() -> None:
    rng = random.Random(7)
    rounds, in_ratio, in_difference = 800, 0, 0
    for _ in range(rounds):
        one = [30 * math.exp(rng.gauss(0, 0.2)) for _ in range(10)]
        other = [10 * math.exp(rng.gauss(0, 0.6)) for _ in range(6)]
        ratio = unpaired_ratio(one, other, level=0.9)
        in_ratio += ratio.low <= 3 <= ratio.high
        single = (geometric_interval(v, level=0.9) for v in (one, other))
        result = difference(*single)
        in_difference += result.low <= 20 <= result.high
    # Binomial: the standard deviation of the share is 0.011.
    assert pytest.approx(in_ratio / rounds, abs=0.035) == 0.9
    # A few values give MOVER's limits somewhat too wide rather than too narrow.
    assert 0.9 - 0.035 <= in_difference / rounds <= 0.965
