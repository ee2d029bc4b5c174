"""Surrogates: six families of models that predict log P99 from features.

Every family has the same interface: a space of hyper-parameters made for 20 to 500 rows, and an
unfitted pipeline. The libraries are imported where they are used, run on one thread (processes
are the parallelism here), print nothing and write no files.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from intop.domain.results import FittedFamily
from intop.domain.space import Matrix
from intop.learn import preprocess
from intop.learn.preprocess import Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial

Vector = NDArray[np.float64]

EARLY_STOPPING_ROWS = 100
"""From here on a network can spare a tenth of the rows to see when to stop."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of model.

    `defaults` are hyper-parameters that do well without any search. `suggest_model` draws those
    of the regressor, given the number of rows; `regressor` makes it from them and a seed.
    """

    name: str
    is_tree: bool
    defaults: Mapping[str, float | int | str | bool]
    suggest_model: "Callable[[Trial, int], Hyperparameters]"
    regressor: Callable[[Hyperparameters, int], Any]

    def suggest(self, trial: "Trial", rows: int) -> Hyperparameters:
        """All hyper-parameters of the pipeline, for a training set of `rows`."""
        return {**preprocess.suggest(trial), **self.suggest_model(trial, rows)}

    def build(self, hyperparameters: Hyperparameters, seed: int) -> Any:
        """An unfitted scikit-learn Pipeline: preprocessing, then the regressor."""
        return preprocess.pipeline(self.regressor(hyperparameters, seed), hyperparameters)


@dataclass(frozen=True)
class Predictor:
    """Fitted models by family. Called, it gives the mean of their predictions of log P99 (n,)."""

    models: Mapping[str, Any]

    def __call__(self, features: Matrix) -> Vector:
        """The mean of all models' log P99 (n,) for features (n, f)."""
        return np.asarray(np.mean(list(self.each(features).values()), axis=0))

    def each(self, features: Matrix) -> dict[str, Vector]:
        """Every model's log P99 (n,), by family; their spread shows how sure the mean is."""
        return {name: predicted(model, features) for name, model in self.models.items()}

    def only(self, family: str) -> "Predictor":
        """The same with the model of one family. Raises ValueError for one that it lacks."""
        if family not in self.models:
            raise ValueError(f"no model of family {family}, only {', '.join(self.models)}")
        return Predictor({family: self.models[family]})


def fit_trees(
    fitted: Sequence[FittedFamily], features: Matrix, log_p99: Vector, seed: int
) -> Predictor:
    """The tree families among `fitted`, each fitted to all rows (n, f), (n,).

    Raises ValueError when no tree family is among them.
    """
    trees = [f for f in fitted if FAMILIES[f.family].is_tree]
    if not trees:
        raise ValueError("no tree family among the fitted ones; the search needs at least one")
    models = {}
    with one_thread():
        for found in trees:
            model = FAMILIES[found.family].build(found.hyperparameters, seed)
            models[found.family] = fit(model, features, log_p99)
    return Predictor(models)


def fit(model: Any, features: Matrix, log_p99: Vector) -> Any:
    """Fits a pipeline without its libraries' warnings, and returns it."""
    with _no_warnings():
        return model.fit(features, log_p99)


def predicted(model: Any, features: Matrix) -> Vector:
    """Log P99 (n,) by a fitted pipeline, without its libraries' warnings."""
    with _no_warnings():
        return np.asarray(model.predict(features), dtype=np.float64).reshape(len(features))


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for linear algebra and OpenMP as long as it lasts.

    Matrices are small here: more threads only wait for each other. Entering costs milliseconds.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


