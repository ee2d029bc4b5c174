"""A Gaussian process, as an estimator of scikit-learn's. Loaded late: both libraries take a second.

scikit-learn's own needs (rows, rows, features) numbers for one gradient, and can't be told that
most options matter little. Both count here: tables of some tens of rows and options.
"""

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, RegressorMixin

from intop.domain.encoding import Matrix

Vector = NDArray[np.float64]
Correlation = Callable[[Matrix], tuple[Matrix, Matrix]]
"""Squared distances to correlations and their slopes by the squared distance."""

MODE_ROWS = 250
"""Length scales and noise are sought on so many rows: each step costs their cube."""
MOST_ROWS = 1000
"""Of more rows a sample is learned from: the last step costs their cube, memory their square."""
MOST_SCALES = 300
"""Of more features, all share one scale."""
BLOCK = 2000
"""Rows that are predicted at once: correlations with all that was learned take memory."""
JITTER = 1e-8
"""Of the signal's variance, on the diagonal: what keeps rows that are alike from being singular."""

# Logarithms, for features and a target of standard deviation 1: mean, standard deviation, lower
# and upper end of what is believed. Weak on purpose: long scales, so that low orders of
# interactions come first, and a noise of anything from a thousandth to all of it. Distances grow
# by the square root of how many features there are, and so do scales.
SCALE = (np.log(2.0), 1.5, np.log(0.1), np.log(3e3))
SIGNAL = (1.0, 2.5, np.log(1e-2), np.log(1e4))
NOISE = (np.log(1e-3), 3.0, np.log(1e-7), np.log(2.0))
STARTS = ((np.log(1.2), 1.0, np.log(1e-2)), (np.log(4.0), 3.0, np.log(1e-4)))
"""Where the mode is sought from: scales by that square root, the signal and the noise."""


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression by a Gaussian process with a length scale for each feature, and noise.

    On on/off options, the radial kernel gives every interaction the product of its options'
    weights. Scales, signal and noise are at the mode of their posterior (Rasmussen and Williams,
    Gaussian Processes for Machine Learning, 2006, equations 2.25, 4.17 and 5.9). It expects
    features that are normalised.
    """

    def __init__(self, kernel: str = "radial", seed: int = 0) -> None:
        self.kernel = kernel
        self.seed = seed

    def fit(self, features: Matrix, target: Vector) -> Self:
        """Learns features (n, f) and target (n,). Raises KeyError for a kernel that isn't there."""
        self.n_features_in_ = features.shape[1]
        order = np.random.default_rng(self.seed).permutation(len(features))
        rows = order[:MOST_ROWS]
        self.mean_ = float(np.mean(target[rows]))
        # A target that is constant has nothing to scale.
        self.spread_ = float(np.std(target[rows])) or 1.0
        wanted = (target - self.mean_) / self.spread_
        sought = order[:MODE_ROWS]
        correlation = KERNELS[self.kernel]
        self.mode_ = _mode(features[sought], wanted[sought], correlation)
        self.places_ = features[rows] / np.exp(self.mode_[:-2])
        lower, _, _ = _covariance(self.mode_, self.places_, correlation)
        self.weights_ = np.exp(self.mode_[-2]) * cho_solve((lower, True), wanted[rows])
        return self

    def predict(self, features: Matrix) -> Vector:
        """The expected target (n,) of features (n, f)."""
        places = features / np.exp(self.mode_[:-2])
        guesses = np.empty(len(features))
        for start in range(0, len(features), BLOCK):
            block = slice(start, start + BLOCK)
            alike, _ = KERNELS[self.kernel](cdist(places[block], self.places_, "sqeuclidean"))
            guesses[block] = self.mean_ + self.spread_ * (alike @ self.weights_)
        return guesses


def _radial(squared: Matrix) -> tuple[Matrix, Matrix]:
    """The squared exponential: as smooth as can be."""
    alike = np.exp(-0.5 * squared)
    return alike, -0.5 * alike


def _matern(squared: Matrix) -> tuple[Matrix, Matrix]:
    """Matérn's of 5/2: twice differentiable, for surfaces with bends."""
    far = np.sqrt(5 * squared)
    fade = np.exp(-far)
    return (1 + far + far**2 / 3) * fade, -5 / 6 * (1 + far) * fade


KERNELS: dict[str, Correlation] = {"radial": _radial, "matern": _matern}


def _mode(features: Matrix, target: Vector, correlation: Correlation) -> Vector:
    """The likeliest logarithms of all scales, the signal's and the noise's variance (s + 2,)."""
    count = features.shape[1]
    scales = count if count <= MOST_SCALES else 1
    beliefs = np.array([*[SCALE] * scales, SIGNAL, NOISE])
    wide = 0.5 * np.log(max(count, 1))
    beliefs[:scales, [0, 2, 3]] += wide

    def unlikeliness(guess: Vector) -> tuple[float, Vector]:
        value, slopes = _evidence(guess, features, target, correlation)
        away = (guess - beliefs[:, 0]) / beliefs[:, 1]
        return value + 0.5 * float(away @ away), slopes + away / beliefs[:, 1]

    tries = [
        minimize(
            unlikeliness,
            np.array([*[scale + wide] * scales, signal, noise]),
            jac=True,
            method="L-BFGS-B",
            bounds=beliefs[:, 2:],
            options={"maxiter": 150},
        )
        for scale, signal, noise in STARTS
    ]
    return np.asarray(min(tries, key=lambda found: float(found.fun)).x, dtype=np.float64)


def _evidence(
    guess: Vector, features: Matrix, target: Vector, correlation: Correlation
) -> tuple[float, Vector]:
    """The negative log likelihood of the target, but for a constant, and its slopes (s + 2,)."""
    signal, noise = np.exp(guess[-2:])
    places = features / np.exp(guess[:-2])
    lower, alike, bends = _covariance(guess, places, correlation)
    weights = cho_solve((lower, True), target)
    value = 0.5 * target @ weights + np.log(np.diag(lower)).sum()
    # The derivative by each element of the covariance, equation 5.9.
    slope = 0.5 * (cho_solve((lower, True), np.eye(len(target))) - np.outer(weights, weights))
    pull = signal * slope * bends
    # The sum over pairs of pull times squared distance, by feature, without an array of them all.
    by_feature = pull.sum(axis=1) @ places**2 - np.einsum("if,if->f", places, pull @ places)
    by_scale = by_feature if len(guess) - 2 == len(by_feature) else by_feature.sum(keepdims=True)
    diagonal = np.trace(slope)
    of_signal = signal * (np.sum(slope * alike) + JITTER * diagonal)
    return float(value), np.array([*(-4 * by_scale), of_signal, noise * diagonal])


def _covariance(
    guess: Vector, places: Matrix, correlation: Correlation
) -> tuple[Matrix, Matrix, Matrix]:
    """The lower Cholesky factor of the covariance of places; correlations and their slopes."""
    signal, noise = np.exp(guess[-2:])
    alike, bends = correlation(cdist(places, places, "sqeuclidean"))
    covariance = signal * alike
    covariance.flat[:: len(places) + 1] += noise + JITTER * signal
    return cholesky(covariance, lower=True), alike, bends
