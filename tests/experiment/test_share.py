"""The share of a gain that a mechanism brings."""

import random

import pytest

from intop.causes.stage import share_of


def test_what_is_left_tells_the_share() -> None:
    result = share_of([1.0, 1.1, 0.9], [0.5, 0.55, 0.45], level=0.95)
    assert result is not None
    assert pytest.approx((result.value, result.low, result.high)) == (0.5, 0.5, 0.5)
    nothing = share_of([1.0, 1.1, 0.9], [1.1, 0.9, 1.0], level=0.95)
    assert nothing is not None
    assert nothing.low < 0 < nothing.high < 0.5
    all_of_it = share_of([1.0, 1.1, 0.9], [0.02, -0.01, -0.01], level=0.95)
    assert all_of_it is not None
    assert all_of_it.low < 1 < all_of_it.high


@pytest.mark.parametrize("gains", [[0.5, -0.4, 0.1], [-1.0, -1.1, -0.9]])
def test_without_a_clear_gain_there_is_no_share(gains: list[float]) -> None:
    assert share_of(gains, [0.1, 0.2, 0.1], level=0.95) is None


@pytest.mark.parametrize(("gains", "left"), [([1.0], [1.0]), ([1.0, 2.0], [1.0])])
def test_a_share_takes_two_rounds_on_both_sides(gains: list[float], left: list[float]) -> None:
    with pytest.raises(ValueError, match="rounds against"):
        share_of(gains, left, level=0.95)


@pytest.mark.parametrize("rounds", [4, 8, 16])
def test_intervals_hold_the_truth_as_often_as_they_say(rounds: int) -> None:
    """A share of 0.4 of a gain of 0.5, noise of 10 % a trial, and a default of its own each."""
    rng, held = random.Random(rounds), 0
    for _ in range(400):
        gains = [0.5 + rng.gauss(0, 0.14) for _ in range(rounds)]
        left = [0.3 + rng.gauss(0, 0.14) for _ in range(rounds)]
        result = share_of(gains, left, level=0.95)
        held += result is not None and result.low <= 0.4 <= result.high
    assert 0.92 * 400 <= held <= 0.98 * 400
