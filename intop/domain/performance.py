"""Performance metrics of a trial, as a row of numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from intop.domain.sides import error_share
from intop.domain.trial import Trial

P99 = "log P99"


@dataclass(frozen=True, kw_only=True)
class Performance:
    """The performance metrics of some trials, a row for each of them."""

    metrics: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    def column(self, metric: str) -> list[float]:
        """Return one metric of all trials. Raises ValueError for one that is not there."""
        place = self.metrics.index(metric)
        return [row[place] for row in self.rows]


def performance(trials: Sequence[Trial]) -> Performance:
    """Return the performance metrics of usable trials, in their order.

    Latencies are logarithms of ms: P99 of a pruned trial is at least its bound if it is
    judged by it, the others are those of all requests. Counts are log(1 + n), since most are small
    and a few are huge. CPU is a share of a host's time, memory in MiB; both as they were read over
    the load. Raises ValueError for a trial without latencies.
    """
    return Performance(
        metrics=tuple(_METRICS),
        rows=tuple(tuple(of(trial) for of in _METRICS.values()) for trial in trials),
    )


def _log_ms(value: float) -> float:
    # A histogram's lowest bucket is 0; no latency is less than 1 us.
    return math.log(max(value, 0.001))


_METRICS: Mapping[str, Callable[[Trial], float]] = {
    "log P50": lambda t: _log_ms(t.percentile_ms(50.0)),
    "log P90": lambda t: _log_ms(t.percentile_ms(90.0)),
    P99: lambda t: _log_ms(t.statistic_ms("P99")),
    "log P99.9": lambda t: _log_ms(t.percentile_ms(99.9)),
    "log max": lambda t: _log_ms(t.percentile_ms(100.0)),
    "achieved rate": lambda t: t.achieved_rps,
    "error share": lambda t: error_share([t]),
    "balancer's CPU": lambda t: t.balancer.cpu,
    "balancer's memory": lambda t: t.balancer.memory_mib,
    "retransmits": lambda t: math.log1p(t.balancer.retransmits),
    "TIME_WAIT": lambda t: math.log1p(t.balancer.time_wait),
    "listen overflows": lambda t: math.log1p(t.balancer.listen_overflows),
    "backends' CPU": lambda t: fmean(backend.cpu for backend in t.backends),
}
