"""Trials: configurations that were measured, with everything that was seen."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeVar

from intop.domain.configuration import Configuration
from intop.domain.counters import HostCounters
from intop.domain.histogram import Histogram
from intop.domain.server import NGINX, ServerName

TrialRole = Literal["baseline", "design", "proposal", "replicate", "sentinel", "finalist", "soak"]
"""A block of a soak measures what it finds on the host: nothing is set, and nginx is not restarted.
"""
Status = Literal["ok", "overloaded", "pruned", "disturbed", "failed"]
"""A pruned trial was stopped before its end, since its P99 was certainly too high."""

USABLE: tuple[Status, ...] = ("ok", "overloaded", "pruned")
"""Of trials that say something of their configuration."""

Block = tuple[int, int]
"""A series and a round of it, both from 1 on."""

TAIL = 0.1
"""The share of all requests whose times are a trial's tail."""


RECORDED_LATER = (
    *("cpus", "nginx_conf", "generator", "backends", "congestion_control", "server_cpus"),
)
"""The conditions that trials of an earlier intop don't have."""

UNKNOWN = "unknown"
"""In place of a fingerprint, where a host would not show what it is of."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What must be equal for two trials to be comparable.

    `machine`, `kernel`, `cpu`, `cpus` (how many processors), `server` and `nginx` are the load
    balancer's; `nginx` is the version of the server, whatever it is: `nginx/1.22.1`;
    `script` is the fingerprint of the Lua files, `paths` says in short what was asked for;
    `emulation` is empty unless the load balancer is a virtual machine of the lab; `traffic` says
    how the load differs from a constant rate on connections that are kept. `nginx_conf` is the
    fingerprint of the server's configuration, or UNKNOWN. `generator` and `backends`
    say in words what the other hosts are; `congestion_control` is the load balancer's by itself,
    which namespaces inherit and distributions choose; `server_cpus` are the processors that nginx's
    workers may run on, as in `HostFacts.nginx_cpus`. What is in RECORDED_LATER may be None or
    empty: it was not recorded.
    """

    arch: str
    machine: str
    kernel: str
    cpu: str
    nginx: str
    load_tool: str
    workload: str
    script: str
    rate_rps: float
    connections: int
    threads: int
    duration_s: int
    timeout_s: int
    link: str
    paths: str
    emulation: str = ""
    traffic: str = ""
    cpus: int | None = None
    nginx_conf: str = ""
    generator: str = ""
    backends: str = ""
    congestion_control: str = ""
    server: ServerName = NGINX.name
    server_cpus: str = ""

    def differences(self, other: "Conditions", names: Collection[str] | None = None) -> list[str]:
        """One line for each condition (all, or those of `names`) that differs, with both values.

        What one of the two has not recorded is no difference.
        """
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return [
            f"{name}: {'none' if one == '' else one} against {'none' if two == '' else two}"
            for name, (one, two) in pairs.items()
            if one != two
            and (names is None or name in names)
            and not (name in RECORDED_LATER and {one, two} & {None, ""})
        ]


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """One place in a stage's plan. `index` is its place in the order of measurement.

    Where arms are measured in rounds, `arm` names what is measured in this `round` (from 1 on); a
    stage that is measured again has a further `series`. In a refinement `step` (from 1 on) is the
    one that proposed the trial, and `reason` says why: promise, uncertainty or replicate.
    `duration_s` is how long the load lasts where that is not the workload's: in a pilot, and in a
    verdict that has longer trials. In a sweep `rate_rps` and `connections` take the place of the
    workload's, and with `closed_loop` there is no rate (see `Workload.arrivals`). With a `path` all
    requests ask for that. A trial under `other_workload` has the load of that one of the study's
    workloads.
    """

    index: int
    role: TrialRole
    configuration: Configuration
    arm: str = ""
    round: int | None = None
    series: int = 1
    step: int | None = None
    reason: str = ""
    duration_s: int | None = None
    rate_rps: float | None = None
    connections: int | None = None
    closed_loop: bool = False
    path: str = ""
    other_workload: str = ""

    @property
    def has_its_own_load(self) -> bool:
        """Whether the load is another one than the workload's, its duration apart."""
        numbers = self.rate_rps, self.connections
        own = self.closed_loop or bool(self.path) or bool(self.other_workload)
        return own or any(n is not None for n in numbers)

    @property
    def block(self) -> Block | None:
        """What all arms of a round have in common; None outside of rounds."""
        return None if self.round is None else (self.series, self.round)

    @property
    def turn(self) -> int:
        """What the number of its replica is counted from: the same for all arms of a round."""
        if self.round is not None:
            return self.round
        # The pilot counts from 1, as it did in its first version.
        return self.index + 1 if self.duration_s is not None else self.index


