"""CatBoost, LightGBM and XGBoost: boosted trees."""

from typing import TYPE_CHECKING, Any

import numpy as np

from intop.domain.encoding import Matrix
from intop.learn.families.family import Family
from intop.learn.preprocess import ALL_FEATURES, Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial


def _suggest_catboost(trial: "Trial", _rows: int) -> Hyperparameters:
    return {
        "trees": trial.suggest_int("trees", 100, 400, step=100),
        "learning_rate": trial.suggest_float("learning_rate", 0.03, 0.3, log=True),
        "depth": trial.suggest_int("depth", 2, 6),
        "l2": trial.suggest_float("l2", 0.1, 20.0, log=True),
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
        "trees": trial.suggest_int("trees", 100, 400, step=100),
        "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.3, log=True),
        "leaves": trial.suggest_int("leaves", 3, 32, log=True),
        "min_child_samples": trial.suggest_int("min_child_samples", 1, 16, log=True),
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
        "trees": trial.suggest_int("trees", 100, 400, step=100),
        "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.3, log=True),
        "depth": trial.suggest_int("depth", 2, 6),
        "min_child_weight": trial.suggest_float("min_child_weight", 0.5, 8.0, log=True),
        "l2": trial.suggest_float("l2", 0.01, 10.0, log=True),
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


def _catboost_alone(model: Any, features: Matrix) -> Matrix:
    return _alone(model.predict(features, thread_count=1))


def _lightgbm_alone(model: Any, features: Matrix) -> Matrix:
    return _alone(model.booster_.predict(features, num_threads=1, validate_features=False))


def _xgboost_alone(model: Any, features: Matrix) -> Matrix:
    return _alone(model.get_booster().inplace_predict(features))


def _alone(predicted: Any) -> Matrix:
    """Trees that correct each other are one member (1, n)."""
    return np.asarray(predicted, dtype=np.float64).reshape(1, -1)


_BOOSTED = {"trees": 400, "learning_rate": 0.08, "l2": 0.1, "subsample": 0.8}

CATBOOST = Family(
    name="CatBoost",
    is_tree=True,
    defaults={
        **ALL_FEATURES,
        "trees": 400,
        "learning_rate": 0.1,
        "depth": 4,
        "l2": 1.0,
        "bagging": 0.5,
    },
    suggest_model=_suggest_catboost,
    regressor=_catboost,
    members=_catboost_alone,
)

LIGHTGBM = Family(
    name="LightGBM",
    is_tree=True,
    defaults={**ALL_FEATURES, **_BOOSTED, "leaves": 4, "min_child_samples": 2, "columns": 0.6},
    suggest_model=_suggest_lightgbm,
    regressor=_lightgbm,
    members=_lightgbm_alone,
)

XGBOOST = Family(
    name="XGBoost",
    is_tree=True,
    defaults={**ALL_FEATURES, **_BOOSTED, "depth": 2, "min_child_weight": 1.0, "columns": 0.6},
    suggest_model=_suggest_xgboost,
    regressor=_xgboost,
    members=_xgboost_alone,
)
