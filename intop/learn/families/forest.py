"""RFR: a random forest."""

from typing import TYPE_CHECKING, Any

import numpy as np

from intop.domain.encoding import Matrix
from intop.learn.families.family import Family
from intop.learn.preprocess import ALL_FEATURES, Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial


def _suggest_rfr(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "trees": trial.suggest_int("trees", 60, 180, step=40),
        "max_features": trial.suggest_float("max_features", 0.3, 1.0),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 8, log=True),
        "max_depth": trial.suggest_int("max_depth", 4, 20),
    }


def _rfr(hyperparameters: Hyperparameters, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(
        n_estimators=int(hyperparameters["trees"]),
        max_features=float(hyperparameters["max_features"]),
        min_samples_leaf=int(hyperparameters["min_samples_leaf"]),
        max_depth=int(hyperparameters["max_depth"]),
        n_jobs=1,
        random_state=seed,
    )


def _trees(forest: Any, features: Matrix) -> Matrix:
    """What each of the trees says (trees, n)."""
    narrow = np.ascontiguousarray(features, dtype=np.float32)
    return np.array([tree.tree_.predict(narrow)[:, 0] for tree in forest.estimators_])


RFR = Family(
    name="RFR",
    is_tree=True,
    defaults={
        **ALL_FEATURES,
        "trees": 100,
        "max_features": 1.0,
        "min_samples_leaf": 2,
        "max_depth": 20,
    },
    suggest_model=_suggest_rfr,
    regressor=_rfr,
    members=_trees,
)
