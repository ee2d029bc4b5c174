"""The search for several objectives: NSGA-II over the surrogates.

Deb, Pratap, Agarwal and Meyarivan, IEEE Transactions on Evolutionary Computation 6 (2002),
182-197. Individuals are genes, as in the search for one objective.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.searching.operators import CROSSOVERS, MUTATIONS
from intop.learn.searching.run import first_population
from intop.learn.searching.toolbox import Individual, generation_toolbox, offspring, seeded

Predict = Callable[[Matrix], NDArray[np.float64]]
"""Values (n, columns) to one objective (n,), lower is better."""

GROWTH = 0.001
"""Less of the hypervolume is no reason to go on."""


@dataclass(frozen=True, kw_only=True)
class ParetoResult:
    """Configurations none of which dominates another, and how the search went."""

    values: Matrix
    """Values in the order of the first objective (n, columns)."""
    predicted: Matrix
    """(n, objectives)."""
    hypervolumes: tuple[float, ...]
    """The highest so far after each generation.

    In the box from the best to the worst of each objective in generation 0.
    """
    converged_at: int
    seconds: float


def front(
    space: Space,
    predict: Sequence[Predict],
    *,
    seed: int,
    population: int = 200,
    generations: int = 100,
    patience: int = 15,
    start: Matrix | None = None,
) -> ParetoResult:
    """Search the predicted front of several objectives, all of which are to be low.

    Parents and children compete for their places, so that nothing is lost as long as the front is
    no larger than the population (rounded up to a multiple of four). Those that are predicted
    alike count once. `start`: genes (m, columns) that join the first population, at most half of
    it. Generation 0 is the first population; it ends after `generations` more, or when the
    hypervolume has not grown for `patience` of them. Raises ValueError for a space without
    parameters, fewer than two objectives, sizes that make no population, or predictions that are
    not finite.
    """
    if not space.columns:
        raise ValueError("the space has no parameter to search over")
    if len(predict) < 2:
        raise ValueError(f"a front needs at least two objectives, got {len(predict)}")
    if population < 4 or generations < 0 or patience < 1:
        raise ValueError(
            "population must be at least 4, generations 0 and patience 1, got "
            f"{population}, {generations} and {patience}"
        )
    started = time.perf_counter()
    size = -(-population // 4) * 4
    genes = first_population(space, size, start, seed)
    rng = np.random.default_rng(seed)
    with seeded(seed):
        herd, volumes = _evolve(space, predict, genes, generations, patience, rng)
    values = space.decode(np.array(_best_front(herd)))
    predicted = _predicted(predict, values)
    order = np.lexsort(predicted.T[::-1])
    return ParetoResult(
        values=values[order],
        predicted=predicted[order],
        hypervolumes=tuple(volumes),
        converged_at=_last_growth(volumes),
        seconds=time.perf_counter() - started,
    )


def _evolve(
    space: Space,
    predict: Sequence[Predict],
    first: Matrix,
    generations: int,
    patience: int,
    rng: np.random.Generator,
) -> tuple[list[Individual], list[float]]:
    """Return the last population, and the highest hypervolume so far after each generation."""
    from deap import tools

    toolbox = generation_toolbox(space, len(predict), rng)
    herd = toolbox.population(first)
    costs = _judge(space, predict, herd)
    # A fixed box, so that volumes can be compared; dominance and crowding don't know scales.
    low, reach = costs.min(axis=0), np.ptp(costs, axis=0)
    scaled = partial(_scaled, low=low, reach=np.where(reach > 0, reach, 1.0))
    _fit(herd, scaled(costs))
    herd = tools.selNSGA2(herd, len(herd))
    volumes = [_hypervolume(herd)]
    while len(volumes) <= generations and len(volumes) - 1 - _last_growth(volumes) < patience:
        chosen = tools.selTournamentDCD(herd, len(herd))
        children, _, _ = offspring(toolbox, chosen, CROSSOVERS, MUTATIONS, rng)
        _fit(children, scaled(_judge(space, predict, children)))
        herd = tools.selNSGA2(_competing(herd + children, len(herd)), len(herd), nd="log")
        volumes.append(max(volumes[-1], _hypervolume(herd)))
    return herd, volumes


def _competing(herd: list[Individual], least: int) -> list[Individual]:
    """Return one of each that are predicted alike, more only where there would be too few.

    Trees say the same of many configurations, which would fill the front with copies.
    """
    first: dict[tuple[float, ...], Individual] = {}
    copies = [
        individual
        for individual in herd
        if first.setdefault(individual.fitness.values, individual) is not individual
    ]
    return [*first.values(), *copies[: max(0, least - len(first))]]


def _best_front(herd: list[Individual]) -> list[Individual]:
    """Return individuals that nobody dominates, one of each that are predicted alike."""
    from deap import tools

    # A hundredth of the time of DEAP's other sorting, which compares each with each.
    return list(tools.sortLogNondominated(_competing(herd, 0), len(herd), first_front_only=True))


def _judge(space: Space, predict: Sequence[Predict], herd: list[Individual]) -> Matrix:
    """Return the costs (n, objectives) of all, in one prediction of each objective."""
    return _predicted(predict, space.decode(np.array(herd)))


def _predicted(predict: Sequence[Predict], values: Matrix) -> Matrix:
    columns = [np.asarray(objective(values), dtype=np.float64) for objective in predict]
    for column in columns:
        if column.shape != (len(values),) or not np.all(np.isfinite(column)):
            raise ValueError(
                f"predict must give {len(values)} finite numbers, got the shape {column.shape}"
            )
    return np.column_stack(columns)


def _scaled(costs: Matrix, *, low: NDArray[np.float64], reach: NDArray[np.float64]) -> Matrix:
    return np.asarray((costs - low) / reach, dtype=np.float64)


def _fit(herd: list[Individual], costs: Matrix) -> None:
    for individual, row in zip(herd, costs.tolist(), strict=True):
        individual.fitness.values = row


def _hypervolume(herd: list[Individual]) -> float:
    """Return the share of generation 0's box that the front dominates."""
    from deap.benchmarks.tools import hypervolume

    best = _best_front(herd)
    return float(hypervolume(best, np.ones(len(best[0].fitness.values))))


def _last_growth(volumes: list[float]) -> int:
    """Return the generation after which the front grew no more, by more than GROWTH in all."""
    last = 0
    for generation, volume in enumerate(volumes):
        if volume > volumes[last] * (1 + GROWTH):
            last = generation
    return last
