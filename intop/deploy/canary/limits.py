"""Limits of a block: beyond one, the host gets its own values back at once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intop.hosts.access_log import LoggedRequests

FEWEST_REQUESTS = 500
"""Requests from which on a block's P99, or a lack of requests, says something."""
LEAST_MS = 1.0
"""The least P99 that others are a multiple of: nginx logs whole milliseconds."""
FEWEST_FAILURES = 10
"""Failed requests from which on their share says something."""


@dataclass(frozen=True, kw_only=True)
class BlockLimits:
    """How far a block of the canary may be from the default's latest block."""

    p99_times: float = 3.0
    """The highest P99, as a multiple of the default's."""
    failed_points: float = 1.0
    """The highest share of failed requests, in percentage points above the default's."""

    def broken_by(self, default: "LoggedRequests", canary: "LoggedRequests", share: float) -> str:
        """Return which limit a block is beyond, in words; "" for none or too few requests.

        `share` is the part of a block (0 to 1) that the canary's requests come from. Clients
        that wait for answers ask less often: a third of the requests counts like three times
        the P99.
        """
        if canary.failed >= FEWEST_FAILURES:
            more = 100 * (canary.failed_share - default.failed_share)
            if more > self.failed_points:
                return (
                    f"{100 * canary.failed_share:.1f} % of the requests failed, "
                    f"{more:.1f} points more than with the default"
                )
        if min(canary.histogram.total, default.histogram.total) >= FEWEST_REQUESTS:
            own, other = canary.histogram.percentile_ms(99), default.histogram.percentile_ms(99)
            if own > self.p99_times * max(other, LEAST_MS):
                return f"P99 was {own:.0f} ms, with the default {other:.0f} ms"
        usual = share * default.logged
        if usual >= FEWEST_REQUESTS and canary.logged < usual / self.p99_times:
            return f"only {canary.logged} requests were logged, with the default {usual:.0f}"
        return ""
