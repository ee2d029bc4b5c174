"""Which configurations get further trials."""

import math

import pytest

from intop.learn.allocation import TIE, next_batch, ocba


def test_a_textbook_case_by_hand() -> None:
    """Means 1, 2, 3 with variance 1: shares 1, 1 / 4, and sqrt(1 + 1 / 16) for the best."""
    best = math.sqrt(17) / 4
    expected = [60 * share / (best + 1.25) for share in (best, 1, 0.25)]
    assert expected == pytest.approx(ocba([1, 2, 3], [1, 1, 1], 60))


def test_variances_count_as_the_formula_says() -> None:
    """Shares 4 / 1 and 1 / 4; the best has variance 9: sqrt(9 * (16 / 4 + 1 / 16))."""
    result = ocba([0, 1, 2], [9, 4, 1], 100)
    assert [math.sqrt(9 * (4 + 1 / 16)), 4, 0.25] == pytest.approx(
        [share / result[1] * 4 for share in result]
    )
    assert pytest.approx(sum(result)) == 100


def test_a_noisy_and_a_promising_one_get_more_than_a_quiet_bad_one() -> None:
    best, promising, noisy, quiet = ocba([0, 0.2, 1, 1], [0.1, 0.1, 1, 0.1], 100)
    assert min(promising, noisy) > 3 * quiet
    assert best > quiet


def test_a_tie_takes_not_everything() -> None:
    best, tied, other = ocba([1, 1, 2], [1, 1, 1], 30)
    assert tied == pytest.approx(best, rel=0.01)
    assert tied == pytest.approx(other / TIE**2)


def test_equal_ones_are_equal_but_for_the_one_that_is_called_the_best() -> None:
    result = ocba([5.0] * 4, [1.0] * 4, 10)
    assert len({round(share, 9) for share in result[1:]}) == 1
    assert pytest.approx(sum(result)) == 10


def test_a_single_one_gets_all_and_none_get_nothing() -> None:
    assert ocba([1.0], [1.0], 7) == [7]
    assert ocba([], [], 7) == []


def test_a_variance_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive, got 0"):
        ocba([1, 2], [1, 0], 5)


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        ocba([1, 2], [1], 5)


# Batches ------------------------------------------------------------------------------------------


def test_a_batch_has_what_lacks_most_and_nothing_twice() -> None:
    means = [3.0, 1.0, 1.1, 2.0, 5.0]
    assert sorted(next_batch(means, [1.0] * 5, [1] * 5, 2), reverse=True) == [2, 1]
    everything = next_batch(means, [1.0] * 5, [1] * 5, 4)
    assert len(set(everything)) == 4
    assert 4 not in everything


def test_what_has_been_measured_often_lacks_nothing() -> None:
    assert 1 not in next_batch([1.0, 1.1, 1.2, 2.0], [1.0] * 4, [1, 9, 1, 1], 2)


def test_equals_come_in_their_order_and_always_alike() -> None:
    first = next_batch([2.0] * 6, [1.0] * 6, [1] * 6, 3)
    assert first == [0, 1, 2]
    assert first == next_batch([2.0] * 6, [1.0] * 6, [1] * 6, 3)


def test_there_may_be_fewer_than_asked_for() -> None:
    assert next_batch([1.0], [1.0], [1], 4) == [0]
    assert next_batch([], [], [], 4) == []
