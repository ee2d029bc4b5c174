"""Statistics of latencies: geometric means, ratios and differences, with intervals."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance


@dataclass(frozen=True)
class Interval:
    """A ratio, mean, difference or share with its confidence interval, in the unit of the value."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return such as 3.46 (1.55 to 7.70)."""
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers. Raises ValueError when there are none."""
    if not values:
        raise ValueError("no values")
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def paired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, level: float
) -> Interval:
    """The geometric mean of numerator / denominator over pairs, with a Student t interval.

    The interval is that of the mean of the logarithms (n - 1 degrees of freedom). It takes the
    pairs as independent, which a random order within each pair sees to, and their log ratios as
    roughly symmetric. benchmarks/results/intervals.md compares its coverage with block bootstraps,
    which need more than ten pairs.
    Raises ValueError with fewer than two pairs, or lists of different lengths.
    """
    if len(numerators) != len(denominators):
        raise ValueError(f"{len(numerators)} values against {len(denominators)}")
    ratios = [a / b for a, b in zip(numerators, denominators, strict=True)]
    return geometric_interval(ratios, level=level)


def geometric_interval(values: Sequence[float], *, level: float) -> Interval:
    """The geometric mean of positive numbers, with a Student t interval of the mean logarithm.

    It takes the values as independent. Raises ValueError for fewer than two.
    """
    mean, half = _student([math.log(v) for v in values], level)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def paired_difference(
    minuends: Sequence[float], subtrahends: Sequence[float], *, level: float
) -> Interval:
    """The mean of minuend - subtrahend over pairs, with a Student t interval.

    For what may be zero, and so has no logarithm; else as `paired_ratio`. Raises ValueError with
    fewer than two pairs, or lists of different lengths.
    """
    if len(minuends) != len(subtrahends):
        raise ValueError(f"{len(minuends)} values against {len(subtrahends)}")
    mean, half = _student([a - b for a, b in zip(minuends, subtrahends, strict=True)], level)
    return Interval(mean, mean - half, mean + half)


def _student(values: Sequence[float], level: float) -> tuple[float, float]:
    """The mean, and half the length of Student's t interval about it."""
    count = len(values)
    if count < 2:
        raise ValueError(f"an interval needs two values or more, got {count}")
    mean = math.fsum(values) / count
    spread = math.fsum((x - mean) ** 2 for x in values) / (count - 1)
    return mean, student_quantile(level, count - 1) * math.sqrt(spread / count)


def unpaired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, level: float
) -> Interval:
    """The ratio of two geometric means of independent values, with Welch's interval on the logs.

    Variances may differ; the degrees of freedom are Welch and Satterthwaite's. Raises ValueError
    with fewer than two values on either side.
    """
    fewest = min(len(numerators), len(denominators))
    if fewest < 2:
        raise ValueError(f"an interval needs two values or more on both sides, got {fewest}")
    sides = [[math.log(v) for v in values] for values in (numerators, denominators)]
    mean = fmean(sides[0]) - fmean(sides[1])
    errors = [variance(logs) / len(logs) for logs in sides]
    weight = sum(e**2 / (len(logs) - 1) for e, logs in zip(errors, sides, strict=True))
    # Values without any spread have no degrees of freedom, and need none.
    t = student_quantile(level, sum(errors) ** 2 / weight) if weight else 0.0
    half = t * math.sqrt(sum(errors))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def difference(minuend: Interval, subtrahend: Interval) -> Interval:
    """The difference of two independent means, with an interval from their two intervals.

    MOVER, the method of variance estimates recovery (Zou and Donner, Statistics in Medicine 27,
    2008, 1693-1702): each limit recovers the variances from the single limits next to it, so that
    intervals may be asymmetric, as those of geometric means are. All at the same level. From
    Student intervals of a few values it covers somewhat more than it says.
    """
    value = minuend.value - subtrahend.value
    below = math.hypot(minuend.value - minuend.low, subtrahend.high - subtrahend.value)
    above = math.hypot(minuend.high - minuend.value, subtrahend.value - subtrahend.low)
    return Interval(value, value - below, value + above)


def centred(values: Sequence[float], groups: Sequence[str]) -> list[float]:
    """Each value less the mean of its group, which takes a degree of freedom for each group."""
    members: dict[str, list[float]] = defaultdict(list)
    for value, group in zip(values, groups, strict=True):
        members[group].append(value)
    means = {group: fmean(found) for group, found in members.items()}
    return [value - means[group] for value, group in zip(values, groups, strict=True)]


def bonferroni(level: float, comparisons: int) -> float:
    """The level of each of several intervals that are all to hold together with `level`."""
    return 1 - (1 - level) / max(1, comparisons)


def student_quantile(level: float, freedom: float) -> float:
    """What Student's t stays within, on both sides, with probability `level`.

    As `scipy.stats.t.ppf` computes it, whose module takes half a second to import.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def student_p_value(t: float, freedom: float) -> float:
    """The probability of a Student's t as far from 0 as this one, on either side."""
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(t)))


def chi_square_quantile(share: float, freedom: float) -> float:
    """What chi-square stays below with the probability `share`, as `chi2.ppf` has it."""
    from scipy.special import gammaincinv

    return 2 * float(gammaincinv(freedom / 2, share))
