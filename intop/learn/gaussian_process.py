"""A Gaussian process, as an estimator of scikit-learn's. Loaded late: both libraries take a second.

scikit-learn's own has one noise for all rows, which is less accurate on small tables, and needs
(rows, rows, features) numbers for one gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, RegressorMixin

from intop.domain.encoding import Matrix
from intop.learn.samples import Rows, Vector

Correlation = Callable[[Matrix], tuple[Matrix, Matrix]]
"""Squared distances to correlations and their slopes by the squared distance."""

MODE_ROWS = 250
"""Length scales and noise are sought on so many rows: each step costs their cube."""
MOST_SCALES = 300
"""The most features with a scale each. More share one scale."""
BLOCK = 2000
"""Rows that are predicted at once: correlations with all that was learned take memory."""
JITTER = 1e-8
"""The share of the signal's variance on the diagonal: it keeps rows that are alike from being
singular."""
MOST_STEPS, FEW_STEPS = 80, 30
"""Steps to the mode, from anywhere and from near it."""
ROUNDS = 1
"""Rounds in which noise is learned from the rows' misses, and the rest from that noise."""

# Logarithms, for features and a target of standard deviation 1: mean, standard deviation, lower
# and upper end of what is believed. Weak on purpose: long scales, so that low orders of
# interactions come first, and a noise of anything from a thousandth to all of it. Distances grow
# by the square root of how many features there are, and so do scales.
SCALE = (np.log(2.0), 1.5, np.log(0.1), np.log(3e3))
SIGNAL = (1.0, 2.5, np.log(1e-2), np.log(1e4))
NOISE = (np.log(1e-3), 3.0, np.log(1e-7), np.log(2.0))
MOSTLY_NOISE = (np.log(0.7), 0.5, np.log(1e-3), np.log(2.0))
"""The noise of the logarithms of squared misses: one miss alone says little."""
STARTS = ((np.log(1.2), 1.0, np.log(1e-2)), (np.log(4.0), 3.0, np.log(1e-4)))
"""Starts of the search for the mode: scales by that square root, the signal and the noise."""


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression by a Gaussian process: a length scale for each feature, a noise for each row.

    On on/off options, the smooth kernel gives an interaction the product of its options' weights;
    the rough one follows what only some combinations do. The one that misses less when a row is
    left out is used. Scales, signal and noise are at the mode of their posterior (Rasmussen and
    Williams, Gaussian Processes for Machine Learning, 2006, equations 2.25, 4.17 and 5.9). Noise by
    row follows the squared misses, smoothed by another such process (after Kersting and others,
    Proceedings of ICML 2007, 393-400). It expects features that are normalised. `left_out_` has
    what each row is missed by when it is left out. Time grows with the cube of the rows.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, features: Matrix, target: Vector) -> Self:
        """Fit to features (n, f) and a target (n,)."""
        self.n_features_in_ = features.shape[1]
        rows = np.random.default_rng(self.seed).permutation(len(features))
        self.mean_ = float(np.mean(target[rows]))
        # A target that is constant has nothing to scale.
        self.spread_ = float(np.std(target[rows])) or 1.0
        wanted = (target[rows] - self.mean_) / self.spread_
        tried = {name: _learned(features[rows], wanted, name) for name in KERNELS}
        self.kernel_ = min(tried, key=lambda name: tried[name].unlikely)
        learned = tried[self.kernel_]
        self.left_out_ = self.spread_ * learned.misses
        self.mode_, self.places_ = learned.mode, learned.places
        self.weights_ = self.spread_ * np.exp(learned.mode[-2]) * learned.weights
        return self

    def predict(self, features: Matrix) -> Vector:
        """Return the expected target (n,) of features (n, f)."""
        places = features / np.exp(self.mode_[:-2])
        guesses = np.empty(len(features))
        for start in range(0, len(features), BLOCK):
            block = slice(start, start + BLOCK)
            alike, _ = KERNELS[self.kernel_](cdist(places[block], self.places_, "sqeuclidean"))
            guesses[block] = self.mean_ + alike @ self.weights_
        return guesses


@dataclass(frozen=True)
class Learned:
    """A process that knows n rows."""

    mode: Vector
    places: Matrix
    """The rows by the scales of the mode (n, f)."""
    lower: Matrix
    """The factor of their covariance (n, n)."""
    weights: Vector
    sure: Vector
    """1 / the variance of each miss (n,)."""
    misses: Vector
    """The distance of each row above its prediction without it (n,)."""
    smoothed: Vector
    unlikely: float
    """The lower, the better the kernel predicts rows that are left out."""


def _learned(features: Matrix, target: Vector, kernel: str) -> Learned:
    """Noise even at first, then by row, by what each one is missed by when it is left out."""
    correlation = KERNELS[kernel]
    learned = learned_process(features, target, np.ones(len(target)), correlation, NOISE)
    rough = None
    for _ in range(ROUNDS):
        # Where a row happens to be met, the logarithm would go to minus infinity.
        logs = np.log(learned.misses**2 + 1e-3 * np.mean(learned.misses**2) + 1e-300)
        spread = float(np.std(logs)) or 1.0
        rough = learned_process(
            features,
            (logs - logs.mean()) / spread,
            np.ones(len(logs)),
            correlation,
            MOSTLY_NOISE,
            rough,
        )
        noises = np.exp(spread * rough.smoothed)
        learned = learned_process(features, target, noises, correlation, NOISE, learned)
    return learned


