"""What there is to find in a scenario: the effect of every offered key, measured one at a time.

    python -m benchmarks truth dynamic-wan bursts          every cell of these scenarios
    python -m benchmarks truth dynamic-wan --from-good     about the good configuration found there
    python -m benchmarks truth-look dynamic-wan --only net.ipv4.tcp_sack=0    a look at some arms
    python -m benchmarks truth                             only the Markdown table, from the files

SCENARIO is a file of configs/scenarios without its suffix, or `lab`, the study of `make run`. For
each architecture and workload of it the lab is brought up, measured by the product's own testbed,
and taken down. How arms are
chosen and judged, and how errors are controlled over all of them, says benchmarks/acting.py: scan,
split, test, pairs. With `--minutes` the test has as many arms, the most suspicious first, and
rounds as fit in that time; other suspicious arms are in the table as "not followed".

All trials are in `--store`, a file for each scenario.
Writes into `--out`: SCENARIO-ARCH-WORKLOAD.csv.gz, a row for each arm with its effect
(`-from-good` in its name about a good configuration), -trials.csv.gz, the trials behind it, and
README.md, the summary of all tables there.

With `--replicas N` so many labs of the scenario are measured on at once, as replicas of a cluster:
the product compares them first, and leaves one out that does not agree.
"""

import argparse
import csv
import math
import random
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from gzip import GzipFile
from io import TextIOWrapper
from pathlib import Path
from statistics import fmean, median, stdev
from typing import ClassVar

from benchmarks import acting, truth_table
from benchmarks.acting import Arms, Effect
from benchmarks.campaign import Opened, context_of, labs_up, measured
from benchmarks.campaign import scenario as load_scenario
from benchmarks.harness import Question, Result, commit
from benchmarks.tables import alone
from benchmarks.truth_table import p99_of, tails_of
from intop.campaign.collected import required_space
from intop.config.study import Study
from intop.domain.cluster import LabSpec
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.space import Space
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.workload import Budget
from intop.errors import IntopError
from intop.run.campaigns import new
from intop.run.context import Task
from intop.run.replicas import replicas_in_use
from intop.run.rounds import series_plan
from intop.run.testbed import Testbed
from intop.store import Store

STAGE = "contest"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A scenario on one architecture under one workload, with where it is kept."""

    scenario: str
    study: Study
    store: Store
    base: Configuration = DEFAULT
    words: str = ""
    testbeds: Opened | None = None

    @property
    def name(self) -> str:
        """Such as `bursts-x86-slt`."""
        (arch,), (workload,) = self.study.clusters, self.study.workloads
        return "-".join(filter(None, (self.scenario, arch, workload, self.words)))

    def task(self, part: str, *, anew: bool = False) -> Task:
        """A part of it, which is a campaign of its own."""
        study = replace(self.study, name=f"{self.name}-{part}")
        campaign = new(self.store, study) if anew else None
        context = context_of(self.store, study, campaign=campaign, testbeds=self.testbeds)
        (task,) = context.subjects()
        return task


@dataclass
class Found:
    """What a cell's parts have come to, as far as they were measured."""

    singles: Arms
    groups: Mapping[str, tuple[str, ...]]
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    effects: dict[str, list[Effect]] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    """Arms that stood out in the scan, and were not tested."""


# -- parts ---------------------------------------------------------------------------------------


def singles_of(space: Space, base: Configuration) -> Arms:
    """The base with one key changed, without the base itself."""
    start = dict(zip(space.columns, space.genes(space.values([base]))[0], strict=True))
    found = dict(alone(space, base, lambda column: acting.levels(column, float(start[column]))))
    found.pop(next(iter(found)))
    return found


