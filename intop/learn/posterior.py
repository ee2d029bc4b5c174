"""What measurements say of configurations that nobody measured. Loaded late, as SciPy is slow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import erfcx, ndtr

from intop.domain.encoding import Matrix, Variable, encode
from intop.learn.gaussian_process import KERNELS, MODE_ROWS, NOISE, factorised, likeliest
from intop.learn.samples import Samples, Vector

PRIOR_WEIGHT = 4
"""Degrees of freedom that the scatter of all rows counts for beside that of a row's own trials."""
LEAST_SHARE = 1e-6
"""Of the target's variance: no trial is taken to be less noisy, were replicates exactly alike."""


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process that knows some rows' measurements: log targets and how sure they are.

    The `lower` factor (n, n) is that of the covariance of the rows (n, features) that are known,
    in units of `spread` about `centre`; `noise` is the variance of a single trial and `noises`
    (n,) those of the rows' medians, of the log target; `misses` (n,) what each row is above its
    prediction without it, in standard deviations of that.
    """

    variables: tuple[Variable, ...]
    kernel: str
    mode: Vector
    places: Matrix
    lower: Matrix
    weights: Vector
    centre: float
    spread: float
    noise: float
    noises: Vector
    misses: Vector
    unlikely: float

    def __call__(self, values: Matrix) -> tuple[Vector, Vector]:
        """Mean and standard deviation (n,) of the log target without noise, for values (n, v)."""
        alike = self._alike(values)
        known = solve_triangular(self.lower, alike.T, lower=True)
        variance = np.exp(self.mode[-2]) - np.einsum("ij,ij->j", known, known)
        mean = self.centre + self.spread * (alike @ self.weights)
        return mean, self.spread * np.sqrt(np.maximum(variance, 1e-12))

    def together(self, values: Matrix, others: Matrix) -> Matrix:
        """The covariance (n, m) of the log targets of values (n, v) and of others (m, v)."""
        both = [
            solve_triangular(self.lower, self._alike(rows).T, lower=True)
            for rows in (values, others)
        ]
        squared = cdist(self._placed(values), self._placed(others), "sqeuclidean")
        before = np.exp(self.mode[-2]) * KERNELS[self.kernel](squared)[0]
        return np.asarray(self.spread**2 * (before - both[0].T @ both[1]))

    def _placed(self, values: Matrix) -> Matrix:
        return scaled(self.variables, values) / np.exp(self.mode[:-2])

    def _alike(self, values: Matrix) -> Matrix:
        squared = cdist(self._placed(values), self.places, "sqeuclidean")
        return np.asarray(np.exp(self.mode[-2]) * KERNELS[self.kernel](squared)[0])


def posterior(samples: Samples, seed: int) -> Posterior:
    """What the samples say, by the kernel that misses less when a row is left out.

    The seed says which rows the mode is sought with where there are more than MODE_ROWS.

    The noise of a row is that of its own trials drawn towards that of all, by their number. Rows
    that were measured once each tell their noise by how well the process can meet them.
    """
    features = scaled(samples.variables, samples.values)
    learned = [_learned(samples, features, kernel, seed) for kernel in KERNELS]
    return min(learned, key=lambda found: found.unlikely)


def scaled(variables: Sequence[Variable], values: Matrix) -> Matrix:
    """Features (n, f) in units of their standard deviation if all values were as frequent.

    That of the rows at hand would change with each pool.
    """
    units = [
        1 / math.sqrt(1 / 12 if not v.choices else (1 - 1 / len(v.choices)) / len(v.choices))
        for v in variables
        for _ in v.features
    ]
    return np.asarray(encode(variables, values) * np.array(units))


def _learned(samples: Samples, features: Matrix, kernel: str, seed: int) -> Posterior:
    target = samples.log_target
    centre, spread = float(np.mean(target)), float(np.std(target)) or 1.0
    wanted = (target - centre) / spread
    single, shares = scatter(samples)
    noises = shares / np.array([len(trials) for trials in samples.measured])
    freedom = sum(len(trials) - 1 for trials in samples.measured)
    belief = NOISE
    if freedom:
        # The logarithm of a variance by so many degrees of freedom is that sure.
        low, high = NOISE[2:]
        middle = float(np.clip(np.log(max(single / spread**2, LEAST_SHARE)), low, high))
        belief = (middle, math.sqrt(2 / freedom), low, high)
    correlation = KERNELS[kernel]
    part = np.random.default_rng(seed).permutation(len(target))[:MODE_ROWS]
    mode = likeliest(features[part], wanted[part], noises[part], correlation, belief, None)
    places = features / np.exp(mode[:-2])
    lower, _, _ = factorised(mode, places, noises, correlation)
    weights = cho_solve((lower, True), wanted)
    # Rasmussen and Williams (gaussian_process.py), equations 5.10 to 5.12.
    sure = np.diag(cho_solve((lower, True), np.eye(len(wanted))))
    noise = spread**2 * float(np.exp(mode[-1]))
    return Posterior(
        variables=samples.variables,
        kernel=kernel,
        mode=mode,
        places=places,
        lower=lower,
        weights=weights,
        centre=centre,
        spread=spread,
        noise=noise,
        noises=noise * noises,
        misses=weights / np.sqrt(sure),
        unlikely=float(np.mean(weights**2 / sure - np.log(sure))),
    )


def scatter(samples: Samples) -> tuple[float, Vector]:
    """The variance of the log target of a single trial, and the shares (n,) of it by row.

    As `domain.replicates.variances`: a row's own variance by its degrees of freedom, and that of
    all rows by PRIOR_WEIGHT. 0 and equal shares where nothing was measured twice.
    """
    freedoms = np.array([len(trials) - 1 for trials in samples.measured])
    squares = np.array([np.var(np.log(t)) * len(t) for t in samples.measured])
    single = float(squares.sum() / max(freedoms.sum(), 1))
    if single == 0:
        return 0.0, np.ones(len(samples))
    return single, (PRIOR_WEIGHT + squares / single) / (PRIOR_WEIGHT + freedoms)


def log_gain(best: float, mean: Matrix, spread: Matrix) -> Matrix:
    """The logarithm of how far below `best` a normal variable is expected to be, 0 if above.

    Expected improvement (Jones, Schonlau and Welch, Journal of Global Optimization 13, 1998,
    equation 15); as a logarithm it still tells far rows apart, where it is 0 in numbers (Ament and
    others, Advances in Neural Information Processing Systems 36, 2023, section 4.1).
    """
    z = (best - mean) / spread
    below = np.minimum(z, -1.0)
    # The density times 1 + z times Mills' ratio, which is nearly 0; from -1e3 on 1 / z² in effect.
    left = 1 + below * math.sqrt(math.pi / 2) * erfcx(-below / math.sqrt(2))
    tail = np.where(below > -1e3, np.log(np.maximum(left, 1e-300)), -2 * np.log(-below))
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    near = np.log(np.maximum(density + z * ndtr(z), 1e-300))
    far = -0.5 * below**2 - 0.5 * math.log(2 * math.pi) + tail
    return np.asarray(np.log(spread) + np.where(z > -1, near, far))
