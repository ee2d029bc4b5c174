"""Which percentiles of some requests can be told: those that enough slower requests are behind."""

import math
from collections.abc import Mapping

from intop.domain.histogram import Histogram

BEHIND = 10
"""Requests that are slower than a percentile, at least: with fewer it is the time of a few."""

PERCENTS: Mapping[str, float] = {"P50": 50.0, "P90": 90.0, "P99": 99.0, "P99.9": 99.9}
"""What is told of a side of a verdict, by name."""


def requests_for(percent: float) -> int:
    """How many requests a percentile takes: 1,000 for P99, 10,000 for P99.9.

    Raises ValueError for a percentile that is not below 100.
    """
    if not 0 <= percent < 100:
        raise ValueError(f"percentile {percent} is not in 0..100 (without 100)")
    # Rounding first: 99.9 % of 10,000 leaves 9.999999999999432 in binary, and is to leave ten.
    return math.ceil(round(BEHIND * 100 / (100 - percent), 6))


def told_ms(histogram: Histogram, percent: float) -> float | None:
    """A percentile in ms, None where too few requests are behind it. Raises as `requests_for`."""
    if histogram.total < requests_for(percent):
        return None
    return histogram.percentile_ms(percent)
