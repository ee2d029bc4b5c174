"""A blend of a Gaussian process and a random forest. Loaded late: scikit-learn takes a second."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor

from intop.domain.encoding import Matrix
from intop.learn.gaussian_process import GaussianProcess

Vector = NDArray[np.float64]

STEEPNESS = 32
"""A tenth more error than the other one: a twentieth of its weight. Where one is worse, its errors
are mostly those of the other and more of them, so a mean gains nothing."""


class Blend(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The weighted mean of a Gaussian process and a random forest.

    They are wrong in different ways: one smooths, the other averages neighbours. Weights are by
    the mean absolute error on rows that are left out, which both have without being fitted again.
    """

    def __init__(self, trees: int = 150, min_samples_leaf: int = 2, seed: int = 0) -> None:
        self.trees = trees
        self.min_samples_leaf = min_samples_leaf
        self.seed = seed

    def fit(self, features: Matrix, target: Vector) -> Self:
        """Learns features (n, f) and target (n,)."""
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
        # What is met exactly has an error of 0, as has what is constant.
        floored = np.maximum(errors, 1e-12)
        weights = (floored / floored.min()) ** -STEEPNESS
        self.models_ = (process, forest)
        self.weights_ = weights / weights.sum()
        return self

    def predict(self, features: Matrix) -> Vector:
        """The weighted mean of both predictions (n,) for features (n, f)."""
        both = [model.predict(features) for model in self.models_]
        return np.asarray(self.weights_ @ np.array(both), dtype=np.float64)
