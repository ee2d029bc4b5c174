"""Workloads: the load that a cluster is measured under."""

from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Literal
from urllib.parse import urlsplit

from intop.domain.training import TREE_MODELS
from intop.errors import ResultMissingError
from intop.masking import masked_header

WorkloadKind = Literal["slt", "dlt"]
"""What requests are for: static files, or pages made on request. The paper's two workloads."""
WORKLOAD_KINDS: tuple[WorkloadKind, ...] = ("slt", "dlt")

Arrivals = Literal["constant", "poisson", "closed"]
"""When requests are due. In a closed loop, once a connection has its answer: there is no rate, and
a slow server is asked less often."""
Lifetimes = Literal["fixed", "geometric"]
Check = Literal["content", "length", "status"]
Http = Literal["1.1", "2"]
Scheme = Literal["", "http", "https"]
LoadToolChoice = Literal["auto", "engine", "wrk2"]
"""With `auto` wrk2 is taken where the load generator has it and it can send the load."""


@dataclass(frozen=True, kw_only=True)
class Clients:
    """A class of clients: how large a part of the load it sends, and how it behaves.

    `share` is its part of the rate, and of the connections unless it has `connections` of its own.
    A connection carries `requests_per_connection` requests (with `geometric` lifetimes so many on
    average), and None as many as the server takes; after an answer it stays idle for `think_ms`.
    Each connection reads at most `read_kb_per_s` (KB of 1,024 bytes). With `tls_resume` new
    connections resume TLS sessions. With `http` 2 a connection carries up to
    `streams_per_connection` requests at once: over TLS by ALPN, else by prior knowledge. Each
    request has the further `headers` ("Name: value"), a `method`, and a body of `body_bytes`.
    `source` is the address that connections come from. As a text it has no secrets of headers, so
    that a new token is the same load.
    """

    name: str = ""
    share: float = 1.0
    connections: int | None = None
    requests_per_connection: float | None = None
    lifetimes: Lifetimes = "fixed"
    think_ms: float = 0.0
    read_kb_per_s: float | None = None
    tls_resume: bool = False
    http: Http = "1.1"
    streams_per_connection: int = 1
    headers: tuple[str, ...] = ()
    method: str = "GET"
    body_bytes: int = 0
    source: str = ""

    def __str__(self) -> str:
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        default = {f.name: f.default for f in fields(self)}
        return ", ".join(
            f"{name}={'|'.join(map(masked_header, value)) if isinstance(value, tuple) else value}"
            for name, value in said.items()
            if value != default[name]
        )


