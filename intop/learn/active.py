"""Active learning: which few configurations to measure next, so that the best one is found.

A Gaussian process says how low each configuration is expected to be, and how sure that is. What is
measured next is what lowers the target of the best known configuration most, on average over all
that the process holds possible: docs/refine.md has the formulas and what each of them is worth.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.design import stratified_genes
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples, Vector

if TYPE_CHECKING:
    from intop.learn.posterior import Posterior

Reason = Literal["promise", "uncertainty", "replicate"]
"""Why a configuration is measured: predicted low, little known about, or known too vaguely."""

SCATTERED, PARENTS, CHILDREN, ROUNDS = 1_000, 20, 40, 3
"""A pool: rows from all over the space, and rounds of so many parents with so many children."""
NEAR = 0.1
"""The standard deviation of a small step, as a part of the range."""
CONTRADICTORY = 3.0
"""Standard deviations that a row is beside its prediction by all others: more than bad luck."""
PROMISING = 2.0
"""Standard deviations of a trial within which a row may still be the best one."""
TOLD = 3
"""Trials of a row after which its median is believed."""
EXPLORED = 3
"""Batches of noisy trials that have at least so many places spend one on what is known least."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A configuration to measure next: its values (columns,), in units of the kernel."""

    values: Vector
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Step:
    """What to measure next, the most telling first, and whether it is worth it.

    `improvement` is by how much the best of these is expected to lower log P99 below the best
    known configuration; 0 where nothing better is expected.
    """

    proposals: tuple[Proposal, ...]
    improvement: float


def pool(space: Space, samples: Samples, *, seed: int) -> Matrix:
    """Feasible values (n, columns) of a space that are worth asking the models about.

    A design that fills the space, and some rounds of descendants of what was measured and of what
    the model expects most of. None of the measured rows is among them.
    """
    from intop.learn.posterior import log_gain

    rng = np.random.default_rng(seed)
    found = _decoded(space, stratified_genes(len(space.columns), SCATTERED, rng))
    model = _model(samples, seed)
    mean, _ = model(samples.values)
    parents = samples.values[np.argsort(mean, kind="stable")[:PARENTS]]
    gains = log_gain(float(mean.min()), *model(found))
    for _ in range(ROUNDS):
        children = _decoded(space, _children(space.genes(parents), rng))
        found = np.vstack([found, children])
        gains = np.append(gains, log_gain(float(mean.min()), *model(children)))
        parents = found[np.argsort(-gains, kind="stable")[:PARENTS]]
    found = np.unique(found, axis=0)
    known = {row.tobytes() for row in samples.values + 0.0}
    return found[[row.tobytes() not in known for row in found]]


def propose(
    samples: Samples, pool: Matrix, *, count: int, seed: int, replicates: bool = True
) -> Step:
    """At most `count` rows of the pool, or measured ones again, to measure next.

    `pool` (n, variables) has none of the measured rows. Each row is proposed once. Without
    `replicates` no row is measured again, as where every measurement is exact. A function of its
    arguments alone.
    """
    outlook = _Outlook(_model(samples, seed), samples, pool, replicates=replicates)
    chosen: list[Proposal] = []
    improvement = 0.0
    if replicates and count > 1:
        chosen += outlook.doubtful()
    explored = int(replicates and count >= EXPLORED and len(pool) > 0)
    while len(chosen) < count - explored and outlook.allowed.any():
        proposal, gain = outlook.next()
        chosen.append(proposal)
        improvement = max(improvement, gain)
    if explored:
        chosen += outlook.unknown()
    return Step(proposals=tuple(chosen), improvement=improvement)


def best_known(samples: Samples, *, seed: int) -> int:
    """The row of the configuration that is believed to be best, given how noisy trials are."""
    mean, _ = _model(samples, seed)(samples.values)
    return int(np.argmin(mean))


