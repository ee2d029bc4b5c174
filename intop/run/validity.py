"""Whether a measurement says something about its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass

from intop.domain.trial import HostMetrics, Status

RATE_TOLERANCE = 0.95
"""The share of the asked rate that must be reached for a trial to count as on rate."""

ERROR_TOLERANCE = 0.01
"""The share of requests that may fail before the configuration counts as overloaded."""


LAG_FLOOR_MS = 2.0
"""A load generator may always be so late for its own slots: less is the noise of any machine."""

CLOCK_STEP_S = 0.05
"""By so much a clock is set, not slewed: NTP slews by at most 0.5 ms a second."""


@dataclass(frozen=True)
class Validity:
    """A trial's status and, unless it is `ok`, the reason."""

    status: Status
    detail: str = ""


def disturbance(
    metrics: Mapping[str, HostMetrics], *, max_steal: float, max_foreign_cpu: float
) -> str:
    """Who else is busy on the hosts, "" when nobody is; the limits are shares of CPU time."""
    for name, metric in metrics.items():
        if metric.steal > max_steal:
            return (
                f"{name}: {metric.steal:.0%} of its CPU time was stolen by other machines, "
                f"more than max_steal ({max_steal:.0%})"
            )
        if (metric.foreign_cpu or 0.0) > max_foreign_cpu:
            return (
                f"{name}: {metric.foreign_cpu:.0%} of its CPU time went to other programs, "
                f"most of it to {metric.foreign_program}, "
                f"more than max_foreign_cpu ({max_foreign_cpu:.0%})"
            )
    return ""


def late_generator(metrics: Mapping[str, HostMetrics], p99_ms: float, max_lag: float) -> str:
    """Which load generator spoilt its own figures, "" where none did.

    It did where it noticed a slot later than `max_lag` times P99, for one slot in a hundred; or
    where its clock was set meanwhile.
    """
    for name, metric in metrics.items():
        lag_ms = metric.lag_ms or 0.0
        if lag_ms > max(LAG_FLOOR_MS, max_lag * p99_ms):
            return (
                f"{name}: the load generator was itself {lag_ms:.1f} ms late for one request in a "
                f"hundred, more than max_lag ({max_lag:.0%}) of P99 ({p99_ms:.1f} ms): something "
                "else ran in its place, or it needs a lower rate"
            )
        if abs(metric.clock_step_s or 0.0) > CLOCK_STEP_S:
            return f"{name}: its clock was set by {metric.clock_step_s:+.3f} s during the load"
    return ""


def judge(
    *,
    requests: int,
    p99_ms: float,
    achieved_rps: float,
    rate_rps: float,
    errors: Mapping[str, int],
    metrics: Mapping[str, HostMetrics],
    max_steal: float,
    max_foreign_cpu: float,
    max_load_cpu: float,
    max_lag: float,
    pruned: str = "",
) -> Validity:
    """The validity of a load; the limits are shares of CPU time, and `max_lag` one of P99.

    `pruned` says why the load was stopped before its end; it is empty where it was not. The rate
    and the metrics are those of the part that ran.

    Disturbance comes first: a rate that was missed while others took the CPU says nothing about
    the configuration. What counts is what a configuration can't cause, or a bad one would be
    measured again and then thrown out: the time of other machines and of other programs, but
    neither pressure nor busy processors, and not a missed rate beside an idle balancer, which is
    also what a slow link looks like.
    """
    if problem := disturbance(metrics, max_steal=max_steal, max_foreign_cpu=max_foreign_cpu):
        return Validity("disturbed", problem)
    failed = sum(errors.values())
    if requests <= failed:
        return Validity("failed", f"no request was answered; errors: {dict(errors)}")
    if problem := late_generator(metrics, p99_ms, max_lag):
        return Validity("disturbed", problem)
    is_failing = failed > ERROR_TOLERANCE * requests
    # Connections that are refused and made anew keep the load tool busy, too.
    for name, metric in metrics.items():
        if (metric.load_cpu or 0.0) > max_load_cpu and not is_failing:
            return Validity(
                "disturbed",
                f"{name}: the load generator used {metric.load_cpu:.0%} of the CPU time that its "
                f"threads could, more than max_load_cpu ({max_load_cpu:.0%}): "
                f"it needs more threads, or a lower rate",
            )
    if pruned:
        return Validity("pruned", pruned)
    if achieved_rps < RATE_TOLERANCE * rate_rps:
        return Validity("overloaded", f"{achieved_rps:.0f} of {rate_rps:.0f} requests/s")
    if is_failing:
        return Validity("overloaded", f"{failed} of {requests} requests failed: {dict(errors)}")
    return Validity("ok")