ALIKE = Clients()
"""All clients are alike, and keep their connections."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A rate of requests of one `kind`: `slt` for static files, `dlt` for generated content.

    `rate_rps` in requests/s over all connections; `duration_s` are the counted seconds of one
    trial, None where a pilot chooses them, and `warmup_s` the uncounted ones before them on the
    same connections. `threads` are wrk2's. `paths` are what requests for files ask for, at random;
    one that stands there twice is asked for twice as often. Where there are none, they are the
    cluster's own static paths. `clients` share the load; their shares add up to 1. `check` is what
    answers to static paths are held against: the length and checksum that they had when the
    campaign began to measure, the length alone, or neither. In a sweep over files `only_path` is
    the one that a trial asks for.

    With a `scheme` it goes to the usual port of that one on the cluster's host, else to the
    cluster's URL. `script` is the file of a Lua script of the user's own, which takes the arguments
    of its kind (`lua/slt.lua`, `lua/dlt.lua`); "" is intop's. What is not `tuned` is left out by
    commands that no workload is named to, but for those that measure a winner in all workloads.
    """

    name: str
    kind: WorkloadKind
    rate_rps: float
    connections: int
    threads: int
    duration_s: int | None
    warmup_s: int
    timeout_s: int
    paths: tuple[str, ...] = ()
    arrivals: Arrivals = "constant"
    clients: tuple[Clients, ...] = (ALIKE,)
    check: Check = "content"
    only_path: str = ""
    scheme: Scheme = ""
    script: str = ""
    tuned: bool = True

    @property
    def own_script(self) -> str:
        """What a Lua script of the user's own is called, without its folder and .lua."""
        return PurePath(self.script).stem

    @property
    def traffic(self) -> str:
        """How the load differs from a constant rate on connections that are kept; "" if it doesn't.

        For conditions: trials of different traffic aren't comparable.
        """
        told = {"constant": "", "poisson": "poisson arrivals", "closed": "closed loop"}
        arrivals = told[self.arrivals]
        return "; ".join(filter(None, (self.scheme, arrivals, *map(str, self.clients))))

    def url(self, of_cluster: str) -> str:
        """Where it goes to on a cluster with this URL."""
        parts = urlsplit(of_cluster)
        if self.scheme in ("", parts.scheme):
            return of_cluster
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{self.scheme}://{host}"

    @property
    def due_rps(self) -> float:
        """How many requests are due in a second; 0 in a closed loop, in which nothing is due."""
        return 0.0 if self.arrivals == "closed" else self.rate_rps

    @property
    def counted_s(self) -> int:
        """The duration. Raises ResultMissingError while no pilot has chosen it."""
        if self.duration_s is None:
            raise ResultMissingError(
                f"{self.name}: how long a trial takes is not chosen yet: intop pilot --workload "
                f"{self.name} (or set duration_s in [workload.{self.name}])"
            )
        return self.duration_s

    def asked(self, static_paths: tuple[str, ...], dynamic_path: str) -> tuple[str, ...]:
        """The paths that are asked for on a cluster with these."""
        return (dynamic_path,) if self.kind == "dlt" else self.paths or static_paths


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much one study may measure and compute, for each architecture and workload.

    `screen_trials` and `collect_trials` are configurations measured once each; a sentinel (the
    default) is measured after every `sentinel_every` of them. A screening ends early when
    `screen_stable` looks in a row found the same; 0 measures all. About `keep` parameters vary at
    once after it. `finalists`, and each tree model's own winner, are compared in `pick_rounds`
    rounds; the best of them all meets the default in up to `judge_pairs` fresh pairs, which are
    looked at `judge_looks` times: no more are measured once the verdict is clear. Their trials have
    `judge_duration_s` counted seconds, None as many as all others. `tuning_trials` and
    `tuning_timeout_s` limit the hyper-parameter search of one family in one fold. After
    `max_failures` failed trials a stage stops. A disturbed trial is measured again at most
    `retries` times; it is disturbed when other machines took more than `max_steal_cores` processors
    of a host, or more than `max_steal` of the time of any one of them, when programs that have no
    part in the load used more than `max_foreign_cores` processors, when the load tool used more
    than `max_load_cpu` of what its threads could, or when it was itself late by more than `max_lag`
    of P99. A trial of screen, collect or refine is pruned once its P99 is certainly more than
    `prune_factor` times that of the default; 0 prunes none. Where a cluster has replicas, the
    default is measured `agree_rounds` times on each of them, to see that they agree. A pilot
    measures the default `pilot_trials` times at each duration, up to `pilot_max_s`, and looks for
    one with which a verdict resolves a ratio of `pilot_resolution`.

    `refine_trials` go, `refine_batch` at a time, to what is most telling by all trials before them;
    0 leaves that stage out of `tune`. `replicate_trials` further trials go to collected
    configurations that promise or scatter much; None is none where there are `refine_trials`, of
    which some are replicates, and else a quarter of as many as there are configurations. Models
    are judged by `folds`, which are drawn anew for each of `repeats`.

    An explanation that has to rank the winner's changes measures each of the stronger ones in
    `explain_rounds` rounds, left out and alone (0: `tune` does not explain), and judges the
    smallest set in `explain_pairs` rounds.
    """

    screen_trials: int
    screen_stable: int
    keep: int
    collect_trials: int
    replicate_trials: int | None
    refine_trials: int
    refine_batch: int
    sentinel_every: int
    folds: int
    repeats: int
    tuning_trials: int
    tuning_timeout_s: float
    population: int
    generations: int
    patience: int
    finalists: int
    pick_rounds: int
    judge_pairs: int
    judge_looks: int
    judge_duration_s: int | None
    agree_rounds: int
    level: float
    settle_limit_s: float
    max_time_wait: int
    max_failures: int
    retries: int
    max_steal: float
    max_steal_cores: float
    max_foreign_cores: float
    max_load_cpu: float
    max_lag: float
    prune_factor: float
    pilot_trials: int
    pilot_max_s: int
    pilot_resolution: float
    explain_rounds: int
    explain_pairs: int

    @property
    def pick_arms(self) -> int:
        """How many arms meet in a round of `pick`, at most.

        They are the finalists, the one with few keys, each tree model's winner, and the default.
        """
        return self.finalists + len(TREE_MODELS) + 2
