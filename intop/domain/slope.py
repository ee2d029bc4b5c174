"""Straight lines through measurements over time, with an interval of their slope."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from intop.domain.stats import centred, student_quantile

BATCHES = 10
"""Batches of a series whose neighbours are alike. A batch is longer than what neighbours share. The
number is enough for Student's t (Schmeiser, Operations Research 30, 1982, 556-568: 10 to 30)."""

Point = tuple[float, float, str]
"""A time, a value, and its group."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Least squares through values over times, for groups with heights of their own."""

    slope: float
    middle: float
    """The mean time."""
    height: float
    """The mean value."""
    spread: float
    """The sum of squares of times about their group's mean."""
    variance: float
    """The variance about the line."""
    reach: float
    """Student's t."""
    count: int
    share: float
    """The share (0 to 1) of the variance within groups that the line explains."""

    @property
    def half(self) -> float:
        """Half the interval of the slope."""
        return self.reach * math.sqrt(self.variance / self.spread)

    def at(self, time: float) -> tuple[float, float]:
        """Return the line's height, and half its interval: a mean's and a slope's (independent)."""
        away = time - self.middle
        half = self.reach * math.sqrt(self.variance * (1 / self.count + away**2 / self.spread))
        return self.height + self.slope * away, half


def fitted(points: Sequence[Point], level: float) -> Line | None:
    """Return the line through points that scatter independently, with Student's interval.

    Each further group takes a degree of freedom. None for too few points, or all at one time.
    """
    groups = [group for _, _, group in points]
    freedom = len(points) - len(set(groups)) - 1
    times, values = [time for time, _, _ in points], [value for _, value, _ in points]
    apart, around = centred(times, groups), centred(values, groups)
    spread = math.fsum(t**2 for t in apart)
    if freedom < 1 or spread == 0:
        return None
    slope = math.fsum(t * y for t, y in zip(apart, around, strict=True)) / spread
    left = math.fsum((y - slope * t) ** 2 for t, y in zip(apart, around, strict=True))
    total = math.fsum(y**2 for y in around)
    return Line(
        slope=slope,
        middle=fmean(times),
        height=fmean(values),
        spread=spread,
        variance=left / freedom,
        reach=student_quantile(level, freedom),
        count=len(points),
        share=max(0.0, 1 - left / total) if total else 0.0,
    )


def in_batches(points: Sequence[Point], batches: int = BATCHES) -> list[Point]:
    """Return the means of so many batches of neighbours, each of one group, for `fitted`.

    Points in a row are no independent witnesses: what makes one high makes the next one high. Means
    of batches longer than that nearly are (the method of batch means). Points must be in order of
    time. The rest at the end of a group is left out where it is shorter than half a batch. Where
    there are many groups, the longest still has two batches.
    """
    groups = [(group, list(members)) for group, members in groupby(points, key=lambda p: p[2])]
    longest = max((len(own) for _, own in groups), default=0)
    size = max(1, min(math.ceil(len(points) / batches), longest // 2))
    means: list[Point] = []
    for group, own in groups:
        for start in range(0, len(own), size):
            batch = own[start : start + size]
            if 2 * len(batch) >= size:
                means.append((fmean(t for t, _, _ in batch), fmean(v for _, v, _ in batch), group))
    return means
