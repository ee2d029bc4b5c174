"""Blocks of a soak from its trials: the trends of what is watched, and the limits that break."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from intop.domain.slope import Point, fitted, in_batches
from intop.domain.soak import (
    PAUSE_S,
    WARM_UP_S,
    WARM_UP_SHARE,
    Broken,
    Limits,
    Quantity,
    SoakBlock,
    Trend,
)
from intop.domain.stats import MOST_LOG, Interval
from intop.domain.trial import Trial


@dataclass(frozen=True)
class _Watched:
    """A quantity of blocks that is watched for growth."""

    unit: str
    floor: float
    """Growth in an hour that is not worth a word."""
    value: Callable[[SoakBlock], float | None]


def _log_p99(block: SoakBlock) -> float | None:
    if block.status == "disturbed" or not block.p99_ms:
        return None
    return math.log(block.p99_ms)


WATCHED: Mapping[Quantity, _Watched] = {
    "P99": _Watched("%", 5.0, _log_p99),
    "nginx memory": _Watched("MiB", 5.0, lambda block: block.nginx_memory_mib),
    "nginx files": _Watched("files", 60.0, lambda block: block.nginx_files),
    # Memory in use: MemTotal - MemAvailable.
    "host memory": _Watched("MiB", 5.0, lambda block: block.host_memory_mib),
    "host files": _Watched("files", 60.0, lambda block: block.host_files),
    "TIME_WAIT": _Watched("sockets", 60.0, lambda block: block.time_wait),
    "connections": _Watched("sockets", 60.0, lambda block: block.connections),
}


def block_of(trial: Trial, begin: datetime) -> SoakBlock:
    """Return a trial as a block of the soak that began then."""
    start = datetime.fromisoformat(trial.started_at)
    block = SoakBlock(
        hours=(start - begin).total_seconds() / 3600,
        seconds=trial.seconds,
        status=trial.status,
        detail=trial.detail,
    )
    latencies = trial.histogram
    if latencies is None or not latencies.total or len(trial.metrics) < 2:
        return block
    balancer = trial.balancer
    counters = trial.counters.get(list(trial.metrics)[1])
    open_sockets = None if counters is None else counters.levels.get("Tcp.CurrEstab", (0,))[-1]
    return replace(
        block,
        achieved_rps=trial.achieved_rps,
        p50_ms=latencies.percentile_ms(50),
        p99_ms=latencies.percentile_ms(99),
        requests=latencies.total,
        errors=sum(trial.errors.values()),
        nginx_memory_mib=balancer.server_memory_mib,
        nginx_files=balancer.server_files,
        nginx_started_s=balancer.server_started_s,
        host_memory_mib=balancer.memory_mib,
        host_files=balancer.files,
        time_wait=balancer.time_wait,
        connections=None if open_sockets is None else int(open_sockets),
    )


def broken_by(blocks: Sequence[SoakBlock], limits: Limits) -> tuple[Broken, int]:
    """Return the first limit that enough blocks in a row are beyond, and how many blocks that took.

    "" and 0 where none is broken.
    """
    runs: dict[Broken, int] = {}
    for number, block in enumerate(blocks, 1):
        for limit, is_beyond in _beyond(block, limits).items():
            runs[limit] = runs.get(limit, 0) + 1 if is_beyond else 0
            if runs[limit] >= limits.in_a_row:
                return limit, number
    return "", 0


def _beyond(block: SoakBlock, limits: Limits) -> dict[Broken, bool]:
    """Return which limits a block is beyond, without those that it says nothing of."""

    def is_above(value: float | None, limit: float | None) -> bool:
        return limit is not None and (
            not block.has_answers or (value is not None and value > limit)
        )

    beyond: dict[Broken, bool] = {"no answers": not block.has_answers}
    # A disturbed block says nothing of P99, one way or the other.
    if block.status != "disturbed" or not block.has_answers:
        beyond["P99"] = is_above(block.p99_ms, limits.p99_ms)
    beyond["errors"] = limits.errors is not None and block.error_share > limits.errors
    beyond["memory"] = is_above(block.nginx_memory_mib, limits.memory_mib)
    return beyond


def trends_of(blocks: Sequence[SoakBlock], *, planned_s: float, level: float) -> tuple[Trend, ...]:
    """Return the trend of each quantity that is known, without the warm-up.

    P99 is of blocks that nobody disturbed, in percent: of its logarithm's slope.
    """
    warm = _warm(blocks, min(WARM_UP_S, WARM_UP_SHARE * planned_s))
    trends: list[Trend] = []
    for quantity, watched in WATCHED.items():
        points = [
            (block.hours, float(value), part)
            for block, part in warm
            if (value := watched.value(block)) is not None
        ]
        if points:
            trends.append(_trend(quantity, points, level))
    return tuple(trends)


def _trend(quantity: Quantity, points: Sequence[Point], level: float) -> Trend:
    batches = in_batches(points)
    line = fitted(batches, level)
    is_log = quantity == "P99"
    first, last = (math.exp(b[1]) if is_log else b[1] for b in (batches[0], batches[-1]))
    per_hour = None
    if line is not None:
        slopes = (line.slope, line.slope - line.half, line.slope + line.half)
        per_hour = Interval(*(_percent(s) if is_log else s for s in slopes))
    return Trend(
        quantity=quantity,
        unit=WATCHED[quantity].unit,
        floor=WATCHED[quantity].floor,
        blocks=len(points),
        first=first,
        last=last,
        per_hour=per_hour,
    )


def _percent(log: float) -> float:
    """Return growth in percent. An interval of few batches may be beyond any float."""
    return 100 * math.expm1(min(log, MOST_LOG))


def _warm(blocks: Sequence[SoakBlock], warm_up_s: float) -> list[tuple[SoakBlock, str]]:
    """Return the blocks after the warm-up, each with its part between two starts of nginx."""
    warm: list[tuple[SoakBlock, str]] = []
    part, begin, since = 0, blocks[0].hours if blocks else 0.0, None
    for block in blocks:
        if since is not None and block.nginx_started_s not in (since, None):
            part, begin = part + 1, block.hours
        since = block.nginx_started_s if block.nginx_started_s is not None else since
        if round((block.hours - begin) * 3600) >= warm_up_s:
            warm.append((block, str(part)))
    return warm


def restarts_of(blocks: Sequence[SoakBlock]) -> int:
    """Return how often the start of nginx's latest process has changed."""
    starts = [block.nginx_started_s for block in blocks if block.nginx_started_s is not None]
    return sum(a != b for a, b in pairwise(starts))


def pauses_of(blocks: Sequence[SoakBlock], load_s: float) -> tuple[float | None, int]:
    """Return the mean time (s) without load between blocks, and how many interruptions there were.

    Blocks are known by the second; over many of them that cancels out.
    """
    gaps = [
        (b.hours - a.hours) * 3600 - load_s for a, b in pairwise(blocks) if a.requests is not None
    ]
    usual = [gap for gap in gaps if gap <= PAUSE_S]
    mean = max(0.0, math.fsum(usual) / len(usual)) if usual else None
    return mean, len(gaps) - len(usual)
