"""Workloads: the load that a cluster is measured under."""

from dataclasses import dataclass
from typing import Literal

from intop.domain.training import TREE_MODELS
from intop.errors import ResultMissingError

WorkloadName = Literal["slt", "dlt"]
WORKLOADS: tuple[WorkloadName, ...] = ("slt", "dlt")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A constant rate of requests: `slt` for static files, `dlt` for generated content.

    `rate_rps` in requests/s over all connections; `duration_s` are the counted seconds of one
    trial, None where a pilot chooses them, and `warmup_s` the uncounted ones before them. `paths`
    are what `slt` asks for; where there are none, it is the cluster's own static paths.
    """

    name: WorkloadName
    rate_rps: float
    connections: int
    threads: int
    duration_s: int | None
    warmup_s: int
    timeout_s: int
    paths: tuple[str, ...] = ()

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
        return (dynamic_path,) if self.name == "dlt" else self.paths or static_paths


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much one study may measure and compute, for each architecture and workload.

    `screen_trials` and `collect_trials` are configurations measured once each; a sentinel (the
    default) is measured after every `sentinel_every` of them. A screening ends early when
    `screen_stable` looks in a row found the same; 0 measures all. At most `keep` parameters
    survive it. `finalists`, and each tree model's own winner beside them, are compared in
    `pick_rounds` rounds; the best of them all meets the default in up to `judge_pairs` fresh
    pairs, which are looked at `judge_looks` times: no more are
    measured once the verdict is clear. `tuning_trials` and `tuning_timeout_s` limit the
    hyper-parameter search of one family in one fold. After `max_failures` failed trials a stage
    stops. A disturbed trial is measured again at most `retries` times; it is disturbed when other
    machines took more than `max_steal_cores` processors of a host, or more than `max_steal` of the
    time of any one of them, when programs that have no part in the load used more than
    `max_foreign_cores` processors, or when the load tool used more than `max_load_cpu` of what its
    threads could. A trial of screen, collect or refine is pruned once its P99 is
    certainly more than `prune_factor` times that of the default; 0 prunes none. Where a cluster has
    replicas, the default is measured `agree_rounds` times on each of them, to see that they agree.
    A pilot measures the default `pilot_trials` times at each duration, up to `pilot_max_s`, and
    looks for one with which a verdict resolves a ratio of `pilot_resolution`.

    `refine_trials` go, `refine_batch` at a time, to what is most telling by all trials before them;
    0 leaves that stage out of `tune`. `replicate_trials` further trials go to collected
    configurations that promise or scatter much; None is none where there are `refine_trials`, of
    which some are replicates, and else a quarter of as many as there are configurations. Models
    are judged by `folds`, which are drawn anew for each of `repeats`.

    An explanation measures each of the winner's stronger changes in `explain_rounds` rounds, left
    out and alone (0: `tune` leaves it out), and judges the smallest set in `explain_pairs` rounds.
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
    prune_factor: float
    pilot_trials: int
    pilot_max_s: int
    pilot_resolution: float
    explain_rounds: int
    explain_pairs: int

    @property
    def pick_arms(self) -> int:
        """How many arms meet in a round of `pick`, at most.

        They are the finalists, each tree model's own winner, and the default.
        """
        return self.finalists + len(TREE_MODELS) + 1
