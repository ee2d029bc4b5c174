"""Drift: whether the default's P99 changed while a stage was measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from intop.domain.stats import RatioInterval, centred
from intop.domain.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Drift:
    """How the default's P99 moved over `hours`, from the first of `sentinels` to the last.

    `change` is P99 at the end / at the beginning, and `per_hour` the slope of log P99 per hour,
    both with an interval at `level`; `share` (0 to 1) is how much of the variance of the sentinels'
    log P99 on a replica the slope explains. All three are None where there are fewer than three
    sentinels, and one more for each further replica, or no time between them.
    """

    sentinels: int
    hours: float
    level: float
    change: RatioInterval | None = None
    per_hour: tuple[float, float, float] | None = None
    share: float | None = None

    @property
    def is_separated(self) -> bool:
        """Whether the interval leaves out that nothing changed."""
        return self.change is not None and not self.change.low <= 1 <= self.change.high


def drift(trials: Sequence[Trial], *, level: float) -> Drift:
    """The drift of the default among these trials; the other configurations don't count.

    The least-squares line through log P99 over the time of measurement, with Student's interval
    of its slope (n - 2 degrees of freedom). Replicas have parallel lines, each at a height of its
    own, and every further one takes a degree of freedom. It takes the sentinels as scattered
    independently about the line: what comes and goes within the stage is in the scatter, and an
    interval of sentinels that follow each other's noise is too narrow.
    """
    from scipy import stats

    made = [t for t in trials if t.configuration.is_default and t.usable]
    starts = [datetime.fromisoformat(t.started_at).timestamp() / 3600 for t in made]
    hours = max(starts) - min(starts) if made else 0.0
    replicas = [t.replica for t in made]
    freedom = len(made) - len(set(replicas)) - 1
    times = centred(starts, replicas)
    spread_of_times = math.fsum(t**2 for t in times)
    if freedom < 1 or spread_of_times == 0:
        return Drift(sentinels=len(made), hours=hours, level=level)
    around = centred([math.log(t.p99_ms) for t in made], replicas)
    slope = math.fsum(t * y for t, y in zip(times, around, strict=True)) / spread_of_times
    left = math.fsum((y - slope * t) ** 2 for t, y in zip(times, around, strict=True))
    total = math.fsum(y**2 for y in around)
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * math.sqrt(
        left / freedom / spread_of_times
    )
    slopes = (slope, slope - half, slope + half)
    return Drift(
        sentinels=len(made),
        hours=hours,
        level=level,
        # Three sentinels at a high level have intervals beyond what a float can hold.
        change=RatioInterval(*(math.exp(min(s * hours, 700.0)) for s in slopes)),
        per_hour=slopes,
        share=max(0.0, 1 - left / total) if total else 0.0,
    )
