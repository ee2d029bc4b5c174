"""Estimators with scikit-learn's interface. Loaded late: scikit-learn takes a second."""

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.feature_selection import SelectPercentile, f_regression
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from intop.domain.encoding import Matrix, Variable, encode
from intop.learn.accuracy import weights_by_error
from intop.learn.gaussian_process import GaussianProcess
from intop.learn.samples import Vector

FOLDS = 5
STRETCHES = (5, 5, 5, 5, 10, 10, 20, 20, 40, 40, 80)
"""Iterations of a network before each look at the held-out rows."""
PATIENCE = 3
"""Looks in a row that may be worse than the best one."""
ENOUGH_ROWS = 100
"""Held-out rows that tell when to stop; where one fold has as many, the others are not needed."""
FEWEST_MEMBERS = 3
STEEPNESS = 32
"""The steepness of weights in a blend: a tenth more error means a twentieth of the weight. Where a
model is worse, its errors are mostly those of the other, and more. So a mean gains nothing."""
GUARD = 5
"""The errors of a process and of trees, together, beyond which one of them is in a wrong mode."""
APART = 1.0
"""The least distance of two modes, in standard deviations of the target. Where errors are small,
trees alone are farther from the truth at the edges than GUARD times both errors."""


# -- before every regressor ----------------------------------------------------------------------


def pipeline(
    variables: Sequence[Variable], regressor: Any, kept_percent: int, pca_variance: float
) -> Any:
    """Return an unfitted Pipeline from values (n, variables) that ends in `regressor`.

    It keeps `kept_percent` of the features. PCA keeps `pca_variance` of their variance, 0: no PCA.
    """
    return Pipeline(
        [
            ("encode", Encoder(variables)),
            ("normalise", StandardScaler()),
            ("select", SelectPercentile(relevance, percentile=kept_percent)),
            ("condense", PCA(pca_variance, svd_solver="full") if pca_variance else "passthrough"),
            ("model", regressor),
        ]
    )


def relevance(features: Matrix, target: Vector) -> Vector:
    """Return how strongly each feature alone acts: the F value of a line or of a bow.

    A line alone would drop a parameter whose best value lies in the middle of its range. A
    constant feature has 0.
    """
    bowed = (features - features.mean(axis=0)) ** 2
    line, _ = f_regression(features, target)
    bow, _ = f_regression(bowed, target)
    return np.asarray(np.maximum(line, bow), dtype=np.float64)


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Values (n, variables) to features (n, f), as `encode`. It has nothing to learn."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables

    def fit(self, values: Matrix, _target: object = None) -> Self:
        """Set what scikit-learn asks of a fitted step."""
        self.n_features_in_ = values.shape[1]
        return self

    def transform(self, values: Matrix) -> Matrix:
        """Return features (n, f). Raises ValueError for another number of columns."""
        if values.shape[1] != len(self.variables):
            raise ValueError(f"{values.shape[1]} columns for {len(self.variables)} variables")
        return encode(self.variables, values)


# -- regressors ----------------------------------------------------------------------------------