@contextmanager
def _no_warnings() -> Iterator[None]:
    # A network that did not converge shows in the error on held-out rows, which is what counts;
    # features have no names here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _scaled_target(regressor: Any) -> Any:
    """For models that are not indifferent to the scale of what they predict."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(regressor=regressor, transformer=StandardScaler())


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
    return _scaled_target(
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


def _suggest_svr(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "C": trial.suggest_float("C", 0.03, 100.0, log=True),
        "epsilon": trial.suggest_float("epsilon", 0.01, 0.5, log=True),
        "gamma": trial.suggest_float("gamma", 1e-3, 1.0, log=True),
        "kernel": trial.suggest_categorical("kernel", ("rbf", "linear")),
    }


def _svr(hyperparameters: Hyperparameters, _seed: int) -> Any:
    from sklearn.svm import SVR

    return _scaled_target(
        SVR(
            C=float(hyperparameters["C"]),
            epsilon=float(hyperparameters["epsilon"]),
            gamma=float(hyperparameters["gamma"]),
            kernel=str(hyperparameters["kernel"]),
            # A linear kernel with a large C may otherwise go on for minutes.
            max_iter=100_000,
        )
    )


def _suggest_rfr(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "trees": trial.suggest_int("trees", 60, 180, step=40),
        "max_features": trial.suggest_float("max_features", 0.15, 1.0),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 8, log=True),
        "max_depth": trial.suggest_int("max_depth", 3, 12),
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


def _suggest_catboost(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "trees": trial.suggest_int("trees", 60, 240, step=60),
        "learning_rate": trial.suggest_float("learning_rate", 0.03, 0.3, log=True),
        "depth": trial.suggest_int("depth", 2, 6),
        "l2": trial.suggest_float("l2", 0.5, 20.0, log=True),
        "bagging": trial.suggest_float("bagging", 0.0, 1.0),
    }


def _catboost(hyperparameters: Hyperparameters, seed: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        iterations=int(hyperparameters["trees"]),
        learning_rate=float(hyperparameters["learning_rate"]),
        depth=int(hyperparameters["depth"]),
        l2_leaf_reg=float(hyperparameters["l2"]),
        # Weights rows instead of drawing them: a draw from a few rows can come out empty, which
        # CatBoost takes for an error.
        bootstrap_type="Bayesian",
        bagging_temperature=float(hyperparameters["bagging"]),
        border_count=64,
        random_seed=seed,
        thread_count=1,
        logging_level="Silent",
        allow_writing_files=False,
    )


def _suggest_lightgbm(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "trees": trial.suggest_int("trees", 60, 240, step=60),
        "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.3, log=True),
        "leaves": trial.suggest_int("leaves", 3, 24, log=True),
        "min_child_samples": trial.suggest_int("min_child_samples", 2, 16, log=True),
        "l2": trial.suggest_float("l2", 0.01, 10.0, log=True),
        "subsample": trial.suggest_float("subsample", 0.6, 1.0),
        "columns": trial.suggest_float("columns", 0.3, 1.0),
    }


def _lightgbm(hyperparameters: Hyperparameters, seed: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        n_estimators=int(hyperparameters["trees"]),
        learning_rate=float(hyperparameters["learning_rate"]),
        num_leaves=int(hyperparameters["leaves"]),
        min_child_samples=int(hyperparameters["min_child_samples"]),
        reg_lambda=float(hyperparameters["l2"]),
        subsample=float(hyperparameters["subsample"]),
        subsample_freq=1,
        colsample_bytree=float(hyperparameters["columns"]),
        # Its defaults are made for thousands of rows and would leave no place to split.
        min_child_weight=0.0,
        min_data_in_bin=1,
        random_state=seed,
        deterministic=True,
        force_row_wise=True,
        n_jobs=1,
        verbosity=-1,
    )


def _suggest_xgboost(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "trees": trial.suggest_int("trees", 60, 240, step=60),
        "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.3, log=True),
        "depth": trial.suggest_int("depth", 2, 6),
        "min_child_weight": trial.suggest_float("min_child_weight", 1.0, 8.0, log=True),
        "l2": trial.suggest_float("l2", 0.1, 10.0, log=True),
        "subsample": trial.suggest_float("subsample", 0.6, 1.0),
        "columns": trial.suggest_float("columns", 0.3, 1.0),
    }


def _xgboost(hyperparameters: Hyperparameters, seed: int) -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(
        n_estimators=int(hyperparameters["trees"]),
        learning_rate=float(hyperparameters["learning_rate"]),
        max_depth=int(hyperparameters["depth"]),
        min_child_weight=float(hyperparameters["min_child_weight"]),
        reg_lambda=float(hyperparameters["l2"]),
        subsample=float(hyperparameters["subsample"]),
        colsample_bytree=float(hyperparameters["columns"]),
        random_state=seed,
        n_jobs=1,
        verbosity=0,
    )


_ALL = {"kept_percent": 100, "pca_variance": preprocess.NO_PCA}
_HALF = {"kept_percent": 50, "pca_variance": preprocess.NO_PCA}
_BOOSTED = {"trees": 120, "learning_rate": 0.08, "l2": 1.0, "subsample": 0.8}

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="DNN",
            is_tree=False,
            defaults={**_HALF, "layers": 2, "width": 32, "alpha": 0.3, "learning_rate": 0.005},
            suggest_model=_suggest_dnn,
            regressor=_dnn,
        ),
        Family(
            name="SVR",
            is_tree=False,
            defaults={**_HALF, "C": 1.0, "epsilon": 0.1, "gamma": 0.05, "kernel": "rbf"},
            suggest_model=_suggest_svr,
            regressor=_svr,
        ),
        Family(
            name="RFR",
            is_tree=True,
            defaults={
                **_ALL,
                "trees": 100,
                "max_features": 0.4,
                "min_samples_leaf": 2,
                "max_depth": 12,
            },
            suggest_model=_suggest_rfr,
            regressor=_rfr,
        ),
        Family(
            name="CatBoost",
            is_tree=True,
            defaults={
                **_ALL,
                "trees": 120,
                "learning_rate": 0.08,
                "depth": 4,
                "l2": 3.0,
                "bagging": 1.0,
            },
            suggest_model=_suggest_catboost,
            regressor=_catboost,
        ),
        Family(
            name="LightGBM",
            is_tree=True,
            defaults={**_ALL, **_BOOSTED, "leaves": 6, "min_child_samples": 4, "columns": 0.6},
            suggest_model=_suggest_lightgbm,
            regressor=_lightgbm,
        ),
        Family(
            name="XGBoost",
            is_tree=True,
            defaults={**_ALL, **_BOOSTED, "depth": 3, "min_child_weight": 2.0, "columns": 0.6},
            suggest_model=_suggest_xgboost,
            regressor=_xgboost,
        ),
    )
}
"""The families of the method, by name, in the order of its error table."""
