"""Pilots: how long a trial has to be."""

import math
from dataclasses import dataclass

from intop.domain.histogram import PERCENTS, Statistic, requests_for

SHORTEST_S = 2


def durations(rate_rps: float, max_s: int, judged_by: Statistic = "P99") -> tuple[int, ...]:
    """Return the durations to try, in whole seconds: the shortest that will do, then doubled.

    A judged percentile rests on ten requests that are slower; a mean takes as many as P90. Raises
    ValueError where the shortest one is above `max_s`.
    """
    requests = requests_for(PERCENTS.get(judged_by, PERCENTS["P90"]))
    tried = [max(SHORTEST_S, math.ceil(requests / rate_rps))]
    if tried[0] > max_s:
        raise ValueError(
            f"at {rate_rps:g} requests/s it takes {tried[0]} s to send the {requests:,} requests "
            f"that {judged_by} takes; that is more than pilot_max_s ({max_s})"
        )
    while 2 * tried[-1] <= max_s:
        tried.append(2 * tried[-1])
    return tuple(tried)


@dataclass(frozen=True, kw_only=True)
class TriedDuration:
    """The default's trials of one duration."""

    duration_s: int
    requests: int
    """Requests that are sent in each trial."""
    trials: int
    judged_ms: float
    """The geometric mean of the trials."""
    sd: float
    """The standard deviation of the log of the judged latency, with its interval."""
    sd_low: float
    sd_high: float
    resolution: float
    """The reach of the interval of a verdict of the pilot's pairs, as a ratio (above 1)."""
    resolution_low: float
    """The resolution by the low end of the interval of `sd`."""
    resolution_high: float
    pairs_needed: int | None
    """Pairs whose interval would reach no farther than wanted, None where that takes too many."""
    seconds: float
    """The mean time of a trial, all of it."""


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """The duration of trials that a pilot chose. All intervals are at `level`."""

    duration_s: int
    tried: tuple[TriedDuration, ...]
    """The durations in ascending order."""
    reached: bool
    """Whether verdicts of so many `pairs` resolve the ratio `wanted` with it."""
    stalled: bool
    """Whether longer trials were given up since they scattered no less."""
    wanted: float
    pairs: int
    level: float
    given_s: int | None = None
    """The file's duration, which then stands in place of the chosen one."""
    judged_by: Statistic = "P99"
    connections: int | None = None
    """The connections that share all requests; None where some clients open new ones."""

    @property
    def chosen(self) -> TriedDuration:
        """The trials of the chosen duration."""
        return next(tried for tried in self.tried if tried.duration_s == self.duration_s)
