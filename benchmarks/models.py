"""Our models against published ones, on public tables of configurations and their performance.

    make bench-models DATA=../shared/bench            # largest sizes, 30 runs: some 40 minutes
    make bench-models DATA=../shared/bench RUNS=5     # a quick look
    make bench-models DATA=../shared/bench SIZES=all SYSTEMS="LLVM x264"

The published protocol: train on n rows, test on all others, in 30 runs with the published splits
(drawn here where there are none); MRE is the mean of |predicted - measured| / measured, in percent.
Each family is tuned as `intop train` does, and one is selected, all on the n training rows alone.
Each run is kept in a file when it ends: the same command goes on where it stopped.
"""

import argparse
import csv
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from intop.domain.encoding import Variable
from intop.learn import accuracy
from intop.learn.code_fingerprint import code_fingerprint
from intop.learn.families import FAMILIES
from intop.learn.hyperparameters import Effort, best_of, continued
from intop.learn.parallel import each, one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import fit, predicted

RUNS = 30
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


class UnusableError(Exception):
    """Something is wrong with the data or the results, and this says what."""


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


Results = dict[str, dict[str, Outcome]]
"""Outcomes by family, by the name of a job."""


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


def jobs(folder: Path, system: str, size: int, runs: int, count: int) -> Iterator[Job]:
    """The runs of one size, by the published splits, or by drawn ones for a table of `count`."""
    path = folder / "splits" / f"{system}_training_index.csv"
    if not path.exists():
        for run in range(runs):
            drawn = np.random.default_rng([SEED, run]).permutation(count)[:size]
            yield Job(system, size, run, tuple(drawn.tolist()))
        return
    _, lines = numbers(path, header=False)
    columns = [n for n, of_size in enumerate(lines[0]) if of_size == size]
    if len(columns) != size or len(lines) <= runs:
        raise UnusableError(f"{path}: no {runs} runs of {size} rows; it has {len(lines) - 1} runs")
    for run, line in enumerate(lines[1 : runs + 1]):
        rows = {int(line[n]) for n in columns}
        if len(rows) != size or not rows <= set(range(count)):
            raise UnusableError(f"{path}: run {run + 1} of {size}: no {size} rows of {count}")
        yield Job(system, size, run, tuple(sorted(rows)))


# One run ------------------------------------------------------------------------------------------


def done(job: Job, samples: Samples) -> tuple[Job, dict[str, Outcome]]:
    """All families, tuned and fitted on the job's rows, with their error over all others."""
    known = samples.rows(job.rows)
    others = np.setdiff1d(np.arange(len(samples)), job.rows)
    return job, {
        family: one_family(family, known, samples.rows(others), job.run) for family in FAMILIES
    }


def one_family(family: str, known: Samples, others: Samples, seed: int) -> Outcome:
    started = time.process_time()
    tries = TRIES[family] if len(known) < MANY_ROWS else 1
    found = best_of(family, continued(family, known, Effort(trials=tries, seed=seed)))
    with one_thread():
        model = fit(FAMILIES[family].build(known.variables, found.hyperparameters, seed), known)
        mre = accuracy.mape(others.log_target, predicted(model, others.values))
    return Outcome(found.inner_score, mre, time.process_time() - started)


def selected(outcomes: Mapping[str, Outcome]) -> str:
    """The family with the lowest error over inner folds, which knows nothing of the other rows."""
    return min(outcomes, key=lambda family: outcomes[family].inner_score)


# Results that outlive a command -------------------------------------------------------------------


def settings() -> dict[str, Any]:
    """What results must have in common to stand in one table."""
    return {"models": code_fingerprint(), "tries": TRIES}


def kept(path: Path) -> Results:
    """What is there of earlier commands."""
    try:
        stored = json.loads(path.read_text())
        if stored["settings"] != settings():
            raise UnusableError(
                f"{path}: of other code, versions or tries; delete it, or name another (RESULTS)"
            )
        return {
            job: {family: Outcome(**outcome) for family, outcome in outcomes.items()}
            for job, outcomes in stored["runs"].items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnusableError(f"{path}: no results ({error}); delete it, or name another") from error


def keep(path: Path, results: Results) -> None:
    """All that there is so far; a killed command leaves the file as it was before."""
    runs = {job: {f: asdict(o) for f, o in found.items()} for job, found in results.items()}
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps({"settings": settings(), "runs": runs}, indent=1))
        fresh.replace(path)
    except OSError as error:
        raise UnusableError(f"{path}: {error.strerror}") from error


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
) -> dict[tuple[str, int], list[dict[str, Outcome]]]:
    """The outcomes of all runs, by system and size."""
    found: dict[tuple[str, int], list[dict[str, Outcome]]] = {}
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


# --------------------------------------------------------------------------------------------------


def main() -> None:
    arguments = parsed()
    try:
        sys.exit(benchmark(arguments))
    except UnusableError as error:
        sys.exit(str(error))


def benchmark(arguments: argparse.Namespace) -> str | None:
    """Makes what runs are missing and prints the tables. What was missed, or None."""
    folder = arguments.data / "prediction"
    bounds = published(folder)
    systems = arguments.systems or sorted({system for system, _ in bounds})
    if unknown := set(systems) - {system for system, _ in bounds}:
        raise UnusableError(f"no published errors of {', '.join(sorted(unknown))}")
    tables = {system: table(folder, system) for system in systems}
    plan = [
        job
        for system in systems
        for size in sizes(bounds, system, arguments.sizes)
        for job in jobs(folder, system, size, arguments.runs, len(tables[system]))
    ]
    results = kept(arguments.results)
    # The dearest first, so that no processor waits for them at the end.
    lacking = sorted((j for j in plan if j.name not in results), key=lambda j: -j.size)
    tasks = [(job, tables[job.system]) for job in lacking]
    for number, (job, outcomes) in enumerate(each(done, tasks, jobs=arguments.jobs), start=1):
        results[job.name] = outcomes
        keep(arguments.results, results)
        best = selected(outcomes)
        print(
            f"[{number}/{len(lacking)}] {job.system}, {job.size} rows, run {job.run + 1}:"
            f" {best} {outcomes[best].mre:.3g} %",
            file=sys.stderr,
        )
    print("\n".join(report(plan, results, bounds)))
    problems = missed(plan, results, bounds)
    return "not as it should be: " + "; ".join(problems) if problems else None


def sizes(bounds: Published, system: str, which: str) -> list[int]:
    everything = sorted(size for name, size in bounds if name == system)
    return everything if which == "all" else everything[-1:]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder that has prediction/")
    parser.add_argument("--runs", type=positive, default=RUNS, help=f"({RUNS})")
    parser.add_argument("--sizes", choices=["largest", "all"], default="largest", help="(largest)")
    parser.add_argument("--systems", nargs="*", default=[], help="(all)")
    parser.add_argument("--jobs", type=positive, help="processes (one a processor)")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("build/bench-models.json"),
        help="where runs are kept (build/bench-models.json)",
    )
    return parser.parse_args()


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    main()
