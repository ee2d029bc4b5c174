"""A soak: hours of constant load on what is applied, block by block, and what drifts meanwhile.

Terms. A block is a trial; nothing is set or restarted between blocks. A trend is the slope over
hours of the blocks' values, by least squares through the means of ten batches of neighbouring
blocks, with Student's interval: blocks in a row are alike, and batches hardly are. Blocks of the
warm-up are left out, at the beginning and after each start of a process of nginx; parts between
such starts may have different heights. A quantity grows where its whole interval is above its
floor, and is steady where all of it is below; else it is not known. There is a leak where nginx's
memory or its open files grow.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from intop.domain.stats import Interval
from intop.domain.trial import Status

WARM_UP_S, WARM_UP_SHARE = 600.0, 1 / 6
"""Trends leave out ten minutes of warm-up, but no more than this share of the planned time."""
PAUSE_S = 10.0
"""A longer time without load between two blocks is an interruption."""

Quantity = Literal[
    "P99", "nginx memory", "nginx files", "host memory", "host files", "TIME_WAIT", "connections"
]
LEAKS: tuple[Quantity, ...] = ("nginx memory", "nginx files")
"""Quantities whose growth is a leak. Those of the host also count other programs."""

Growth = Literal["grows", "steady", "not known"]
Leak = Literal["leak", "no leak", "not known"]
Broken = Literal["", "P99", "errors", "memory", "no answers"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits that end a soak. None is no limit, but blocks without any answer always end it."""

    p99_ms: float | None = None
    errors: float | None = None
    """The share (0 to 1) of a block's requests that failed."""
    memory_mib: float | None = None
    """Memory of nginx."""
    in_a_row: int = 3
    """Blocks beyond the same limit, one after the other, that end the soak."""


@dataclass(frozen=True, kw_only=True)
class SoakBlock:
    """One block. What is measured is None where it is not known.

    Latencies and requests are also None where the load did not run to its end. The quantities
    after them are read at the end of the block.
    """

    hours: float
    """Hours from the start of the first block to the start of this one."""
    seconds: float
    status: Status
    detail: str
    achieved_rps: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    requests: int | None = None
    errors: int | None = None
    """Requests that failed."""
    nginx_memory_mib: float | None = None
    nginx_files: int | None = None
    nginx_started_s: float | None = None
    host_memory_mib: float | None = None
    host_files: int | None = None
    time_wait: int | None = None
    connections: int | None = None
    """TCP sockets that are open on the load balancer."""

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
    """The trend of a quantity over a soak."""

    ALSO_IN_JSON: ClassVar = ("growth",)

    quantity: Quantity
    unit: str
    floor: float
    """Growth in an hour that is not worth a word."""
    blocks: int
    """Blocks that count."""
    first: float | None = None
    """The mean of the first batch of blocks."""
    last: float | None = None
    """The mean of the last batch of blocks."""
    per_hour: Interval | None = None
    """Growth in an hour, None with fewer than three batches."""

    @property
    def growth(self) -> Growth:
        """The verdict of the whole interval."""
        if self.per_hour is None or self.per_hour.low <= self.floor < self.per_hour.high:
            return "not known"
        return "grows" if self.per_hour.low > self.floor else "steady"


@dataclass(frozen=True, kw_only=True)
class Soak:
    """A soak so far."""

    ALSO_IN_JSON: ClassVar = ("leak", "hours", "load_share")

    applied: str
    """The title of the apply whose values are in force, "" for none."""
    host: str
    rate_rps: float
    block_s: float
    warmup_s: float
    """Load before each block."""
    planned: int
    """Blocks that were planned."""
    limits: Limits
    level: float
    blocks: tuple[SoakBlock, ...]
    trends: tuple[Trend, ...]
    broken: Broken
    """The limit that has ended it, "" for none."""
    pause_s: float | None
    """The mean time without load between two blocks, None without two uninterrupted ones."""
    interruptions: int
    restarts: int
    """The number of starts of nginx's processes meanwhile."""
    changed: tuple[str, ...] = ()
    """A line for each condition, such as the kernel, that changed since the first block."""

    @property
    def leak(self) -> Leak:
        """Whether memory or files of nginx grow."""
        growths = [trend.growth for trend in self.trends if trend.quantity in LEAKS]
        if "grows" in growths:
            return "leak"
        return "not known" if "not known" in growths or not growths else "no leak"

    @property
    def hours(self) -> float:
        """The time from the start of the first block to the end of the last one."""
        return self.blocks[-1].hours + self.blocks[-1].seconds / 3600 if self.blocks else 0.0

    @property
    def load_share(self) -> float | None:
        """The share of the time in which there was load, interruptions left out."""
        if self.pause_s is None:
            return None
        load_s = self.warmup_s + self.block_s
        return load_s / (load_s + self.pause_s)