def learned_process(
    features: Matrix,
    target: Vector,
    noises: Vector,
    correlation: Correlation,
    noise: tuple[float, ...],
    near: Learned | None = None,
    sought: Rows | slice = slice(MODE_ROWS),
) -> Learned:
    """Learn with noise in proportion to `noises` (n,), of which `noise` is believed.

    `near` is where the mode was; it is `sought` on these rows.
    """
    mode = _mode(
        features[sought],
        target[sought],
        noises[sought],
        correlation,
        noise,
        None if near is None else near.mode,
    )
    places = features / np.exp(mode[:-2])
    lower, alike, _ = _covariance(mode, places, noises, correlation)
    weights = cho_solve((lower, True), target)
    # Equations 5.10 to 5.12: what comes of leaving out each row, without fitting anew.
    sure = np.diag(cho_solve((lower, True), np.eye(len(target))))
    return Learned(
        mode=mode,
        places=places,
        lower=lower,
        weights=weights,
        sure=sure,
        misses=weights / sure,
        smoothed=np.exp(mode[-2]) * (alike @ weights),
        unlikely=float(np.mean(weights**2 / sure - np.log(sure))),
    )


def _smooth(squared: Matrix) -> tuple[Matrix, Matrix]:
    """The squared exponential."""
    alike = np.exp(-0.5 * squared)
    return alike, -0.5 * alike


def _rough(squared: Matrix) -> tuple[Matrix, Matrix]:
    """The exponential: continuous, and no more. Its slope is that of what is not alike."""
    far = np.sqrt(squared)
    alike = np.exp(-far)
    return alike, np.where(far > 0, -0.5 * alike / np.maximum(far, 1e-12), 0.0)


KERNELS: dict[str, Correlation] = {"smooth": _smooth, "rough": _rough}


def _mode(
    features: Matrix,
    target: Vector,
    noises: Vector,
    correlation: Correlation,
    noise: tuple[float, ...],
    near: Vector | None,
) -> Vector:
    """Return the mode of the logarithms of all scales, the signal's and the noise's variance."""
    count = features.shape[1]
    scales = count if count <= MOST_SCALES else 1
    beliefs = np.array([*[SCALE] * scales, SIGNAL, noise])
    wide = 0.5 * np.log(max(count, 1))
    beliefs[:scales, [0, 2, 3]] += wide

    def unlikeliness(guess: Vector) -> tuple[float, Vector]:
        value, slopes = _evidence(guess, features, target, noises, correlation)
        away = (guess - beliefs[:, 0]) / beliefs[:, 1]
        return value + 0.5 * float(away @ away), slopes + away / beliefs[:, 1]

    starts = [
        np.array([*[scale + wide] * scales, *signal_and_noise])
        for scale, *signal_and_noise in STARTS
    ]
    tries = [
        minimize(
            unlikeliness,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(float(low), float(high)) for low, high in beliefs[:, 2:]],
            options={"maxiter": MOST_STEPS if near is None else FEW_STEPS},
        )
        for start in (starts if near is None else [near])
    ]
    return np.asarray(min(tries, key=lambda result: float(result.fun)).x, dtype=np.float64)


def _evidence(
    guess: Vector, features: Matrix, target: Vector, noises: Vector, correlation: Correlation
) -> tuple[float, Vector]:
    """Return the negative log likelihood, but for a constant, and its slopes (s + 2,)."""
    signal, noise = np.exp(guess[-2:])
    places = features / np.exp(guess[:-2])
    lower, alike, bends = _covariance(guess, places, noises, correlation)
    weights = cho_solve((lower, True), target)
    value = 0.5 * target @ weights + np.log(np.diag(lower)).sum()
    # The derivative by each element of the covariance, equation 5.9.
    slope = 0.5 * (cho_solve((lower, True), np.eye(len(target))) - np.outer(weights, weights))
    pull = signal * slope * bends
    # The sum over pairs of pull times squared distance, by feature, without an array of them all.
    by_feature = pull.sum(axis=1) @ places**2 - np.einsum("if,if->f", places, pull @ places)
    by_scale = by_feature if len(guess) - 2 == len(by_feature) else by_feature.sum(keepdims=True)
    of_signal = signal * (np.sum(slope * alike) + JITTER * np.trace(slope))
    of_noise = noise * (np.diag(slope) @ noises)
    return float(value), np.array([*(-4 * by_scale), of_signal, of_noise])


def _covariance(
    guess: Vector, places: Matrix, noises: Vector, correlation: Correlation
) -> tuple[Matrix, Matrix, Matrix]:
    """Return the lower Cholesky factor of the covariance; correlations and their slopes."""
    signal, noise = np.exp(guess[-2:])
    alike, bends = correlation(cdist(places, places, "sqeuclidean"))
    covariance = signal * alike
    covariance.flat[:: len(places) + 1] += noise * noises + JITTER * signal
    return cholesky(covariance, lower=True), alike, bends
