"""Families of models that predict the log target from values of a configuration.

Every family has the same interface: hyper-parameters made for 20 to 1,000 rows, and an unfitted
scikit-learn pipeline of encoding, normalisation, feature selection, PCA and a regressor. All of
these are fitted on training rows only, and their settings are hyper-parameters like any others.
The libraries are imported where they are used, run on one thread (processes are the parallelism
here), print nothing and write no files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from intop.deferred import Deferred
from intop.domain.encoding import Variable

if TYPE_CHECKING:
    import numpy as np
    from optuna import Trial

    from intop.domain.encoding import Matrix
else:
    np = Deferred("numpy")

Value = float | int | str | bool
Hyperparameters = dict[str, Value]

NO_PCA = 0.0
ALL_FEATURES: Hyperparameters = {"kept_percent": 100, "pca_variance": NO_PCA}


@dataclass(frozen=True)
class Setting:
    """A hyper-parameter of a regressor: a whole number, a number, or one of some choices."""

    name: str
    """Its name in results."""
    argument: str
    """The library's name for it."""
    default: Value
    """A value that does well without any search."""
    low: float = 0.0
    high: float = 0.0
    step: int = 1
    """The distance between whole numbers that are tried."""
    log: bool = False
    """Whether the search is on a logarithmic scale."""
    choices: tuple[str | int, ...] = ()

    def suggest(self, trial: "Trial") -> Value:
        """Return the value that Optuna wants tried."""
        if self.choices:
            return cast(Value, trial.suggest_categorical(self.name, self.choices))
        if isinstance(self.default, int):
            low, high = int(self.low), int(self.high)
            return trial.suggest_int(self.name, low, high, step=self.step, log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class FitTime:
    """Seconds of a processor for one fit on a small table: measured with 30 to 400 rows of 10 to
    30 features, on an otherwise idle machine.
    """

    base_s: float
    row_s: float
    feature_s: float

    def of(self, rows: float, features: float) -> float:
        """Return the seconds of a fit."""
        return self.base_s + self.row_s * rows + self.feature_s * features


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of model."""

    name: str
    is_tree: bool
    settings: tuple[Setting, ...]
    """The regressor's hyper-parameters, in the order in which they are suggested."""
    regressor: Callable[[dict[str, Any], int], Any]
    """Makes an unfitted regressor of the settings' arguments and a seed."""
    time: FitTime
    """By which a training is cut to the time that it may take."""
    most_rows: int | None = None
    """Rows that it learns from at most, where its time grows faster than n·log n."""
    growth: str = ""
    """The quantity that its time grows with then, such as: their cube."""
    members: "Callable[[Any, Matrix], Matrix] | None" = None
    """Predictions (members, n) of a fitted regressor for features (n, f), whose mean is its own.

    They spare the checks of scikit-learn, which cost more than a population of trees.
    """

    @property
    def defaults(self) -> Hyperparameters:
        """Hyper-parameters that do well without any search."""
        return ALL_FEATURES | {setting.name: setting.default for setting in self.settings}

    def suggest(self, trial: "Trial") -> Hyperparameters:
        """Return the hyper-parameters that Optuna wants tried.

        `kept_percent` of the features; `pca_variance`, the share that PCA keeps (0: no PCA).
        """
        # A tree splits by one feature at a time, and PCA puts an option into many of them.
        shares = (NO_PCA,) if self.is_tree else (NO_PCA, 0.8, 0.95)
        chosen: Hyperparameters = {
            "kept_percent": trial.suggest_categorical("kept_percent", (25, 50, 75, 100)),
            "pca_variance": trial.suggest_categorical("pca_variance", shares),
        }
        return chosen | {setting.name: setting.suggest(trial) for setting in self.settings}

    def build(
        self, variables: Sequence[Variable], hyperparameters: Mapping[str, Value], seed: int
    ) -> Any:
        """Return an unfitted Pipeline from values (n, variables) to the log target (n,)."""
        from intop.learn.estimators import PartOfRows, pipeline

        arguments = {s.argument: hyperparameters[s.name] for s in self.settings}
        regressor = self.regressor(arguments, seed)
        if self.most_rows is not None:
            regressor = PartOfRows(regressor, self.most_rows, seed)
        percent = int(hyperparameters["kept_percent"])
        return pipeline(variables, regressor, percent, float(hyperparameters["pca_variance"]))

    def limit(self, rows: int) -> str | None:
        """Return a line for the user where it would not learn from all of so many rows."""
        if self.most_rows is None or rows <= self.most_rows:
            return None
        return (
            f"{self.name} learns from {self.most_rows:,} random configurations of {rows:,}: "
            f"its time grows with {self.growth}"
        )


# -- networks, vectors and forests ---------------------------------------------------------------


def _scaled_target(regressor: Any) -> Any:
    """Wrap a model that is not indifferent to the scale of what it predicts."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(regressor=regressor, transformer=StandardScaler())


def _networks(arguments: dict[str, Any], seed: int) -> Any:
    from intop.learn.estimators import EarlyStoppedNetworks

    layers = (arguments["width"],) * arguments["layers"]
    return _scaled_target(EarlyStoppedNetworks(layers, arguments["decay"], seed))


def _support_vectors(arguments: dict[str, Any], _seed: int) -> Any:
    from sklearn.svm import SVR

    # A linear kernel with a large C may otherwise go on for minutes.
    return _scaled_target(SVR(**arguments, max_iter=100_000))


def _forest(arguments: dict[str, Any], seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(**arguments, n_jobs=1, random_state=seed)


def _trees(forest: Any, features: "Matrix") -> "Matrix":
    """Return the prediction of each tree (trees, n)."""
    narrow = np.ascontiguousarray(features, dtype=np.float32)
    return np.array([tree.tree_.predict(narrow)[:, 0] for tree in forest.estimators_])


def _blend(arguments: dict[str, Any], seed: int) -> Any:
    from intop.learn.estimators import Blend

    return Blend(**arguments, seed=seed)


# scikit-learn is a dependency anyway; other libraries of networks would be large downloads.
DNN = Family(
    name="DNN",
    is_tree=False,
    settings=(
        Setting("layers", "layers", 2, 2, 3),
        Setting("width", "width", 32, choices=(16, 32)),
        Setting("decay", "decay", 0.008, 1e-3, 0.1, log=True),
    ),
    regressor=_networks,
    time=FitTime(0.2, 0.0, 0.0),
)

SVR_FAMILY = Family(
    name="SVR",
    is_tree=False,
    settings=(
        Setting("C", "C", 30.0, 0.03, 3000.0, log=True),
        Setting("epsilon", "epsilon", 0.01, 0.001, 0.5, log=True),
        Setting("gamma", "gamma", 0.03, 1e-3, 1.0, log=True),
        Setting("kernel", "kernel", "rbf", choices=("rbf", "linear")),
    ),
    regressor=_support_vectors,
    time=FitTime(0.003, 0.00003, 0.0),
    most_rows=5_000,
    growth="their square at least",
)

RFR = Family(
    name="RFR",
    is_tree=True,
    settings=(
        Setting("trees", "n_estimators", 100, 60, 180, step=40),
        Setting("max_features", "max_features", 1.0, 0.3, 1.0),
        Setting("min_samples_leaf", "min_samples_leaf", 2, 1, 8, log=True),
        Setting("max_depth", "max_depth", 20, 4, 20),
    ),
    regressor=_forest,
    time=FitTime(0.05, 0.0003, 0.0),
    members=_trees,
)

BLEND = Family(
    name="Blend",
    is_tree=False,
    settings=(
        Setting("trees", "trees", 150, 60, 180, step=30),
        Setting("min_samples_leaf", "min_samples_leaf", 2, 1, 8, log=True),
    ),
    regressor=_blend,
    time=FitTime(0.08, 0.0025, 0.0),
    most_rows=1_000,
    growth="their cube",
)


# -- boosted trees -------------------------------------------------------------------------------


def _catboost(arguments: dict[str, Any], seed: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        **arguments,
        # Weights rows instead of drawing them: a draw from a few rows can come out empty, which
        # CatBoost takes for an error.
        bootstrap_type="Bayesian",
        border_count=64,
        random_seed=seed,
        thread_count=1,
        logging_level="Silent",
        allow_writing_files=False,
    )


def _lightgbm(arguments: dict[str, Any], seed: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        **arguments,
        subsample_freq=1,
        # Its defaults are made for thousands of rows and would leave no place to split.
        min_child_weight=0.0,
        min_data_in_bin=1,
        random_state=seed,
        deterministic=True,
        force_row_wise=True,
        n_jobs=1,
        verbosity=-1,
    )


def _xgboost(arguments: dict[str, Any], seed: int) -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(**arguments, random_state=seed, n_jobs=1, verbosity=0)


def _catboost_members(model: Any, features: "Matrix") -> "Matrix":
    return _single(model.predict(features, thread_count=1))


def _lightgbm_members(model: Any, features: "Matrix") -> "Matrix":
    return _single(model.booster_.predict(features, num_threads=1, validate_features=False))


def _xgboost_members(model: Any, features: "Matrix") -> "Matrix":
    return _single(model.get_booster().inplace_predict(features))


def _single(predicted: Any) -> "Matrix":
    """Return predictions (1, n): trees that correct each other are one member."""
    return np.asarray(predicted, dtype=np.float64).reshape(1, -1)


CATBOOST = Family(
    name="CatBoost",
    is_tree=True,
    settings=(
        Setting("trees", "iterations", 400, 100, 400, step=100),
        Setting("learning_rate", "learning_rate", 0.1, 0.03, 0.3, log=True),
        Setting("depth", "depth", 4, 2, 6),
        Setting("l2", "l2_leaf_reg", 1.0, 0.1, 20.0, log=True),
        Setting("bagging", "bagging_temperature", 0.5, 0.0, 1.0),
    ),
    regressor=_catboost,
    time=FitTime(0.02, 0.0002, 0.003),
    members=_catboost_members,
)

LIGHTGBM = Family(
    name="LightGBM",
    is_tree=True,
    settings=(
        Setting("trees", "n_estimators", 400, 100, 400, step=100),
        Setting("learning_rate", "learning_rate", 0.08, 0.02, 0.3, log=True),
        Setting("leaves", "num_leaves", 4, 3, 32, log=True),
        Setting("min_child_samples", "min_child_samples", 2, 1, 16, log=True),
        Setting("l2", "reg_lambda", 0.1, 0.01, 10.0, log=True),
        Setting("subsample", "subsample", 0.8, 0.6, 1.0),
        Setting("columns", "colsample_bytree", 0.6, 0.3, 1.0),
    ),
    regressor=_lightgbm,
    time=FitTime(0.01, 0.0001, 0.0008),
    members=_lightgbm_members,
)

XGBOOST = Family(
    name="XGBoost",
    is_tree=True,
    settings=(
        Setting("trees", "n_estimators", 400, 100, 400, step=100),
        Setting("learning_rate", "learning_rate", 0.08, 0.02, 0.3, log=True),
        Setting("depth", "max_depth", 2, 2, 6),
        Setting("min_child_weight", "min_child_weight", 1.0, 0.5, 8.0, log=True),
        Setting("l2", "reg_lambda", 0.1, 0.01, 10.0, log=True),
        Setting("subsample", "subsample", 0.8, 0.6, 1.0),
        Setting("columns", "colsample_bytree", 0.6, 0.3, 1.0),
    ),
    regressor=_xgboost,
    time=FitTime(0.01, 0.0001, 0.001),
    members=_xgboost_members,
)

INTOP_FAMILIES = (DNN, SVR_FAMILY, RFR, CATBOOST, LIGHTGBM, XGBOOST)
"""The families of the method, in the order of its error table."""

FAMILIES: Mapping[str, Family] = {f.name: f for f in (*INTOP_FAMILIES, BLEND)}
"""All families by name. Blend is ours, for small tables with interactions: better than the six
there (benchmarks/results/models.md)."""
