"""What one machine's trials are worth on another: held-out errors warm and from scratch.

DATA is the folder that has multi/deeparch_3hardware.csv: the same 4,096 configurations on three
machines, so there are six pairs of a source and a target. Each run draws rows of the target to
learn from; 3,896 others, the same for all sizes, judge. Models of these rows alone ("from scratch")
stand beside models that know the source's trials too, all of them or a part, and beside models
whose source is shuffled, so that it is worth nothing.

    python -m benchmarks.transfer DATA                 the published table
    python -m benchmarks.transfer --store FILE         trials of x86 and arm in a store of intop

Each run is kept in a file when it ends: the same command goes on where it stopped. Exits with an
error unless 40 warm rows are as good as 80 from scratch.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models import UnusableError, interval, numbers, positive
from intop.domain.encoding import Variable
from intop.domain.transfer import worth
from intop.learn import accuracy
from intop.learn.code_fingerprint import code_fingerprint
from intop.learn.families import FAMILIES
from intop.learn.parallel import each, one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import fit, predicted
from intop.learn.transfer import Prior, prior, warm_start

TABLE = Path("multi") / "deeparch_3hardware.csv"
RUNS = 20
MOST = 200
"""Rows that may be learned from; all others judge."""
SCRATCH_SIZES = (10, 20, 40, 60, 80, 120)
WARM_SIZES = (40, 20, 10, 80)
ALL = 0
PARTS = (200, 80)
"""Of the source's trials, beside all of them."""
WARM, FROM_SCRATCH = 40, 80
"""So many rows with a warm start have to be as good as so many without."""


@dataclass(frozen=True)
class Job:
    """One fit. Machines by number; `source` is None from scratch; `part` of its rows, or ALL."""

    target: int
    run: int
    size: int
    source: int | None = None
    part: int = ALL
    shuffled: bool = False

    @property
    def name(self) -> str:
        if self.source is None:
            return f"{self.target} {self.size} {self.run}"
        kind = "shuffled" if self.shuffled else f"{self.part or 'all'}"
        return f"{self.source}>{self.target} {self.size} {self.run} {kind}"


def machines(path: Path) -> list[Samples]:
    """The table by machine."""
    if not path.is_file():
        raise UnusableError(f"{path}: there is no such file; DATA is the folder that has multi/")
    names, rows = numbers(path, header=True)
    targets = [n for n, name in enumerate(names) if name]
    options = [n for n, name in enumerate(names) if not name]
    if len(targets) < 2 or not options:
        raise UnusableError(f"{path}: no two targets beside options")
    values = np.array(rows)
    variables = tuple(Variable(name=f"option {n + 1}", key=f"option {n + 1}") for n in options)
    try:
        return [
            Samples(
                variables=variables,
                values=values[:, options],
                measured=tuple((value,) for value in values[:, target].tolist()),
            )
            for target in targets
        ]
    except ValueError as error:
        raise UnusableError(f"{path}: {error}") from error


@cache
def table(path: Path) -> list[Samples]:
    """Read once in each process."""
    return machines(path)


@cache
def source_of(path: Path, family: str, machine: int) -> Prior:
    """All of a machine's trials, fitted once in each process if at all."""
    whole = table(path)[machine]
    return prior(family, whole.variables, whole, seed=0)


def done(path: Path, family: str, job: Job) -> tuple[Job, float]:
    """The error (MAPE) over the rows that judge."""
    whole = table(path)[job.target]
    order = np.random.default_rng([20, job.run]).permutation(len(whole))
    known, others = whole.rows(order[: job.size]), whole.rows(order[MOST:])
    if job.source is None:
        with one_thread():
            build = FAMILIES[family].build
            defaults = dict(FAMILIES[family].defaults)
            model = fit(build(known.variables, defaults, job.run), known)
            guesses = predicted(model, others.values)
    else:
        warm = warm_start(family, known, told(path, family, job), job.run)
        guesses = warm(others.values)
    return job, accuracy.mape(others.log_target, guesses)


def told(path: Path, family: str, job: Job) -> Prior:
    """What is known of the source, which is drawn apart from the target's rows."""
    assert job.source is not None
    whole = table(path)[job.source]
    rng = np.random.default_rng([21, job.run])
    if job.shuffled:
        order = rng.permutation(len(whole))
        shuffled = replace(whole, measured=tuple(whole.measured[n] for n in order))
        return prior(family, whole.variables, shuffled, job.run)
    if job.part == ALL:
        return source_of(path, family, job.source)
    return prior(
        family, whole.variables, whole.rows(rng.permutation(len(whole))[: job.part]), job.run
    )


def plan(count: int, runs: int) -> list[Job]:
    """What matters most comes first, run by run, so that a part of it is of use."""
    pairs = list(permutations(range(count), 2))
    jobs: list[Job] = []
    for run in range(runs):
        jobs += [Job(t, run, FROM_SCRATCH) for t in range(count)]
        jobs += [Job(t, run, WARM, s) for s, t in pairs]
    for run in range(runs):
        jobs += [Job(t, run, WARM) for t in range(count)]
        jobs += [Job(t, run, WARM, s, shuffled=True) for s, t in pairs]
    for part in PARTS:
        jobs += [Job(t, run, WARM, s, part) for run in range(runs) for s, t in pairs]
    for size in SCRATCH_SIZES:
        jobs += [Job(t, run, size) for run in range(runs) for t in range(count)]
    for size in WARM_SIZES:
        jobs += [Job(t, run, size, s) for run in range(runs) for s, t in pairs]
    return list(dict.fromkeys(jobs))


