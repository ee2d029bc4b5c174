import math
import random

import pytest

from intop.domain.stats import (
    RatioInterval,
    bonferroni,
    geometric_interval,
    geometric_mean,
    paired_ratio,
)


def test_geometric_mean_of_1_10_100_is_10() -> None:
    assert 10 == pytest.approx(geometric_mean([1, 10, 100]))


def test_geometric_mean_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        geometric_mean([])


def test_paired_ratio_by_hand() -> None:
    # Logs to base 2: 1, 2, 3; mean 2, sd 1, standard error 1/sqrt(3); t(0.975, 2) = 4.302653.
    found = paired_ratio([2, 4, 8], [1, 1, 1], level=0.95)
    half = 4.302653 / math.sqrt(3)
    expected = RatioInterval(4, 2 ** (2 - half), 2 ** (2 + half))
    assert expected.ratio == pytest.approx(found.ratio)
    assert expected.low == pytest.approx(found.low, rel=1e-6)
    assert expected.high == pytest.approx(found.high, rel=1e-6)


def test_a_mean_has_the_interval_of_its_logarithms_in_its_own_unit() -> None:
    values = [20.0, 40.0, 80.0]
    found = geometric_interval(values, level=0.95)
    unit = paired_ratio(values, [1.0] * 3, level=0.95)
    assert (unit.ratio, unit.low, unit.high) == pytest.approx((found.mean, found.low, found.high))
    assert 40 == pytest.approx(found.mean)


@pytest.mark.parametrize(
    ("level", "comparisons", "expected"),
    [(0.95, 0, 0.95), (0.95, 1, 0.95), (0.95, 5, 0.99), (0.9, 2, 0.95)],
)
def test_bonferroni_shares_the_error_out(level: float, comparisons: int, expected: float) -> None:
    assert expected == pytest.approx(bonferroni(level, comparisons))


def test_pairs_belong_together() -> None:
    # Blocks differ by a factor of 100, the ratio within each is exactly 2.
    found = paired_ratio([2, 20, 200], [1, 10, 100], level=0.95)
    assert (2, 2, 2) == pytest.approx((found.ratio, found.low, found.high))


def test_swapped_sides_give_the_inverse() -> None:
    one, other = [30.0, 42.0, 25.0, 61.0], [11.0, 9.0, 12.0, 10.0]
    there, back = paired_ratio(one, other, level=0.9), paired_ratio(other, one, level=0.9)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert (there.low, there.high) == pytest.approx((1 / back.high, 1 / back.low))


def test_a_higher_level_is_a_wider_interval() -> None:
    one, other = [30.0, 42.0, 25.0], [11.0, 9.0, 12.0]
    narrow, wide = (paired_ratio(one, other, level=level) for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.ratio < narrow.high < wide.high


@pytest.mark.parametrize("pairs", [3, 8])
def test_the_interval_covers_the_true_ratio_as_often_as_it_says(pairs: int) -> None:
    rng = random.Random(5)
    true, rounds, covered = 1.5, 800, 0
    for _ in range(rounds):
        blocks = [rng.gauss(3, 1) for _ in range(pairs)]
        default = [math.exp(b + math.log(true) + rng.gauss(0, 0.5)) for b in blocks]
        tuned = [math.exp(b + rng.gauss(0, 0.5)) for b in blocks]
        found = paired_ratio(default, tuned, level=0.9)
        covered += found.low <= true <= found.high
    # Binomial: the standard deviation of the share is 0.011.
    assert 0.9 == pytest.approx(covered / rounds, abs=0.035)


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
