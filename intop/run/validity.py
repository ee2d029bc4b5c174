"""Whether a measurement says something about its configuration."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from intop.domain.overload import PENDING, RATE_TOLERANCE
from intop.domain.trial import HostMetrics, Status
from intop.domain.workload import Limits

ERROR_TOLERANCE = 0.01
"""The share of requests that may fail before the configuration counts as overloaded."""


LAG_FLOOR_MS = 2.0
"""A load generator may always be so late for its own slots: less is the noise of any machine."""

PORTS = "ports"
"""The kind of errors where no port was left for a connection (EADDRNOTAVAIL)."""
OUT_OF_PORTS = "the load generator itself had no port left for its connections"

CLOCK_STEP_S = 0.05
"""The step by which a clock is set, not slewed: NTP slews by at most 0.5 ms a second."""


@dataclass(frozen=True)
class Validity:
    """A trial's status and, unless it is `ok`, the reason."""

    status: Status
    detail: str = ""


def disturbance(metrics: Mapping[str, HostMetrics], limits: Limits) -> str:
    """Return who else is busy on the hosts, "" when nobody is."""
    for name, metric in metrics.items():
        cores = metric.cpus or 1
        stolen, foreign = metric.steal * cores, (metric.foreign_cpu or 0.0) * cores
        if stolen > limits.max_steal_cores:
            return (
                f"{name}: other machines took {stolen:.2f} of its {cores} cores, "
                f"more than max_steal_cores ({limits.max_steal_cores:g})"
            )
        if (metric.max_cpu_steal or 0.0) > limits.max_steal:
            return (
                f"{name}: other machines took {metric.max_cpu_steal:.0%} of the time of one of its "
                f"{cores} cores, more than max_steal ({limits.max_steal:.0%})"
            )
        if foreign > limits.max_foreign_cores:
            return (
                f"{name}: other programs used {foreign:.2f} of its {cores} cores, "
                f"most of it {metric.foreign_program}, "
                f"more than max_foreign_cores ({limits.max_foreign_cores:g})"
            )
    return ""


def late_generator(metrics: Mapping[str, HostMetrics], p99_ms: float, max_lag: float) -> str:
    """Return the load generator that spoilt its own figures, "" where none did.

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


def idle_backend(metrics: Mapping[str, HostMetrics], backends: Collection[str]) -> str:
    """Return the backend that took no part in the load, "" where all did.

    The server is restarted before each load, so each backend that takes part accepts a connection.
    """
    accepted = {name: metrics[name].accepted for name in backends if name in metrics}
    busiest = max(accepted, key=lambda name: accepted[name] or 0, default="")
    for name, count in accepted.items():
        if count == 0 and (accepted[busiest] or 0) > 0:
            return (
                f"{name}: accepted no connection during the load, and {busiest} accepted "
                f"{accepted[busiest]}: is its server up? (A spare one doesn't belong in backends.)"
            )
    return ""


def judge(
    *,
    requests: int,
    p99_ms: float,
    achieved_rps: float,
    offered_rps: float,
    errors: Mapping[str, int],
    metrics: Mapping[str, HostMetrics],
    backends: Collection[str],
    limits: Limits,
    pruned: str = "",
    too_few: str = "",
) -> Validity:
    """Return the validity of a load.

    `offered_rps` is the rate at which requests were due, in fact: random arrivals of a short load
    are often 5 % fewer than were asked for. `pruned` says why the load was stopped before its end;
    it is empty where it was not. For a stopped load, rates and metrics are those until then.
    `too_few` says what follows if the load had too few connections (`concurrency.saturated`).

    Disturbance comes first: a rate that was missed while others took the CPU says nothing about
    the configuration. What counts is what a configuration can't cause, or a bad one would be
    measured again and then thrown out: the time of other machines and of other programs, but
    neither pressure nor busy processors nor work in softirq, which is mostly the load's own
    packets, and not a missed rate beside an idle balancer, which is also what a slow link looks
    like.
    """
    if problem := disturbance(metrics, limits):
        return Validity("disturbed", problem)
    failed = sum(errors.values())
    if requests <= failed:
        return Validity("failed", _unanswered(errors, too_few))
    if problem := late_generator(metrics, p99_ms, limits.max_lag) or idle_backend(
        metrics, backends
    ):
        return Validity("disturbed", problem)
    is_failing = failed > ERROR_TOLERANCE * requests
    # Connections that are refused and made anew keep the load tool busy, too.
    for name, metric in metrics.items():
        if (metric.load_cpu or 0.0) > limits.max_load_cpu and not is_failing:
            return Validity(
                "disturbed",
                f"{name}: the load generator used {metric.load_cpu:.0%} of the CPU time that its "
                f"threads could, more than max_load_cpu ({limits.max_load_cpu:.0%}): "
                f"it needs a lower rate, or another load generator (wrk2: more threads)",
            )
    if pruned:
        return Validity("pruned", pruned)
    if achieved_rps < RATE_TOLERANCE * offered_rps:
        return Validity("overloaded", f"{achieved_rps:.0f} of {offered_rps:.0f} requests/s")
    if is_failing:
        out = f"; {OUT_OF_PORTS}" if errors.get(PORTS) else ""
        return Validity(
            "overloaded", f"{failed} of {requests} requests failed: {dict(errors)}{out}"
        )
    return Validity("ok")


def main_error(errors: Mapping[str, int]) -> str:
    """The most frequent kind of errors, "" where there are none."""
    return max((kind for kind in errors if errors[kind]), key=lambda kind: errors[kind], default="")


def _unanswered(errors: Mapping[str, int], too_few: str) -> str:
    """Return the reason why no request was answered, by the most frequent kind of errors."""
    if errors.get(PORTS):
        return f"no request was answered: {OUT_OF_PORTS}; errors: {dict(errors)}"
    if too_few and main_error(errors) in ("", PENDING):
        return (
            f"of the counted requests none was answered in time, since earlier ones held all "
            f"connections: {too_few}; errors: {dict(errors)}"
        )
    return f"no request was answered; errors: {dict(errors)}"
