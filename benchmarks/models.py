"""Our models against published ones, on public tables of configurations and their performance.

    make bench-models DATA=../shared/bench            # largest sizes, 30 runs: some 40 minutes
    make bench-models DATA=../shared/bench RUNS=5     # a quick look
    make bench-models DATA=../shared/bench SIZES=all SYSTEMS="LLVM x264"

The published protocol: train on n rows, test on all others, in 30 runs with the published splits
(drawn here where there are none); MRE is the mean of |predicted - measured| / measured, in percent.
Each family is tuned as `intop train` does, and one is selected, all on the n training rows alone.
A seed is a run of the protocol.
"""

import argparse
import csv
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from benchmarks.harness import Question, UnusableError
from intop.domain.encoding import Variable
from intop.learn import accuracy
from intop.learn.code_fingerprint import code_fingerprint
from intop.learn.families import FAMILIES
from intop.learn.hyperparameters import best_of, continued
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import fit, predicted
from intop.learn.tuning_effort import Effort

SEED = 20
"""Of the splits that nobody published."""
TRIES = {"DNN": 1, "SVR": 8, "RFR": 2, "CatBoost": 2, "LightGBM": 3, "XGBoost": 3, "Blend": 1}
"""Hyper-parameters tried by family, each of them on five folds: many of what is cheap."""
MANY_ROWS = 200
"""From here on the defaults alone: a try costs ten times as much."""

BEATEN = ("RF", "DECART")
"""Published methods that the selected model has to beat wherever they were published."""
MATCHED, MAY_MISS = "DeepPerf", 1
"""And the one that it has to reach on all systems but so many. DaL's rerun of it is `Deepperf`."""
SHOWN = ("RF", "DECART", "DeepPerf", "Deepperf", "DNN-DaL")

Published = Mapping[tuple[str, int], Mapping[str, float]]
"""MRE by method, by system and size."""


@dataclass(frozen=True)
class Job:
    """One run: which rows of which table to learn from."""

    system: str
    size: int
    run: int
    rows: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.system} {self.size} {self.run}"


@dataclass(frozen=True)
class Outcome:
    """A family in one run: its error over inner folds and over all other rows, and its time."""

    inner_score: float
    mre: float
    seconds: float


Results = Mapping[str, Mapping[str, Outcome]]
"""Outcomes by family, by the name of a job."""


class Models(Question[tuple[Job, Samples], dict[str, Outcome]]):
    """Are our models as good as published ones?"""

    seeds = 30
    first_seed = 0
    result = dict[str, Outcome]
    is_parallel = True

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("data", type=Path, help="the folder that has prediction/")
        add("--sizes", choices=["largest", "all"], default="largest", help="(largest)")
        add("--systems", nargs="*", default=[], help="(all)")

    def settings(self) -> dict[str, Any]:
        return {"code": code_fingerprint(), "tries": TRIES}

    @cached_property
    def bounds(self) -> Published:
        """The published errors."""
        return published(self.given.data / "prediction")

    @cached_property
    def plan(self) -> list[tuple[Job, Samples]]:
        """All runs, each with its table."""
        folder = self.given.data / "prediction"
        systems = self.given.systems or sorted({system for system, _ in self.bounds})
        if unknown := set(systems) - {system for system, _ in self.bounds}:
            raise UnusableError(f"no published errors of {', '.join(sorted(unknown))}")
        tables = {system: table(folder, system) for system in systems}
        return [
            (job, tables[system])
            for system in systems
            for size in sizes(self.bounds, system, self.given.sizes)
            for job in jobs(folder, system, size, self.seed_range(), len(tables[system]))
        ]

    def cells(self) -> dict[str, tuple[Job, Samples]]:
        return {job.name: (job, samples) for job, samples in self.plan}

    def cost(self, cell: tuple[Job, Samples]) -> float:
        return cell[0].size

    def measure(self, cell: tuple[Job, Samples]) -> dict[str, Outcome]:
        return done(*cell)

    def progress(self, name: str, result: dict[str, Outcome]) -> str:
        best = selected(result)
        return f"{name}: {best} {result[best].mre:.3g} %"

    def table(self, results: Results) -> Iterator[str]:
        return report([job for job, _ in self.plan], results, self.bounds)

    def missed(self, results: Results) -> list[str]:
        return missed([job for job, _ in self.plan], results, self.bounds)


