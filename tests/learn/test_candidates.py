"""Candidates that are worth measuring, and what is left of each."""

import numpy as np
import pytest

from builders.small_spaces import A, B, C, D, up_to_100
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.constraints import Order
from intop.domain.encoding import Matrix
from intop.domain.search import Candidate
from intop.domain.space import Space
from intop.learn.candidates import TOLERANCE, diverse, simpler
from intop.learn.fitness import Estimate
from intop.learn.samples import Vector

# Which are worth measuring ------------------------------------------------------------------------

BUDGET = "net.core.netdev_budget"
TIMEOUT = "net.ipv4.tcp_fin_timeout"


def candidate(judged_ms: float, budget: int, timeout: int = 60) -> Candidate:
    values = {BUDGET: str(budget), TIMEOUT: str(timeout)}
    return Candidate(configuration=Configuration(values), predicted_ms=judged_ms, model="ensemble")


@pytest.fixture
def line(space: Space) -> Space:
    return space.restricted([BUDGET, TIMEOUT])


def test_the_best_comes_first_and_neighbours_are_passed_over(line: Space) -> None:
    best, near, far, middle = (
        candidate(10.0, 100),
        candidate(10.1, 110),
        candidate(10.9, 1900),
        candidate(10.5, 1000),
    )
    assert diverse(line, [near, far, middle, best], 3) == [best, far, middle]


def test_what_is_different_but_bad_is_not_taken(line: Space) -> None:
    best, near, bad = candidate(10.0, 100), candidate(10.1, 110), candidate(20.0, 1900)
    assert diverse(line, [best, near, bad], 2) == [best, near]


def test_where_few_are_good_the_next_best_fill_up(line: Space) -> None:
    best, bad = candidate(10.0, 100), candidate(20.0, 1900)
    assert diverse(line, [best, bad], 2) == [best, bad]


def test_weights_tell_which_difference_counts(line: Space) -> None:
    best = candidate(10.0, 100, 10)
    other_timeout, other_budget = candidate(10.1, 100, 120), candidate(10.1, 700, 10)
    pool = [best, other_timeout, other_budget]
    assert diverse(line, pool, 2) == [best, other_timeout]
    assert diverse(line, pool, 2, weights={BUDGET: 1.0}) == [best, other_budget]


def test_no_candidate_is_taken_twice(line: Space) -> None:
    pool = [candidate(10.0 + i / 100, 100) for i in range(4)]
    assert diverse(line, pool, 9) == pool


def test_of_many_all_are_apart(line: Space) -> None:
    rng = np.random.default_rng(1)
    pool = [candidate(10 + rng.random(), int(rng.integers(50, 2000))) for _ in range(300)]
    budgets = sorted(int(c.configuration.values[BUDGET]) for c in diverse(line, pool, 4))
    assert min(np.diff(budgets)) > 300


def test_none(line: Space) -> None:
    assert diverse(line, [], 3) == []
    assert diverse(line, [candidate(1.0, 100)], 0) == []
    with pytest.raises(ValueError, match="got -2"):
        diverse(line, [], -2)


# With few changes ---------------------------------------------------------------------------------

SPACE = up_to_100("abcd")
ALL = Configuration({A: "90", B: "80", C: "70", D: "60"})


def changed(configuration: Configuration = ALL) -> Candidate:
    return Candidate(configuration=configuration, predicted_ms=1.0, model="ensemble")


def of(**slopes: float) -> "Predictions":
    return Predictions(np.array([slopes.get(letter, 0.0) for letter in "abcd"]))


class Predictions:
    """A slope for each parameter over its range, and a spread that grows with all changes."""

    def __init__(self, slopes: Vector, spread: float = 0.0) -> None:
        self.slopes, self.spread = slopes, spread

    def __call__(self, values: Matrix) -> Estimate:
        log_latency = values @ self.slopes / 100
        spread = self.spread * np.count_nonzero(values, axis=1)
        return Estimate(log_latency, spread, log_latency + spread)


def test_what_promises_nothing_is_taken_back() -> None:
    result = simpler(SPACE, changed(), of(a=-1.0, c=-0.5))
    assert result.configuration.values == {A: "90", C: "70"}
    assert np.exp(-0.9 - 0.35) == pytest.approx(result.predicted_ms)
    assert (result.spread, result.penalised_ms) == (0.0, None)


def test_what_harms_is_taken_back_and_predictions_alone_do() -> None:
    predict = of(a=-1.0, b=0.5, d=0.2)
    result = simpler(SPACE, changed(), lambda values: predict(values).log_latency)
    assert result.configuration.values == {A: "90"}


def test_many_small_promises_count_together() -> None:
    small = 0.6 * TOLERANCE
    result = simpler(SPACE, changed(), of(a=-1.0, b=-small, c=-small, d=-small))
    # One or two of them are less than the tolerance, all three are more.
    assert 1 < len(result.configuration.values) < 4
    assert A in result.configuration.values


def test_the_penalty_counts() -> None:
    result = simpler(SPACE, changed(), Predictions(np.array([-1.0, -0.1, 0, 0]), spread=0.2))
    assert result.configuration.values == {A: "90"}
    assert pytest.approx(result.spread) == 0.2
    assert np.exp(-0.7) == pytest.approx(result.penalised_ms)


def test_one_change_stays_at_least() -> None:
    assert len(simpler(SPACE, changed(), of()).configuration.values) == 1
    one = changed(Configuration({B: "5"}))
    assert one.configuration == simpler(SPACE, one, of(b=1.0)).configuration


def test_what_only_changes_together_stays_together() -> None:
    space = up_to_100("abcd", Order(columns=(A, B)), a="10", b="20")
    both = Configuration({A: "30", B: "40", C: "70"})
    result = simpler(space, changed(both), of(a=-1.0))
    assert result.configuration.values == {A: "30", B: "40"}
    assert space.broken(result.configuration) == ()
    assert space.together(DEFAULT, DEFAULT) == []