# Results that outlive a command -------------------------------------------------------------------


def kept(path: Path, settings: dict[str, Any]) -> dict[str, float]:
    """What is there of earlier commands."""
    try:
        stored = json.loads(path.read_text())
        if stored["settings"] != settings:
            raise UnusableError(f"{path}: of other code or settings; delete it, or name another")
        return {name: float(error) for name, error in stored["errors"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnusableError(f"{path}: no results ({error}); delete it, or name another") from error


def keep(path: Path, settings: dict[str, Any], errors: dict[str, float]) -> None:
    """All that there is so far; a killed command leaves the file as it was before."""
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps({"settings": settings, "errors": errors}, indent=1))
        fresh.replace(path)
    except OSError as error:
        raise UnusableError(f"{path}: {error.strerror}") from error


# The tables ---------------------------------------------------------------------------------------


def columns(
    runs: int, errors: dict[str, float], pairs: Sequence[tuple[int, int]]
) -> dict[str, list[float]]:
    """The errors of these pairs, by what they were learned from."""
    each_run = [(r, s, t) for r in range(runs) for s, t in pairs]
    jobs = {
        f"{WARM} from scratch": [Job(t, r, WARM) for r, _, t in each_run],
        f"{FROM_SCRATCH} from scratch": [Job(t, r, FROM_SCRATCH) for r, _, t in each_run],
        f"{WARM} warm, all": [Job(t, r, WARM, s) for r, s, t in each_run],
    }
    for part in PARTS:
        jobs[f"{WARM} warm, {part}"] = [Job(t, r, WARM, s, part) for r, s, t in each_run]
    shuffled = [Job(t, r, WARM, s, shuffled=True) for r, s, t in each_run]
    jobs[f"{WARM} warm, shuffled"] = shuffled
    return {
        head: [errors[job.name] for job in chosen if job.name in errors]
        for head, chosen in jobs.items()
    }


def summary(count: int, runs: int, errors: dict[str, float]) -> dict[str, Any]:
    """All errors by pair and kind, and the learning curves."""
    return {
        "pairs": {
            f"{s + 1} > {t + 1}": columns(runs, errors, [(s, t)])
            for s, t in permutations(range(count), 2)
        },
        "curve": [
            {"rows": n, "scratch": scratch, "warm": warm, "worth": equal}
            for n, scratch, warm, equal in curve(count, runs, errors)
        ],
    }


def report(count: int, runs: int, errors: dict[str, float]) -> Iterator[str]:
    """By pair, then the learning curves. What is not there yet is a dash."""
    pairs = list(permutations(range(count), 2))

    def told_of(values: Sequence[float], wanted: int) -> str:
        if not values:
            return "-"
        return interval(values) + ("" if len(values) == wanted else f" ({len(values)} runs)")

    heads = list(columns(runs, errors, pairs))
    yield f"| source > target | {' | '.join(heads)} |"
    yield f"|---|{'---:|' * len(heads)}"
    for s, t in pairs:
        by_kind = columns(runs, errors, [(s, t)])
        cells = [told_of(values, runs) for values in by_kind.values()]
        yield f"| {s + 1} > {t + 1} | {' | '.join(cells)} |"
    whole = columns(runs, errors, pairs).values()
    means = [f"{np.mean(v):.4g}" if v else "-" for v in whole]
    yield f"| **mean** | {' | '.join(means)} |"
    yield ""
    points = curve(count, runs, errors)
    yield "| rows of the target | from scratch | warm, all | as good as so many from scratch |"
    yield "|---:|---:|---:|---:|"
    for size, scratch, warm, equal in points:
        cells = ["-" if v is None else f"{v:.4g}" for v in (scratch, warm)]
        most = max(n for n, value, *_ in points if value is not None)
        as_many = "-" if warm is None else f"more than {most}" if equal is None else f"{equal:.0f}"
        yield f"| {size} | {' | '.join(cells)} | {as_many} |"


def curve(
    count: int, runs: int, errors: dict[str, float]
) -> list[tuple[int, float | None, float | None, float | None]]:
    """Rows, the error from scratch and warm, and what that is worth; of complete sizes only."""

    def mean(jobs: Sequence[Job]) -> float | None:
        found = [errors[job.name] for job in jobs if job.name in errors]
        return float(np.mean(found)) if len(found) == len(jobs) else None

    pairs = list(permutations(range(count), 2))
    scratch = {
        n: mean([Job(t, r, n) for r in range(runs) for t in range(count)]) for n in SCRATCH_SIZES
    }
    known = {n: error for n, error in scratch.items() if error is not None}
    points = []
    for size in sorted({*SCRATCH_SIZES, *WARM_SIZES}):
        warm = (
            mean([Job(t, r, size, s) for r in range(runs) for s, t in pairs])
            if size in WARM_SIZES
            else None
        )
        equal = worth(list(known), list(known.values()), warm) if known and warm else None
        points.append((size, scratch.get(size), warm, equal))
    return [p for p in points if p[1] is not None or p[2] is not None]


def missed(count: int, runs: int, errors: dict[str, float]) -> str | None:
    """What is not as it has to be."""
    pairs = list(permutations(range(count), 2))
    warm = [errors[Job(t, r, WARM, s).name] for r in range(runs) for s, t in pairs]
    scratch = [errors[Job(t, r, FROM_SCRATCH).name] for r in range(runs) for _, t in pairs]
    if np.mean(warm) <= np.mean(scratch):
        return None
    return (
        f"not as it should be: {WARM} warm rows have {np.mean(warm):.4g} %, {FROM_SCRATCH} from "
        f"scratch {np.mean(scratch):.4g} %"
    )


# --------------------------------------------------------------------------------------------------


def main() -> None:
    arguments = parsed()
    try:
        if arguments.store is not None:
            sys.exit(of_store(arguments))
        sys.exit(benchmark(arguments))
    except UnusableError as error:
        sys.exit(str(error))


def benchmark(arguments: argparse.Namespace) -> str | None:
    """Makes what runs are missing and prints the tables. What was missed, or None."""
    path = arguments.data / TABLE
    count = len(table(path))
    settings = {"models": code_fingerprint(), "family": arguments.family}
    errors = kept(arguments.results, settings)
    if not arguments.only_report:
        lacking = [job for job in plan(count, arguments.runs) if job.name not in errors]
        tasks = [(path, arguments.family, job) for job in lacking]
        for number, (job, error) in enumerate(each(done, tasks, jobs=arguments.jobs), start=1):
            errors[job.name] = error
            keep(arguments.results, settings, errors)
            print(f"[{number}/{len(lacking)}] {job.name}: {error:.3g} %", file=sys.stderr)
    if arguments.json:
        print(json.dumps(summary(count, arguments.runs, errors), indent=1))
    else:
        print("\n".join(report(count, arguments.runs, errors)))
    if arguments.figure is not None:
        draw(arguments.figure, curve(count, arguments.runs, errors))
    try:
        return missed(count, arguments.runs, errors)
    except KeyError:
        return "not all runs are made yet: the same command goes on"


def draw(
    path: Path, points: Sequence[tuple[int, float | None, float | None, float | None]]
) -> None:
    """Both learning curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    for column, label in ((1, "from scratch"), (2, "warm")):
        drawn = [(p[0], p[column]) for p in points if p[column] is not None]
        axes.plot(*zip(*drawn, strict=True), marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows of the target", ylabel="MAPE (%)")
    axes.legend()
    figure.savefig(path)


def of_store(arguments: argparse.Namespace) -> str | None:
    """What x86 and arm are worth to each other, by the trials of a store. Measures nothing."""
    from benchmarks.campaign import context_of
    from intop.config.location import default_path
    from intop.config.study import load_study
    from intop.errors import IntopError
    from intop.report.document.text import show
    from intop.report.machine import to_json
    from intop.report.transfer import warm_starts as text
    from intop.stages.transfer import warm_starts
    from intop.store import opened

    def connect(address: object) -> Any:
        raise UnusableError(f"nothing is measured here, so nothing connects to {address}")

    if not Path(arguments.store).is_file():
        raise UnusableError(f"{arguments.store}: there is no such store")
    try:
        study = load_study(arguments.config or default_path())
        with opened(arguments.store) as store:
            campaign = store.latest(study.name)
            if campaign is None:
                return f"{arguments.store} has no campaign of {study.name}"
            context = context_of(store, study, campaign=campaign, connect=connect)
            found = {
                workload.name: warm_starts(context, ("x86", "arm"), workload)
                for workload in context.workloads
            }
    except IntopError as error:
        raise UnusableError(str(error)) from error
    if arguments.json:
        print(to_json({name: made for name, (made, _) in found.items()}))
    else:
        show(*(part for name, (made, _) in found.items() for part in text(name, made)))
    return "\n".join(line for _, missing in found.values() for line in missing) or None


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="?", help="the folder that has multi/")
    parser.add_argument("--runs", type=positive, default=RUNS, help=f"({RUNS})")
    parser.add_argument("--family", choices=list(FAMILIES), default="Blend", help="(Blend)")
    parser.add_argument("--jobs", type=positive, help="processes (one a processor)")
    parser.add_argument("--figure", type=Path, help="draw the learning curves into this file")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    parser.add_argument("--only-report", action="store_true", help="of the runs that are there")
    parser.add_argument("--store", help="trials of x86 and arm, in place of the table")
    parser.add_argument("--config", type=Path, help="the study of the store (as intop's)")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("build/bench-transfer.json"),
        help="where runs are kept (build/bench-transfer.json)",
    )
    arguments = parser.parse_args()
    if arguments.data is None and arguments.store is None:
        parser.error("name DATA, the folder that has multi/, or a --store")
    return arguments


if __name__ == "__main__":
    main()