# The data -----------------------------------------------------------------------------------------


def numbers(path: Path, *, header: bool) -> tuple[list[str], list[list[float]]]:
    """The columns' names and the rows of a CSV file of numbers, all of the same length."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file))
    except OSError as error:
        raise UnusableError(
            f"{path}: {error.strerror}; DATA is the folder with {path.parent.name}/"
        ) from error
    names = lines[0] if lines and header else []
    rows = []
    for number, line in enumerate(lines[len(lines) and header :], start=1 + header):
        try:
            rows.append([float(cell) for cell in line])
        except ValueError as error:
            raise UnusableError(f"{path}: line {number}: {error}") from error
        if len(line) != len(lines[0]):
            raise UnusableError(f"{path}: line {number}: {len(line)} columns, not {len(lines[0])}")
    if not rows:
        raise UnusableError(f"{path}: no rows")
    return names, rows


def table(folder: Path, system: str) -> Samples:
    """A system's table; options that never change are left out. The target is the last column."""
    path = folder / f"{system}.csv"
    names, rows = numbers(path, header=True)
    values = np.array(rows)
    low, high = values.min(axis=0), values.max(axis=0)
    used = [n for n in range(len(names) - 1) if low[n] < high[n]]
    try:
        return Samples(
            variables=tuple(
                Variable(name=names[n], key=names[n], low=low[n], high=high[n]) for n in used
            ),
            values=values[:, used],
            measured=tuple((float(target),) for target in values[:, -1]),
        )
    except ValueError as error:
        raise UnusableError(f"{path}: {error}") from error


