import numpy as np
import pytest

from intop.domain.configuration import Configuration
from intop.domain.search import Candidate
from intop.domain.space import Space
from intop.learn.finalists import diverse

BUDGET = "net.core.netdev_budget"
TIMEOUT = "net.ipv4.tcp_fin_timeout"


def candidate(p99_ms: float, budget: int, timeout: int = 60) -> Candidate:
    values = {BUDGET: str(budget), TIMEOUT: str(timeout)}
    return Candidate(configuration=Configuration(values), predicted_p99_ms=p99_ms, model="ensemble")


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
