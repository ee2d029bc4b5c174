"""Statistics of paired measurements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RatioInterval:
    """A ratio with its confidence interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class MeanInterval:
    """A geometric mean with its confidence interval, in the unit of the values."""

    mean: float
    low: float
    high: float


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers. Raises ValueError when there are none."""
    if not values:
        raise ValueError("no values")
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def paired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, level: float
) -> RatioInterval:
    """The geometric mean of numerator / denominator over pairs, with a Student t interval.

    The interval is that of the mean of the logarithms (n - 1 degrees of freedom). It takes the
    pairs as independent, and their log ratios as roughly symmetric; it is wider than a percentile
    bootstrap, which covers too little at fewer than some twenty pairs.
    Raises ValueError with fewer than two pairs, or lists of different lengths.
    """
    if len(numerators) != len(denominators):
        raise ValueError(f"{len(numerators)} values against {len(denominators)}")
    ratios = [a / b for a, b in zip(numerators, denominators, strict=True)]
    found = geometric_interval(ratios, level=level)
    return RatioInterval(found.mean, found.low, found.high)


def geometric_interval(values: Sequence[float], *, level: float) -> MeanInterval:
    """The geometric mean of positive numbers, with a Student t interval of the mean logarithm.

    It takes the values as independent. Raises ValueError for fewer than two.
    """
    from scipy import stats

    logs = [math.log(v) for v in values]
    count = len(logs)
    if count < 2:
        raise ValueError(f"an interval needs two values or more, got {count}")
    mean = math.fsum(logs) / count
    variance = math.fsum((x - mean) ** 2 for x in logs) / (count - 1)
    half = float(stats.t.ppf((1 + level) / 2, count - 1)) * math.sqrt(variance / count)
    return MeanInterval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def bonferroni(level: float, comparisons: int) -> float:
    """The level of each of several intervals that are all to hold together with `level`."""
    return 1 - (1 - level) / max(1, comparisons)
