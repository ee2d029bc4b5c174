"""Whether a measurement says something about its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass

from intop.domain.trial import HostMetrics, Status

RATE_TOLERANCE = 0.95
"""The share of the asked rate that must be reached for a trial to count as on rate."""

ERROR_TOLERANCE = 0.01
"""The share of requests that may fail before the configuration counts as overloaded."""


@dataclass(frozen=True)
class Validity:
    """A trial's status and, unless it is `ok`, the reason."""

    status: Status
    detail: str = ""


def judge(
    *,
    requests: int,
    achieved_rps: float,
    rate_rps: float,
    errors: Mapping[str, int],
    metrics: Mapping[str, HostMetrics],
    max_steal: float,
) -> Validity:
    """The validity of a load that ran to its end.

    Disturbance comes first: a rate that was missed while others took the CPU says nothing about
    the configuration.
    """
    for name, metric in metrics.items():
        if metric.steal > max_steal:
            return Validity("disturbed", f"{name}: {metric.steal:.0%} of its CPU time was stolen")
    if requests == 0:
        return Validity("failed", f"no request was answered; errors: {dict(errors)}")
    if achieved_rps < RATE_TOLERANCE * rate_rps:
        return Validity("overloaded", f"{achieved_rps:.0f} of {rate_rps:.0f} requests/s")
    failed = sum(errors.values())
    if failed > ERROR_TOLERANCE * requests:
        return Validity("overloaded", f"{failed} of {requests} requests failed: {dict(errors)}")
    return Validity("ok")
