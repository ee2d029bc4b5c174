"""Statistics of latencies: geometric means, ratios and differences, with intervals."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

SMALLEST_SERIES = 10
"""Rounds from which on there are early looks; fewer are looked at once."""

FIRST_LOOK = 7
"""Rounds before the first look. A few rounds look alike where a rare time-out has not been met yet,
and it is then that they seem clear. Simulated (95 %, lumpy P99): with a look after 5 of 10 rounds,
91 % of the intervals held the truth, after 7 rounds 96 %, and 94 % without an early look."""

SPENDING_POWER = 3
"""The power of time by which the error rate is spent. Early looks get little, so the last one loses
hardly any."""

MOST_LOG = 700.0
"""The largest logarithm of what a float can hold, rounded down."""

MOST_SHOWN = 1_000_000
"""The largest limit of a ratio that is shown. An interval of two pairs may be beyond it."""


@dataclass(frozen=True)
class Interval:
    """A ratio, mean, difference or share with its confidence interval, in the unit of the value."""

    value: float
    low: float
    high: float

    @property
    def inverse(self) -> "Interval":
        """Return the ratio of the other side to this one."""
        return Interval(1 / self.value, 1 / self.high, 1 / self.low)

    @property
    def limits(self) -> str:
        """Return such as 1.55 to 7.70."""
        high = f"{self.high:.2f}" if self.high <= MOST_SHOWN else f"over {MOST_SHOWN:,}"
        return f"{self.low:.2f} to {high}"

    def __str__(self) -> str:
        """Return such as 3.46 (1.55 to 7.70)."""
        return f"{self.value:.2f} ({self.limits})"


def exponential(log: float) -> float:
    """Return e ** log, limited to what a float can hold.

    An interval of two values at a high level may be beyond it.
    """
    return math.exp(max(min(log, MOST_LOG), -MOST_LOG))


def ratio_of_logs(mean: float, low: float, high: float) -> Interval:
    """Return a mean of logarithms and its limits as a ratio, limited to what a float can hold."""
    return Interval(exponential(mean), exponential(low), exponential(high))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers. Raises ValueError when there are none."""
    if not values:
        raise ValueError("no values")
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def paired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, level: float
) -> Interval:
    """Return the geometric mean of numerator / denominator over pairs, with a Student t interval.

    The interval is that of the mean of the logarithms (n - 1 degrees of freedom). It takes the
    pairs as independent, which a random order within each pair sees to, and their log ratios as
    roughly symmetric. benchmarks/results/verdicts.md compares its coverage with block bootstraps,
    which need more than ten pairs.
    Raises ValueError with fewer than two pairs, or lists of different lengths.
    """
    if len(numerators) != len(denominators):
        raise ValueError(f"{len(numerators)} values against {len(denominators)}")
    ratios = [a / b for a, b in zip(numerators, denominators, strict=True)]
    return geometric_interval(ratios, level=level)


def geometric_interval(values: Sequence[float], *, level: float) -> Interval:
    """Return the geometric mean of positive numbers, with a Student t interval.

    The interval is that of the mean logarithm. It takes the values as independent. Raises
    ValueError for fewer than two.
    """
    mean, half = _student([math.log(v) for v in values], level)
    return ratio_of_logs(mean, mean - half, mean + half)


def paired_difference(
    minuends: Sequence[float], subtrahends: Sequence[float], *, level: float
) -> Interval:
    """Return the mean of minuend - subtrahend over pairs, with a Student t interval.

    For what may be zero, and so has no logarithm; else as `paired_ratio`. Raises ValueError with
    fewer than two pairs, or lists of different lengths.
    """
    if len(minuends) != len(subtrahends):
        raise ValueError(f"{len(minuends)} values against {len(subtrahends)}")
    mean, half = _student([a - b for a, b in zip(minuends, subtrahends, strict=True)], level)
    return Interval(mean, mean - half, mean + half)


def _student(values: Sequence[float], level: float) -> tuple[float, float]:
    """Return the mean, and half the length of Student's t interval about it."""
    count = len(values)
    if count < 2:
        raise ValueError(f"an interval needs two values or more, got {count}")
    mean = math.fsum(values) / count
    spread = math.fsum((x - mean) ** 2 for x in values) / (count - 1)
    return mean, student_quantile(level, count - 1) * math.sqrt(spread / count)


def unpaired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], *, level: float
) -> Interval:
    """Return the ratio of two geometric means of independent values, with Welch's interval.

    The interval is on the logarithms. Variances may differ; the degrees of freedom are Welch and
    Satterthwaite's. Raises ValueError with fewer than two values on either side.
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
    return ratio_of_logs(mean, mean - half, mean + half)


def difference(minuend: Interval, subtrahend: Interval) -> Interval:
    """Return the difference of two independent means, with an interval from their two intervals.

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
    """Return each value less the mean of its group, which takes a degree of freedom."""
    members: dict[str, list[float]] = defaultdict(list)
    for value, group in zip(values, groups, strict=True):
        members[group].append(value)
    means = {group: fmean(group_values) for group, group_values in members.items()}
    return [value - means[group] for value, group in zip(values, groups, strict=True)]


def bonferroni(level: float, comparisons: int) -> float:
    """Return the level of each of several intervals that are all to hold together with `level`."""
    return 1 - (1 - level) / max(1, comparisons)


def student_quantile(level: float, freedom: float) -> float:
    """Return the distance that Student's t keeps to on both sides with probability `level`.

    As `scipy.stats.t.ppf` computes it, whose module takes half a second to import.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def student_p_value(t: float, freedom: float) -> float:
    """Return the probability of a Student's t as far from 0 as this one, on either side."""
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(t)))


def chi_square_quantile(share: float, freedom: float) -> float:
    """Return the value that chi-square stays below with the probability `share`."""
    from scipy.special import gammaincinv

    return 2 * float(gammaincinv(freedom / 2, share))


@dataclass(frozen=True)
class Look:
    """One look at the rounds so far."""

    rounds: int
    level: float
    """The level of the interval that is formed there."""


def looks(rounds: int, count: int, *, level: float) -> tuple[Look, ...]:
    """Return up to `count` looks at equal distances, the last one after all `rounds`.

    By a share t of the rounds, t**3 of the error rate (1 - `level`) is spent: the power family of
    Kim and DeMets (Biometrika 74, 1987, 149-154), which is close to O'Brien and Fleming's bounds.
    Each look has what is spent since the one before. So the intervals of all looks hold together
    at `level` (Bonferroni), however they depend on each other, and stopping at any of them is
    free. Reckoning with their dependence would win next to nothing: of two looks, the last one
    has 4.4 % of 5 %, and could have 4.7 %.
    """
    number_of_looks = count if rounds >= SMALLEST_SERIES else 1
    ends = {math.ceil(rounds * n / number_of_looks) for n in range(1, number_of_looks + 1)}
    schedule: list[Look] = []
    spent = 0.0
    for end in sorted({min(rounds, max(FIRST_LOOK, end)) for end in ends}):
        by_then = (1 - level) * (end / rounds) ** SPENDING_POWER
        schedule.append(Look(end, 1 - (by_then - spent)))
        spent = by_then
    return tuple(schedule)
