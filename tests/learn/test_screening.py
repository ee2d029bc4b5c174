from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from builders.trials import screening
from intop.domain.encoding import Matrix
from intop.domain.ranking import Ranking
from intop.domain.space import Space
from intop.learn.design import latin_hypercube
from intop.learn.samples import Samples
from intop.learn.screening import ERROR_RATE, rank


def measured(space: Space, count: int, log_latency: Callable[[Matrix], Matrix]) -> Samples:
    """Configurations that fill the space, measured once each with a noise of 20 %."""
    values = space.values(latin_hypercube(space, count, seed=11))
    noise = np.random.default_rng(12).normal(0, 0.2, count)
    p99 = np.exp(log_latency(space.encode(values)) + noise).tolist()
    return Samples(
        variables=space.variables, values=values, measured=tuple((value,) for value in p99)
    )


@pytest.fixture
def samples(space: Space, log_latency: Callable[[Matrix], Matrix]) -> Samples:
    return measured(space, 80, log_latency)


@pytest.fixture
def noise(space: Space) -> Samples:
    """Nothing has an effect."""
    return measured(space, 40, lambda features: np.zeros(len(features)))


SCREENING = screening("ab", "c")


def quick(samples: Samples, *, keep: int = 9, seed: int = 1) -> Ranking:
    return rank(samples, screening=SCREENING, keep=keep, seed=seed, fits=1)


def test_what_was_planted_passes_and_nothing_else(
    samples: Samples, space: Space, planted: tuple[str, ...]
) -> None:
    ranking = quick(samples)
    assert set(ranking.passing) == set(planted)
    assert (ranking.screening, ranking.chosen) == (SCREENING, ("a", "b"))
    assert (ranking.trials, ranking.keep, ranking.error_rate) == (80, 9, ERROR_RATE)
    weights = [importance.permutation for importance in ranking.importances]
    assert {i.key for i in ranking.importances} == {p.key for p in space.parameters}
    assert weights == sorted(weights, reverse=True)
    assert ranking.probe_level is not None
    assert [weight > ranking.probe_level for weight in weights] == [
        importance.passes for importance in ranking.importances
    ]
    assert (ranking.importances[0].above, weights[0] > 0.2) == (1.0, True)
    # The rest is the probes'.
    assert 0.5 < sum(i.mean for i in ranking.importances) < 1


def test_where_nothing_has_an_effect_nothing_passes(noise: Samples) -> None:
    assert quick(noise).passing == ()


def test_a_constant_target_has_no_importances(noise: Samples) -> None:
    ranking = quick(replace(noise, measured=((5.0,),) * len(noise)), keep=2)
    assert (
        {0.0}
        == {i.mean for i in ranking.importances}
        == {i.permutation for i in ranking.importances}
    )
    assert ranking.passing == ()


def test_the_seed_decides(noise: Samples) -> None:
    few = noise.rows(range(12))
    assert quick(few, seed=7) == quick(few, seed=7)
    assert quick(few, seed=7) != quick(few, seed=8)


def test_trials_of_one_configuration_are_one_row(noise: Samples) -> None:
    once = noise.rows(range(12))
    twice = replace(once, measured=tuple(trials * 2 for trials in once.measured))
    assert replace(quick(once), trials=24) == quick(twice)


def test_few_trials_are_ranked_too(noise: Samples) -> None:
    assert quick(noise.rows(range(5))).trials == 5


@pytest.mark.parametrize(
    ("count", "keep", "fits", "message"),
    [
        (4, 1, 1, "4 configurations are too few to rank parameters; at least 5"),
        (9, 0, 1, "keep and fits must be at least 1, got 0 and 1"),
        (9, 1, 0, "keep and fits must be at least 1, got 1 and 0"),
    ],
)
def test_says_what_it_can_not_use(
    noise: Samples, count: int, keep: int, fits: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rank(noise.rows(range(count)), screening=SCREENING, keep=keep, seed=1, fits=fits)
