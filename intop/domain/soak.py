"""A soak: hours of constant load on what is applied, block by block, and what drifts meanwhile.

Terms. A block is a trial; nothing is set or restarted between blocks. A trend is the slope over
hours of the blocks' values, by least squares through the means of ten batches of neighbouring
blocks (`trend`), with Student's interval: blocks in a row are alike, and batches hardly are. Blocks
of the warm-up are left out, at the beginning and after each start of a process of nginx; parts
between such starts may have different heights. A quantity grows where its whole interval is above
its floor, and is steady where all of it is below; else it is not known. There is a leak where
nginx's memory or its open files grow.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

from intop.domain.slope import Point, fitted, in_batches
from intop.domain.stats import Interval
from intop.domain.trial import Status, Trial

WARM_UP_S, WARM_UP_SHARE = 600.0, 1 / 6
"""What is left out of trends: ten minutes, but no more than this share of the planned time."""
PAUSE_S = 10.0
"""A longer time without load between two blocks is an interruption."""

Quantity = Literal[
    "P99", "nginx memory", "nginx files", "host memory", "host files", "TIME_WAIT", "connections"
]
UNITS: Mapping[Quantity, str] = {
    "P99": "%",
    "nginx memory": "MiB",
    "nginx files": "files",
    "host memory": "MiB",
    "host files": "files",
    "TIME_WAIT": "sockets",
    "connections": "sockets",
}
"""Of growth in an hour. A host's memory is what is in use (MemTotal - MemAvailable)."""
FLOORS: Mapping[Quantity, float] = {
    "P99": 5.0,
    "nginx memory": 5.0,
    "nginx files": 60.0,
    "host memory": 5.0,
    "host files": 60.0,
    "TIME_WAIT": 60.0,
    "connections": 60.0,
}
"""What may grow in an hour without a word."""
LEAKS: tuple[Quantity, ...] = ("nginx memory", "nginx files")
"""Whose growth is a leak. A host's own also has other programs in it."""

