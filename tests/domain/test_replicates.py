"""Trials of one configuration put together, and the noise that they show."""

import math

import numpy as np
import pytest

from builders.trials import trial
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.replicates import PRIOR_WEIGHT, Measured, by_configuration, noise, variances

ONE, OTHER = Configuration({"a.b": "1"}), Configuration({"a.b": "2"})


def measured(*judged_ms: float) -> Measured:
    return Measured(configuration=ONE, judged_ms=judged_ms)


def test_trials_come_together_by_configuration_in_the_order_of_the_plan() -> None:
    trials = [
        trial(ONE, 1600, index=4),
        trial(DEFAULT, 500, index=0),
        trial(OTHER, index=2, status="failed"),
        trial(ONE, 400, index=1),
        trial(ONE, 1, index=3, status="disturbed"),
        trial(DEFAULT, 500, index=5),
        trial(ONE, index=6, status="failed"),
    ]
    default, one = by_configuration(trials)
    assert (default.configuration, default.judged_ms, default.failures) == (DEFAULT, (0.5, 0.5), 0)
    assert (one.configuration, one.judged_ms, one.failures) == (ONE, (0.4, 1.6), 1)
    assert pytest.approx(one.mean_ms) == 0.8
    assert math.log(0.8) == pytest.approx(one.mean_log)


def test_an_overloaded_trial_counts() -> None:
    (one,) = by_configuration([trial(ONE, 400, status="overloaded")])
    assert len(one.judged_ms) == 1
    assert by_configuration([]) == []


def test_noise_is_the_pooled_deviation_of_logs_about_each_mean() -> None:
    """By hand, and chi-square at 3 degrees of freedom: 0.2158 and 9.3484 at 95 %."""
    e = math.e
    result = noise([measured(10, 10 * e), measured(5), measured(1, e, e**2)], level=0.95)
    squares = 0.5 + 2
    assert (result.configurations, result.freedom, result.level) == (2, 3, 0.95)
    assert result.sd == pytest.approx(math.sqrt(squares / 3))
    assert result.low == pytest.approx(math.sqrt(squares / 9.3484), rel=1e-4)
    assert result.high == pytest.approx(math.sqrt(squares / 0.2158), rel=1e-4)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(400):
        made = [measured(*np.exp(rng.normal(n, 0.3, 2))) for n in range(6)]
        result = noise([*made, measured(*np.exp(rng.normal(0, 0.3, 5)))], level=0.9)
        assert result.low is not None
        assert result.high is not None
        held += result.low <= 0.3 <= result.high
    assert 0.86 < held / 400 < 0.94


def test_what_was_measured_once_shows_no_noise() -> None:
    result = noise([measured(1.0), measured(2.0)], level=0.95)
    assert (
        result.configurations,
        result.freedom,
        result.sd,
        result.low,
        result.high,
    ) == (0, 0, None, None, None)


def test_a_variance_is_drawn_towards_that_of_all() -> None:
    wild, quiet, once = measured(1, math.e**2), measured(5, 5), measured(7)
    pooled = 2 / 2
    assert [
        (PRIOR_WEIGHT * pooled + 2) / (PRIOR_WEIGHT + 1),
        PRIOR_WEIGHT * pooled / (PRIOR_WEIGHT + 1),
        pooled,
    ] == pytest.approx(variances([wild, quiet, once]))


def test_without_scatter_there_are_variances_all_the_same() -> None:
    one, other = variances([measured(1.0), measured(2.0)])
    assert 0 < one == other
    steady, other = variances([measured(3.0, 3.0), measured(2.0)])
    assert 0 < steady < other
    assert variances([]) == []
