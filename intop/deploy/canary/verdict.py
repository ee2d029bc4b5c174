"""The verdict of a canary by its blocks, valid whenever it is asked for."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import fmean

from intop.domain.anytime import lower_bound, upper_bound
from intop.domain.canary import QUANTITIES, Outcome, Quantity, SideRatio
from intop.domain.stats import geometric_interval
from intop.domain.trial import Trial

FLOOR_MS = 0.5
"""The smallest time: nginx logs whole milliseconds."""
SLOW_TIMES = 2.0
"""A request is slow above this multiple of the lead-in's P99."""

Pair = tuple[Trial, Trial]
"""The default's block and the canary's, on one host."""
Period = Sequence[Pair]
"""The pairs of all hosts at the same time. One coin decides their orders."""


def slow_limit_ms(lead_in: Trial) -> float:
    """Return the time above which a request is slow on the lead-in's host."""
    return SLOW_TIMES * max(lead_in.percentile_ms(99.0), FLOOR_MS)


def sides(
    periods: Sequence[Period], *, slow_ms: Mapping[str, float], level: float
) -> tuple[SideRatio, ...]:
    """Return both sides of each quantity; nothing without pairs. `slow_ms` has a limit by host.

    Half of the error rate is for a gain, by the upper bound of P99. The other half is for harm, and
    all quantities share it.
    """
    if not periods:
        return ()
    error_rate = 1 - level
    share = error_rate / 2 / len(QUANTITIES)
    of = _values(slow_ms)
    return tuple(
        _side(
            quantity,
            [[(of[quantity](d), of[quantity](c)) for d, c in period] for period in periods],
            pooled=_pooled(quantity, [pair for period in periods for pair in period], slow_ms),
            low_rate=share,
            high_rate=error_rate / 2 if quantity == "P99" else share,
            level=level,
        )
        for quantity in QUANTITIES
    )


def outcome(measured: Sequence[SideRatio], margin: float, *, is_stopped: bool) -> Outcome:
    """Return what the sides show. `margin` is a ratio above 1 that matters."""
    if is_stopped or any(side.low is not None and side.low > margin for side in measured):
        return "harm"
    p99 = next((side for side in measured if side.quantity == "P99"), None)
    if p99 is None or p99.high is None:
        return "undecided"
    if p99.high < 1:
        return "gain"
    if p99.high <= margin and p99.low is not None and p99.low >= 1 / margin:
        return "no difference"
    return "undecided"


def requests(trial: Trial) -> int:
    """Return the requests of a block, failed ones included."""
    total = trial.histogram.total if trial.histogram is not None else 0
    return total + trial.errors.get("status", 0)


def _values(slow_ms: Mapping[str, float]) -> Mapping[Quantity, Callable[[Trial], float]]:
    """Return how each quantity is read from a block. Shares are never 0, so they have a ratio."""
    return {
        "P50": lambda trial: max(trial.percentile_ms(50.0), FLOOR_MS),
        "P90": lambda trial: max(trial.percentile_ms(90.0), FLOOR_MS),
        "P99": lambda trial: max(trial.percentile_ms(99.0), FLOOR_MS),
        "slow requests": lambda trial: _share(_slow(trial, slow_ms), requests(trial)),
        "failed requests": lambda trial: _share(trial.errors.get("status", 0), requests(trial)),
    }


def _slow(trial: Trial, slow_ms: Mapping[str, float]) -> int:
    histogram = trial.histogram
    return 0 if histogram is None else histogram.count_above(slow_ms[trial.replica])


def _share(count: int, total: int) -> float:
    """Return a share by Anscombe's correction: (count + 1/2) / (total + 1)."""
    return (count + 0.5) / (total + 1)


def _pooled(
    quantity: Quantity, pairs: Sequence[Pair], slow_ms: Mapping[str, float]
) -> tuple[float, float] | None:
    """Return a share of all requests of each side, as it was; None for a percentile."""
    counts: dict[Quantity, Callable[[Trial], int]] = {
        "slow requests": lambda trial: _slow(trial, slow_ms),
        "failed requests": lambda trial: trial.errors.get("status", 0),
    }
    if quantity not in counts:
        return None
    default, canary = (
        sum(map(counts[quantity], blocks)) / max(1, sum(map(requests, blocks)))
        for blocks in zip(*pairs, strict=True)
    )
    return default, canary


@cache
def _low(logs: tuple[float, ...], error_rate: float) -> float:
    return lower_bound(logs, error_rate)


@cache
def _high(logs: tuple[float, ...], error_rate: float) -> float:
    return upper_bound(logs, error_rate)


def _side(
    quantity: Quantity,
    periods: Sequence[Sequence[tuple[float, float]]],
    *,
    pooled: tuple[float, float] | None,
    low_rate: float,
    high_rate: float,
    level: float,
) -> SideRatio:
    logs = [fmean(math.log(canary / default) for default, canary in pairs) for pairs in periods]
    # A bound that was shown once holds from then on.
    looks = [tuple(logs[: n + 1]) for n in range(len(logs))]
    low = max(_low(look, low_rate) for look in looks)
    high = min(_high(look, high_rate) for look in looks)
    ratios = [math.exp(log) for log in logs]
    fixed = geometric_interval(ratios, level=level) if len(ratios) > 1 else None
    pairs = [pair for period in periods for pair in period]
    default, canary = pooled or (
        math.exp(fmean(math.log(pair[side]) for pair in pairs)) for side in range(2)
    )
    return SideRatio(
        quantity=quantity,
        default=default,
        canary=canary,
        ratio=math.exp(fmean(logs)),
        low=math.exp(low) if math.isfinite(low) else None,
        high=math.exp(high) if math.isfinite(high) else None,
        fixed_low=None if fixed is None else fixed.low,
        fixed_high=None if fixed is None else fixed.high,
    )