Growth = Literal["grows", "steady", "not known"]
Leak = Literal["leak", "no leak", "not known"]
Broken = Literal["", "P99", "errors", "memory", "no answers"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What ends a soak: `in_a_row` blocks beyond one of these. None for no limit.

    `p99_ms` is of a block, `errors` the share (0 to 1) of its requests that failed, `memory_mib`
    nginx's. Blocks without any answer are beyond all limits, also where there is none.
    """

    p99_ms: float | None = None
    errors: float | None = None
    memory_mib: float | None = None
    in_a_row: int = 3


@dataclass(frozen=True, kw_only=True)
class SoakBlock:
    """One block. `hours` are from the start of the first one to its own.

    Latencies, `requests` and `errors` (how many failed) are None where the load did not run to its
    end; the others, read at the end of the block, where they are not known. Memory in MiB.
    `connections` are the TCP sockets that are open on the load balancer.
    """

    hours: float
    seconds: float
    status: Status
    detail: str
    achieved_rps: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    requests: int | None = None
    errors: int | None = None
    nginx_memory_mib: float | None = None
    nginx_files: int | None = None
    nginx_started_s: float | None = None
    host_memory_mib: float | None = None
    host_files: int | None = None
    time_wait: int | None = None
    connections: int | None = None

    @property
    def has_answers(self) -> bool:
        """Whether any request was answered."""
        return self.requests is not None and self.requests > (self.errors or 0)

    @property
    def error_share(self) -> float:
        """The share of requests that failed; 1 where nothing was answered."""
        return (self.errors or 0) / self.requests if self.requests and self.has_answers else 1.0


@dataclass(frozen=True, kw_only=True)
class Trend:
    """How a quantity moved: `blocks` are those that count, `first` and `last` are of batches.

    `per_hour` is in the quantity's unit, None with fewer than three batches.
    """

    quantity: Quantity
    unit: str
    floor: float
    blocks: int
    first: float | None = None
    last: float | None = None
    per_hour: Interval | None = None

    @property
    def growth(self) -> Growth:
        """By the whole interval."""
        if self.per_hour is None or self.per_hour.low <= self.floor < self.per_hour.high:
            return "not known"
        return "grows" if self.per_hour.low > self.floor else "steady"


@dataclass(frozen=True, kw_only=True)
class Soak:
    """A soak so far: of `planned` blocks of `block_s` seconds (and `warmup_s` of load before each).

    `applied` says what an earlier apply had left, "" for nothing. `broken` says which limit has
    ended it, "" for none. `pause_s` is the mean time without load between two blocks, None where
    there were no two without an interruption, and `interruptions` counts those. `restarts` counts
    how often processes of nginx were started meanwhile. `changed` has a line for each condition, as
    of the kernel, that is not what it was in the first block.
    """

    applied: str
    host: str
    rate_rps: float
    block_s: float
    warmup_s: float
    planned: int
    limits: Limits
    level: float
    blocks: tuple[SoakBlock, ...]
    trends: tuple[Trend, ...]
    broken: Broken
    pause_s: float | None
    interruptions: int
    restarts: int
    changed: tuple[str, ...] = ()

    @property
    def leak(self) -> Leak:
        """Of memory or files of nginx."""
        growths = [trend.growth for trend in self.trends if trend.quantity in LEAKS]
        if "grows" in growths:
            return "leak"
        return "not known" if "not known" in growths or not growths else "no leak"

    @property
    def hours(self) -> float:
        """From the start of the first block to the end of the last one."""
        return self.blocks[-1].hours + self.blocks[-1].seconds / 3600 if self.blocks else 0.0

    @property
    def load_share(self) -> float | None:
        """The share of the time in which there was load, interruptions left out."""
        if self.pause_s is None:
            return None
        load_s = self.warmup_s + self.block_s
        return load_s / (load_s + self.pause_s)


def block_of(trial: Trial, begin: datetime) -> SoakBlock:
    """A trial as a block of the soak that began then."""
    start = datetime.fromisoformat(trial.started_at)
    found = SoakBlock(
        hours=(start - begin).total_seconds() / 3600,
        seconds=trial.seconds,
        status=trial.status,
        detail=trial.detail,
    )
    latencies = trial.histogram
    if latencies is None or not latencies.total or len(trial.metrics) < 2:
        return found
    balancer = trial.balancer
    counters = trial.counters.get(list(trial.metrics)[1])
    open_sockets = None if counters is None else counters.levels.get("Tcp.CurrEstab", (0,))[-1]
    return SoakBlock(
        hours=found.hours,
        seconds=found.seconds,
        status=found.status,
        detail=found.detail,
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
    """The first limit that so many blocks in a row are beyond, and how many blocks that took.

    "" and 0 where none is broken. A disturbed block says nothing of P99, one way or the other.
    """
    ways: dict[Broken, Callable[[SoakBlock], bool | None]] = {
        "no answers": lambda one: not one.has_answers,
        "P99": lambda one: (
            None
            if one.status == "disturbed" and one.has_answers
            else _beyond(one, one.p99_ms, limits.p99_ms)
        ),
        "errors": lambda one: limits.errors is not None and one.error_share > limits.errors,
        "memory": lambda one: _beyond(one, one.nginx_memory_mib, limits.memory_mib),
    }
    runs = dict.fromkeys(ways, 0)
    for number, one in enumerate(blocks, 1):
        for way, is_beyond in ways.items():
            if (found := is_beyond(one)) is None:
                continue
            runs[way] = runs[way] + 1 if found else 0
            if runs[way] >= limits.in_a_row:
                return way, number
    return "", 0


def _beyond(block: SoakBlock, value: float | None, limit: float | None) -> bool:
    if limit is None:
        return False
    return not block.has_answers or (value is not None and value > limit)


def trends_of(blocks: Sequence[SoakBlock], *, planned_s: float, level: float) -> tuple[Trend, ...]:
    """The trend of each quantity that is known, without the warm-up.

    P99 is of blocks that nobody disturbed, in percent: of its logarithm's slope.
    """
    warm = _warm(blocks, min(WARM_UP_S, WARM_UP_SHARE * planned_s))
    values: dict[Quantity, Callable[[SoakBlock], float | None]] = {
        "P99": lambda one: (
            None if one.status == "disturbed" or not one.p99_ms else math.log(one.p99_ms)
        ),
        "nginx memory": lambda one: one.nginx_memory_mib,
        "nginx files": lambda one: one.nginx_files,
        "host memory": lambda one: one.host_memory_mib,
        "host files": lambda one: one.host_files,
        "TIME_WAIT": lambda one: one.time_wait,
        "connections": lambda one: one.connections,
    }
    found: list[Trend] = []
    for quantity, value in values.items():
        points = [
            (one.hours, float(known), group)
            for one, group in warm
            if (known := value(one)) is not None
        ]
        if points:
            found.append(_trend(quantity, points, level))
    return tuple(found)


def _trend(quantity: Quantity, points: Sequence[Point], level: float) -> Trend:
    batches = in_batches(points)
    line = fitted(batches, level)
    is_log = quantity == "P99"
    ends = [math.exp(b[1]) if is_log else b[1] for b in (batches[0], batches[-1])]
    per_hour = None
    if line is not None:
        slopes = (line.slope, line.slope - line.half, line.slope + line.half)
        per_hour = Interval(*(_percent(s) if is_log else s for s in slopes))
    return Trend(
        quantity=quantity,
        unit=UNITS[quantity],
        floor=FLOORS[quantity],
        blocks=len(points),
        first=ends[0],
        last=ends[1],
        per_hour=per_hour,
    )


def _percent(log: float) -> float:
    """Growth in an hour, in percent. An interval of few batches may be beyond any float."""
    return 100 * math.expm1(min(log, 700.0))


def _warm(blocks: Sequence[SoakBlock], warm_up_s: float) -> list[tuple[SoakBlock, str]]:
    """The blocks after the warm-up, each with the part that it is of: between starts of nginx."""
    found: list[tuple[SoakBlock, str]] = []
    part, begin, since = 0, blocks[0].hours if blocks else 0.0, None
    for one in blocks:
        if since is not None and one.nginx_started_s not in (since, None):
            part, begin = part + 1, one.hours
        since = one.nginx_started_s if one.nginx_started_s is not None else since
        if round((one.hours - begin) * 3600) >= warm_up_s:
            found.append((one, str(part)))
    return found


def restarts_of(blocks: Sequence[SoakBlock]) -> int:
    """How often the start of nginx's latest process has changed."""
    starts = [one.nginx_started_s for one in blocks if one.nginx_started_s is not None]
    return sum(a != b for a, b in pairwise(starts))


def pauses_of(blocks: Sequence[SoakBlock], load_s: float) -> tuple[float | None, int]:
    """The mean time (s) without load from a block to the next one, and how many interruptions.

    Blocks are known by the second; over many of them that cancels out.
    """
    gaps = [
        (b.hours - a.hours) * 3600 - load_s for a, b in pairwise(blocks) if a.requests is not None
    ]
    usual = [gap for gap in gaps if gap <= PAUSE_S]
    mean = max(0.0, math.fsum(usual) / len(usual)) if usual else None
    return mean, len(gaps) - len(usual)
