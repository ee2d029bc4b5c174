"""Candidates are left with what the models promise something of."""

import numpy as np
import pytest

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.constraints import Order
from intop.domain.encoding import Matrix
from intop.domain.search import Candidate
from intop.learn.fitness import Estimate
from intop.learn.samples import Vector
from intop.learn.simpler import TOLERANCE, simpler
from small_spaces import A, B, C, D, up_to_100

SPACE = up_to_100("abcd")
ALL = Configuration({A: "90", B: "80", C: "70", D: "60"})


def candidate(configuration: Configuration = ALL) -> Candidate:
    return Candidate(configuration=configuration, predicted_p99_ms=1.0, model="ensemble")


def of(**slopes: float) -> "Predictions":
    return Predictions(np.array([slopes.get(letter, 0.0) for letter in "abcd"]))


class Predictions:
    """A slope for each parameter over its range, and a spread that grows with all changes."""

    def __init__(self, slopes: Vector, spread: float = 0.0) -> None:
        self.slopes, self.spread = slopes, spread

    def __call__(self, values: Matrix) -> Estimate:
        log_p99 = values @ self.slopes / 100
        spread = self.spread * np.count_nonzero(values, axis=1)
        return Estimate(log_p99, spread, log_p99 + spread)


def test_what_promises_nothing_is_taken_back() -> None:
    found = simpler(SPACE, candidate(), of(a=-1.0, c=-0.5))
    assert {A: "90", C: "70"} == found.configuration.values
    assert np.exp(-0.9 - 0.35) == pytest.approx(found.predicted_p99_ms)
    assert (0.0, None) == (found.spread, found.penalised_p99_ms)


def test_what_harms_is_taken_back_and_predictions_alone_do() -> None:
    predict = of(a=-1.0, b=0.5, d=0.2)
    found = simpler(SPACE, candidate(), lambda values: predict(values).log_p99)
    assert {A: "90"} == found.configuration.values


def test_many_small_promises_count_together() -> None:
    small = 0.6 * TOLERANCE
    found = simpler(SPACE, candidate(), of(a=-1.0, b=-small, c=-small, d=-small))
    # One or two of them are less than the tolerance, all three are more.
    assert 1 < len(found.configuration.values) < 4
    assert A in found.configuration.values


def test_the_penalty_counts() -> None:
    found = simpler(SPACE, candidate(), Predictions(np.array([-1.0, -0.1, 0, 0]), spread=0.2))
    assert {A: "90"} == found.configuration.values
    assert 0.2 == pytest.approx(found.spread)
    assert np.exp(-0.7) == pytest.approx(found.penalised_p99_ms)


def test_one_change_stays_at_least() -> None:
    assert 1 == len(simpler(SPACE, candidate(), of()).configuration.values)
    one = candidate(Configuration({B: "5"}))
    assert one.configuration == simpler(SPACE, one, of(b=1.0)).configuration


def test_what_only_changes_together_stays_together() -> None:
    space = up_to_100("abcd", Order(columns=(A, B)), a="10", b="20")
    both = Configuration({A: "30", B: "40", C: "70"})
    found = simpler(space, candidate(both), of(a=-1.0))
    assert {A: "30", B: "40"} == found.configuration.values
    assert () == space.broken(found.configuration)
    assert [] == space.together(DEFAULT, DEFAULT)
