from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from intop.domain.results import Ranking
from intop.domain.space import Matrix, Space
from intop.learn.design import latin_hypercube
from intop.learn.samples import Samples
from intop.learn.screening import ERROR_RATE, FEW, FEWEST_FITS, rank


def measured(space: Space, count: int, log_p99: Callable[[Matrix], Matrix]) -> Samples:
    """Configurations that fill the space, measured once each with a noise of 20 %."""
    values = space.values(latin_hypercube(space, count, seed=11))
    noise = np.random.default_rng(12).normal(0, 0.2, count)
    p99 = np.exp(log_p99(space.encode(values)) + noise).tolist()
    return Samples(
        variables=space.variables, values=values, measured=tuple((value,) for value in p99)
    )


@pytest.fixture
def samples(space: Space, log_p99: Callable[[Matrix], Matrix]) -> Samples:
    return measured(space, 80, log_p99)


@pytest.fixture
def noise(space: Space) -> Samples:
    """Nothing has an effect."""
    return measured(space, 40, lambda features: np.zeros(len(features)))


def quick(samples: Samples, *, keep: int = 9, seed: int = 1) -> Ranking:
    return rank(samples, keep=keep, seed=seed, fits=FEWEST_FITS)


def test_what_was_planted_passes_and_nothing_else(
    samples: Samples, planted: tuple[str, ...]
) -> None:
    ranking = quick(samples)
    assert set(ranking.chosen) == set(ranking.passing) == set(planted)
    assert (80, 9, ERROR_RATE) == (ranking.trials, ranking.keep, ranking.error_rate)


def test_importances_fall_and_leave_the_rest_to_the_probes(samples: Samples, space: Space) -> None:
    ranking = quick(samples)
    means = [importance.mean for importance in ranking.importances]
    assert {i.key for i in ranking.importances} == {p.key for p in space.parameters}
    assert means == sorted(means, reverse=True)
    assert 0.5 < sum(means) < 1
    assert ranking.probe_level is not None
    for one in ranking.importances:
        assert one.permutation is not None
        assert one.passes == (one.mean > ranking.probe_level and one.permutation > 0)
    strongest = ranking.importances[0]
    assert 1.0 == strongest.above
    assert strongest.permutation is not None
    assert strongest.permutation > 0.2


def test_no_more_are_chosen_than_may_be_kept(samples: Samples) -> None:
    everything, two = quick(samples), quick(samples, keep=2)
    assert two.chosen == everything.chosen[:2]
    assert two.passing == everything.passing


def test_where_nothing_passes_a_few_are_chosen_by_rank(noise: Samples) -> None:
    ranking = quick(noise)
    assert () == ranking.passing
    assert tuple(i.key for i in ranking.importances[:FEW]) == ranking.chosen
    assert 2 == len(quick(noise, keep=2).chosen)


def test_a_constant_target_has_no_importances(samples: Samples, space: Space) -> None:
    ranking = quick(replace(samples, measured=((5.0,),) * len(samples)))
    assert {0.0} == {i.mean for i in ranking.importances}
    assert () == ranking.passing
    assert tuple(p.key for p in space.parameters[:FEW]) == ranking.chosen


def test_the_seed_decides(noise: Samples) -> None:
    assert quick(noise, seed=7) == quick(noise, seed=7)
    assert quick(noise, seed=7) != quick(noise, seed=8)


def test_trials_of_one_configuration_are_one_row(noise: Samples) -> None:
    twice = replace(noise, measured=tuple(trials * 2 for trials in noise.measured))
    assert replace(quick(noise), trials=80) == quick(twice)


def test_few_trials_are_ranked_too(noise: Samples) -> None:
    assert 5 == quick(noise.rows(range(5))).trials


@pytest.mark.parametrize(
    ("count", "keep", "fits", "message"),
    [
        (4, 1, 40, "4 configurations are too few to rank parameters; at least 5"),
        (9, 0, 40, "keep must be at least 1, and fits 19, got 0 and 40"),
        (9, 1, 18, "keep must be at least 1, and fits 19, got 1 and 18"),
    ],
)
def test_says_what_it_can_not_use(
    noise: Samples, count: int, keep: int, fits: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        rank(noise.rows(range(count)), keep=keep, seed=1, fits=fits)
