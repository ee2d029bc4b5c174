"""DNN: a multi-layer perceptron."""

from typing import TYPE_CHECKING, Any

from intop.learn.families.family import Family, scaled_target
from intop.learn.preprocess import HALF_OF_FEATURES, Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial

EARLY_STOPPING_ROWS = 100
"""From here on a network can spare a tenth of the rows to see when to stop."""


def _suggest_dnn(trial: "Trial", rows: int) -> Hyperparameters:
    return {
        "layers": trial.suggest_int("layers", 2, 4),
        "width": trial.suggest_categorical("width", (16, 32, 64)),
        "alpha": trial.suggest_float("alpha", 1e-4, 10.0, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 1e-3, 2e-2, log=True),
        "early_stopping": rows >= EARLY_STOPPING_ROWS,
    }


def _dnn(hyperparameters: Hyperparameters, seed: int) -> Any:
    from sklearn.neural_network import MLPRegressor

    early = bool(hyperparameters["early_stopping"])
    return scaled_target(
        MLPRegressor(
            hidden_layer_sizes=(int(hyperparameters["width"]),) * int(hyperparameters["layers"]),
            alpha=float(hyperparameters["alpha"]),
            learning_rate_init=float(hyperparameters["learning_rate"]),
            early_stopping=early,
            # Without held-out rows, fewer passes are what keeps it from learning the noise.
            max_iter=500 if early else 150,
            n_iter_no_change=20,
            random_state=seed,
        )
    )


DNN = Family(
    name="DNN",
    is_tree=False,
    defaults={**HALF_OF_FEATURES, "layers": 2, "width": 32, "alpha": 0.3, "learning_rate": 0.005},
    suggest_model=_suggest_dnn,
    regressor=_dnn,
)
