"""Statistics of latencies: geometric means, ratios and differences, with intervals."""

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
class Interval:
    """A quantity with its confidence interval, all in the quantity's unit."""

    value: float
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
    logs = [math.log(a / b) for a, b in zip(numerators, denominators, strict=True)]
    if len(logs) < 2:
        raise ValueError(f"an interval needs two pairs or more, got {len(logs)}")
    mean, variance = _mean_and_variance(logs)
    half = _t(level, len(logs) - 1) * math.sqrt(variance / len(logs))
    return RatioInterval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def geometric_mean_interval(values: Sequence[float], *, level: float) -> Interval:
    """The geometric mean of positive numbers with a Student t interval on their logarithms.

    Raises ValueError with fewer than two values.
    """
    if len(values) < 2:
        raise ValueError(f"an interval needs two values or more, got {len(values)}")
    mean, variance = _mean_and_variance([math.log(v) for v in values])
    half = _t(level, len(values) - 1) * math.sqrt(variance / len(values))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def unpaired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, level: float
) -> RatioInterval:
    """The ratio of two geometric means of independent values, with Welch's interval on the logs.

    Variances may differ; the degrees of freedom are Welch and Satterthwaite's. Raises ValueError
    with fewer than two values on either side.
    """
    fewest = min(len(numerators), len(denominators))
    if fewest < 2:
        raise ValueError(f"an interval needs two values or more on both sides, got {fewest}")
    means, squares, weights = 0.0, 0.0, 0.0
    for sign, values in ((1, numerators), (-1, denominators)):
        mean, variance = _mean_and_variance([math.log(v) for v in values])
        error = variance / len(values)
        means += sign * mean
        squares += error
        weights += error**2 / (len(values) - 1)
    # Values without any spread have no degrees of freedom, and need none.
    half = _t(level, squares**2 / weights) * math.sqrt(squares) if weights else 0.0
    return RatioInterval(math.exp(means), math.exp(means - half), math.exp(means + half))


def difference(minuend: Interval, subtrahend: Interval) -> Interval:
    """The difference of two independent quantities, with an interval from their two intervals.

    MOVER, the method of variance estimates recovery (Zou and Donner, Statistics in Medicine 27,
    2008, 1693-1702): each limit recovers the variances from the single limits next to it, so that
    intervals may be asymmetric, as those of geometric means are. All at the same level. From
    Student intervals of a few values it covers somewhat more than it says.
    """
    value = minuend.value - subtrahend.value
    low = math.hypot(minuend.value - minuend.low, subtrahend.high - subtrahend.value)
    high = math.hypot(minuend.high - minuend.value, subtrahend.value - subtrahend.low)
    return Interval(value, value - low, value + high)


def _mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the sample variance (n - 1) of two values or more."""
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1)


def _t(level: float, freedom: float) -> float:
    """The two-sided quantile of Student's t."""
    from scipy import stats

    return float(stats.t.ppf((1 + level) / 2, freedom))
