"""The genetic algorithm.

Individuals are genes in [0, 1], and `Space.decode` makes every one of them feasible. DEAP's toolbox
has the operators, its logbook the course of a herd, and its hall of fame the best of all herds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intop.domain.encoding import Matrix
from intop.learn.design import stratified_genes
from intop.learn.samples import Rows, Vector
from intop.learn.searching.operators import CROSSOVERS, MUTATIONS, NONE, pairs
from intop.learn.searching.run import IMPROVEMENT, Run, last_improvement
from intop.learn.searching.toolbox import Individual, Toolbox, generation_toolbox, offspring, seeded

TOURNAMENT = 3
ELITE_SHARE = 0.02
LEAST_CHANCE = 0.1
"""The least chance of each operator: one that is of no use now may be later."""
LEARNING_RATE = 0.2


def genetic(run: Run) -> None:
    """Generations, one prediction each, until the run has ended or a restart gained nothing.

    The best of a herd survive in it. A herd that does not get better for as long as patience lasts
    makes room for one that knows nothing of it; the hall of fame keeps the best of all herds.
    """
    from deap import tools

    rng = np.random.default_rng(run.seed)
    toolbox = generation_toolbox(run.space, 1, rng)
    toolbox.register("evaluate", _fitnesses, run)
    toolbox.register("select", tools.selTournament, tournsize=TOURNAMENT)
    toolbox.register("survive", tools.selBest)
    fame = tools.HallOfFame(1)
    with seeded(run.seed):
        _evolve(run, toolbox, run.first, fame, rng)
        while True:
            run.restarts += 1
            lowest = _score(fame[0])
            first = stratified_genes(run.first.shape[1], run.population, rng)
            _evolve(run, toolbox, first, fame, rng)
            if _score(fame[0]) > lowest - IMPROVEMENT:
                return


def _evolve(run: Run, toolbox: Toolbox, first: Matrix, fame: Any, rng: np.random.Generator) -> None:
    """Let a herd evolve until it has converged. Its best compete for the hall of fame."""
    from deap import tools

    statistics = tools.Statistics(key=_score)
    statistics.register("lowest", min)
    logbook = tools.Logbook()
    crossovers, mutations = _Rates(list(CROSSOVERS)), _Rates(list(MUTATIONS))
    elite = max(1, round(ELITE_SHARE * len(first)))
    herd = toolbox.population(first)
    _evaluate(toolbox, herd)
    herd = toolbox.survive(herd, len(herd))
    fame.update(herd)
    logbook.record(**statistics.compile(herd))
    while not _is_stalled(logbook, run.patience):
        parents = toolbox.select(herd, len(herd))
        children, crossing, changing = offspring(
            toolbox, parents, crossovers.chances, mutations.chances, rng
        )
        _evaluate(toolbox, children)
        is_better = _scores(children) < _better_parent(_scores(parents), crossing)
        crossovers.learn(crossing, is_better)
        mutations.learn(changing, is_better)
        herd = toolbox.survive([*herd[:elite], *children], run.population)
        fame.update(children)
        logbook.record(**statistics.compile(herd))


def _is_stalled(logbook: Any, patience: int) -> bool:
    """Whether a herd has not got better for as long as patience lasts."""
    lowest = logbook.select("lowest")
    return len(lowest) - 1 - last_improvement(lowest) >= patience


def _fitnesses(run: Run, genes: Matrix) -> list[tuple[float]]:
    """Return DEAP's fitness values of genes (n, columns), by one prediction."""
    return [(score,) for score in run.scores(genes).tolist()]


def _evaluate(toolbox: Toolbox, herd: Sequence[Individual]) -> None:
    """Give each individual its fitness."""
    fitnesses = toolbox.map(toolbox.evaluate, herd)
    for individual, values in zip(herd, fitnesses, strict=True):
        individual.fitness.values = values


def _score(individual: Individual) -> float:
    """Return the only value of an individual's fitness."""
    return float(individual.fitness.values[0])


def _scores(herd: Sequence[Individual]) -> Vector:
    """Return the scores (n,) of individuals."""
    return np.array([_score(individual) for individual in herd])


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
        """Take in whether each child is better, and the operators that were used for it."""
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
    """Return the score of each child's better parent; its only one where nothing was crossed."""
    first, second = pairs(len(of_parents))
    better = of_parents.copy()
    better[first] = better[second] = np.minimum(of_parents[first], of_parents[second])
    return np.where(crossing == NONE, of_parents, better)
