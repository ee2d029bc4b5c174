"""Made-up tables whose target has modes, for benchmarks/modes.py."""

from functools import cache
from typing import Any

import numpy as np

from intop.domain.encoding import Variable
from intop.learn.samples import Samples

SEED = 2401
OPTIONS = (10, 20)
ROWS = 60_000
NEAREST, FARTHEST = 3.0, 200.0
"""The factors by which the target differs between two modes."""
SWITCH, SLOPE = 0.2, 0.4
"""Within a mode, the most that a switch adds to the log target, and the factor of the strongest
number."""


@cache
def made_up(number: int) -> Samples:
    """A table: all rows that its options allow, or ROWS of them, drawn at random.

    Options are whole numbers from 0 on, switches first. A table with two modes has one pair of
    switches that decides, a table with three modes has two pairs. A row is in a pair's mode where
    both switches are on. Where both pairs are on, the first one decides.
    """
    rng = np.random.default_rng([SEED, number])
    options = int(rng.integers(OPTIONS[0], OPTIONS[1] + 1))
    switches = int(rng.integers(4, options // 2 + 1))
    levels = np.array([2] * switches + rng.integers(3, 8, options - switches).tolist())
    values = every_row(levels)
    if values is None:
        drawn = np.unique(rng.integers(0, levels, size=(2 * ROWS, options)), axis=0)
        values = drawn[np.sort(rng.permutation(len(drawn))[:ROWS])]
    log_target = smooth(rng, values / (levels - 1), switches) + modes(rng, values, number)
    return Samples(
        variables=tuple(
            Variable(name=f"o{n}", key=f"o{n}", low=0.0, high=float(level - 1))
            for n, level in enumerate(levels.tolist())
        ),
        values=values.astype(np.float64),
        measured=tuple((value,) for value in np.exp(log_target).tolist()),
    )


def every_row(levels: Any) -> Any:
    """All combinations (n, options), or None where there are more than ROWS."""
    if np.prod(levels.astype(np.float64)) > ROWS:
        return None
    return np.stack(np.meshgrid(*map(np.arange, levels), indexing="ij"), -1).reshape(
        -1, len(levels)
    )


def modes(rng: np.random.Generator, values: Any, number: int) -> Any:
    """The logarithm of each row's mode (n,), by the first four columns: two modes, or three."""
    count = 2 + number % 2
    widest = rng.uniform(np.log(NEAREST) * (count - 1), np.log(FARTHEST))
    heights = [0.0, widest]
    if count == 3:
        heights.insert(1, rng.uniform(np.log(NEAREST), widest - np.log(NEAREST)))
    elsewhere, first, *second = rng.permutation(heights).tolist()
    pairs = [(values[:, 0] & values[:, 1]) == 1, (values[:, 2] & values[:, 3]) == 1]
    return np.select(pairs[: count - 1], [first, *second], default=elsewhere)


def smooth(rng: np.random.Generator, places: Any, switches: int) -> Any:
    """What options add to the log target (n,) by their places in their range (0 to 1).

    Numbers come in a random order, and each has half the factor of the one before. By turns they
    have a slope, or a bow that adds up to 2.6 times its factor. The product of the first two adds
    SLOPE once more.
    """
    total = places[:, :switches] @ rng.uniform(-SWITCH, SWITCH, switches)
    numbers = switches + rng.permutation(places.shape[1] - switches)
    for order, column in enumerate(numbers):
        place = places[:, column]
        shape = place if order % 2 == 0 else 4 * (place - rng.uniform(0.2, 0.8)) ** 2
        total = total + SLOPE * 0.5**order * rng.choice([-1.0, 1.0]) * shape
    return total + SLOPE * places[:, numbers[0]] * places[:, numbers[1]]
