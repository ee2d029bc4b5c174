"""How few measurements find the best configuration, on public tables, beside published searches.

    make bench-search DATA=../shared/bench             # 20 runs
    make bench-search DATA=../shared/bench RUNS=3      # a quick look

Two published protocols, on tables in which (nearly) everything was measured, so that the optimum is
known. All targets are minimised, as the publications do, throughput too.

FLASH        20 random rows first, then one by one; as many in all as FLASH needed on average,
             rounded down. What counts is the rank of the best measured value among all values of
             the table, less that of the optimum.
PromiseTune  the mean of the best value after 25, 50, 75 and 100 rows, of which the first 10 are
             random here; each tuner chose its own.

Ours is the stage that `intop refine` carries out, on a testbed that answers from the table: its
batches, replicates, forest and exploration, in the space that the table has. *To the end* goes on
where it would end since it expects less than a hundredth of the target; random stands beside both,
with the same first rows. The table's first row in that order is the default.

The first rows are measured as `intop collect` does it, with the default after each eight.

What counts is what was measured: by FLASH's protocol every trial of a configuration, also a
replicate, which tells nothing here; by PromiseTune's, whose counts are of different rows, every
row once. The trials of the default by which a campaign watches for drift count in neither (nor
among refine_trials). A refinement that ends early has its last value from then on.

A seed is a run of each search on each table.
"""

import argparse
import csv
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.campaign import measured
from benchmarks.harness import Question, UnusableError
from benchmarks.models import interval, numbers
from benchmarks.recorded import LONGEST_US, LOWEST_MS, Onward, Shot, campaign, table_offer
from intop.campaign.refine.stage import Refine
from intop.campaign.sentinels import with_sentinels
from intop.domain.encoding import Matrix, Variable
from intop.domain.parameter import Scale
from intop.domain.trial import PlannedTrial
from intop.learn.samples import Samples, Vector
from intop.run.executor import execute

SEED = 7
"""Of the rows that are measured first; development was done on others."""
FIRST_OF_FLASH, FIRST = 20, 10
"""Random rows at the start: what FLASH took, and what is enough elsewhere."""
COUNTS = (25, 50, 75, 100)
SEARCHES: Mapping[str, type[Refine] | None] = {
    "ours": Refine,
    "ours, to the end": Onward,
    "random": None,
}
"""What chooses rows; None is at random."""
RANKS_FILE, VALUES_FILE = "published_flash.csv", "published_promisetune.csv"
FLASH, RANKS, MMRE = "FLASH", "Rank-based", "MMRE-based"
"""How the methods of the former begin."""
MOST_RANKS_BEHIND = 1.0
GOOD_ENOUGH = {("deeparch", 50): 1.10, ("deeparch", 100): 1.048}
"""The mean best value that has to be reached by so many measurements."""


@dataclass(frozen=True)
class Rival:
    """What one method reached on a table with so many measurements."""

    method: str
    count: float
    value: float


Published = Mapping[str, tuple[Rival, ...]]
"""By table."""


@dataclass(frozen=True)
class Table:
    """Everything that was measured of a system, and how much of it a search may see.

    Replicates are part of the `budget`, unless it is of `different` rows. A refinement chooses
    `at_once` of them by the same models.
    """

    name: str
    samples: Samples
    first: int
    budget: int
    different: bool = False
    at_once: int = 4

    @property
    def target(self) -> Vector:
        return np.array([value for (value,) in self.samples.measured])

    def ranks_behind(self, value: float) -> int:
        """How many different values of the table are better."""
        return int(np.searchsorted(np.unique(self.target), value))


@dataclass(frozen=True)
class Job:
    """One run of a search on a table."""

    table: str
    search: str
    run: int

    @property
    def name(self) -> str:
        return f"{self.table}, {self.search}, {self.run}"


@dataclass(frozen=True)
class Outcome:
    """The best value after each measurement, fewer where it ended early, and what choosing took."""

    best: list[float]
    seconds: float


Results = Mapping[str, Outcome]
"""By the name of a job."""


