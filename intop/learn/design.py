"""Designs: which configurations to measure when nothing is known yet."""

import numpy as np

from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix
from intop.domain.space import Space

FRUITLESS_ROUNDS = 10
SMALLEST_ROUND = 64


def stratified_genes(columns: int, count: int, rng: np.random.Generator) -> Matrix:
    """Genes (count, columns) in [0, 1): each column has one value in each of `count` strata."""
    from scipy.stats import qmc

    if columns == 0 or count == 0:
        return np.empty((count, columns))
    sample = qmc.LatinHypercube(d=columns, rng=rng).random(count)
    return np.asarray(sample, dtype=np.float64)


def latin_hypercube(space: Space, count: int, *, seed: int) -> list[Configuration]:
    """`count` different, feasible configurations that fill the space evenly.

    Decoding may make two rows equal (rounding, repairs, few choices); such rows are replaced
    from further hypercubes. A space with fewer than `count` configurations gives fewer. Raises
    ValueError for a negative count.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    rng = np.random.default_rng(seed)
    chosen: dict[bytes, Matrix] = {}
    wanted = count
    fruitless = 0
    while len(chosen) < count and fruitless < FRUITLESS_ROUNDS:
        before = len(chosen)
        # Adding 0.0 turns -0.0 into 0.0, which would otherwise be a configuration of its own.
        for row in space.decode(stratified_genes(len(space.columns), wanted, rng)) + 0.0:
            chosen.setdefault(row.tobytes(), row)
        fruitless = fruitless + 1 if len(chosen) == before else 0
        wanted = max(count - len(chosen), SMALLEST_ROUND)
    # The first hypercube stands first in the dict, so cutting the surplus leaves it whole.
    rows = list(chosen.values())[:count]
    return space.configurations(np.array(rows).reshape(len(rows), len(space.columns)))
