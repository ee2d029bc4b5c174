"""The load that a generator is asked to send, and its result."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from intop.domain.histogram import Histogram
from intop.domain.workload import ALIKE, Arrivals, Clients, WorkloadKind

ToolName = Literal["engine", "wrk2"]

PATHS_FILE = "paths.txt"
"""The static paths, one a line, next to the scripts on the load generator."""
MAX_SEED = 2**32 - 1
MAX_THREADS = 1024


@dataclass(frozen=True, kw_only=True)
class LoadTool:
    """A load generator on some host."""

    name: ToolName
    path: str
    """Its program; for the engine LuaJIT's, which runs it."""
    version: str
    """The version by its own words; for the engine LuaJIT's."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """One stream of requests, sent by one process of a load generator.

    Raises ValueError where a tool would silently do something else.
    """

    script: WorkloadKind
    """The Lua script that is asked for requests."""
    url: str
    """The server's URL, without a path."""
    rate_rps: float
    """Requests/s over all connections. A closed loop and recorded arrivals don't use it."""
    connections: int
    threads: int
    """The threads of wrk2."""
    duration_s: float
    """The counted seconds."""
    seed: int
    warmup_s: float = 0.0
    """The uncounted seconds before them."""
    timeout_s: float = 10.0
    dynamic_path: str = "/dynamic"
    """The path of dlt."""
    only_path: str = ""
    """The one path of slt, in place of all paths of PATHS_FILE."""
    own_script: str = ""
    """The user's own script, without .lua, in place of `script` with the same arguments."""
    arrivals: Arrivals = "constant"
    slots: str = field(default="", repr=False)
    """The requests of recorded arrivals: lines of `µs path`, in the order in which they are due.

    Times count from the first slot of all streams, and paths from 1.
    """
    clients: Clients = ALIKE
    stream: int = 0
    """The number of this stream, from 0 on: it draws URLs that no other stream draws."""
    streams: int = 1
    """The number of all streams."""
    start_at: float | None = None
    """The first slot of the first stream, by the generator's own time of day; None is soon."""
    expected_file: str = ""
    """A file in the scripts' folder by which answers are checked; wrk2 ignores it.

    Its lines are path, length, and CRC-32 or "-" for any content.
    """
    prune_above_ms: float | None = None
    """A limit by which the run ends early; wrk2 ignores it.

    It ends as soon as more than `prune_count` requests are certainly answered later than that after
    they were due.
    """
    prune_count: int = 0

    @property
    def script_name(self) -> str:
        """The name of the script that is run, without .lua."""
        return self.own_script or self.script

    @property
    def slots_file(self) -> str:
        """The file of its slots, in the folder of the scripts."""
        return f"slots-{self.stream}.txt"

    def __post_init__(self) -> None:
        if self.url.startswith("-"):
            raise ValueError(f"url {self.url!r} would be read as an option")
        for name in ("rate_rps", "duration_s", "timeout_s"):
            _require_positive(name, getattr(self, name))
        if self.prune_above_ms is not None:
            _require_positive("prune_above_ms", self.prune_above_ms)
        if not 1 <= self.threads <= MAX_THREADS:
            raise ValueError(f"threads {self.threads} is not in 1..{MAX_THREADS}")
        if self.connections < 1:
            raise ValueError(f"connections {self.connections} is less than 1")
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed {self.seed} is not in 0..{MAX_SEED}")
        if not 0 <= self.stream < self.streams:
            raise ValueError(f"stream {self.stream} is not in 0..{self.streams - 1}")


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """The result of a load."""

    requests: int
    """All requests of the counted time."""
    duration_s: float
    """The counted time."""
    run_s: float
    """The time of the whole run."""
    bytes: int
    """The bytes received in the whole run."""
    errors: Mapping[str, int]
    """The failed and pending requests by kind."""
    histogram: Histogram
    """The latencies of all `requests`, from the time when they were due.

    Answered ones count with the time to their answer. Failed ones count with the timeout, or the
    time that they waited if that is longer. Pending ones, unanswered at the end, count with the
    time that they waited.
    """
    achieved_rps: float
    """The rate of right answers in the counted time.

    Those to requests of the warm-up are among them, since as many are under way at its end.
    Recorded arrivals count all right answers to requests of the counted time instead.
    """
    offered_rps: float
    """The rate at which requests were due in the counted time; 0 in a closed loop.

    Where they come at random it is not quite the rate that was asked for.
    """
    cpu_s: float | None = None
    """The CPU time of the run; None where that is not known."""
    stopped_after_s: float | None = None
    """The counted time until the limit of its load ended it; None where it ran as planned."""
    lag_ms: float | None = None
    """The generator's own delay for a slot, 99th percentile; None with wrk2, which can't tell."""
    clock_step_s: float | None = None
    """The step by which somebody set its clock meanwhile; None with wrk2, which can't tell."""
    uncounted: int = 0
    """Pending requests that are missing in all other numbers: wrk2 doesn't count them."""

    @property
    def received_mb_s(self) -> float:
        """10^6 bytes received in a second, over the whole run."""
        return self.bytes / 1e6 / self.run_s if self.run_s > 0 else 0.0


def _require_positive(name: str, number: float) -> None:
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} {number} is not a positive number")