def measure_cell(cell: Cell, rounds: int, minutes: float | None) -> Found:
    """Scan, split, test and pairs of a cell, measured now or before."""

    def scan_arms(space: Space, seed: int) -> tuple[Arms, dict[str, tuple[str, ...]]]:
        return acting.grouped(space, cell.base, singles_of(space, cell.base), seed=seed)

    task = cell.task("scan")
    seed = task.seed("groups")
    trials = in_rounds(
        task, cell.base, lambda s: scan_arms(s, seed)[0], acting.SCAN_ROUNDS, is_scan=True
    )
    space = required_space(task)
    arms, groups = scan_arms(space, seed)
    found = Found(singles=singles_of(space, cell.base), groups=groups)
    found.trials["scan"] = trials
    found.effects["scan"] = acting.scanned(p99_of(trials), tails_of(trials))
    told = {e.arm: e for e in found.effects["scan"] if e.arm not in groups}

    suspicious = acting.goes_on(arms, found.effects["scan"])
    members = dict.fromkeys(m for name in suspicious for m in groups.get(name, ()))
    if members:
        those = {name: found.singles[name] for name in members}
        trials = in_rounds(
            cell.task("split"), cell.base, lambda _: those, acting.SCAN_ROUNDS, is_scan=True
        )
        found.trials["split"] = trials
        found.effects["split"] = acting.scanned(p99_of(trials), tails_of(trials))
        told |= {e.arm: e for e in found.effects["split"]}
    singles = {*arms, *members} - groups.keys()
    ahead = acting.to_test(sorted(singles), list(told.values()))

    seconds = None if minutes is None else 60 * minutes * replicas_in_use(task)
    kept, many = affordable(ahead[: acting.MOST_TESTED], found.trials, rounds, seconds)
    if kept:
        those = {name: found.singles[name] for name in kept}
        trials = in_rounds(cell.task("test"), cell.base, lambda _: those, many)
        found.trials["test"] = trials
        found.effects["test"], found.levels["test"] = acting.tested(p99_of(trials))
    # By the plan that is stored: a resumed run may have been told of another time.
    planned = {t.planned.arm for t in found.trials.get("test", ())}
    found.dropped = tuple(
        name for name in acting.goes_on(singles, list(told.values())) if name not in planned
    )

    both = acting.pairs(space, cell.base, found.singles, found.effects.get("test", []))
    if both:
        trials = in_rounds(cell.task("pairs"), cell.base, lambda _: both, rounds)
        found.trials["pairs"] = trials
        found.effects["pairs"], found.levels["pairs"] = acting.paired_up(p99_of(trials))
    return found


def in_rounds(
    task: Task,
    base: Configuration,
    arms_of: Callable[[Space], Arms],
    rounds: int,
    *,
    is_scan: bool = False,
) -> list[Trial]:
    """The trials of a part: its arms and the base in rounds, each in an order of its own."""

    def plan(ready: Testbed) -> list[PlannedTrial]:
        arms = arms_of(ready.probed.space)
        if is_scan:
            return scan_plan(task, base, arms, rounds, replicas_in_use(task))
        return series_plan(task, STAGE, acting.with_bases(arms, base, acting.TEST_BASES), rounds)

    return measured(task, STAGE, plan, ends_by_failures=False)


