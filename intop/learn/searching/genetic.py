"""The genetic algorithm.

Individuals are genes in [0, 1], and `Space.decode` makes every one of them feasible. DEAP compares
and selects them; what changes their genes does so for a whole generation at once.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intop.domain.encoding import Matrix
from intop.learn.design import stratified_genes
from intop.learn.samples import Rows, Vector
from intop.learn.searching.run import IMPROVEMENT, Run, last_improvement

TOURNAMENT = 3
ELITE_SHARE = 0.02
BLEND = 0.3
"""How far beyond its parents a blended gene may lie, in units of their distance."""
LEAST_CHANCE = 0.1
"""Of each operator: what is of no use now may be later."""
LEARNING_RATE = 0.2

NONE = 0
UNIFORM, BLENDED = 1, 2
MOVED, DRAWN = 1, 2


def genetic(run: Run) -> None:
    """Generations, one prediction each, until the run has ended or a restart gained nothing.

    The best of a herd survive in it. A herd that does not get better for as long as patience lasts
    makes room for one that knows nothing of it; the run remembers its best.
    """
    rng = np.random.default_rng(run.seed)
    with _seeded(run.seed):
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
    numbers = np.array([column.component is not None for column in run.space.columns])
    crossovers, mutations = _Rates([0.3, 0.35, 0.35]), _Rates([0.5, 0.25, 0.25])
    elite = max(1, round(ELITE_SHARE * len(herd)))
    scores = run.scores(herd)
    order = np.argsort(scores, kind="stable")
    herd, scores = herd[order], scores[order]
    best = [float(scores[0])]
    while len(best) - 1 - last_improvement(best) < run.patience:
        parents = _selected(scores)
        crossing = np.resize(np.tile(crossovers.drawn(len(herd) // 2, rng), 2), len(herd))
        changing = mutations.drawn(len(herd), rng)
        # Neither would be a copy, and a prediction for nothing.
        changing = np.where(
            (crossing == NONE) & (changing == NONE), rng.integers(1, 3, len(herd)), changing
        )
        children = _crossed(herd[parents], crossing, numbers, rng)
        children = np.clip(_mutated(children, changing, numbers, rng), 0.0, 1.0)
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

    def drawn(self, count: int, rng: np.random.Generator) -> Rows:
        """An operator for each of so many."""
        return np.asarray(rng.choice(len(self.chances), count, p=self.chances))

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


def _pairs(count: int) -> tuple[slice, slice]:
    """Which rows mate: the first half with the second; of an odd number, the last one doesn't."""
    return slice(0, count // 2), slice(count // 2, count // 2 * 2)


def _better_parent(of_parents: Vector, crossing: Rows) -> Vector:
    """For each child the score of its better parent; its only one where nothing was crossed."""
    one, other = _pairs(len(of_parents))
    better = of_parents.copy()
    better[one] = better[other] = np.minimum(of_parents[one], of_parents[other])
    return np.where(crossing == NONE, of_parents, better)


def _crossed(
    parents: Matrix, crossing: Rows, numbers: NDArray[np.bool_], rng: np.random.Generator
) -> Matrix:
    """Swaps genes, or blends numbers and swaps names: half-way between names lies nothing.

    Uniform crossover, and the BLX-alpha of Eshelman and Schaffer (Foundations of Genetic Algorithms
    2, 1993, 187-202).
    """
    first, second = _pairs(len(parents))
    one, other, kind = parents[first], parents[second], crossing[first, None]
    swaps = (kind != NONE) & (rng.random(one.shape) < 0.5)
    share = np.where(swaps, 1.0, 0.0)
    between = (1 + 2 * BLEND) * rng.random(one.shape) - BLEND
    share = np.where((kind == BLENDED) & numbers, between, share)
    children = parents.copy()
    children[first] = (1 - share) * one + share * other
    children[second] = share * one + (1 - share) * other
    return children


def _mutated(
    genes: Matrix, changing: Rows, numbers: NDArray[np.bool_], rng: np.random.Generator
) -> Matrix:
    """Moves some numbers by a little, or draws some genes of any kind anew."""
    rows, columns = genes.shape
    # From a third of the range down to fine tuning, so that no schedule is needed.
    steps = 10 ** rng.uniform(-2.5, -0.5, (rows, 1)) * rng.standard_normal(genes.shape)
    chance = min(0.5, 2 / max(1, numbers.sum()))
    moves = (changing == MOVED)[:, None] & numbers & (rng.random(genes.shape) < chance)
    draws = (changing == DRAWN)[:, None] & (rng.random(genes.shape) < 1.5 / columns)
    moved = np.where(moves, genes + steps, genes)
    return np.where(draws, rng.random(genes.shape), moved)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """DEAP draws from the global generator of `random`: seeded here, given back as it was."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
