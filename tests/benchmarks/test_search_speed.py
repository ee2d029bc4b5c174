"""The benchmark of search algorithms: its surfaces and its tables."""

import numpy as np
import pytest

from benchmarks import search_speed
from intop.domain.encoding import Matrix
from intop.domain.training import FittedFamily
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples
from intop.learn.surrogate import Predictor, fit_trees


def few_trees(samples: Samples, seed: int) -> Predictor:
    """Two families, quickly fitted."""
    fitted = [
        FittedFamily(
            family=name,
            hyperparameters={**FAMILIES[name].defaults, "trees": 20},
            inner_score=0.0,
        )
        for name in ("RFR", "XGBoost")
    ]
    return fit_trees(fitted, samples, seed)


def test_the_space_has_forty_parameters_and_surfaces_differ() -> None:
    space = search_speed.space()
    assert 40 == len(space.parameters) == len(space.columns)
    features = space.encode(space.decode(np.random.default_rng(1).random((50, 40))))

    def surface(seed: int) -> Matrix:
        return search_speed.surface(features, np.random.default_rng(seed))

    assert np.array_equal(surface(1), surface(1))
    assert np.corrcoef(surface(1), surface(2))[0, 1] < 0.9


def test_both_tables_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_speed, "trees", few_trees)
    monkeypatch.setattr(search_speed, "POPULATION", 10)
    monkeypatch.setattr(search_speed, "GENERATIONS", 3)
    lines = search_speed.compared([search_speed.algorithms(20, seed) for seed in (1, 2)])
    assert [line.split("|")[1].strip() for line in lines[4:]] == list(search_speed.ALGORITHMS)
    assert sum(int(line.split("|")[4]) for line in lines[4:]) >= 2
    printed = "\n".join(search_speed.speed(20, 2))
    assert "share inside the models' predictions" in printed
    assert "| 40 one by one, by the models' predict, scaled from 2 |" in printed