class _Outlook:
    """What is believed of measured rows and of a pool, while a batch is chosen.

    What is chosen is believed to turn out as expected (the kriging believer of Ginsbourger, Le
    Riche and Carraro, Computational Intelligence in Expensive Optimization Problems, 2010): means
    stay, but its like are known better from then on, so that the next one is another.
    """

    def __init__(
        self, model: "Posterior", samples: Samples, pool: Matrix, *, replicates: bool
    ) -> None:
        self.model = model
        self.known = len(samples)
        self.measured = samples.log_target
        self.counts = np.array([len(trials) for trials in samples.measured])
        self.rows = np.vstack([samples.values, pool])
        self.mean, spread = model(self.rows)
        self.variance = spread**2
        self.noise = np.full(len(self.rows), model.noise)
        self.noise[: self.known] = model.noises * self.counts
        self.allowed = np.full(len(self.rows), fill_value=True)
        self.allowed[: self.known] = replicates
        self.believed = np.arange(len(self.rows)) < self.known
        self.learned: list[Vector] = []

    @property
    def best(self) -> int:
        """The row with the lowest mean of those that are measured, or will be."""
        return int(np.argmin(np.where(self.believed, self.mean, np.inf)))

    def next(self) -> tuple[Proposal, float]:
        """The row that is worth most, and by how much it is expected to lower the log target."""
        from intop.learn.posterior import log_gain

        best = self.best
        # How far one more trial is expected to move the mean.
        moves = self.variance / np.sqrt(self.variance + self.noise)
        worth = log_gain(self.mean[best], self.mean, moves)
        others = np.where(self.believed, self.mean, np.inf)
        others[best] = np.inf
        if np.isfinite(rival := others.min()):
            # To learn that the best one is not as good is worth as much as what is then taken.
            worth[best] = log_gain(self.mean[best], rival, moves[best])
        row = int(np.argmax(np.where(self.allowed, worth, -np.inf)))
        reason: Reason = "promise" if self.mean[row] < self.mean[best] else "uncertainty"
        gain = float(np.exp(worth[row]))
        return self.take(row, "replicate" if row < self.known else reason), gain

    def doubtful(self) -> list[Proposal]:
        """The measured row, if any, that has to be measured again whatever it tells about others.

        The best one, until it has TOLD trials: the lowest of many is lucky more often than good.
        Else the one that surprises most of those that may be as good.
        """
        best = self.best
        if self.counts[best] < TOLD:
            return [self.take(best, "replicate")]
        limit = self.mean[best] + PROMISING * np.sqrt(self.model.noise)
        low = np.minimum(self.mean[: self.known], self.measured) < limit
        surprise = np.abs(self.model.misses) * (low & (self.counts < TOLD))
        row = int(np.argmax(surprise))
        return [self.take(row, "replicate")] if surprise[row] > CONTRADICTORY else []

    def unknown(self) -> list[Proposal]:
        """The row, if any, of which least is known among those that were never measured.

        What is expected of it does not count: where trials scatter, a few that had bad luck make
        the model sure that a good region is a bad one, and improvement is never expected there.
        """
        variance = np.where(self.allowed & ~self.believed, self.variance, -np.inf)
        row = int(np.argmax(variance))
        return [self.take(row, "uncertainty")] if np.isfinite(variance[row]) else []

    def take(self, row: int, reason: Reason) -> Proposal:
        """Chooses a row: what it will tell is known from now on."""
        with_it = self.model.together(self.rows, self.rows[row : row + 1])[:, 0]
        for told in self.learned:
            with_it = with_it - told * told[row]
        told = with_it / np.sqrt(self.variance[row] + self.noise[row])
        self.learned.append(told)
        self.variance = np.maximum(self.variance - told**2, 1e-24)
        self.allowed[row] = False
        self.believed[row] = True
        return Proposal(values=self.rows[row], reason=reason)


def _model(samples: Samples, seed: int) -> "Posterior":
    from intop.learn.posterior import posterior

    with one_thread():
        return posterior(samples, seed)


def _children(genes: Matrix, rng: np.random.Generator) -> Matrix:
    """Genes (CHILDREN * n, columns) near these: some of them moved, a little or anywhere."""
    children = np.repeat(genes, CHILDREN, axis=0)
    count, columns = children.shape
    moved = rng.random((count, columns)) < rng.integers(1, 4, (count, 1)) / columns
    moved[np.arange(count), rng.integers(columns, size=count)] = True
    little = np.clip(children + NEAR * rng.standard_normal(children.shape), 0, 1)
    anywhere = rng.random(children.shape)
    return np.where(moved, np.where(rng.random((count, 1)) < 0.5, little, anywhere), children)


def _decoded(space: Space, genes: Matrix) -> Matrix:
    # Adding 0.0 turns -0.0 into 0.0, which would otherwise be a configuration of its own.
    return space.decode(genes) + 0.0
