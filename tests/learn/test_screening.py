from collections.abc import Callable

import numpy as np
import pytest

from intop.domain.configuration import Configuration
from intop.domain.space import Matrix, Space
from intop.learn.design import latin_hypercube
from intop.learn.screening import rank


@pytest.fixture
def trials(
    space: Space, log_p99: Callable[[Matrix], Matrix]
) -> tuple[list[Configuration], list[float]]:
    """60 configurations, measured with a noise of 20 %."""
    design = latin_hypercube(space, 60, seed=11)
    noise = np.random.default_rng(12).normal(0, 0.2, len(design))
    return design, np.exp(log_p99(space.encode(space.values(design))) + noise).tolist()


def test_finds_what_was_planted(
    space: Space, trials: tuple[list[Configuration], list[float]], planted: tuple[str, ...]
) -> None:
    ranking = rank(space, *trials, keep=3, seed=1)
    assert set(ranking.chosen) == set(planted)
    assert ranking.trials == 60


def test_importances_add_up_to_one_and_fall(
    space: Space, trials: tuple[list[Configuration], list[float]]
) -> None:
    ranking = rank(space, *trials, keep=4, seed=1, seeds=5)
    means = [importance.mean for importance in ranking.importances]
    assert {i.key for i in ranking.importances} == {p.key for p in space.parameters}
    assert sum(means) == pytest.approx(1)
    assert means == sorted(means, reverse=True)
    assert all(importance.sd >= 0 for importance in ranking.importances)
    assert ranking.chosen == tuple(i.key for i in ranking.importances[:4])


def test_the_seed_decides(space: Space, trials: tuple[list[Configuration], list[float]]) -> None:
    first = rank(space, *trials, keep=3, seed=7, seeds=3)
    assert first == rank(space, *trials, keep=3, seed=7, seeds=3)
    assert first != rank(space, *trials, keep=3, seed=8, seeds=3)


def test_keeps_all_when_more_are_wanted_than_there_are(
    space: Space, trials: tuple[list[Configuration], list[float]]
) -> None:
    ranking = rank(space, *trials, keep=99, seed=1, seeds=1)
    assert len(ranking.chosen) == len(space.parameters)


def test_a_constant_p99_prefers_nothing(
    space: Space, trials: tuple[list[Configuration], list[float]]
) -> None:
    ranking = rank(space, trials[0], [5.0] * 60, keep=2, seed=1, seeds=2)
    assert {i.mean for i in ranking.importances} == {1 / len(space.parameters)}


@pytest.mark.parametrize(
    ("p99_ms", "keep", "message"),
    [
        ([1.0] * 9, 3, "10 configurations but 9 P99 values"),
        ([1.0] * 9 + [0.0], 3, "positive number"),
        ([1.0] * 9 + [float("nan")], 3, "positive number"),
        ([1.0] * 10, 0, "keep and seeds must be at least 1, got 0 and 20"),
    ],
)
def test_says_what_it_can_not_use(
    space: Space, p99_ms: list[float], keep: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rank(space, latin_hypercube(space, 10, seed=1), p99_ms, keep=keep, seed=1)


def test_says_how_many_trials_it_needs(space: Space) -> None:
    with pytest.raises(ValueError, match="4 trials are too few to rank parameters; at least 5"):
        rank(space, latin_hypercube(space, 4, seed=1), [1.0] * 4, keep=1, seed=1)
