"""Blend: a Gaussian process and a random forest. Ours, for small tables with interactions."""

from typing import TYPE_CHECKING, Any

from intop.learn.families.family import Family
from intop.learn.preprocess import ALL_FEATURES, Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial


def _suggest_blend(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "trees": trial.suggest_int("trees", 60, 180, step=30),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 8, log=True),
    }


def _blend(hyperparameters: Hyperparameters, seed: int) -> Any:
    from intop.learn.blend import Blend

    return Blend(
        trees=int(hyperparameters["trees"]),
        min_samples_leaf=int(hyperparameters["min_samples_leaf"]),
        seed=seed,
    )


BLEND = Family(
    name="Blend",
    is_tree=False,
    defaults={**ALL_FEATURES, "trees": 150, "min_samples_leaf": 2},
    suggest_model=_suggest_blend,
    regressor=_blend,
    most_rows=1_000,
    growth="their cube",
)