class PartOfRows(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits `regressor` to at most `most` of the rows, drawn at random.

    For what takes the square of the rows or more: of some thousands, the last ones hardly change
    what it has learned.
    """

    def __init__(self, regressor: Any, most: int, seed: int) -> None:
        self.regressor = regressor
        self.most = most
        self.seed = seed

    def fit(self, features: Matrix, target: Vector) -> Self:
        """Fit to features (n, f) and a target (n,)."""
        self.n_features_in_ = features.shape[1]
        rows = np.arange(len(target))
        if len(rows) > self.most:
            rows = np.random.default_rng(self.seed).choice(rows, self.most, replace=False)
        self.regressor_ = clone(self.regressor).fit(features[rows], target[rows])
        return self

    def predict(self, features: Matrix) -> Vector:
        """Return the regressor's predictions (n,)."""
        return np.asarray(self.regressor_.predict(features))


class EarlyStoppedNetworks(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Multi-layer networks that stop where cross-validation says; they predict their mean.

    First some learn side by side, each without one fold of the rows, until their error on what
    they were not shown is no longer getting better. Then others learn from all rows, as long as was
    best. So no row is lost to early stopping, and in small tables, where a few rows would say
    little, all of them judge. L-BFGS needs no learning rate. `decay` is the weight of the squared
    weights beside the mean squared error.
    """

    def __init__(
        self, layers: Sequence[int] = (32, 32), decay: float = 0.008, seed: int = 0
    ) -> None:
        self.layers = layers
        self.decay = decay
        self.seed = seed

    def fit(self, features: Matrix, target: Vector) -> Self:
        """Fit to features (n, f) and a target (n,) of about unit variance, n at least 2."""
        self.n_features_in_ = features.shape[1]
        folds = self._folds(len(target))
        self.looks_ = self._best_look(folds, features, target)
        members = max(FEWEST_MEMBERS, len(folds))
        self.networks_ = [self._network(FOLDS + n, len(target)) for n in range(members)]
        for network in self.networks_:
            for iterations in STRETCHES[: self.looks_]:
                network.set_params(max_iter=iterations).fit(features, target)
        return self

    def predict(self, features: Matrix) -> Vector:
        """Return the mean of all networks (n,)."""
        return np.asarray(np.mean([n.predict(features) for n in self.networks_], axis=0))

    def _folds(self, rows: int) -> list[Any]:
        """Return training and held-out rows, as many of the folds as judge when to stop."""
        splitter = KFold(min(FOLDS, rows), shuffle=True, random_state=self.seed)
        enough = math.ceil(FOLDS * ENOUGH_ROWS / rows)
        return list(splitter.split(np.empty(rows)))[:enough]

    def _best_look(self, folds: list[Any], features: Matrix, target: Vector) -> int:
        """Return after how many stretches the squared error over the held-out rows is lowest."""
        networks = [self._network(n, len(rows)) for n, (rows, _) in enumerate(folds)]
        lowest, best = np.inf, 1
        for look, iterations in enumerate(STRETCHES, start=1):
            error = 0.0
            for network, (training, held_out) in zip(networks, folds, strict=True):
                network.set_params(max_iter=iterations).fit(features[training], target[training])
                misses = network.predict(features[held_out]) - target[held_out]
                error += float(misses @ misses)
            if error < lowest:
                lowest, best = error, look
            elif look - best >= PATIENCE:
                break
        return best

    def _network(self, number: int, rows: int) -> Any:
        return MLPRegressor(
            hidden_layer_sizes=tuple(self.layers),
            alpha=self.decay * rows,  # scikit-learn divides it by the number of rows
            solver="lbfgs",
            warm_start=True,
            random_state=self.seed + number,
        )


class Blend(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The weighted mean of a Gaussian process and a random forest, with a guard.

    They are wrong in different ways: one smooths, the other averages neighbours. Weights are by
    the mean absolute error on rows that are left out, which both have without being fitted again.
    Where the target has modes, a process may be sure of the wrong one. So where extremely
    randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006, 3-42) are farther from
    it than GUARD times both errors, and than APART, the median of all three counts.
    """

    def __init__(self, trees: int = 150, min_samples_leaf: int = 2, seed: int = 0) -> None:
        self.trees = trees
        self.min_samples_leaf = min_samples_leaf
        self.seed = seed

    def fit(self, features: Matrix, target: Vector) -> Self:
        """Fit to features (n, f) and a target (n,) of about unit variance."""
        self.n_features_in_ = features.shape[1]
        process = GaussianProcess(self.seed).fit(features, target)
        forest = RandomForestRegressor(
            n_estimators=self.trees,
            min_samples_leaf=self.min_samples_leaf,
            oob_score=True,
            n_jobs=1,
            random_state=self.seed,
        ).fit(features, target)
        count, known = len(target), len(process.mode_)
        # The process chose so many settings with the rows that it then left out (Akaike's final
        # prediction error).
        too_good = np.sqrt((count + known) / max(count - known, 1))
        errors = [
            too_good * np.abs(process.left_out_).mean(),
            np.abs(forest.oob_prediction_ - target).mean(),
        ]
        self.models_ = (process, forest)
        self.weights_ = weights_by_error(errors, STEEPNESS)
        self.guard_ = ExtraTreesRegressor(
            n_estimators=self.trees, n_jobs=1, random_state=self.seed
        ).fit(features, target)
        self.reach_ = max(GUARD * float(np.sum(errors)), APART)
        return self

    def predict(self, features: Matrix) -> Vector:
        """Return the weighted mean (n,), or the median of all three, for features (n, f)."""
        process, forest = (model.predict(features) for model in self.models_)
        guard = self.guard_.predict(features)
        mean = self.weights_ @ np.array([process, forest])
        median = np.median([process, forest, guard], axis=0)
        is_doubtful = np.abs(process - guard) > self.reach_
        return np.asarray(np.where(is_doubtful, median, mean), dtype=np.float64)
