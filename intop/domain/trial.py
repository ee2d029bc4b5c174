"""Trials: configurations that were measured, with everything that was seen."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Literal, TypeVar

from intop.domain.configuration import Configuration
from intop.domain.counters import HostCounters
from intop.domain.histogram import COARSE, Histogram, Statistic
from intop.domain.server import NGINX, ServerName

TrialRole = Literal["baseline", "design", "proposal", "replicate", "sentinel", "finalist", "soak"]
"""The part that a trial has in its stage. A soak sets nothing, and does not restart nginx."""

Status = Literal["ok", "overloaded", "pruned", "disturbed", "failed"]
"""A pruned trial was stopped before its end: what it is judged by was certainly too high."""

USABLE: tuple[Status, ...] = ("ok", "overloaded", "pruned")
"""The statuses of trials that say something about their configuration."""

SeriesRound = tuple[int, int]
"""A series and a round of it, both from 1 on."""

TAIL = 0.1
"""The share of all requests whose times are a trial's tail."""

MAY_BE_UNKNOWN = (
    *("cpus", "nginx_conf", "generator", "backends", "congestion_control", "server_cpus"),
    "peers_congestion_control",
)
"""Conditions that are None or empty where they were not recorded."""

UNKNOWN = "unknown"
"""The fingerprint of a configuration that a host would not show."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The conditions that make two trials comparable where equal. Hardware is the balancer's."""

    arch: str
    machine: str
    kernel: str
    cpu: str
    nginx: str
    """The version of the server, whatever it is: `nginx/1.22.1`."""
    load_tool: str
    workload: str
    script: str
    """The fingerprint of the Lua files."""
    rate_rps: float
    connections: int
    threads: int
    duration_s: int
    timeout_s: int
    link: str
    paths: str
    """The paths that were asked for, in short."""
    emulation: str = ""
    """The emulator of a virtual machine of the lab, "" elsewhere."""
    traffic: str = ""
    """The differences of the load from a constant rate on connections that are kept."""
    cpus: int | None = None
    """The number of processors."""
    nginx_conf: str = ""
    """The fingerprint of the server's configuration, or UNKNOWN."""
    generator: str = ""
    """The load generators, in words."""
    backends: str = ""
    """The backends, in words."""
    congestion_control: str = ""
    """The load balancer's own default, which distributions choose and namespaces inherit."""
    peers_congestion_control: str = ""
    """That of the other hosts: `clients cubic, backends bbr`."""
    server: ServerName = NGINX.name
    server_cpus: str = ""
    """The processors that nginx's workers may run on, as in `HostFacts.nginx_cpus`."""
    judged_by: Statistic = "P99"
    """The latency that stands for a trial: a percentile or the mean."""
    observation: str = ""
    """The way in which a canary observes real traffic, in words; "" under a load of ours."""

    def differences(self, later: "Conditions", names: Collection[str] | None = None) -> list[str]:
        """Return a line with both values for each condition that differs, of all or of `names`.

        What one of the two has not recorded is no difference.
        """
        pairs = {f.name: (getattr(self, f.name), getattr(later, f.name)) for f in fields(self)}
        return [
            f"{name}: {'none' if mine == '' else mine} against {'none' if theirs == '' else theirs}"
            for name, (mine, theirs) in pairs.items()
            if mine != theirs
            and (names is None or name in names)
            and not (name in MAY_BE_UNKNOWN and {mine, theirs} & {None, ""})
        ]


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """A place in a stage's plan."""

    index: int
    """The place in the order of measurement."""
    role: TrialRole
    configuration: Configuration
    arm: str = ""
    """The name of what is measured, where arms are measured in rounds."""
    round: int | None = None
    """The round, from 1 on."""
    series: int = 1
    """A stage that is measured again has a further series."""
    step: int | None = None
    """The step of a refinement that proposed the trial, from 1 on."""
    reason: str = ""
    """The reason for a proposal: promise, uncertainty or replicate."""
    duration_s: int | None = None
    """The duration of the load where it is not the workload's: in pilots and longer verdicts."""
    rate_rps: float | None = None
    """The rate in place of the workload's, in a sweep. So are `connections`."""
    connections: int | None = None
    closed_loop: bool = False
    """Whether there is no rate (see `Workload.arrivals`)."""
    path: str = ""
    """The only path that is asked for, where there is one."""
    other_workload: str = ""
    """The workload of the study whose load the trial has, where it is another one."""

    @property
    def has_its_own_load(self) -> bool:
        """Whether the load is another one than the workload's, its duration apart."""
        numbers = self.rate_rps, self.connections
        own = self.closed_loop or bool(self.path) or bool(self.other_workload)
        return own or any(n is not None for n in numbers)

    @property
    def series_round(self) -> SeriesRound | None:
        """The series and the round, which all arms of a round share; None outside of rounds."""
        return None if self.round is None else (self.series, self.round)

    @property
    def turn(self) -> int:
        """Index of the replica, modulo their number. All arms of a round run on the same one."""
        if self.round is not None:
            return self.round
        # A pilot counts from 1.
        return self.index + 1 if self.duration_s is not None else self.index


