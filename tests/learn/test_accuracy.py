import numpy as np
import pytest

from intop.learn import accuracy

MEASURED = np.log([10.0, 20.0, 40.0])


def test_a_perfect_guess_has_no_error_and_no_regret() -> None:
    assert accuracy.mape(MEASURED, MEASURED) == 0
    assert accuracy.r_squared(MEASURED, MEASURED) == 1
    assert accuracy.rank_correlation(MEASURED, MEASURED) == pytest.approx(1)
    assert accuracy.regret(MEASURED, MEASURED) == 0


def test_the_error_is_a_share_of_what_was_measured() -> None:
    assert accuracy.mape(MEASURED, np.log([11.0, 20.0, 20.0])) == pytest.approx(20)
    assert accuracy.mape(MEASURED, np.full(3, 1e4)) == np.inf


def test_r_squared_compares_with_the_mean() -> None:
    assert accuracy.r_squared(MEASURED, np.full(3, MEASURED.mean())) == 0
    assert accuracy.r_squared(MEASURED, MEASURED[::-1]) == pytest.approx(-3)


def test_nothing_that_varies_is_nothing_to_explain_or_rank() -> None:
    assert accuracy.r_squared(np.ones(3), MEASURED) == 0
    assert accuracy.rank_correlation(np.ones(3), MEASURED) == 0
    assert accuracy.rank_correlation(MEASURED, np.ones(3)) == 0


def test_regret_is_how_much_worse_the_one_predicted_best_is() -> None:
    assert accuracy.regret(MEASURED, np.array([3.0, 1.0, 2.0])) == pytest.approx(100)
    # Of two that are predicted alike, either may be taken.
    assert accuracy.regret(MEASURED, np.array([1.0, 1.0, 2.0])) == pytest.approx(50)
