"""Networks that stop early, as one regressor. Loaded late: scikit-learn takes a second."""

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor

from intop.domain.encoding import Matrix

Vector = NDArray[np.float64]

FOLDS = 5
STRETCHES = (5, 5, 5, 5, 10, 10, 20, 20, 40, 40, 80)
"""Iterations before each look at the held-out rows."""
PATIENCE = 5
"""Looks in a row that may be worse than the best one."""
ENOUGH_ROWS = 100
"""Held-out rows that tell when to stop; where one fold has as many, the others are not needed."""
FEWEST_MEMBERS = 3


class EarlyStoppedNetworks(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Multi-layer networks that stop where cross-validation says; they predict their mean.

    First some learn side by side, each without one fold of the rows, until their error on what
    they were not shown is no longer getting better. Then others learn from all rows, as long as was
    best. So no row is lost to early stopping, and in small tables, where a few rows would say
    little, all of them judge. L-BFGS needs no learning rate. `decay` is the weight of the squared
    weights beside the mean squared error.
    """

    def __init__(
        self,
        layers: Sequence[int] = (32, 32),
        decay: float = 0.008,
        seed: int = 0,
    ) -> None:
        self.layers = layers
        self.decay = decay
        self.seed = seed

    def fit(self, features: Matrix, target: Vector) -> Self:
        """Fits to features (n, f) and a target (n,) of about unit variance, n at least 2."""
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
        """The mean of all networks (n,)."""
        return np.asarray(np.mean([n.predict(features) for n in self.networks_], axis=0))

    @property
    def iterations_(self) -> int:
        """How many each network has learned for."""
        return sum(STRETCHES[: self.looks_])

    def _folds(self, rows: int) -> list[Any]:
        """Training and held-out rows, as many of the folds as judge when to stop."""
        splitter = KFold(min(FOLDS, rows), shuffle=True, random_state=self.seed)
        enough = math.ceil(FOLDS * ENOUGH_ROWS / rows)
        return list(splitter.split(np.empty(rows)))[:enough]

    def _best_look(self, folds: list[Any], features: Matrix, target: Vector) -> int:
        """After how many stretches the squared error over the held-out rows is lowest."""
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
            # Which scikit-learn divides by the number of rows.
            alpha=self.decay * rows,
            solver="lbfgs",
            warm_start=True,
            random_state=self.seed + number,
        )
