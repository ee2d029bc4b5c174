"""Active learning: which few configurations to measure next, so that the best one is found.

A Gaussian process says how low each configuration is expected to be, and how sure that is. What is
measured next is what lowers the target of the best known configuration most, on average over all
that the process holds possible. Where trials are noisy it is led by their tails, a forest has a
say, too, and the space is filled further. docs/method.md has the formulas, and
benchmarks/results/search.md compares them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from intop.domain.configuration import DEFAULT
from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.design import stratified_genes
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples, Vector
from intop.learn.scores import Scores

if TYPE_CHECKING:
    from intop.learn.posterior import Posterior
    from intop.learn.surrogate import Predictor

Reason = Literal["promise", "uncertainty", "replicate"]
"""The reason why a configuration is measured: predicted low, little known about, or known too
vaguely."""

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
EXACT_SD = 0.002
"""The standard deviation of a log tail by replicates, up to which rows are known exactly. No load
repeats itself so well, not even where a time-out sets its tail, but a table does. What a process
says of its noise is no measure: it takes that of few rows for what parameters do."""
MOST_LISTED = 20_000
"""Listed rows that are all asked about."""

FOREST = {"trees": 60, "min_samples_leaf": 1, "max_features": 0.8}
ALIKE = 1e-9
"""The least spread of what trees say of a row."""

Turn = Literal["process", "forest", "anywhere"]
"""The picker of a row: the process's expected improvement, the forest's, or chance."""
EXACT: tuple[tuple[Turn, ...], ...] = (
    ("process",),
    ("process",),
    ("process", "process", "process", "forest"),
)
"""The turns, over and over, after so many fruitless steps, where rows are known exactly."""
SLOW = 3
STUCK: tuple[tuple[Turn, ...], ...] = (
    ("process", "anywhere"),
    ("process", "anywhere"),
    ("process", "anywhere", "forest", "anywhere"),
)
"""The same there after SLOW slow steps, and more. A process that follows its rows exactly is sure
of regions that it has never seen, too, and goes on to polish a poor one."""
NOISY: tuple[tuple[Turn, ...], ...] = (
    ("process",),
    ("process", "process", "process", "forest"),
    ("process", "process", "forest", "anywhere"),
)
"""The same where it is not."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A configuration to measure next: its values (columns,), in units of the kernel."""

    values: Vector
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Step:
    """The configurations to measure next, the most telling first, and whether it is worth it."""

    proposals: tuple[Proposal, ...]
    improvement: float
    """The expected fall of the log target of the process by the best of these.

    It counts from the best known configuration; 0 where nothing better is expected.
    """
    noise: float
    """The standard deviation of one trial's log tail, where trials are as good as the best."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Different, feasible configurations of a space, none of them measured."""

    values: Matrix
    """Values in units of the kernel (n, columns)."""
    scattered: NDArray[np.bool_]
    """Whether a row is one of those that fill the space (n,)."""

    def without(self, rows: Matrix) -> "Pool":
        """Return the pool without these rows (m, columns)."""
        out = {row.tobytes() for row in rows + 0.0}
        kept = np.array([row.tobytes() not in out for row in self.values], dtype=np.bool_)
        return Pool(values=self.values[kept], scattered=self.scattered[kept])


@dataclass(frozen=True, kw_only=True)
class Models:
    """The models of the trials so far, fitted once for all that a step asks of them."""

    samples: Samples
    """The samples that the forest learns from."""
    scores: Scores
    """The scores of the tails, which the process learns."""
    process: "Posterior"
    seed: int

    @cached_property
    def forest(self) -> "Predictor":
        """A random forest of the log target."""
        from intop.learn.families import FAMILIES
        from intop.learn.surrogate import Predictor, fit

        family = FAMILIES["RFR"]
        hyperparameters = {**family.defaults, **FOREST}
        with one_thread():
            built = family.build(self.samples.variables, hyperparameters, self.seed)
            return Predictor({family.name: fit(built, self.samples)})