@dataclass(frozen=True, kw_only=True)
class HostMetrics:
    """One host's reference metrics over a trial.

    `cpu`, `steal`, `foreign_cpu` are fractions of its CPU time (0 to 1), `cpu_pressure` one of the
    time (in which something runnable had no processor); `memory_mib` is memory in use at the end,
    `time_wait` the sockets in that state; the others are counts within the trial. `_before` is
    the same before the load.

    `foreign_cpu` went to programs that have no part in the load, most of it to `foreign_program`;
    `load_cpu` is what the load tool used of what its threads could. `lag_ms` is the 99th percentile
    of how late the load tool was for its own slots, and `clock_step_s` by how much somebody set the
    clock meanwhile; `p99_ms` is of the requests that this load generator sent. None is what is not
    known: of a backend whose application nobody named, of a lab's guest, of another host than a
    load generator, of wrk2.

    `cpus` is how many processors it has. `max_cpu_steal` and `max_cpu_softirq` are shares of the
    time of the one processor that had most of each. `softnet_drops` counts packets for which a
    processor's backlog had no room, `softnet_squeezes` how often the kernel stopped receiving
    before it was done; a network namespace shows its machine's. `accepted` counts connections that
    it accepted. `context_switches_per_s` is of all processors, `power_w` the mean power that its
    processors' packages report (RAPL), None where they don't. All are None of trials that an
    earlier intop measured.

    Only a soak reads these, of the load balancer alone, at the end of each block:
    `server_memory_mib` is the anonymous memory of nginx's processes and `server_files` their open
    file handles, `server_started_s` when the last of them started (s after the kernel did), and
    `files` the handles that are open on the whole host.
    """

    cpu: float
    steal: float
    memory_mib: float
    time_wait: int
    listen_overflows: int
    listen_drops: int
    retransmits: int
    cpu_pressure: float
    memory_before_mib: float
    time_wait_before: int
    foreign_cpu: float | None = None
    foreign_program: str = ""
    load_cpu: float | None = None
    lag_ms: float | None = None
    clock_step_s: float | None = None
    cpus: int | None = None
    max_cpu_steal: float | None = None
    max_cpu_softirq: float | None = None
    softnet_drops: int | None = None
    softnet_squeezes: int | None = None
    accepted: int | None = None
    context_switches_per_s: float | None = None
    power_w: float | None = None
    p99_ms: float | None = None
    server_memory_mib: float | None = None
    server_files: int | None = None
    server_started_s: float | None = None
    files: int | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A configuration that was measured. `histogram` is None only when it failed.

    Every request that was due has one place in the histogram, those that failed and those that were
    pending at the end too (`LoadResult` in hosts/load/types.py says which). `errors` counts these
    by kind; `detail` says why the status is not `ok`. `started_at` is UTC in ISO 8601. `replica` is
    the load balancer that it was measured on. `received_mb_s` is what the load generators received
    over the whole run, heads of answers included (10^6 bytes/s). `counters` are what the kernel of
    each host counted. Trials of an earlier intop have neither. `pruned_above_ms` is what P99 is
    certainly above, of a pruned trial.
    """

    planned: PlannedTrial
    stage: str
    attempt: int
    status: Status
    detail: str
    conditions: Conditions
    started_at: str
    seconds: float
    seed: int
    tool_version: str
    replica: str
    histogram: Histogram | None = None
    achieved_rps: float = 0.0
    received_mb_s: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, HostMetrics] = field(default_factory=dict)
    counters: Mapping[str, HostCounters] = field(default_factory=dict)
    pruned_above_ms: float | None = None

    @property
    def configuration(self) -> Configuration:
        """What was measured."""
        return self.planned.configuration

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
        _, _, *others = self.metrics.values()
        return [metrics for metrics in others if metrics.load_cpu is None]

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the time from when a request was due to its answer, in ms.

        What everything is judged by. All requests that were due count, see `histogram`.

        For a pruned trial, the P99 observed so far, or the limit that it certainly exceeds, if that
        is higher: how bad it would have become is not known. Raises ValueError for a failed trial.
        """
        return max(self.percentile_ms(99.0), self.pruned_above_ms or 0.0)

    @property
    def tail_ms(self) -> float:
        """The geometric mean of the times that the slowest TAIL of all requests took, in ms.

        What a search is led by where P99 leads nowhere: one request in a hundred is a few of a
        short trial, and they wait for a time-out or they don't, while a tenth of them says how
        near to that it was. For a pruned trial, the tail observed so far. Raises ValueError for a
        failed trial.
        """
        return self._latencies.slowest_ms(TAIL)

    def percentile_ms(self, percent: float) -> float:
        """A percentile of the histogram, in ms. Raises ValueError for a failed trial."""
        return self._latencies.percentile_ms(percent)

    @property
    def _latencies(self) -> Histogram:
        if self.histogram is None:
            raise ValueError(f"trial {self.planned.index} failed, it has no latencies")
        return self.histogram


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A trial without what is large: its latencies, its hosts' metrics and their counters.

    Reading one takes a fraction of the time. All else is as in `Trial`. `measured_p99_ms` is None
    of a failed trial.
    """

    planned: PlannedTrial
    stage: str
    attempt: int
    status: Status
    detail: str
    conditions: Conditions
    started_at: str
    seconds: float
    tool_version: str
    replica: str
    measured_p99_ms: float | None = None

    @property
    def configuration(self) -> Configuration:
        """What was measured."""
        return self.planned.configuration

    @property
    def usable(self) -> bool:
        """Whether the trial says something about its configuration."""
        return self.status in USABLE and self.measured_p99_ms is not None

    @property
    def p99_ms(self) -> float:
        """As the trial's. Raises ValueError for a failed trial."""
        if self.measured_p99_ms is None:
            raise ValueError(f"trial {self.planned.index} failed, it has no latencies")
        return self.measured_p99_ms


AnyTrial = Trial | Outline
T = TypeVar("T", Trial, Outline)


def latest(attempts: Iterable[T]) -> list[T]:
    """The last attempt at each place of a plan. Places are in the order of their first ones."""
    found: dict[tuple[str, int], T] = {}
    for trial in attempts:
        found[trial.stage, trial.planned.index] = trial
    return list(found.values())