def published(folder: Path) -> Published:
    """The published MREs."""
    path = folder / "published.csv"
    found: dict[tuple[str, int], dict[str, float]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for row in csv.DictReader(file):
                of_size = found.setdefault((row["system"], int(row["n"])), {})
                of_size[row["method"]] = float(row["mre"])
    except OSError as error:
        raise UnusableError(
            f"{path}: {error.strerror}; DATA is the folder with prediction/"
        ) from error
    except (KeyError, ValueError) as error:
        raise UnusableError(f"{path}: not as expected: {error}") from error
    if not found:
        raise UnusableError(f"{path}: no rows")
    return found


def jobs(folder: Path, system: str, size: int, runs: range, count: int) -> Iterator[Job]:
    """The runs of one size, by the published splits, or by drawn ones for a table of `count`."""
    path = folder / "splits" / f"{system}_training_index.csv"
    if not path.exists():
        for run in runs:
            drawn = np.random.default_rng([SEED, run]).permutation(count)[:size]
            yield Job(system, size, run, tuple(drawn.tolist()))
        return
    _, lines = numbers(path, header=False)
    columns = [n for n, of_size in enumerate(lines[0]) if of_size == size]
    if len(columns) != size or len(lines) <= runs.stop:
        has = f"it has {len(lines) - 1} runs"
        raise UnusableError(f"{path}: no {runs.stop} runs of {size} rows; {has}")
    for run in runs:
        rows = {int(lines[run + 1][n]) for n in columns}
        if len(rows) != size or not rows <= set(range(count)):
            raise UnusableError(f"{path}: run {run + 1} of {size}: no {size} rows of {count}")
        yield Job(system, size, run, tuple(sorted(rows)))


# One run ------------------------------------------------------------------------------------------


def done(job: Job, samples: Samples) -> dict[str, Outcome]:
    """All families, tuned and fitted on the job's rows, with their error over all others."""
    known = samples.rows(job.rows)
    others = np.setdiff1d(np.arange(len(samples)), job.rows)
    return {family: one_family(family, known, samples.rows(others), job.run) for family in FAMILIES}


def one_family(family: str, known: Samples, others: Samples, seed: int) -> Outcome:
    started = time.process_time()
    tries = TRIES[family] if len(known) < MANY_ROWS else 1
    best = best_of(family, continued(family, known, Effort(trials=tries, seed=seed)))
    with one_thread():
        model = fit(FAMILIES[family].build(known.variables, best.hyperparameters, seed), known)
        mre = accuracy.mape(others.log_target, predicted(model, others.values))
    return Outcome(best.inner_score, mre, time.process_time() - started)


def selected(outcomes: Mapping[str, Outcome]) -> str:
    """The family with the lowest error over inner folds, which knows nothing of the other rows."""
    return min(outcomes, key=lambda family: outcomes[family].inner_score)


# The tables ---------------------------------------------------------------------------------------


def interval(values: Sequence[float], digits: int = 4) -> str:
    """A mean with half the width of its 95 % interval, by Student's t over runs."""
    mean = f"{np.mean(values):.{digits}g}" if np.mean(values) < 1000 else f"{np.mean(values):.0f}"
    if len(values) < 2:
        return mean
    half = student_t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{mean} ± {half:.2g}"


def of_size(
    plan: Iterable[Job], results: Results
) -> dict[tuple[str, int], list[Mapping[str, Outcome]]]:
    """The outcomes of all runs, by system and size."""
    found: dict[tuple[str, int], list[Mapping[str, Outcome]]] = {}
    for job in plan:
        found.setdefault((job.system, job.size), []).append(results[job.name])
    return found


def of_selected(runs: Sequence[Mapping[str, Outcome]]) -> list[float]:
    return [outcomes[selected(outcomes)].mre for outcomes in runs]


def report(plan: Sequence[Job], results: Results, bounds: Published) -> Iterator[str]:
    """Two tables: the selected model beside the published ones, and all families."""
    found = of_size(plan, results)
    yield f"| system | rows | ours, selected | {' | '.join(SHOWN)} | selected |"
    yield f"|---|---:|---:|{'---:|' * len(SHOWN)}---|"
    for (system, size), runs in found.items():
        theirs = bounds.get((system, size), {})
        cells = [f"{theirs[m]:.4g}" if m in theirs else "-" for m in SHOWN]
        often = Counter(selected(outcomes) for outcomes in runs).most_common()
        names = ", ".join(f"{family} {count}" for family, count in often)
        ours = f"**{interval(of_selected(runs))}**"
        yield f"| {system} | {size} | {ours} | {' | '.join(cells)} | {names} |"
    yield ""
    yield f"| system | rows | {' | '.join(FAMILIES)} |"
    yield f"|---|---:|{'---:|' * len(FAMILIES)}"
    for (system, size), runs in found.items():
        cells = [interval([outcomes[family].mre for outcomes in runs]) for family in FAMILIES]
        yield f"| {system} | {size} | {' | '.join(cells)} |"
    spent = {
        family: sum(r[family].seconds for rs in found.values() for r in rs) for family in FAMILIES
    }
    yield ""
    yield "Minutes of one processor: " + ", ".join(f"{f} {s / 60:.1f}" for f, s in spent.items())


def missed(plan: Sequence[Job], results: Results, bounds: Published) -> list[str]:
    """Where the selected model is worse than it has to be, at the largest size of each system."""
    found = of_size(plan, results)
    problems, behind = [], []
    for (system, size), runs in found.items():
        if size != largest(bounds, system):
            continue
        ours, theirs = float(np.mean(of_selected(runs))), bounds[system, size]
        problems += [
            f"{system}: {ours:.4g} is not below {method}'s {theirs[method]:.4g}"
            for method in BEATEN
            if method in theirs and ours >= theirs[method]
        ]
        if MATCHED in theirs and ours > theirs[MATCHED]:
            behind.append(f"{system}: {ours:.4g} is above {MATCHED}'s {theirs[MATCHED]:.4g}")
    return problems + (behind if len(behind) > MAY_MISS else [])


def largest(bounds: Published, system: str) -> int:
    return max(size for name, size in bounds if name == system)


def sizes(bounds: Published, system: str, which: str) -> list[int]:
    everything = sorted(size for name, size in bounds if name == system)
    return everything if which == "all" else everything[-1:]
