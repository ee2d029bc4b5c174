"""NSGA-II where the front is known."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix
from intop.domain.parameter import Component, Parameter
from intop.domain.space import Space
from intop.learn.searching.pareto import ParetoResult, front

KEYS = ("net.a", "net.b", "net.c")
TOP = 1000


@pytest.fixture(name="plain")
def _plain() -> Space:
    """Three numbers from 0 to TOP."""
    parameters = tuple(
        Parameter(
            key=key,
            kind="integer",
            unit="",
            scope="namespace",
            risk="low",
            mechanism="test",
            document="test",
            components=(Component(name="", low=0, high=TOP),),
            choices=(),
            scale="linear",
        )
        for key in KEYS
    )
    return Space(parameters, (), dict.fromkeys(KEYS, "0"))


def first(values: Matrix) -> Matrix:
    """ZDT1 of Zitzler, Deb and Thiele (2000), whose front is 1 - sqrt(f1) at b = c = 0."""
    return values[:, 0] / TOP


def second(values: Matrix) -> Matrix:
    away = 1 + 9 * values[:, 1:].mean(axis=1) / TOP
    return away * (1 - np.sqrt(first(values) / away))


def is_dominated(one: Matrix, other: Matrix) -> bool:
    return bool(np.all(other <= one) and np.any(other < one))


@pytest.fixture(name="results", scope="module")
def _found() -> Callable[[Space], ParetoResult]:
    made: list[ParetoResult] = []

    def search(space: Space) -> ParetoResult:
        if not made:
            made.append(front(space, [first, second], seed=1, population=40, generations=60))
        return made[0]

    return search


def test_finds_a_known_front(plain: Space, results: Callable[[Space], ParetoResult]) -> None:
    result = results(plain)
    one, other = result.predicted.T
    assert np.max(other - (1 - np.sqrt(one))) < 0.03
    # From end to end, without a large gap.
    assert one.min() < 0.01
    assert one.max() > 0.95
    assert np.max(np.diff(one)) < 0.15
    assert list(one) == sorted(one)


def test_nothing_in_it_is_dominated_and_all_differ(
    plain: Space, results: Callable[[Space], ParetoResult]
) -> None:
    result = results(plain)
    assert not [1 for one, other in permutations(result.predicted, 2) if is_dominated(one, other)]
    digests = {one.digest for one in plain.configurations(result.values)}
    assert len(digests) == len(result.values) > 20
    message = np.column_stack([first(result.values), second(result.values)])
    assert message.tolist() == result.predicted.tolist()


def test_the_hypervolume_grows_until_it_has_converged(
    plain: Space, results: Callable[[Space], ParetoResult]
) -> None:
    result = results(plain)
    assert list(result.hypervolumes) == sorted(result.hypervolumes)
    assert 0 < result.converged_at < len(result.hypervolumes)
    assert result.hypervolumes[result.converged_at] >= 0.999 * result.hypervolumes[-1]


def test_it_ends_after_its_patience_where_nothing_can_be_gained(plain: Space) -> None:
    flat = [lambda values: np.full(len(values), 3.0)] * 2
    result = front(plain, flat, seed=1, population=8, patience=3)
    assert (len(result.hypervolumes), result.converged_at, len(result.values)) == (4, 0, 1)


def test_what_it_is_given_is_never_lost(plain: Space) -> None:
    """A needle that no operator finds, in each objective."""
    needle = np.array([[123.0, 456.0, 789.0]])

    def sharp(values: Matrix) -> Matrix:
        return np.where((values == needle).all(axis=1), -1.0, first(values))

    result = front(
        plain,
        [sharp, second],
        seed=2,
        population=12,
        generations=6,
        patience=9,
        start=plain.genes(needle),
    )
    assert needle.tolist()[0] in result.values.tolist()


def test_the_same_seed_finds_the_same_and_leaves_the_global_generator_alone(plain: Space) -> None:
    state = random.getstate()
    one, other = (
        replace(front(plain, [first, second], seed=7, population=10, generations=4), seconds=0.0)
        for _ in range(2)
    )
    assert state == random.getstate()
    assert one.values.tolist() == other.values.tolist()
    assert one.hypervolumes == other.hypervolumes


def test_every_configuration_is_feasible(
    space: Space,
    log_latency: Callable[[Matrix], Matrix],
    is_feasible: Callable[[Configuration], bool],
) -> None:
    both = [
        lambda values: log_latency(space.encode(values)),
        lambda values: -space.encode(values).sum(axis=1),
        lambda values: space.encode(values)[:, 0],
    ]
    result = front(space, both, seed=1, population=18, generations=5)
    assert all(is_feasible(one) for one in space.configurations(result.values))


def test_one_prediction_for_each_objective_and_generation(plain: Space) -> None:
    asked: list[int] = []

    def counted(values: Matrix) -> Matrix:
        asked.append(len(values))
        return first(values)

    result = front(plain, [counted, second], seed=1, population=10, generations=3, patience=9)
    # A population is a multiple of four; in the end the front is predicted once more.
    assert [12] * 4 + [len(result.values)] == asked


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"predict": [first]}, "at least two objectives, got 1"),
        ({"population": 3}, "population must be at least 4"),
        ({"start": np.zeros((2, 5))}, "start must have 3 columns"),
        ({"predict": [first, lambda v: np.full(len(v), np.nan)]}, "finite numbers"),
    ],
)
def test_what_makes_no_search_is_refused(plain: Space, changes: dict, message: str) -> None:
    asked = {"predict": [first, second], "seed": 1, "generations": 1, **changes}
    with pytest.raises(ValueError, match=message):
        front(plain, **asked)


def test_a_space_without_parameters_is_refused(plain: Space) -> None:
    with pytest.raises(ValueError, match="no parameter"):
        front(plain.restricted(()), [first, second], seed=1)
