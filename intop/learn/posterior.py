"""Beliefs about configurations that nobody measured. Loaded late, as SciPy is slow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import erfcx, ndtr

from intop.domain.encoding import Matrix, Variable, encode
from intop.domain.replicates import PRIOR_WEIGHT
from intop.learn.gaussian_process import KERNELS, MODE_ROWS, NOISE, Learned, learned_process
from intop.learn.samples import Samples, Vector

LEAST_SHARE = 1e-6
"""The least share of the target's variance: no trial is taken to be less noisy, were replicates
exactly alike."""


@dataclass(frozen=True)
class Posterior:
    """A Gaussian process that knows some rows' measurements: log targets and how sure they are."""

    variables: tuple[Variable, ...]
    kernel: str
    learned: Learned
    """The learned process in units of `spread` about `centre`."""
    centre: float
    spread: float
    noise: float
    """The variance of a single trial's log target."""
    noises: Vector
    """The variances of the rows' medians (n,)."""

    @property
    def misses(self) -> Vector:
        """The distance of each row (n,) above its prediction without it, in standard deviations."""
        return np.asarray(self.learned.weights / np.sqrt(self.learned.sure))

    def __call__(self, values: Matrix) -> tuple[Vector, Vector]:
        """Return mean and standard deviation (n,) of the log target without noise, for values."""
        outlook = self.about(values)
        return outlook.mean, outlook.spread

    def about(self, values: Matrix) -> "Outlook":
        """Return what is believed of all values (n, v) together."""
        places = scaled(self.variables, values) / np.exp(self.learned.mode[:-2])
        alike = self.before(places, self.learned.places)
        return Outlook(
            model=self,
            places=places,
            mean=self.centre + self.spread * (alike @ self.learned.weights),
            knowledge=solve_triangular(self.learned.lower, alike.T, lower=True),
        )

    def before(self, places: Matrix, others: Matrix) -> Matrix:
        """Return the covariance (n, m) of places (n, f) and (m, f) before anything was measured."""
        squared = cdist(places, others, "sqeuclidean")
        return np.asarray(np.exp(self.learned.mode[-2]) * KERNELS[self.kernel](squared)[0])


@dataclass(frozen=True)
class Outlook:
    """The beliefs of a process about rows, and how one row's outcome would change them."""

    model: Posterior
    places: Matrix
    """The rows by the scales of the mode (n, f)."""
    mean: Vector
    knowledge: Matrix
    """The knowledge of the rows (measured rows, n): its squares lower their variances."""

    @property
    def spread(self) -> Vector:
        """The standard deviation of the log target without noise (n,)."""
        signal = np.exp(self.model.learned.mode[-2])
        variance = signal - np.einsum("ij,ij->j", self.knowledge, self.knowledge)
        return np.asarray(self.model.spread * np.sqrt(np.maximum(variance, 1e-12)))

    def covariance(self, row: int) -> Vector:
        """Return the covariance (n,) of all rows' log targets with that of one of them."""
        before = self.model.before(self.places, self.places[row : row + 1])[:, 0]
        return np.asarray(
            self.model.spread**2 * (before - self.knowledge.T @ self.knowledge[:, row])
        )


def posterior(samples: Samples, seed: int) -> Posterior:
    """Learn the samples, by the kernel that misses less when a row is left out.

    The seed draws the rows that the mode is sought with where there are more than MODE_ROWS.

    The noise of a row is that of its own trials drawn towards that of all, by their number. Rows
    that were measured once each tell their noise by how well the process can meet them.
    """
    target = samples.log_target
    centre, spread = float(np.mean(target)), float(np.std(target)) or 1.0
    single, shares = scatter(samples)
    noises = shares / np.array([len(trials) for trials in samples.measured])
    freedom = sum(len(trials) - 1 for trials in samples.measured)
    belief = NOISE
    if freedom:
        # The logarithm of a variance by so many degrees of freedom is that sure.
        low, high = NOISE[2:]
        middle = float(np.clip(np.log(max(single / spread**2, LEAST_SHARE)), low, high))
        belief = (middle, math.sqrt(2 / freedom), low, high)
    features, wanted = scaled(samples.variables, samples.values), (target - centre) / spread
    sought = np.random.default_rng(seed).permutation(len(target))[:MODE_ROWS]
    tried = {
        name: learned_process(features, wanted, noises, correlation, belief, sought=sought)
        for name, correlation in KERNELS.items()
    }
    kernel = min(tried, key=lambda name: tried[name].unlikely)
    noise = spread**2 * float(np.exp(tried[kernel].mode[-1]))
    return Posterior(
        variables=samples.variables,
        kernel=kernel,
        learned=tried[kernel],
        centre=centre,
        spread=spread,
        noise=noise,
        noises=noise * noises,
    )


def scaled(variables: Sequence[Variable], values: Matrix) -> Matrix:
    """Return features (n, f) in units of their standard deviation if all values were as frequent.

    That of the rows at hand would change with each pool.
    """
    units = [
        1 / math.sqrt(1 / 12 if not v.choices else (1 - 1 / len(v.choices)) / len(v.choices))
        for v in variables
        for _ in v.features
    ]
    return np.asarray(encode(variables, values) * np.array(units))


def scatter(samples: Samples) -> tuple[float, Vector]:
    """Return the variance of a single trial's log target, and the shares (n,) of it by row.

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
    """Return the logarithm of how far below `best` a normal variable is expected, 0 if above.

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
