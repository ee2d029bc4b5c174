import numpy as np
import pytest

from intop.domain.training import FittedFamily
from intop.learn.families import FAMILIES
from intop.learn.held_out import held_out
from samples import table

FITTED = [
    FittedFamily(
        family=name,
        hyperparameters={**FAMILIES[name].defaults, "trees": 20},
        inner_score=0.0,
    )
    for name in ("RFR", "CatBoost")
]


def test_rows_are_told_by_models_that_lack_them() -> None:
    """A row that is unlike all others can't be known without it."""
    values = np.random.default_rng(1).random((24, 2))
    target = np.where(values[:, 0] > 0.5, 2.0, 0.0)
    target[5] = 9.0
    said: list[str] = []
    guesses = held_out(FITTED, table(values, target), folds=3, seed=1, progress=said.append)
    assert guesses[5] < 4
    others = np.delete(np.arange(24), 5)
    assert np.mean(np.abs(guesses - target)[others]) < 1
    assert ["fold 1", "fold 2", "fold 3"] == said


def test_a_target_that_never_varies_in_a_fold_is_no_obstacle() -> None:
    values = np.random.default_rng(1).random((12, 2))
    target = np.ones(12)
    target[3] = 2.0
    guesses = held_out(FITTED, table(values, target), folds=12, seed=1)
    assert guesses[3] == pytest.approx(1.0)
    assert np.all(np.isfinite(guesses))