@dataclass(frozen=True, kw_only=True)
class HostMetrics:
    """One host's reference metrics over a trial. None is what is not known of this host.

    Fractions (0 to 1) are of its CPU time, and counts are within the trial.
    """

    cpu: float
    steal: float
    memory_mib: float
    """Memory in use at the end."""
    time_wait: int
    """Sockets in TIME_WAIT at the end."""
    listen_overflows: int
    listen_drops: int
    retransmits: int
    cpu_pressure: float
    """The share of the time in which something runnable had no processor."""
    memory_before_mib: float
    time_wait_before: int
    foreign_cpu: float | None = None
    """CPU time of programs that have no part in the load."""
    foreign_program: str = ""
    """The program that took most of `foreign_cpu`."""
    load_cpu: float | None = None
    """The share of what the load tool's threads could use."""
    lag_ms: float | None = None
    """The 99th percentile of how late the load tool was for its own slots."""
    clock_step_s: float | None = None
    """Seconds by which somebody set the clock meanwhile."""
    cpus: int | None = None
    """The number of processors."""
    max_cpu_steal: float | None = None
    """The share of the time of the one processor that had most."""
    max_cpu_softirq: float | None = None
    """The share of the time of the one processor that had most."""
    softnet_drops: int | None = None
    """Packets for which a processor's backlog had no room, of the whole machine."""
    softnet_squeezes: int | None = None
    """The number of times that the kernel stopped receiving before it was done, on the whole
    machine."""
    accepted: int | None = None
    """Connections that it accepted."""
    context_switches_per_s: float | None = None
    """Context switches of all processors."""
    power_w: float | None = None
    """The mean power that its processors' packages report (RAPL)."""
    p99_ms: float | None = None
    """The P99 of the requests that this load generator sent."""
    server_memory_mib: float | None = None
    """Anonymous memory of nginx's processes at the end. Like all that follow, only of a soak."""
    server_files: int | None = None
    """Open file handles of nginx's processes."""
    server_started_s: float | None = None
    """The start of the last of nginx's processes, in seconds after the kernel's."""
    files: int | None = None
    """Handles that are open on the whole host."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt at a planned trial, without its latencies."""

    planned: PlannedTrial
    stage: str
    attempt: int
    """The number of the attempt, from 0 on."""
    status: Status
    detail: str
    """The reason why the status is not `ok`."""
    conditions: Conditions
    started_at: str
    """UTC, ISO 8601."""
    seconds: float
    tool_version: str
    replica: str
    """The load balancer that it was measured on."""

    @property
    def configuration(self) -> Configuration:
        """The configuration that was measured."""
        return self.planned.configuration

    def _failure(self) -> ValueError:
        return ValueError(f"trial {self.planned.index} failed, it has no latencies")