def learned(samples: Samples, *, tails: Samples | None = None, seed: int) -> Models:
    """Return the models of samples, in which the seed draws what is random.

    The process goes by `tails`, which are the same rows with another target that falls where that
    of the samples does, and before it: what it says of improvement is said of that. Raises
    ValueError for tails of other rows.
    """
    tails = samples if tails is None else tails
    if not np.array_equal(tails.values, samples.values):
        raise ValueError("the tails are of other rows than the samples")
    scores = Scores(tails)
    return Models(samples=samples, scores=scores, process=_process(scores, seed), seed=seed)


def pool(space: Space, models: Models) -> Pool:
    """Return the configurations that are worth asking the models about.

    All that the space lists, where it lists at most MOST_LISTED. Else a design that fills the
    space, in rows that change as much as the measured ones do (in a large space only a few
    parameters each), and some rounds of descendants of what was measured and of what either model
    expects most of.
    """
    from intop.learn.posterior import log_gain

    own, listed = models.samples.own, space.listed
    if listed is not None and len(listed) <= MOST_LISTED:
        values = np.unique(listed + 0.0, axis=0)
        everywhere = np.full(len(values), fill_value=True)
        return Pool(values=values, scattered=everywhere).without(own.values)
    rng = np.random.default_rng(models.seed)
    scattered = _decoded(space, stratified_genes(len(space.columns), SCATTERED, rng))
    scattered = _as_sparse(space, scattered, own.values, rng)
    process, forest = models.process, models.forest
    mean, _ = process(own.values)
    best = float(mean.min())
    parts = [
        scattered,
        _descendants(space, own, mean, scattered, lambda v: -log_gain(best, *process(v)), rng),
        _descendants(space, own, forest(own.values), scattered, forest, rng),
    ]
    values, first = np.unique(np.vstack(parts), axis=0, return_index=True)
    return Pool(values=values, scattered=first < SCATTERED).without(own.values)


def propose(models: Models, pool: Pool, *, count: int, fruitless: int = 0, slow: int = 0) -> Step:
    """Return at most `count` rows of the pool, or measured ones again, to measure next.

    Each row is proposed once. Where trials of a row are alike, none is measured again. So many of
    the last steps were `fruitless`, or brought little (`slow`): the more, the less of this one is
    the process's. Lent rows are learned from, and not measured again. A function of its arguments
    alone.
    """
    choice = _Choice(models, pool)
    batches, steps = EXACT if choice.is_exact else NOISY, fruitless
    if choice.is_exact and slow >= SLOW:
        batches, steps = STUCK, slow - SLOW
    turns = batches[min(steps, len(batches) - 1)]
    improvement = choice.improvement(turns)
    chosen = [] if choice.is_exact or count == 1 else choice.doubtful()
    while len(chosen) < count and choice.allowed.any():
        chosen += choice.picked(turns[len(chosen) % len(turns)]) or choice.picked("process")
    return Step(
        proposals=tuple(chosen),
        improvement=improvement,
        noise=models.scores.unit * math.sqrt(models.process.noise),
    )


def best_known(samples: Samples, *, seed: int) -> int:
    """Return the row that is believed to be best, given how noisy trials are."""
    mean, _ = _process(Scores(samples), seed)(samples.own.values)
    return int(np.argmin(mean))


