"""Scores: a target by its ranks, so that a model tells good rows apart as well as bad from worse.

Latencies differ by a factor of thousands between bad rows and by a thousandth between the best. A
process that knows both in logarithms takes the best ones for alike. Ranks part them the more, the
more of them are known, and an overloaded trial is only the last of all (the copula transform of
Salinas, Shen and Perrone, Proceedings of ICML 2020, 8488-8498).
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from intop.learn.samples import Samples, Vector

NEIGHBOURS = 3
"""The levels at either end by whose distance scores go on beyond what is known."""
GOOD = 0.25
"""The share of the levels by whose distance from the lowest a score is worth something."""


@dataclass(frozen=True)
class Scores:
    """The normal scores of samples: what a normal variable has at the ranks of their rows."""

    of: Samples

    @cached_property
    def samples(self) -> Samples:
        """The same rows; their log target is the score.

        Each trial has its own, by its place among the rows' medians.
        """
        trials = [np.exp(self._scores(np.log(trials))) for trials in self.of.measured]
        return replace(self.of, measured=tuple(tuple(row.tolist()) for row in trials))

    @cached_property
    def unit(self) -> float:
        """The log target that one score is worth among good rows, 0 where all are alike."""
        levels, scores = self._known
        last = min(max(1, int(GOOD * len(levels))), len(levels) - 1)
        return float((levels[last] - levels[0]) / (scores[last] - scores[0])) if last else 0.0

    @property
    def scatter(self) -> float:
        """The standard deviation of a trial's log target by replicates, infinite without any.

        The fewer there are, the more it may be, since few may be alike by chance.
        """
        from intop.learn.posterior import scatter

        freedom = sum(len(trials) - 1 for trials in self.of.measured)
        return math.sqrt(scatter(self.of)[0] * (1 + 2 / freedom)) if freedom else math.inf

    @cached_property
    def _known(self) -> tuple[Vector, Vector]:
        """The different log targets in ascending order, and the scores of their mean ranks."""
        from scipy.special import ndtri

        levels, counts = np.unique(self.of.log_target, return_counts=True)
        ranks = np.cumsum(counts) - 0.5 * counts
        return levels, np.asarray(ndtri(ranks / counts.sum()))

    def _scores(self, log_target: Vector) -> Vector:
        """Return the scores (n,) of log targets (n,), on a straight line beyond the known ones."""
        levels, scores = self._known
        inside = np.interp(log_target, levels, scores)
        few = min(NEIGHBOURS, len(levels) - 1)
        if not few:
            return np.asarray(inside)
        below = (scores[few] - scores[0]) / (levels[few] - levels[0])
        above = (scores[-1] - scores[-1 - few]) / (levels[-1] - levels[-1 - few])
        return np.asarray(
            inside
            + below * np.minimum(log_target - levels[0], 0)
            + above * np.maximum(log_target - levels[-1], 0)
        )
