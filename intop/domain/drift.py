"""Drift: whether the default's latency changed while a stage was measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from intop.domain.histogram import Statistic
from intop.domain.slope import Line, fitted
from intop.domain.stats import Interval, ratio_of_logs
from intop.domain.trial import AnyTrial, judged_by

TREND_POINTS = 24
"""Parts of a trend's length, between which its height is computed."""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The drift of the latency that the default is judged by, from the first sentinel to the last.

    Without a slope the last three fields are None: it takes three sentinels, one more for each
    further replica, and time between them.
    """

    sentinels: int
    """The number of trials of the default."""
    hours: float
    """The time from the first sentinel to the last."""
    level: float
    change: Interval | None = None
    """The latency at the end / at the beginning."""
    per_hour: tuple[float, float, float] | None = None
    """The slope of its logarithm per hour, with its interval."""
    share: float | None = None
    """The share (0 to 1) of the variance of that logarithm on a replica that the slope explains."""

    @property
    def is_separated(self) -> bool:
        """Whether the interval leaves out that nothing changed."""
        return self.change is not None and not self.change.low <= 1 <= self.change.high


@dataclass(frozen=True, kw_only=True)
class Sentinel:
    """A trial of the default."""

    hours: float
    """Hours from the first one's start to its own."""
    judged_ms: float
    replica: str
    """The replica that it was measured on."""


@dataclass(frozen=True, kw_only=True)
class TrendPoint:
    """The height of the fitted line after some hours."""

    hours: float
    judged_ms: Interval


@dataclass(frozen=True, kw_only=True)
class Sentinels:
    """The default's trials in order of time, and the line through them."""

    sentinels: tuple[Sentinel, ...]
    trend: tuple[TrendPoint, ...]
    """Points of the line for the mean of the replicas, none where there is no slope. Intervals have
    the drift's level, each for itself."""
    drift: Drift
    judged_by: Statistic = "P99"


def drift(trials: Sequence[AnyTrial], *, level: float) -> Drift:
    """Return the drift of the default among these trials; the other configurations don't count.

    The least-squares line through log latency over the time of measurement, with Student's interval
    of its slope (n - 2 degrees of freedom). Replicas have parallel lines, each at a height of its
    own, and every further one takes a degree of freedom. It takes the sentinels as scattered
    independently about the line: what comes and goes within the stage is in the scatter, and an
    interval of sentinels that follow each other's noise is too narrow.
    """
    return sentinels(trials, level=level).drift


def sentinels(trials: Sequence[AnyTrial], *, level: float) -> Sentinels:
    """Return the default's usable trials, with their trend and the drift."""
    defaults = [t for t in trials if t.configuration.is_default and t.usable]
    starts = [datetime.fromisoformat(t.started_at).timestamp() / 3600 for t in defaults]
    begin = min(starts, default=0.0)
    measured = sorted(
        (
            Sentinel(hours=start - begin, judged_ms=t.judged_ms, replica=t.replica)
            for start, t in zip(starts, defaults, strict=True)
        ),
        key=lambda sentinel: sentinel.hours,
    )
    hours = measured[-1].hours if measured else 0.0
    untold = Drift(sentinels=len(measured), hours=hours, level=level)
    line = fitted([(s.hours, math.log(s.judged_ms), s.replica) for s in measured], level)
    name = judged_by(defaults)
    if line is None:
        return Sentinels(sentinels=tuple(measured), trend=(), drift=untold, judged_by=name)
    slopes = (line.slope, line.slope - line.half, line.slope + line.half)
    return Sentinels(
        sentinels=tuple(measured),
        trend=tuple(_point(line, hours * n / TREND_POINTS) for n in range(TREND_POINTS + 1)),
        drift=replace(
            untold,
            change=ratio_of_logs(*(slope * hours for slope in slopes)),
            per_hour=slopes,
            share=line.share,
        ),
        judged_by=name,
    )


def _point(line: Line, hours: float) -> TrendPoint:
    log, half = line.at(hours)
    return TrendPoint(hours=hours, judged_ms=ratio_of_logs(log, log - half, log + half))
