"""The quantities of a canary, read from the trials of its blocks."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from intop.deploy.canary.verdict import Measured, Numbers
from intop.domain.canary import DELIVERY, P99, RETRANSMITTED, Metrics
from intop.domain.counters import HostCounters
from intop.domain.trial import Trial

FLOOR_MS = 0.5
"""The smallest time: nginx logs whole milliseconds."""
SLOW_TIMES = 2.0
"""A request is slow above this multiple of the lead-in's P99."""
LEAST_ACKED_MB = 0.1
"""The data (MB) that clients acknowledge in a block, from which on it has a delivery time."""
OWN = "own."
"""The beginning of the names of the user's metrics among a block's levels."""

Pair = tuple[Trial, Trial]
"""The default's block and the canary's, on one host."""
Period = Sequence[Pair]
"""The pairs of all hosts at the same time. One coin decides their orders."""
Count = Callable[[Trial], int]


def slow_limit_ms(lead_in: Trial) -> float:
    """Return the time above which a request is slow on the lead-in's host."""
    return SLOW_TIMES * max(lead_in.percentile_ms(99.0), FLOOR_MS)


def requests(trial: Trial) -> int:
    """Return the requests of a block, failed ones included."""
    total = trial.histogram.total if trial.histogram is not None else 0
    return total + _failed(trial)


def acked_mb(trial: Trial) -> float:
    """Return the data (MB of 10^6 bytes) that clients acknowledged in a block, as far as seen."""
    return _counters(trial).total("clients.bytes_acked") / 1e6


def delivery_ms_per_mb(trial: Trial) -> float | None:
    """Return a block's delivery time in ms/MB; None with too little data.

    It is the time in which connections had unacknowledged data, over what clients acknowledged.
    """
    busy_ms = _counters(trial).total("clients.busy_ms")
    return busy_ms / acked_mb(trial) if busy_ms and acked_mb(trial) >= LEAST_ACKED_MB else None


def measured(
    periods: Sequence[Period],
    *,
    slow_ms: Mapping[str, float],
    margin: float,
    sees_delivery: bool = False,
    times_count: bool = True,
    metrics: Metrics | None = None,
) -> tuple[Measured, ...]:
    """Return all quantities of the pairs, also those that no pair has.

    Args:
        periods: The pairs.
        slow_ms: The limit above which a request is slow, by host.
        margin: The ratio above which a quantity is a harm.
        sees_delivery: Whether delivery time counts. It is shown where it is there.
        times_count: Whether nginx's times count. Else they are only shown.
        metrics: The user's own metrics.
    """
    timed = margin if times_count else None

    def percentile(name: str, percent: float) -> Measured:
        return Measured(
            quantity=name,
            unit="ms",
            periods=_numbers(periods, lambda trial: max(trial.percentile_ms(percent), FLOOR_MS)),
            limit=timed,
        )

    def share(name: str, count: Count, of: Count, limit: float | None) -> Measured:
        return Measured(
            quantity=name,
            unit="%",
            periods=_shares(periods, count, of),
            limit=limit,
            pooled=_pooled(periods, count, of),
        )

    def slow(trial: Trial) -> int:
        above = trial.histogram
        return 0 if above is None else above.count_above(slow_ms[trial.replica])

    return (
        percentile("P50", 50.0),
        percentile("P90", 90.0),
        percentile(P99, 99.0),
        share("slow requests", slow, requests, timed),
        share("failed requests", _failed, requests, margin),
        Measured(
            quantity=DELIVERY,
            unit="ms/MB",
            periods=_numbers(periods, delivery_ms_per_mb),
            limit=margin if sees_delivery else None,
        ),
        *(
            Measured(
                quantity=name,
                periods=_numbers(periods, partial(_own, name=name)),
                limit=metric.limit_times or margin,
                better=metric.better,
            )
            for name, metric in (metrics or {}).items()
        ),
        share(RETRANSMITTED, _retransmitted, _segments, None),
    )


def _numbers(
    periods: Sequence[Period], value: Callable[[Trial], float | None]
) -> list[list[Numbers]]:
    """Return a quantity of the pairs of which both blocks have it."""
    return [
        [
            (default, canary)
            for default, canary in ((value(d), value(c)) for d, c in period)
            if default is not None and canary is not None
        ]
        for period in periods
    ]


def _shares(periods: Sequence[Period], count: Count, of: Count) -> list[list[Numbers]]:
    """Return the shares of the pairs, never 0: half a count is added to each, of the mean total.

    Of the same total, since a side with fewer requests has no larger share if nothing is counted.
    """
    shares: list[list[Numbers]] = []
    for period in periods:
        counts = [((count(d), of(d)), (count(c), of(c))) for d, c in period]
        shares.append(
            [
                (n / total + 1 / (total + other), m / other + 1 / (total + other))
                for (n, total), (m, other) in counts
                if total and other
            ]
        )
    return shares


def _pooled(periods: Sequence[Period], count: Count, of: Count) -> Numbers | None:
    """Return a share of all that each side has, as it was; None without any."""
    sides = list(zip(*(pair for period in periods for pair in period), strict=True))
    totals = [sum(map(of, blocks)) for blocks in sides]
    if not totals or not all(totals):
        return None
    default, canary = (sum(map(count, blocks)) for blocks in sides)
    return default / totals[0], canary / totals[1]


def _failed(trial: Trial) -> int:
    return trial.errors.get("status", 0)


def _retransmitted(trial: Trial) -> int:
    return _counters(trial).total("Tcp.RetransSegs")


def _segments(trial: Trial) -> int:
    """Return all segments that a host sent: OutSegs leaves those out that were sent again."""
    return _counters(trial).total("Tcp.OutSegs") + _retransmitted(trial)


def _own(trial: Trial, *, name: str) -> float | None:
    level = _counters(trial).levels.get(f"{OWN}{name}")
    return level[0] if level else None


def _counters(trial: Trial) -> HostCounters:
    """Return the counters of a block's host; empty ones where they were not read."""
    return trial.counters.get(trial.replica, NOT_READ)


NOT_READ = HostCounters(at_s=())
"""The counters of a block whose host showed none."""
