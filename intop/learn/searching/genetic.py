"""The genetic algorithm.

Individuals are genes in [0, 1], and `Space.decode` makes every one of them feasible. DEAP compares
and selects them; what changes their genes does so for a whole generation at once.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intop.domain.encoding import Matrix
from intop.learn.design import stratified_genes
from intop.learn.samples import Rows, Vector
from intop.learn.searching.operators import (
    CROSSOVERS,
    MUTATIONS,
    NONE,
    numeric,
    offspring,
    pairs,
    seeded,
)
from intop.learn.searching.run import IMPROVEMENT, Run, last_improvement

TOURNAMENT = 3
ELITE_SHARE = 0.02
LEAST_CHANCE = 0.1
"""Of each operator: what is of no use now may be later."""
LEARNING_RATE = 0.2


def genetic(run: Run) -> None:
    """Generations, one prediction each, until the run has ended or a restart gained nothing.

    The best of a herd survive in it. A herd that does not get better for as long as patience lasts
    makes room for one that knows nothing of it; the run remembers its best.
    """
    rng = np.random.default_rng(run.seed)
    with seeded(run.seed):
        lowest = _evolved(run, run.first, rng)
        while True:
            run.restarts += 1
            columns = run.first.shape[1]
            before = lowest
            lowest = min(before, _evolved(run, stratified_genes(columns, run.population, rng), rng))
            if lowest > before - IMPROVEMENT:
                return


def _evolved(run: Run, herd: Matrix, rng: np.random.Generator) -> float:
    """The lowest score of a herd when it has converged."""
    numbers = numeric(run.space)
    crossovers, mutations = _Rates(list(CROSSOVERS)), _Rates(list(MUTATIONS))
    elite = max(1, round(ELITE_SHARE * len(herd)))
    scores = run.scores(herd)
    order = np.argsort(scores, kind="stable")
    herd, scores = herd[order], scores[order]
    best = [float(scores[0])]
    while len(best) - 1 - last_improvement(best) < run.patience:
        parents = _selected(scores)
        children, crossing, changing = offspring(
            herd[parents], numbers, crossovers.chances, mutations.chances, rng
        )
        told = run.scores(children)
        is_better = told < _better_parent(scores[parents], crossing)
        crossovers.learn(crossing, is_better)
        mutations.learn(changing, is_better)
        herd = np.vstack([herd[:elite], children])
        scores = np.concatenate([scores[:elite], told])
        order = np.argsort(scores, kind="stable")[: run.population]
        herd, scores = herd[order], scores[order]
        best.append(float(scores[0]))
    return best[-1]


class _Individual(NamedTuple):
    """Its row in the herd, and what DEAP compares: the higher the better."""

    place: int
    merit: float


def _selected(scores: Vector) -> Rows:
    """The places of as many parents, each the best of a tournament."""
    from deap import tools

    # Numbers, not DEAP's fitness objects: to make and compare those takes longer than all the rest.
    herd = list(map(_Individual, range(len(scores)), (-scores).tolist()))
    chosen = tools.selTournament(herd, len(herd), TOURNAMENT, fit_attr="merit")
    return np.array([individual.place for individual in chosen])


@dataclass
class _Rates:
    """Chances of three operators (the first leaves all as it is), by the success of each.

    Probability matching, as in Thierens (Proceedings of GECCO 2005, 1539-1546): success is the
    share of children that are better than the better one of their parents.
    """

    chances: list[float]
    _quality: Vector = field(init=False)

    def __post_init__(self) -> None:
        self._quality = np.array(self.chances)

    def learn(self, used: Rows, is_better: NDArray[np.bool_]) -> None:
        """What came of the operators that were used for each child."""
        kinds = len(self.chances)
        tries = np.bincount(used, minlength=kinds)
        successes = np.bincount(used, weights=is_better, minlength=kinds)
        tried = tries > 0
        shares = successes[tried] / tries[tried]
        self._quality[tried] += LEARNING_RATE * (shares - self._quality[tried])
        # Near convergence nothing succeeds: then they become equal, not undefined.
        quality = self._quality + 1e-6
        chances = LEAST_CHANCE + (1 - kinds * LEAST_CHANCE) * quality / quality.sum()
        self.chances = (chances / chances.sum()).tolist()


def _better_parent(of_parents: Vector, crossing: Rows) -> Vector:
    """For each child the score of its better parent; its only one where nothing was crossed."""
    one, other = pairs(len(of_parents))
    better = of_parents.copy()
    better[one] = better[other] = np.minimum(of_parents[one], of_parents[other])
    return np.where(crossing == NONE, of_parents, better)
