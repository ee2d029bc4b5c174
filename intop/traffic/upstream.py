"""The time that upstreams took for a request, by `$upstream_response_time`."""

import math
import re

from intop.domain.lab_files import MOST_WAIT_MS

NO_UPSTREAM = "-"
"""The time that nginx writes for a request that went to no upstream."""

_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def upstream_ms(text: str | None) -> float | None:
    """Return the time (ms) of all upstreams that a request went to; None without any.

    nginx separates several by commas, and by colons after a redirection within.
    """
    numbers = _NUMBER.findall(text) if text else []
    return 1000 * math.fsum(map(float, numbers)) if numbers else None


def step_ms(ms: float) -> int:
    """Return the nearest step (whole ms) of a scale with two steps for each doubling.

    So a distribution has at most 22 steps. The last one stands for all longer times: a lab's
    application waits no longer.
    """
    return min(MOST_WAIT_MS, round(2 ** (round(2 * math.log2(ms)) / 2))) if ms >= 0.5 else 0
