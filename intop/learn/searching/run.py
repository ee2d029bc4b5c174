"""A search under way: what was predicted, what is left of the budget, and how the best fell.

All algorithms share it: they propose genes and are told scores.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.design import stratified_genes
from intop.learn.fitness import Estimate
from intop.learn.samples import Vector

Predict = Callable[[Matrix], NDArray[np.float64] | Estimate]
"""Values (n, columns) to log latency (n,), or to estimates, which may have a penalty."""

IMPROVEMENT = 0.001
"""The least gain in log latency: less than 0.1 % is no reason to go on."""
MOST_REMEMBERED = 20_000


def estimated(predict: Predict, values: Matrix) -> Estimate:
    """Return estimates of values (n, columns); predictions alone have no spread."""
    prediction = predict(values)
    if isinstance(prediction, Estimate):
        return prediction
    sure = np.asarray(prediction, dtype=np.float64)
    return Estimate(sure, np.zeros(sure.shape), sure)


class EndedError(Exception):
    """The budget is spent, or nothing gets better: the algorithm's turn is over."""


class Known(NamedTuple):
    """A configuration that was predicted: its score, log latency, spread and values (columns,)."""

    score: float
    log_latency: float
    spread: float
    values: Vector


@dataclass
class Run:
    """The budget of one search, and the memory of every configuration that it predicted.

    `first` are genes (population, columns) to begin with. There are predictions for `generations`
    more populations. `patience` is how many of them may go by without an improvement.
    """

    space: Space
    predict: Predict
    first: Matrix
    generations: int
    patience: int
    seed: int
    best: list[Known] = field(default_factory=list)
    predictions: int = 0
    restarts: int = 0
    _seen: dict[bytes, Known] = field(default_factory=dict)
    _lowest: Known | None = None

    @property
    def population(self) -> int:
        """The number of individuals in a generation."""
        return len(self.first)

    @property
    def converged_at(self) -> int:
        """The generation after which the best improved no more, by more than IMPROVEMENT in all."""
        return last_improvement([known.score for known in self.best])

    @property
    def is_stalled(self) -> bool:
        """Whether the best has not improved for as long as patience lasts."""
        return len(self.best) - 1 - self.converged_at >= self.patience

    def scores(self, genes: Matrix) -> Vector:
        """Return scores (n,) of genes (n, columns), all in one prediction.

        Raises EndedError when the budget is spent; what it still lasts for is predicted.
        ValueError for predictions that are no finite numbers.
        """
        left = self.population * (self.generations + 1) - self.predictions
        affordable = genes[:left]
        scores = self._predicted(affordable) if len(affordable) else np.empty(0)
        if len(affordable) < len(genes):
            raise EndedError
        return scores

    def scores_unless_stalled(self, genes: Matrix) -> Vector:
        """Return the same. Raises EndedError also when patience is at its end."""
        if self.is_stalled:
            raise EndedError
        return self.scores(genes)

    def ranked(self, count: int) -> list[Known]:
        """Return the `count` lowest; of equals the first one."""
        return nsmallest(count, self._seen.values(), key=lambda known: known.score)

    def _predicted(self, genes: Matrix) -> Vector:
        # Adding 0.0 turns -0.0 into 0.0, so that equal configurations have equal bytes.
        values = self.space.decode(genes) + 0.0
        estimate = estimated(self.predict, values)
        scores = estimate.score
        if scores.shape != (len(genes),) or not np.all(np.isfinite(scores)):
            raise ValueError(
                f"predict must give {len(genes)} finite numbers, got the shape {scores.shape}"
            )
        columns = (scores.tolist(), estimate.log_latency.tolist(), estimate.spread.tolist())
        for score, log_latency, spread, row in zip(*columns, values, strict=True):
            place = row.tobytes()
            if place not in self._seen:
                self._seen[place] = Known(score, log_latency, spread, row)
                if self._lowest is None or score < self._lowest.score:
                    self._lowest = self._seen[place]
        before = self.predictions // self.population
        self.predictions += len(genes)
        if self._lowest is not None:
            self.best += [self._lowest] * (self.predictions // self.population - before)
        if len(self._seen) > MOST_REMEMBERED:
            kept = self.ranked(MOST_REMEMBERED // 2)
            self._seen = {known.values.tobytes(): known for known in kept}
        return scores


def first_population(space: Space, population: int, start: Matrix | None, seed: int) -> Matrix:
    """Return genes (population, columns) of generation 0: `start`, and a design that fills up.

    At most half of it is given. Raises ValueError for genes of another number of columns.
    """
    columns = len(space.columns)
    given = np.empty((0, columns)) if start is None else start[: population // 2]
    if given.ndim != 2 or given.shape[1] != columns:
        raise ValueError(f"start must have {columns} columns, got the shape {given.shape}")
    rng = np.random.default_rng(seed)
    return np.vstack([given, stratified_genes(columns, population - len(given), rng)])


def last_improvement(scores: list[float]) -> int:
    """Return the place after which scores got no lower, by more than IMPROVEMENT in all."""
    last = 0
    for place, score in enumerate(scores):
        if score < scores[last] - IMPROVEMENT:
            last = place
    return last
