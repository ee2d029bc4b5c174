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


def sliced_genes(columns: int, slices: int, size: int, rng: np.random.Generator) -> Matrix:
    """Genes (slices * size, columns) in [0, 1), stratified in each slice and as a whole.

    A sliced Latin hypercube (Qian, Journal of the American Statistical Association 107, 2012,
    393-399): a slice has one value in each of `size` strata, all of them together one in each of
    slices * size. So whoever stops after any slice has measured a design that fills the space.
    """
    shape = (slices, size, columns)
    stratum = rng.permuted(np.broadcast_to(np.arange(size)[None, :, None], shape), axis=1)
    # Within each stratum, each slice has a part of its own.
    part = rng.permuted(np.broadcast_to(np.arange(slices)[:, None, None], shape), axis=0)
    place = stratum * slices + np.take_along_axis(part, stratum, axis=1) + rng.random(shape)
    return np.asarray(place / (slices * size), dtype=np.float64).reshape(-1, columns)


def latin_hypercube(
    space: Space, count: int, *, seed: int, batch: int | None = None
) -> list[Configuration]:
    """`count` different, feasible configurations that fill the space evenly.

    So does each `batch` of them in turn, where that is given. Decoding may make two rows equal
    (rounding, repairs, few choices); such rows are replaced from further hypercubes. A space with
    fewer than `count` configurations gives fewer. Raises ValueError for a negative count.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    rng = np.random.default_rng(seed)
    columns = len(space.columns)
    chosen: dict[bytes, Matrix] = {}
    genes = (
        sliced_genes(columns, -(-count // batch), batch, rng)
        if batch
        else stratified_genes(columns, count, rng)
    )
    fruitless = 0
    while len(chosen) < count and fruitless < FRUITLESS_ROUNDS:
        before = len(chosen)
        # Adding 0.0 turns -0.0 into 0.0, which would otherwise be a configuration of its own.
        for row in space.decode(genes) + 0.0:
            chosen.setdefault(row.tobytes(), row)
        fruitless = fruitless + 1 if len(chosen) == before else 0
        genes = stratified_genes(columns, max(count - len(chosen), SMALLEST_ROUND), rng)
    # The first hypercube stands first in the dict, so cutting the surplus leaves it whole.
    rows = list(chosen.values())[:count]
    return space.configurations(np.array(rows).reshape(len(rows), len(space.columns)))