class _Choice:
    """Beliefs about measured rows and a pool, while a batch is chosen.

    What is chosen is believed to turn out as expected (the kriging believer of Ginsbourger, Le
    Riche and Carraro, Computational Intelligence in Expensive Optimization Problems, 2010): means
    stay, but its like are known better from then on, so that the next one is another.
    """

    def __init__(self, models: Models, pool: Pool) -> None:
        self.models, self.model = models, models.process
        samples = models.scores.samples.own
        self.known = len(samples)
        self.measured = samples.log_target
        self.counts = np.array([len(trials) for trials in samples.measured])
        self.rows = np.vstack([samples.values, pool.values])
        self.outlook = self.model.about(self.rows)
        self.mean, spread = self.outlook.mean, self.outlook.spread
        self.variance = spread**2
        self.noise = np.full(len(self.rows), self.model.noise)
        self.noise[: self.known] = self.model.noises[: self.known] * self.counts
        self.believed = np.arange(len(self.rows)) < self.known
        self.is_exact = models.scores.scatter <= EXACT_SD
        self.allowed = ~self.believed if self.is_exact else np.full(len(self.rows), fill_value=True)
        self.scattered = np.concatenate([np.zeros(self.known, dtype=np.bool_), pool.scattered])
        self.rng = np.random.default_rng(models.seed)
        self.factors: list[Vector] = []

    @property
    def best(self) -> int:
        """The row with the lowest mean of those that are measured, or will be."""
        return int(np.argmin(np.where(self.believed, self.mean, np.inf)))

    @property
    def worth(self) -> Vector:
        """The logarithm of how much a trial of each row is expected to lower the best score."""
        from intop.learn.posterior import log_gain

        best = self.best
        # How far one more trial is expected to move the mean.
        moves = self.variance / np.sqrt(self.variance + self.noise)
        worth = log_gain(self.mean[best], self.mean, moves)
        rival_means = np.where(self.believed, self.mean, np.inf)
        rival_means[best] = np.inf
        if np.isfinite(rival := rival_means.min()):
            # To learn that the best one is not as good is worth as much as what is then taken.
            worth[best] = log_gain(self.mean[best], rival, moves[best])
        return np.where(self.allowed, worth, -np.inf)

    @cached_property
    def hopes(self) -> Vector:
        """The logarithm of how much lower than the best known the forest expects each row (n,)."""
        from intop.learn.posterior import log_gain

        (trees,) = self.models.forest.members(self.rows).values()
        mean = trees.mean(axis=0)
        spread = np.maximum(trees.std(axis=0), ALIKE)
        return np.asarray(log_gain(mean[: self.known].min(), mean, spread))

    def improvement(self, turns: Sequence[Turn]) -> float:
        """Return the expected fall of the log tail by the row that is worth most, 0 without any.

        By the process, or by the forest where it has a turn, and trees don't scatter by noise.
        """
        falls = [self.models.scores.unit * np.exp(self.worth.max(initial=-np.inf))]
        if self.is_exact and "forest" in turns:
            unmeasured = np.where(self.believed, -np.inf, self.hopes)
            falls.append(np.exp(unmeasured.max(initial=-np.inf)))
        return float(max(falls))

    def picked(self, turn: Turn) -> list[Proposal]:
        """Take the row, if any, that is next by what has its turn."""
        if turn == "process":
            row = int(np.argmax(self.worth))
            lower = self.mean[row] < self.mean[self.best]
            return [self.take(row, "promise" if lower else "uncertainty")]
        if turn == "forest":
            # Trees find the edges of a region that is good, which a process draws as a slope.
            return self._first(-self.hopes, "promise")
        # A few trials of bad luck make any model sure that a good region is a bad one, and
        # improvement is never expected there.
        order = self.rng.permutation(len(self.rows)).astype(np.float64)
        order[~self.scattered] = np.inf
        return self._first(order, "uncertainty")

    def doubtful(self) -> list[Proposal]:
        """Take the measured row, if any, that has to be measured again whatever it tells of others.

        The best one, until it has TOLD trials: the lowest of many is lucky more often than good.
        Else the one that surprises most of those that may be as good.
        """
        best = self.best
        if self.counts[best] < TOLD:
            return [self.take(best)]
        limit = self.mean[best] + PROMISING * np.sqrt(self.model.noise)
        low = np.minimum(self.mean[: self.known], self.measured) < limit
        surprise = np.abs(self.model.misses[: self.known]) * (low & (self.counts < TOLD))
        row = int(np.argmax(surprise))
        return [self.take(row)] if surprise[row] > CONTRADICTORY else []

    def _first(self, order: Vector, reason: Reason) -> list[Proposal]:
        """Take the lowest in an order (n,), if any, among those never measured."""
        order = np.where(self.allowed & ~self.believed, order, np.inf)
        row = int(np.argmin(order))
        return [self.take(row, reason)] if np.isfinite(order[row]) else []

    def take(self, row: int, reason: Reason = "replicate") -> Proposal:
        """Choose a row: its measurement counts as known from now on."""
        covariance = self.outlook.covariance(row)
        for factor in self.factors:
            covariance = covariance - factor * factor[row]
        factor = covariance / np.sqrt(self.variance[row] + self.noise[row])
        self.factors.append(factor)
        self.variance = np.maximum(self.variance - factor**2, 1e-24)
        self.allowed[row] = False
        self.believed[row] = True
        return Proposal(values=self.rows[row], reason="replicate" if row < self.known else reason)


