"""DEAP's toolbox for genes in [0, 1]: its operators and its `map` take a whole generation at once.

DEAP's own operators change one individual or pair at a time, which takes longer than the models.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.samples import Rows
from intop.learn.searching.operators import NONE, crossed, mutated, numeric

Toolbox = Any
"""DEAP's `base.Toolbox`, which has no types."""


class Individual(list[float]):
    """Genes with DEAP's fitness."""

    fitness: Any


def generation_toolbox(space: Space, objectives: int, rng: np.random.Generator) -> Toolbox:
    """Return a toolbox with `population`, `map`, `mate` and `mutate`; all objectives are costs.

    `population` makes individuals of genes (n, columns). A search registers its own `evaluate`,
    which takes genes (n, columns), and its `select`.
    """
    from deap import base

    # What DEAP's `creator` would put into a module of its own, once for the whole process.
    costs = type("Costs", (base.Fitness,), {"weights": (-1.0,) * objectives})
    toolbox = base.Toolbox()
    toolbox.register("population", _population, costs)
    toolbox.register("map", _at_once)
    numbers = numeric(space)
    toolbox.register("mate", crossed, numbers=numbers, rng=rng)
    toolbox.register("mutate", mutated, numbers=numbers, rng=rng)
    return toolbox


def offspring(
    toolbox: Toolbox,
    parents: Sequence[Individual],
    crossovers: Sequence[float],
    mutations: Sequence[float],
    rng: np.random.Generator,
) -> tuple[list[Individual], Rows, Rows]:
    """Return a child for each of the parents, which mate in this order, and how each was made.

    How: the operators (n,) of crossover and of mutation, drawn by these chances. This is DEAP's
    `varAnd` with several operators of each kind.
    """
    count = len(parents)
    couples = rng.choice(len(crossovers), count // 2, p=crossovers)
    crossing = np.concatenate([couples, couples, np.full(count % 2, NONE)])
    changing = rng.choice(len(mutations), count, p=mutations)
    # Neither would be a copy, and a prediction for nothing.
    is_copy = (crossing == NONE) & (changing == NONE)
    changing = np.where(is_copy, rng.integers(1, 3, count), changing)
    genes = toolbox.mutate(toolbox.mate(np.array(parents), crossing), changing)
    return toolbox.population(np.clip(genes, 0.0, 1.0)), crossing, changing


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """DEAP draws from the global generator of `random`: seeded here, and restored afterwards."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def _population(costs: Callable[[], Any], genes: Matrix) -> list[Individual]:
    """Return individuals of genes (n, columns), none of which has a fitness yet."""
    herd = [Individual(row) for row in genes.tolist()]
    for individual in herd:
        individual.fitness = costs()
    return herd


def _at_once(evaluate: Callable[[Matrix], Any], herd: Sequence[Individual]) -> Any:
    """Return what DEAP's `map` would, by one call for all individuals."""
    return evaluate(np.array(herd))