class Searched(Question[tuple[Job, Table], Outcome]):
    """Searches on tables, each run of which is a cell."""

    first_seed = 0
    result = Outcome
    is_parallel = True

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "seed": SEED, "first": [FIRST_OF_FLASH, FIRST]}

    def cost(self, cell: tuple[Job, Table]) -> float:
        # What it takes, beside other jobs: how many rows are chosen by models.
        job, table = cell
        return 0.0 if SEARCHES[job.search] is None else float(table.budget - table.first)

    def measure(self, cell: tuple[Job, Table]) -> Outcome:
        return done(*cell)

    def progress(self, name: str, result: Outcome) -> str:
        return f"{name}: {result.best[-1]:g} in {result.seconds:.1f} s"


class Search(Searched):
    """Does ours find as much as published searches?"""

    seeds = 20

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("data", type=Path, help="the folder that has search/")

    @cached_property
    def rivals(self) -> tuple[Published, Published]:
        """What others reached, in ranks and in values."""
        folder = self.given.data / "search"
        return by_ranks(folder), by_values(folder)

    @cached_property
    def ranked(self) -> list[Table]:
        """The tables of FLASH's protocol."""
        rivals = self.rivals[0]
        counts = {name: int(rival_of(rivals, name, FLASH).count) for name in sorted(rivals)}
        folder = self.given.data / "search"
        return [read_table(folder, name, FIRST_OF_FLASH, count) for name, count in counts.items()]

    @cached_property
    def valued(self) -> list[Table]:
        """The tables of PromiseTune's."""
        return [
            read_table(self.given.data / "search", name, FIRST, COUNTS[-1], different=True)
            for name in sorted(self.rivals[1])
        ]

    def cells(self) -> dict[str, tuple[Job, Table]]:
        tables = {table.name: table for table in (*self.ranked, *self.valued)}
        jobs = [
            Job(name, search, run)
            for run in self.seed_range()
            for search in SEARCHES
            for name in tables
        ]
        return {job.name: (job, tables[job.table]) for job in jobs}

    def table(self, results: Results) -> Iterator[str]:
        runs = self.seed_range()
        yield f"Ranks behind the optimum, mean of {len(runs)} runs:\n"
        yield from report_ranks(self.ranked, results, self.rivals[0], runs)
        yield f"\nThe best value, mean of {len(runs)} runs:"
        for table in self.valued:
            yield ""
            yield from report_values(table, results, self.rivals[1][table.name], runs)
        spent = sum(outcome.seconds for outcome in results.values())
        yield f"\nMinutes of one processor: {spent / 60:.1f}"

    def missed(self, results: Results) -> list[str]:
        return missed(self.ranked, self.valued, results, self.rivals[0], self.seed_range())


# The data -----------------------------------------------------------------------------------------


def read_table(
    folder: Path, name: str, first: int, budget: int, *, different: bool = False
) -> Table:
    """A table; options that never change are left out. The target is the last column."""
    path = folder / f"{name}.csv"
    names, rows = numbers(path, header=True)
    values = np.array(rows)
    used = [n for n in range(len(names) - 1) if np.ptp(values[:, n]) > 0]
    try:
        samples = samples_in([names[n] for n in used], values[:, used], values[:, -1])
        table_offer(samples, 0)
    except ValueError as error:
        raise UnusableError(f"{path}: {error}") from error
    if not first <= budget <= len(samples):
        raise UnusableError(f"{path}: {len(samples)} rows, and {budget} are to be measured")
    return Table(name, samples, first, budget, different)


def samples_in(names: Sequence[str], values: Matrix, target: Vector) -> Samples:
    """Return the samples of columns by name (n, names) and their target (n,)."""
    return Samples(
        variables=tuple(map(variable, names, values.T)),
        values=values,
        measured=tuple((float(value),) for value in target),
    )


def variable(name: str, levels: Matrix) -> Variable:
    """A column, on the scale on which its levels are spread more evenly."""
    distinct = np.unique(levels)
    scale: Scale = "linear"
    if distinct[0] > 0 and widest_gap(np.log(distinct)) < widest_gap(distinct):
        scale = "log"
    return Variable(
        name=name, key=name, low=float(distinct[0]), high=float(distinct[-1]), scale=scale
    )


def widest_gap(levels: Matrix) -> float:
    """As a part of the range; a pair has 1 on any scale, but for rounding."""
    return round(float(np.diff(levels).max() / np.ptp(levels)), 9)