def _process(scores: Scores, seed: int) -> "Posterior":
    from intop.learn.posterior import posterior

    samples = scores.samples
    if scores.scatter <= EXACT_SD:
        # Noise is what the process can't follow, of which replicates that are alike say nothing.
        samples = replace(samples, measured=tuple(trials[:1] for trials in samples.measured))
    with one_thread():
        return posterior(samples, seed)


def _descendants(
    space: Space,
    samples: Samples,
    order: Vector,
    rows: Matrix,
    order_of: Callable[[Matrix], Vector],
    rng: np.random.Generator,
) -> Matrix:
    """Return values like the samples that come first by an order, and then like the best of these.

    The lowest come first; `order_of` says it of rows, of which there are some to begin with.
    """
    parents = samples.values[np.argsort(order, kind="stable")[:PARENTS]]
    herd = rows
    for _ in range(ROUNDS):
        herd = np.vstack([herd, _decoded(space, _children(space.genes(parents), rng))])
        parents = herd[np.argsort(order_of(herd), kind="stable")[:PARENTS]]
    return herd[len(rows) :]


def _children(genes: Matrix, rng: np.random.Generator) -> Matrix:
    """Return genes (CHILDREN * n, columns) near these: some moved, a little or anywhere."""
    children = np.repeat(genes, CHILDREN, axis=0)
    count, columns = children.shape
    moved = rng.random((count, columns)) < rng.integers(1, 4, (count, 1)) / columns
    moved[np.arange(count), rng.integers(columns, size=count)] = True
    little = np.clip(children + NEAR * rng.standard_normal(children.shape), 0, 1)
    anywhere = rng.random(children.shape)
    return np.where(moved, np.where(rng.random((count, 1)) < 0.5, little, anywhere), children)


def _as_sparse(space: Space, rows: Matrix, like: Matrix, rng: np.random.Generator) -> Matrix:
    """Return values (n, columns) with as many changes as rows that were measured (m, columns).

    Most parameters do nothing: to change them adds noise, and each change is a risk.
    """
    default = space.values([DEFAULT])
    changed = np.count_nonzero(like != default, axis=1)
    if not changed.any():
        return rows
    differs = rows != default
    # Rows with many changes keep many. Else the rows would be sparser than the measured ones.
    most = np.empty(len(rows), dtype=np.intp)
    most[np.argsort(np.count_nonzero(differs, axis=1), kind="stable")] = np.sort(
        rng.choice(changed[changed > 0], len(rows))
    )
    order = np.where(differs, rng.random(rows.shape), np.inf)
    place = np.argsort(np.argsort(order, axis=1), axis=1)
    return _decoded(space, space.genes(np.where(place < most[:, None], rows, default)))


def _decoded(space: Space, genes: Matrix) -> Matrix:
    # Adding 0.0 turns -0.0 into 0.0, which would otherwise be a configuration of its own.
    return space.decode(genes) + 0.0
