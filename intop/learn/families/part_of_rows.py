"""A regressor that learns from a part of many rows. Loaded late: scikit-learn takes a second."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone

from intop.domain.encoding import Matrix

Vector = NDArray[np.float64]


class PartOfRows(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits `regressor` to `most` of the rows, drawn at random, or to all where there are fewer.

    For what takes the square of the rows or more: of some thousands, the last ones hardly change
    what it has learned.
    """

    def __init__(self, regressor: Any, most: int, seed: int) -> None:
        self.regressor = regressor
        self.most = most
        self.seed = seed

    def fit(self, features: Matrix, target: Vector) -> Self:
        """Fits to features (n, f) and a target (n,)."""
        self.n_features_in_ = features.shape[1]
        rows = np.arange(len(target))
        if len(rows) > self.most:
            rows = np.random.default_rng(self.seed).choice(rows, self.most, replace=False)
        self.regressor_ = clone(self.regressor).fit(features[rows], target[rows])
        return self

    def predict(self, features: Matrix) -> Vector:
        """What the regressor says (n,)."""
        return np.asarray(self.regressor_.predict(features))