def scan_plan(
    task: Task, base: Configuration, arms: Arms, rounds: int, replicas: int
) -> list[PlannedTrial]:
    """Every arm in so many rounds, and a share of the base's trials in each of them.

    A round is measured on one replica. Where there are more replicas than rounds, the arms are
    dealt out by chance, and each share of them has rounds of its own.
    """
    names = list(arms)
    random.Random(task.seed("shares")).shuffle(names)
    shares = max(1, replicas // rounds)
    plan: list[PlannedTrial] = []
    for share in range(shares):
        mine = {name: arms[name] for name in names[share::shares]}
        with_bases = acting.with_bases(mine, base, acting.bases_of_scan(len(mine)))
        plan += [
            replace(one, index=len(plan) + one.index, round=share * rounds + (one.round or 0))
            for one in series_plan(task, STAGE, with_bases, rounds)
        ]
    return plan


def affordable(
    arms: Sequence[str],
    trials: Mapping[str, Sequence[Trial]],
    rounds: int,
    seconds: float | None,
) -> tuple[Sequence[str], int]:
    """The arms of a test that fit in what is left of the trials' time, and its rounds.

    As many arms as fit with `rounds`, then as many rounds as fit with these. None: all of them.
    """
    if seconds is None:
        return arms, rounds
    took = [t.seconds for part in trials.values() for t in part]
    fit = (seconds - sum(took)) / fmean(took)
    arms = arms[: max(1, int(fit / rounds) - acting.TEST_BASES)]
    more = int(fit / (len(arms) + acting.TEST_BASES))
    return arms, max(rounds, min(more, acting.MOST_ROUNDS))


def good_configuration(cell: Cell) -> Configuration:
    """All gains together where they gain in the pairs, else the best arm that does.

    Raises IntopError where nothing gains.
    """
    arms: dict[str, Configuration] = {}
    candidates: list[tuple[bool, float, str]] = []
    for part, judge in (("test", acting.tested), ("pairs", acting.paired_up)):
        trials = cell.task(part).trials(STAGE)
        if trials:
            arms |= {t.planned.arm: t.configuration for t in trials}
            found, _ = judge(p99_of(trials))
            candidates += [(e.arm == acting.ALL_GAINS, e.ratio, e.arm) for e in found if e.acts > 0]
    if not candidates:
        raise IntopError(f"{cell.name}: nothing gains, so there is no good configuration")
    return arms[max(candidates)[2]]


# -- a short look --------------------------------------------------------------------------------


def look(cell: Cell, wanted: Sequence[str], rounds: int) -> Iterator[str]:
    """Measure some arms (`KEY=VALUE`, several joined by `+`) and yield what they are worth."""
    arms = {
        text: Configuration(dict(part.split("=", 1) for part in text.split("+"))) for text in wanted
    }
    trials = in_rounds(cell.task("look", anew=True), cell.base, lambda _: arms, rounds)
    yield described(cell, [t for t in trials if acting.is_base(t.planned.arm)])
    effects, level = acting.tested(p99_of(trials))
    by_arm = {e.arm: e for e in effects}
    distances = {e.arm: e.z or 0.0 for e in acting.scanned(p99_of(trials), tails_of(trials))}
    yield f"intervals: {100 * level:.1f} %"
    for arm in arms:
        own = [t for t in trials if t.planned.arm == arm and t.usable]
        effect = by_arm.get(arm)
        told = "no result" if effect is None else truth_table.in_words(effect)
        others = (
            ""
            if not own
            else "  P50 {:.0f}, P90 {:.0f}, P99 {:.0f} ms".format(
                *(fmean(t.percentile_ms(q) for t in own) for q in (50, 90, 99))
            )
        )
        yield f"  {told:32s} z {distances.get(arm, 0.0):+5.1f}  {arm}{others}"


def described(cell: Cell, bases: Sequence[Trial]) -> str:
    """The base in one line: how slow, how noisy, whether it holds its rate, and what it takes."""
    usable = [t for t in bases if t.usable]
    if len(usable) < 2:
        return f"{cell.name}: {len(usable)} usable trials of the base"
    percentiles = (
        math.exp(fmean(math.log(t.percentile_ms(q)) for t in usable)) for q in (50, 90, 99)
    )
    noise = stdev(math.log(t.judged_ms) for t in usable)
    (workload,) = cell.study.workloads.values()
    reached = fmean(t.achieved_rps for t in usable) / workload.rate_rps
    failed = sum(sum(t.errors.values()) for t in usable) / max(
        1, sum(t.histogram.total for t in usable if t.histogram)
    )
    return (
        "{}: P50 {:.1f}, P90 {:.1f}, P99 {:.1f} ms".format(cell.name, *percentiles)
        + f", sd of log P99 {noise:.3f}, {100 * reached:.0f} % of the rate, "
        f"{100 * failed:.2f} % failed, CPU {100 * fmean(t.balancer.cpu for t in usable):.0f} %, "
        f"{len(usable)} of {len(bases)} trials, {median(t.seconds for t in usable):.1f} s each"
    )


# -- files ---------------------------------------------------------------------------------------


def write_trials(path: Path, found: Found) -> None:
    """A row for each trial."""
    rows = [
        {
            "part": part,
            "round": trial.planned.round,
            "arm": trial.planned.arm,
            "configuration": trial.configuration.to_json(),
            "status": trial.status,
            **(
                {f"p{q}_ms": f"{trial.percentile_ms(q):.3f}" for q in (50, 90, 99)}
                | {"tail_ms": f"{trial.tail_ms:.3f}"}
                | {"rps": f"{trial.achieved_rps:.1f}", "errors": sum(trial.errors.values())}
                if trial.usable
                else {}
            ),
        }
        for part, trials in found.trials.items()
        for trial in trials
    ]
    write_rows(path, rows)


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """A table with all columns that any row has. Equal tables are equal files."""
    columns = dict.fromkeys(name for row in rows for name in row)
    with GzipFile(path, "wb", mtime=0) as packed, TextIOWrapper(packed, newline="") as file:
        table = csv.DictWriter(file, list(columns))
        table.writeheader()
        table.writerows(rows)


# -- command -------------------------------------------------------------------------------------


class OfScenarios(Question[Cell, Result]):
    """A question about some scenarios. Without any, nothing is measured."""

    has_store = True
    is_look: ClassVar[bool] = False
    """Whether doubts about trials don't matter."""

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("scenario", nargs="*", help="names of files in configs/scenarios")
        for option, choices in (("--arch", ["x86", "arm"]), ("--workload", ["slt", "dlt"])):
            add(option, nargs=1, choices=choices, default=choices, help="only this one")
        add("--replicas", type=int, choices=range(1, 5), default=1, help="labs at once (1)")

    def cells(self) -> dict[str, Cell]:
        given = self.given
        which = {"archs": given.arch, "workloads": given.workload, "replicas": given.replicas}
        found = (cells(n, self.store(n), is_look=self.is_look, **which) for n in given.scenario)
        return {cell.name: cell for scenario in found for cell in scenario}


class Truth(OfScenarios[str]):
    """What is there to find in a scenario?"""

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        super().options(parser)
        add = parser.add_argument
        add("--rounds", type=int, default=acting.TEST_ROUNDS, help="of a test, or more (8)")
        add("--minutes", type=float, help="of load for a cell, without its pairs")
        add("--from-good", action="store_true", help="from a good configuration")
        add("--out", type=Path, default=Path("benchmarks/truth"), help="a folder")

    def measure(self, cell: Cell) -> str:
        out: Path = self.given.out
        out.mkdir(parents=True, exist_ok=True)
        with labs_up(cell.study):
            if self.given.from_good:
                cell = replace(cell, base=good_configuration(cell), words="from-good")
            found = measure_cell(cell, self.given.rounds, self.given.minutes)
        rows = truth_table.rows(cell, found, commit=commit())
        write_rows(out / f"{cell.name}.csv.gz", rows)
        write_trials(out / f"{cell.name}-trials.csv.gz", found)
        bases = [t for t in found.trials["scan"] if acting.is_base(t.planned.arm)]
        return described(cell, bases)

    def table(self, results: Mapping[str, str]) -> Iterator[str]:
        (self.given.out / "README.md").write_text(truth_table.summary(self.given.out))
        yield from results.values()


class Look(OfScenarios[list[str]]):
    """What are some arms worth, by a short look?"""

    is_look = True

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        super().options(parser)
        add = parser.add_argument
        add("--rounds", type=int, default=acting.TEST_ROUNDS, help="(8)")
        add("--only", nargs="+", metavar="KEY=VALUE", required=True, help="arms, + joins")

    def measure(self, cell: Cell) -> list[str]:
        with labs_up(cell.study):
            return list(look(cell, self.given.only, self.given.rounds))

    def table(self, results: Mapping[str, list[str]]) -> Iterator[str]:
        for lines in results.values():
            yield from lines


def cells(
    scenario: str,
    store: Store,
    *,
    archs: Container[str] = ("x86", "arm"),
    workloads: Container[str] = ("slt", "dlt"),
    replicas: int = 1,
    is_look: bool = False,
) -> Iterator[Cell]:
    """The cells of a scenario that are asked for, on so many labs each; nothing is pruned."""
    study = load_scenario(scenario)
    for arch, (spec, *_) in study.clusters.items():
        if not isinstance(spec, LabSpec):
            raise IntopError(f"{study.path}: a scenario has a lab")
        more = [replace(spec, name=f"{spec.name}{n}") for n in range(2, replicas + 1)]
        for name, workload in study.workloads.items():
            if arch in archs and name in workloads:
                one = replace(
                    study,
                    clusters={arch: (spec, *more)},
                    workloads={name: workload},
                    budget=budget_of(study.budget, is_look=is_look),
                )
                yield Cell(scenario=scenario, study=one, store=store)


def budget_of(budget: Budget, *, is_look: bool) -> Budget:
    """Without pruning, and for a look without doubts: it is no evidence, and neighbours may be."""
    if not is_look:
        return replace(budget, prune_factor=0.0)
    return replace(
        budget,
        prune_factor=0.0,
        retries=0,
        max_foreign_cores=99.0,
        max_steal_cores=99.0,
        max_steal=1.0,
        max_lag=1.0,
    )
