"""What a load generator is asked to send, and what it measured."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
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
    """A load generator on some host: `version` is what it says of itself.

    For the engine, `path` and `version` are LuaJIT's, which runs it.
    """

    name: ToolName
    path: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Load:
    """One stream of requests: what one process of a load generator sends.

    `rate_rps` in requests/s over all `connections`, and without a meaning in a closed loop;
    `duration_s` are the counted seconds, and `warmup_s` the uncounted ones before them; `url` has
    no path; the Lua script `script` is asked for requests, or in its place the user's own
    `own_script` (without .lua), with the same arguments; `dynamic_path` is what dlt asks for,
    `only_path` what slt asks for in place of all paths of PATHS_FILE; `threads` are wrk2's. Stream
    `stream` of `streams` (from 0 on) draws URLs that no other of them draws. `start_at` is the
    first slot of the first stream, in seconds of the generator's own time of day; None is soon.
    With an `expected_file`, a name in the scripts' folder, answers have to be what it says: lines
    of path, length, and CRC-32 or "-" for any content. wrk2 ignores it. With `prune_above_ms` the
    run ends as soon as it is certain that more than `prune_count` of its requests are answered
    later than that after they were due; wrk2 ignores it. ValueError where a tool would silently do
    something else.
    """

    script: WorkloadKind
    url: str
    rate_rps: float
    connections: int
    threads: int
    duration_s: float
    seed: int
    warmup_s: float = 0.0
    timeout_s: float = 10.0
    dynamic_path: str = "/dynamic"
    only_path: str = ""
    own_script: str = ""
    arrivals: Arrivals = "constant"
    clients: Clients = ALIKE
    stream: int = 0
    streams: int = 1
    start_at: float | None = None
    expected_file: str = ""
    prune_above_ms: float | None = None
    prune_count: int = 0

    @property
    def script_name(self) -> str:
        """The name of the script that is carried out, without .lua."""
        return self.own_script or self.script

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
    """What a load measured.

    `histogram` holds the latencies of all `requests` of the counted `duration_s`, from when they
    were due: answered ones at the time that their answer took, failed ones at the timeout or at the
    time that they waited if that is longer, and pending ones (unanswered at the end) at the time
    that they waited. wrk2 doesn't count pending requests: `uncounted` says how many are missing.
    `errors` are the failed and pending ones by kind. `achieved_rps` is the rate of right answers
    in the counted time. Those to requests of the warm-up are among them, since as many are under
    way at its end.

    `run_s` is the time of the whole run, `bytes` what was received in it, and `cpu_s` the CPU time
    that it took, None where that is not known. `stopped_after_s` is after how many counted seconds
    the limit of its load ended it, None where it ran as long as planned. `lag_ms` is the 99th
    percentile of how late the generator itself was for a slot, and `clock_step_s` by how much
    somebody set its clock meanwhile; None with wrk2, which can't tell.

    `offered_rps` is the rate at which requests were due in the counted time. Where they come at
    random it is not quite the rate that was asked for. It is 0 in a closed loop.
    """

    requests: int
    duration_s: float
    run_s: float
    bytes: int
    errors: Mapping[str, int]
    histogram: Histogram
    achieved_rps: float
    offered_rps: float
    cpu_s: float | None = None
    stopped_after_s: float | None = None
    lag_ms: float | None = None
    clock_step_s: float | None = None
    uncounted: int = 0

    @property
    def received_mb_s(self) -> float:
        """10^6 bytes received in a second, over the whole run."""
        return self.bytes / 1e6 / self.run_s if self.run_s > 0 else 0.0


def _require_positive(name: str, number: float) -> None:
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} {number} is not a positive number")
