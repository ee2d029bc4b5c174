"""Designs: which configurations to measure when nothing is known yet."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.encoding import Matrix
from intop.domain.space import Space

FRUITLESS_ROUNDS = 10
SMALLEST_ROUND = 64
LEVEL_WIDTH = 0.1
"""The width of each of the three levels of a screening, as a share of the range."""

VARIED = 40
"""Parameters that vary in a configuration of a screening."""
FEW_CHOICES = 3
"""A parameter with more choices than that varies the more often."""


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

    def first() -> list[Configuration]:
        if batch:
            return decoded(sliced_genes(columns, -(-count // batch), batch, rng))
        return decoded(stratified_genes(columns, count, rng))

    def decoded(genes: Matrix) -> list[Configuration]:
        return space.configurations(space.decode(genes))

    return _different(count, first, lambda n: decoded(stratified_genes(columns, n, rng)))


def screening_design(
    space: Space, count: int, *, seed: int, batch: int, varied: int = VARIED
) -> list[Configuration]:
    """`count` different, feasible configurations that tell most of each parameter's effect.

    About `varied` parameters vary in a configuration, each of them equally often (one with many
    choices more often), and the others keep their defaults: what those would do is noise to a test,
    and more so where they do it together. Where a number varies it is near the low end, the middle
    or the high end of its range, and a choice is any but the default (in a small space, in which
    all parameters vary, it is any). In each `batch` of configurations all of these come about
    equally often, and in an order of each column's own. A slope shows in the ends half as much
    again as in values from all over the range, a bow in the middle. As `latin_hypercube` for equal
    rows and small spaces.
    """
    rng = np.random.default_rng(seed)
    keys = [p.key for p in space.parameters]
    share = min(1.0, varied / max(1, len(keys)))
    # Of many choices each would be in a trial or two.
    shares = [min(1.0, share * max(1.0, len(p.choices) / FEW_CHOICES)) for p in space.parameters]

    def drawn(slices: int, size: int) -> list[Configuration]:
        genes = _levels(space, sliced_genes(len(space.columns), slices, size, rng), share < 1)
        varies = sliced_genes(len(keys), slices, size, rng) < shares
        whole = space.configurations(space.decode(genes))
        return [
            _without(space, c, {k for k, is_varied in zip(keys, row, strict=True) if not is_varied})
            for c, row in zip(whole, varies, strict=True)
        ]

    return _different(count, lambda: drawn(-(-count // batch), batch), lambda n: drawn(1, n))


def _levels(space: Space, genes: Matrix, moves: bool) -> Matrix:
    """Genes of numbers at three levels, each LEVEL_WIDTH wide, so that few are equal.

    With `moves` none is the host's own: neither a choice, nor a number outside of the range.
    """
    level = np.minimum(np.floor(3 * genes), 2)
    within = 3 * genes - level
    levels = level * (1 - LEVEL_WIDTH) / 2 + LEVEL_WIDTH * within
    for n, column in enumerate(space.columns):
        if column.component is not None and moves:
            levels[:, n] = column.variable.beside_own(levels[:, n])
        elif column.component is None:
            levels[:, n] = genes[:, n]
            choices, default = column.parameter.choices, space.defaults.get(column.parameter.key)
            if moves and default in choices and len(choices) > 1:
                offsets = 1 + np.floor(genes[:, n] * (len(choices) - 1))
                index = (choices.index(default) + offsets) % len(choices)
                levels[:, n] = (index + 0.5) / len(choices)
    return np.asarray(levels)


def _different(
    count: int,
    first: Callable[[], list[Configuration]],
    further: Callable[[int], list[Configuration]],
) -> list[Configuration]:
    """The `first` configurations without equal ones, and of `further` ones as many as are missing.

    Raises ValueError for a negative count.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    chosen: dict[str, Configuration] = {}
    fruitless = 0
    while len(chosen) < count and fruitless < FRUITLESS_ROUNDS:
        before = len(chosen)
        drawn = further(max(count - before, SMALLEST_ROUND)) if chosen else first()
        for configuration in drawn:
            chosen.setdefault(configuration.digest, configuration)
        fruitless = fruitless + 1 if len(chosen) == before else 0
    # The first ones stand first in the dict, so cutting the surplus leaves them whole.
    return list(chosen.values())[:count]


def _without(space: Space, configuration: Configuration, keys: set[str]) -> Configuration:
    """A configuration without these keys, but for those that only change with one that stays."""
    for group in space.together(configuration, DEFAULT):
        if not group <= keys:
            keys = keys - group
    return Configuration({k: v for k, v in configuration.values.items() if k not in keys})


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
    A key that would never be drawn has a place of one that is drawn often, since it would leave the
    space.
    In a large space few parameters act, and what all the others do together is noise. What only
    changes together with something that stays, stays too.
    """
    keys = list(priors)
    if len(keys) <= most:
        return list(configurations)
    rng = np.random.default_rng(seed)
    weights = np.array([priors[key] for key in keys])
    drawn = [
        set(rng.choice(len(keys), most, replace=False, p=weights / weights.sum()).tolist())
        for _ in configurations
    ]
    if drawn:
        _cover(drawn, len(keys), rng)
    return [
        _without(space, configuration, set(keys) - {keys[n] for n in some})
        for configuration, some in zip(configurations, drawn, strict=True)
    ]


def _cover(drawn: Sequence[set[int]], count: int, rng: np.random.Generator) -> None:
    """Give each of so many keys that was not drawn a place of one that was drawn often.

    A key gives up half of its places at most, so that likely ones are still drawn more often.
    """
    counts = Counter(n for some in drawn for n in some)
    spare = Counter({n: places // 2 for n, places in counts.items()})
    for missing in sorted(set(range(count)) - counts.keys()):
        most, left = spare.most_common(1)[0]
        if not left:
            return
        having = [some for some in drawn if most in some]
        chosen = having[int(rng.integers(len(having)))]
        chosen.remove(most)
        chosen.add(missing)
        spare[most] -= 1