def published(path: Path, table: str, method: str, count: str, value: str) -> Published:
    """What others reached, from these columns of a file."""
    found: dict[str, tuple[Rival, ...]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for row in csv.DictReader(file):
                name = row[table].removesuffix(".csv")
                rival = Rival(row[method], float(row[count]), float(row[value]))
                found[name] = (*found.get(name, ()), rival)
    except OSError as error:
        raise UnusableError(f"{path}: {error.strerror}; DATA is the folder with search/") from error
    except (KeyError, ValueError, AttributeError) as error:
        raise UnusableError(f"{path}: not as expected: {error}") from error
    if not found:
        raise UnusableError(f"{path}: no rows")
    return found


def by_ranks(folder: Path) -> Published:
    return published(folder / RANKS_FILE, "file", "method", "evals_mean", "rank_diff_mean")


def by_values(folder: Path) -> Published:
    return published(folder / VALUES_FILE, "system", "tuner", "budget_distinct", "mean")


def rival_of(rivals: Published, table: str, method: str) -> Rival:
    """The one on this table whose name begins so."""
    for rival in rivals[table]:
        if rival.method.startswith(method):
            return rival
    raise UnusableError(f"{RANKS_FILE}: {table}: nothing of {method}")


# One run ------------------------------------------------------------------------------------------


def done(job: Job, table: Table) -> Outcome:
    """A search that sees only what it has measured."""
    target, stage = table.target, SEARCHES[job.search]
    # The same rows first for all searches on a table, so that they differ by what follows.
    order = np.random.default_rng([SEED, job.run]).permutation(len(target)).tolist()
    started = time.process_time()
    rows = order[: table.budget]
    if stage is not None:
        rows = refined(table, order[: table.first], stage, job.run)
        rows = list(dict.fromkeys(rows)) if table.different else rows
    best = np.minimum.accumulate(target[rows])
    return Outcome(best.tolist(), time.process_time() - started)


class EnoughError(Exception):
    """All that may be measured is measured."""


def refined(table: Table, first: Sequence[int], stage: type[Refine], seed: int) -> list[int]:
    """The rows that count, in the order in which they were measured: the first, then a stage's."""
    offer = table_offer(table.samples, first[0])
    # More than enough of them to measure so many different rows.
    offer = offer.with_budget(
        refine_trials=(10 if table.different else 1) * (table.budget - table.first),
        refine_batch=table.at_once,
    )
    offer = replace(offer, study=replace(offer.study, seed=seed))
    # A search knows rows by what they are.
    row_of = {values.tobytes(): n for n, values in enumerate(table.samples.values + 0.0)}
    scale = LOWEST_MS / table.target.min()
    rows: list[int] = []

    def answer(planned: PlannedTrial, name: str) -> Shot:
        row = row_of[(offer.space.values([planned.configuration])[0] + 0.0).tobytes()]
        # A refinement may also choose to measure the default again. That it watches counts nowhere.
        if planned.reason or (name == "collect" and planned.role != "sentinel"):
            if len(set(rows) if table.different else rows) == table.budget:
                raise EnoughError
            rows.append(row)
        # A row that is thousands of times as slow as the best one has timed out.
        value = min(scale * table.target[row], LONGEST_US / 1_000)
        return Shot(planned.configuration, value, value)

    configurations = offer.space.configurations(table.samples.values[first])
    plan = with_sentinels(configurations[1:], offer.study.budget.sentinel_every)
    with campaign(offer, answer) as task:
        measured(task, "collect", plan)
        with suppress(EnoughError):
            execute(stage(task))
    return rows


# The tables ---------------------------------------------------------------------------------------


def runs_of(results: Results, table: Table, search: str, runs: range) -> Matrix:
    """The best values (runs, budget) after each measurement; the last one's where it ended."""
    found = [results[Job(table.name, search, n).name].best for n in runs]
    return np.array([[*best, *best[-1:] * (table.budget - len(best))] for best in found])


def measured_by(results: Results, table: Table, search: str, runs: range) -> float:
    """How many measurements it made, mean of all runs."""
    return float(np.mean([len(results[Job(table.name, search, n).name].best) for n in runs]))


def ranks(results: Results, table: Table, search: str, runs: range) -> list[float]:
    """How far behind the optimum each run ended."""
    ended = runs_of(results, table, search, runs)[:, -1]
    return [float(table.ranks_behind(value)) for value in ended]


def report_ranks(
    tables: Sequence[Table], results: Results, rivals: Published, runs: range
) -> Iterator[str]:
    """FLASH's protocol: ranks behind the optimum, and how many were measured for that."""
    heads = [f"{method} (measured)" for method in (*SEARCHES, FLASH, RANKS, MMRE)]
    yield f"| table | rows | at most | {' | '.join(heads)} |"
    yield f"|---|---:|---:|{'---:|' * len(heads)}"
    columns: dict[str, list[float]] = {}
    for table in tables:
        of_search = {s: ranks(results, table, s, runs) for s in SEARCHES}
        theirs = {m: rival_of(rivals, table.name, m) for m in (FLASH, RANKS, MMRE)}
        for name, values in of_search.items():
            columns.setdefault(name, []).append(float(np.mean(values)))
        for name, rival in theirs.items():
            columns.setdefault(name, []).append(rival.value)
        cells = [
            f"{interval(values)} ({measured_by(results, table, name, runs):.0f})"
            for name, values in of_search.items()
        ]
        cells += [f"{rival.value:g} ({rival.count:.0f})" for rival in theirs.values()]
        yield (
            f"| {table.name} | {len(table.samples)} | {table.budget} | **{cells[0]}** |"
            f" {' | '.join(cells[1:])} |"
        )
    means = [f"{np.mean(values):.3g}" for values in columns.values()]
    yield f"| mean | | | **{means[0]}** | {' | '.join(means[1:])} |"


def report_values(
    table: Table, results: Results, rivals: Sequence[Rival], runs: range
) -> Iterator[str]:
    """PromiseTune's protocol: the mean best value, ours above all that were published.

    Behind the name of a search is how many different rows it measured.
    """
    counts = [count for count in COUNTS if count <= table.budget]
    yield f"| {table.name} | {' | '.join(f'after {count}' for count in counts)} |"
    yield f"|---|{'---:|' * len(counts)}"
    for search in SEARCHES:
        best = runs_of(results, table, search, runs)
        cells = [interval(best[:, count - 1].tolist(), digits=5) for count in counts]
        count = measured_by(results, table, search, runs)
        yield f"| **{search}** ({count:.0f}) | {' | '.join(cells)} |"
    of_tuner: dict[str, dict[float, float]] = {}
    for rival in rivals:
        of_tuner.setdefault(rival.method, {})[rival.count] = rival.value
    last = float(counts[-1])
    for tuner, values in sorted(of_tuner.items(), key=lambda item: item[1].get(last, np.inf)):
        cells = [f"{values[count]:.5g}" if count in values else "-" for count in counts]
        yield f"| {tuner} | {' | '.join(cells)} |"


def missed(
    ranked: Sequence[Table],
    valued: Sequence[Table],
    results: Results,
    rivals: Published,
    runs: range,
) -> list[str]:
    """Where ours, as it ships, is worse than it has to be."""
    problems: list[str] = []
    ours, theirs = [], []
    for table in ranked:
        mean = float(np.mean(ranks(results, table, "ours", runs)))
        flash = rival_of(rivals, table.name, FLASH).value
        if mean > flash + MOST_RANKS_BEHIND:
            problems.append(f"{table.name}: {mean:.3g} ranks, FLASH {flash:.3g}")
        if mean > (chance := float(np.mean(ranks(results, table, "random", runs)))):
            problems.append(f"{table.name}: {mean:.3g} ranks, random {chance:.3g}")
        ours.append(mean)
        theirs.append(flash)
    if ranked and np.mean(ours) >= np.mean(theirs):
        problems.append(f"mean: {np.mean(ours):.3g} ranks, FLASH {np.mean(theirs):.3g}")
    for table in valued:
        best = runs_of(results, table, "ours", runs).mean(axis=0)
        chance_of = runs_of(results, table, "random", runs).mean(axis=0)
        for count in (count for count in COUNTS if count <= table.budget):
            value, bound = best[count - 1], GOOD_ENOUGH.get((table.name, count), np.inf)
            # Means of equal values differ in their last digits.
            if value > chance_of[count - 1] * (1 + 1e-12):
                problems.append(
                    f"{table.name} after {count}: {value:.5g}, random {chance_of[count - 1]:.5g}"
                )
            if value > bound:
                problems.append(f"{table.name} after {count}: {value:.5g}, not {bound:g}")
    return problems
