"""Does each of two logs of one server lead to its own parameter, and a constant rate to fewer?

    python -m benchmarks planted-logs
    python -m benchmarks planted-logs --seeds 3 --minutes 100

Both logs have 100 requests/s on average, of ten minutes (`benchmarks/logs.py`):

idle      71 kept connections, each with pauses of 0.5 to 0.9 s, ask for files of 2 to 120 KB.
bursts    28 new connections within 15 ms, 3.6 times a second, each for one small file.

The server is a lab with clients 20 ms away, a SYN queue of 32 and a listening queue of 128, as in
the scenarios bursts and idle-wan. `intop workload learn --record` makes a workload of a log, and
`intop tune` with the budget of `make run` finds a plan on four labs, with trials of 4 s. The
constant load has the same mean rate and paths, on 64 kept connections: what one types by hand.

Terms, said before any run. A plan is right if its verdict is a gain, and it has a parameter that
acts in the scenario's truth table (benchmarks/truth):

idle      tcp_slow_start_after_idle (idle-wan)
bursts    tcp_max_syn_backlog, or tcp_no_metrics_save, by which the clients, who have one address
          in a lab, are no strangers any more (bursts). somaxconn does not act there.

The claim, for each seed: the learned loads of both logs are right, and the constant load of at
least one is not.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from benchmarks.campaign import MAIN, scenario
from benchmarks.harness import Question, UnusableError
from benchmarks.logs import NAME, Log, bursts, idle, learned_study
from benchmarks.winners import interval_of, tuned
from intop.config.study import Study
from intop.domain.cluster import LabSpec
from intop.domain.stats import Interval
from intop.domain.workload import ALIKE, Budget, Workload

SECONDS = 600
TRIAL_S = 4
LABS = 4
CONNECTIONS = 64
"""The load that a user types by hand, as `intop init` writes it."""
LEARNED, CONSTANT = "learned", "constant"
SERVER = """\
[cluster.native]
lab = "planted"
link = { delay_ms = 20 }

[cluster.native.sysctls]
"net.core.somaxconn" = 128
"net.ipv4.tcp_max_syn_backlog" = 32
"net.ipv4.tcp_syncookies" = 0
"net.ipv4.tcp_no_metrics_save" = 1
"""
RIGHT: Mapping[str, frozenset[str]] = {
    "idle": frozenset({"net.ipv4.tcp_slow_start_after_idle"}),
    "bursts": frozenset({"net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_no_metrics_save"}),
}

Cell = tuple[str, str, int]
"""A log, a load and a seed."""


@dataclass(frozen=True)
class Plan:
    """The verdict of a campaign."""

    values: dict[str, str]
    ratio: Interval
    is_gain: bool


class PlantedLogs(Question[Cell, Plan]):
    """Do logs lead to their own parameters?"""

    seeds = 1
    result = Plan
    has_store = True
    may_end_early = True
    fixed = ("trials", "labs")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("log", nargs="*", help=f"of {', '.join(RIGHT)}; both by default")
        add("--trials", type=int, help="of screening and collection, for a try on a busy machine")
        add("--labs", type=int, choices=range(1, LABS + 1), default=LABS, help=f"at once ({LABS})")

    def cells(self) -> dict[str, Cell]:
        names = self.given.log or list(RIGHT)
        if unknown := set(names) - RIGHT.keys():
            raise UnusableError(f"unknown: {', '.join(sorted(unknown))}")
        return {
            f"{log} {load} {seed}": (log, load, seed)
            for seed in self.seed_range()
            for log in names
            for load in (LEARNED, CONSTANT)
        }

    def measure(self, cell: Cell) -> Plan:
        name = "-".join(map(str, cell))
        store = self.store(name)
        verdict = tuned(store, self._study(cell, name))
        values = dict(verdict.configuration.values)
        return Plan(values, interval_of(verdict), verdict.is_gain)

    def _study(self, cell: Cell, name: str) -> Study:
        log, load, seed = cell
        made_up: Log = idle(SECONDS) if log == "idle" else bursts(SECONDS)
        folder = self.given.store.absolute() / f"{name}-files"
        head = f'[study]\nname = "{name}"\nstore = "unused.db"\nseed = {seed}\n{SERVER}'
        study = learned_study(folder, made_up, head)
        workload = replace(study.workloads[NAME], duration_s=TRIAL_S)
        if load == CONSTANT:
            workload = constant(workload)
        budget = scenario(MAIN).budget
        if (few := self.given.trials) is not None:
            budget = few_trials(budget, few)
        ((arch, (spec, *_)),) = study.clusters.items()
        assert isinstance(spec, LabSpec)
        specs = tuple(replace(spec, name=f"planted{n}") for n in range(1, self.given.labs + 1))
        return replace(study, clusters={arch: specs}, workloads={NAME: workload}, budget=budget)

    def progress(self, name: str, result: Plan) -> str:
        return row(name, result)

    def table(self, results: Mapping[str, Plan]) -> Iterator[str]:
        yield "| log, load, seed | P99, default / tuned | plan | right |"
        yield "|---|---:|---|---|"
        yield from (row(name, plan) for name, plan in results.items())

    def missed(self, results: Mapping[str, Plan]) -> list[str]:
        missed = [
            name for name, plan in results.items() if LEARNED in name and not is_right(name, plan)
        ]
        for seed in self.seed_range():
            names = [f"{log} {CONSTANT} {seed}" for log in RIGHT]
            known = [name for name in names if name in results]
            if len(known) == len(names) and all(is_right(name, results[name]) for name in known):
                missed.append(f"the constant rate finds both, seed {seed}")
        return missed


def few_trials(budget: Budget, trials: int) -> Budget:
    """Return a budget of minutes, with limits that no other work on the machine exceeds."""
    few = replace(budget, screen_trials=trials, collect_trials=trials, refine_trials=0)
    any_machine = replace(few, max_foreign_cores=1000, max_steal_cores=1000, max_steal=0.99)
    return replace(any_machine, max_lag=1, max_load_cpu=1, trim_rounds=0, judge_pairs=2)


def constant(workload: Workload) -> Workload:
    """Return the load that one types by hand for the same rate and paths."""
    return replace(
        workload,
        arrivals="constant",
        recording=None,
        connections=CONNECTIONS,
        clients=(ALIKE,),
    )


def is_right(name: str, plan: Plan) -> bool:
    """Return whether a plan has the parameter that its log's truth is."""
    log, _, _ = name.partition(" ")
    return plan.is_gain and bool(RIGHT[log] & plan.values.keys())


def row(name: str, plan: Plan) -> str:
    """Return a row of the table."""
    shown = ", ".join(f"{key} = {value}" for key, value in plan.values.items())
    keys = shown if plan.is_gain else "-"
    return f"| {name} | {plan.ratio} | {keys} | {'yes' if is_right(name, plan) else 'no'} |"
