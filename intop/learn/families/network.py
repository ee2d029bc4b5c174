"""DNN: multi-layer perceptrons that stop early.

They use scikit-learn, which is a dependency anyway; other libraries would be large downloads.
"""

from typing import TYPE_CHECKING, Any

from intop.learn.families.family import Family, scaled_target
from intop.learn.preprocess import ALL_FEATURES, Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial


def _suggest_dnn(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "layers": trial.suggest_int("layers", 2, 3),
        "width": trial.suggest_categorical("width", (16, 32)),
        "decay": trial.suggest_float("decay", 1e-3, 0.1, log=True),
    }


def _dnn(hyperparameters: Hyperparameters, seed: int) -> Any:
    from intop.learn.families.early_stopping import EarlyStoppedNetworks

    return scaled_target(
        EarlyStoppedNetworks(
            layers=(int(hyperparameters["width"]),) * int(hyperparameters["layers"]),
            decay=float(hyperparameters["decay"]),
            seed=seed,
        )
    )


DNN = Family(
    name="DNN",
    is_tree=False,
    defaults={**ALL_FEATURES, "layers": 2, "width": 32, "decay": 0.008},
    suggest_model=_suggest_dnn,
    regressor=_dnn,
)