@dataclass(frozen=True, kw_only=True)
class Trial(Attempt):
    """A configuration that was measured."""

    seed: int
    histogram: Histogram | None = None
    """The latencies, None only when it failed. Every request that was due has one place, those
    that failed or were pending at the end too (`LoadResult` in hosts/load/types.py)."""
    achieved_rps: float = 0.0
    received_mb_s: float | None = None
    """The bytes that the load generators received over the whole run, heads included (10^6
    bytes/s)."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Failed and pending requests by kind."""
    metrics: Mapping[str, HostMetrics] = field(default_factory=dict)
    counters: Mapping[str, HostCounters] = field(default_factory=dict)
    """The counts of each host's kernel."""
    pruned_above_ms: float | None = None
    """The bound that `judged_ms` certainly exceeds, of a pruned trial."""

    @property
    def usable(self) -> bool:
        """Whether the trial says something about its configuration."""
        return self.status in USABLE and self.histogram is not None

    @property
    def balancer(self) -> HostMetrics:
        """The load balancer's metrics, which come second, after the load generator's.

        Raises ValueError where no host's metrics were read.
        """
        _, balancer, *_ = self.metrics.values()
        return balancer

    @property
    def backends(self) -> list[HostMetrics]:
        """The backends' metrics, which come last, after those of further load generators."""
        _, _, *hosts = self.metrics.values()
        return [metrics for metrics in hosts if metrics.load_cpu is None]

    @property
    def judged_ms(self) -> float:
        """The latency that the trial is judged by, in ms: P99 unless its study says otherwise.

        It is of the time from when a request was due to its answer. All requests that were due
        count, see `histogram`. For a pruned trial: the latency observed so far, but at least the
        pruning limit. Raises ValueError for a failed trial.
        """
        return self.statistic_ms(self.conditions.judged_by)

    def statistic_ms(self, name: Statistic) -> float:
        """Return a percentile or the mean, in ms; as in `judged_ms` if the trial is judged by it.

        Raises ValueError for a failed trial.
        """
        is_judged = name == self.conditions.judged_by
        least_ms = (self.pruned_above_ms or 0.0) if is_judged else 0.0
        return max(self._latencies.statistic_ms(name), least_ms)

    @property
    def tail_ms(self) -> float:
        """The geometric mean of the times of the slowest TAIL of all requests, in ms.

        For a pruned trial: the tail observed so far. Raises ValueError for a failed trial.
        """
        return self._latencies.slowest_ms(TAIL)

    @property
    def guide_ms(self) -> float:
        """The latency that searches go by, in ms: the tail where P99 or P99.9 is judged.

        One request in a hundred is a few of a short trial, and they wait for a time-out or they
        don't, while a tenth of them says how near to that it was. Other latencies rest on enough
        requests, and guide by themselves. Raises ValueError for a failed trial.
        """
        return self.tail_ms if self.conditions.judged_by in COARSE else self.judged_ms

    def as_json(self) -> dict[str, object]:
        """Return the trial for programs, with its percentiles in place of the histogram."""
        percentiles = (
            {f"p{percent:g}_ms": self.percentile_ms(percent) for percent in (50, 90, 99, 99.9)}
            if self.histogram
            else {}
        )
        return {
            "stage": self.stage,
            "index": self.planned.index,
            "attempt": self.attempt,
            "replica": self.replica,
            "role": self.planned.role,
            "configuration": dict(self.configuration.values),
            "digest": self.configuration.digest,
            "status": self.status,
            "detail": self.detail,
            "started_at": self.started_at,
            "seconds": self.seconds,
            "judged_ms": self.judged_ms if self.histogram else None,
            "pruned_above_ms": self.pruned_above_ms,
            **percentiles,
            "achieved_rps": self.achieved_rps,
            "errors": dict(self.errors),
            "metrics": {name: asdict(m) for name, m in self.metrics.items()},
            "conditions": asdict(self.conditions),
        }

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the histogram, in ms. Raises ValueError for a failed trial."""
        return self._latencies.percentile_ms(percent)

    @property
    def _latencies(self) -> Histogram:
        if self.histogram is None:
            raise self._failure()
        return self.histogram


@dataclass(frozen=True, kw_only=True)
class Outline(Attempt):
    """A trial without latencies, metrics and counters. Reading one takes a fraction of the time."""

    measured_ms: float | None = None
    """None for a failed trial."""

    @property
    def usable(self) -> bool:
        """Whether the trial says something about its configuration."""
        return self.status in USABLE and self.measured_ms is not None

    @property
    def judged_ms(self) -> float:
        """The latency that the trial is judged by. Raises ValueError for a failed trial."""
        if self.measured_ms is None:
            raise self._failure()
        return self.measured_ms


AnyTrial = Trial | Outline
T = TypeVar("T", Trial, Outline)


def judged_by(trials: Sequence[AnyTrial]) -> Statistic:
    """Return the latency that trials of one campaign are judged by; P99 for none."""
    return trials[0].conditions.judged_by if trials else "P99"


def latest(attempts: Iterable[T]) -> list[T]:
    """Return the last attempt at each place of a plan, in the order of their first ones."""
    last: dict[tuple[str, int], T] = {}
    for trial in attempts:
        last[trial.stage, trial.planned.index] = trial
    return list(last.values())
