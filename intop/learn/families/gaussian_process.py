"""GP: a Gaussian process. Ours, for the smooth and sparse surfaces that trees see as steps."""

from typing import TYPE_CHECKING, Any

from intop.learn.families.family import Family
from intop.learn.preprocess import ALL_FEATURES, Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial


def _suggest_gp(trial: "Trial", _rows: int) -> Hyperparameters:
    return {"kernel": trial.suggest_categorical("kernel", ("radial", "matern"))}


def _gp(hyperparameters: Hyperparameters, seed: int) -> Any:
    from intop.learn.gaussian_process import GaussianProcess

    return GaussianProcess(kernel=str(hyperparameters["kernel"]), seed=seed)


GP = Family(
    name="GP",
    is_tree=False,
    defaults={**ALL_FEATURES, "kernel": "radial"},
    suggest_model=_suggest_gp,
    regressor=_gp,
    most_rows=1_000,
    growth="their cube",
)
