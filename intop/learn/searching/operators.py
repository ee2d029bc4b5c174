"""Operators of the evolutionary searches, on genes in [0, 1], for a whole generation at once."""

import numpy as np
from numpy.typing import NDArray

from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.samples import Rows

BLEND = 0.3
"""The distance beyond its parents that a blended gene may have, in units of their distance."""

NONE = 0
UNIFORM, BLENDED = 1, 2
MOVED, DRAWN = 1, 2
CROSSOVERS, MUTATIONS = (0.3, 0.35, 0.35), (0.5, 0.25, 0.25)
"""The chances of these operators, NONE first."""


def numeric(space: Space) -> NDArray[np.bool_]:
    """Return whether each column of a space is a number; the others are names."""
    return np.array([column.component is not None for column in space.columns])


def pairs(count: int) -> tuple[slice, slice]:
    """Return the rows that mate: the first half with the second, without an odd last one."""
    return slice(0, count // 2), slice(count // 2, count // 2 * 2)


def crossed(
    parents: Matrix, crossing: Rows, numbers: NDArray[np.bool_], rng: np.random.Generator
) -> Matrix:
    """Swap genes, or blend numbers and swap names: half-way between names lies nothing.

    Uniform crossover, and the BLX-alpha of Eshelman and Schaffer (Foundations of Genetic Algorithms
    2, 1993, 187-202).
    """
    first, second = pairs(len(parents))
    mother, father, kind = parents[first], parents[second], crossing[first, None]
    swaps = (kind != NONE) & (rng.random(mother.shape) < 0.5)
    share = np.where(swaps, 1.0, 0.0)
    between = (1 + 2 * BLEND) * rng.random(mother.shape) - BLEND
    share = np.where((kind == BLENDED) & numbers, between, share)
    children = parents.copy()
    children[first] = (1 - share) * mother + share * father
    children[second] = share * mother + (1 - share) * father
    return children


def mutated(
    genes: Matrix, changing: Rows, numbers: NDArray[np.bool_], rng: np.random.Generator
) -> Matrix:
    """Move some numbers by a little, or draw some genes of any kind again."""
    rows, columns = genes.shape
    # From a third of the range down to fine tuning, so that no schedule is needed.
    steps = 10 ** rng.uniform(-2.5, -0.5, (rows, 1)) * rng.standard_normal(genes.shape)
    chance = min(0.5, 2 / max(1, numbers.sum()))
    moves = (changing == MOVED)[:, None] & numbers & (rng.random(genes.shape) < chance)
    draws = (changing == DRAWN)[:, None] & (rng.random(genes.shape) < 1.5 / columns)
    moved = np.where(moves, genes + steps, genes)
    return np.where(draws, rng.random(genes.shape), moved)
