"""SVR: support vector regression."""

from typing import TYPE_CHECKING, Any

from intop.learn.families.family import Family, scaled_target
from intop.learn.preprocess import ALL_FEATURES, Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial


def _suggest_svr(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "C": trial.suggest_float("C", 0.03, 3000.0, log=True),
        "epsilon": trial.suggest_float("epsilon", 0.001, 0.5, log=True),
        "gamma": trial.suggest_float("gamma", 1e-3, 1.0, log=True),
        "kernel": trial.suggest_categorical("kernel", ("rbf", "linear")),
    }


def _svr(hyperparameters: Hyperparameters, _seed: int) -> Any:
    from sklearn.svm import SVR

    return scaled_target(
        SVR(
            C=float(hyperparameters["C"]),
            epsilon=float(hyperparameters["epsilon"]),
            gamma=float(hyperparameters["gamma"]),
            kernel=str(hyperparameters["kernel"]),
            # A linear kernel with a large C may otherwise go on for minutes.
            max_iter=100_000,
        )
    )


SVR_FAMILY = Family(
    name="SVR",
    is_tree=False,
    defaults={**ALL_FEATURES, "C": 30.0, "epsilon": 0.01, "gamma": 0.03, "kernel": "rbf"},
    suggest_model=_suggest_svr,
    regressor=_svr,
    most_rows=5_000,
    growth="their square at least",
)
