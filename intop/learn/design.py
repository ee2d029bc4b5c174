"""Designs: which configurations to measure when nothing is known yet."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.encoding import Matrix
from intop.domain.space import Space

FRUITLESS_ROUNDS = 10
SMALLEST_ROUND = 64
LEVEL_WIDTH = 0.1
"""Of each of the three levels of a screening, as a share of the range."""


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
    rng = np.random.default_rng(seed)
    columns = len(space.columns)

    def first() -> Matrix:
        if batch:
            return sliced_genes(columns, -(-count // batch), batch, rng)
        return stratified_genes(columns, count, rng)

    return _different(space, count, first, lambda n: stratified_genes(columns, n, rng))


def screening_design(space: Space, count: int, *, seed: int, batch: int) -> list[Configuration]:
    """`count` different, feasible configurations that tell most of each parameter's effect.

    Numbers are near the low end, the middle or the high end of their range, and choices are any; in
    each `batch` of configurations all of these come about equally often, and in an
    order of each column's own. A slope shows in the ends half as much again as in values from all
    over the range, a bow in the middle. As `latin_hypercube` for equal rows and small spaces.
    """
    rng = np.random.default_rng(seed)
    is_number = np.array([c.component is not None for c in space.columns], dtype=bool)

    def levels(slices: int, size: int) -> Matrix:
        genes = sliced_genes(len(space.columns), slices, size, rng)
        return np.where(is_number, _levels(genes), genes)

    return _different(
        space, count, lambda: levels(-(-count // batch), batch), lambda n: levels(1, n)
    )


def _levels(genes: Matrix) -> Matrix:
    """Genes at three levels, each of them LEVEL_WIDTH wide, so that few are equal."""
    level = np.minimum(np.floor(3 * genes), 2)
    within = 3 * genes - level
    return np.asarray(level * (1 - LEVEL_WIDTH) / 2 + LEVEL_WIDTH * within)


def _different(
    space: Space, count: int, first: Callable[[], Matrix], further: Callable[[int], Matrix]
) -> list[Configuration]:
    """Rows of the `first` genes that decode to different values, and of `further` ones."""
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    chosen: dict[bytes, Matrix] = {}
    genes = first()
    fruitless = 0
    while len(chosen) < count and fruitless < FRUITLESS_ROUNDS:
        before = len(chosen)
        # Adding 0.0 turns -0.0 into 0.0, which would otherwise be a configuration of its own.
        for row in space.decode(genes) + 0.0:
            chosen.setdefault(row.tobytes(), row)
        fruitless = fruitless + 1 if len(chosen) == before else 0
        genes = further(max(count - len(chosen), SMALLEST_ROUND))
    # The first genes stand first in the dict, so cutting the surplus leaves them whole.
    rows = list(chosen.values())[:count]
    return space.configurations(np.array(rows).reshape(len(rows), len(space.columns)))


def sparse(
    space: Space,
    configurations: Sequence[Configuration],
    priors: Mapping[str, float],
    most: int,
    *,
    seed: int,
) -> list[Configuration]:
    """The configurations with about `most` of the keys in `priors` each, and without the others.

    Which, is drawn anew for each of them: the more likely a key acts by its prior, the more often.
    In a large space few parameters act, and what all the others do together is noise. What only
    changes together with something that stays, stays too.
    """
    keys = list(priors)
    if len(keys) <= most:
        return list(configurations)
    rng = np.random.default_rng(seed)
    weights = np.array([priors[key] for key in keys])
    found: list[Configuration] = []
    for configuration in configurations:
        drawn = rng.choice(len(keys), most, replace=False, p=weights / weights.sum())
        left_out = set(keys) - {keys[n] for n in drawn}
        for group in space.together(configuration, DEFAULT):
            if not group <= left_out:
                left_out -= group
        values = {k: v for k, v in configuration.values.items() if k not in left_out}
        found.append(Configuration(values))
    return found
