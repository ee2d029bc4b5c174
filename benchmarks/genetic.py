"""The genetic algorithm of two checkouts side by side: what it finds, and in what time.

    git worktree add ../before COMMIT
    python -m benchmarks genetic ../before              # 30 seeds
    python -m benchmarks genetic ../before --seeds 3    # a quick look
    python -m benchmarks genetic ../before --out FILE   # also each search, as CSV

spaces   recorded: the parameters of benchmarks/data/slt-collect.csv.gz, with the lab's trials.
         made up: the 40 parameters of benchmarks/search_speed.py, with 120 rows of surface 1.
models   The four tree families with their own defaults, fitted once for each space with seed 1.
budget   Populations of 200, at most 100 generations. The recorded space has the product's patience
         of 15, the made-up space has no early stop.
seeds    Those of the search alone. Both checkouts have the same ones.
counts   The lowest prediction of a search (ms, with the penalty for disagreeing models), and its
         seconds of the processor on one thread. Both are means over seeds.

Each checkout has one process, which answers one seed at a time. They take turns, and the first of
each seed is the second of the next one. The command fails if this checkout's mean is above the
other one's in any space, or if its time is more than twice the other one's.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import search_speed
from benchmarks.beds import TABLE, tables_offer
from benchmarks.harness import ROOT, Question, UnusableError
from benchmarks.tables import as_samples, read
from intop.domain.space import Space
from intop.learn.fitness import Fitness
from intop.learn.parallel import one_thread
from intop.learn.searching.search import search

SEEDS = 30
POPULATION, GENERATIONS = 200, 100
PATIENCE = 15
"""The product's."""
MOST_TIMES = 2.0
"""The time that the new algorithm may take, in units of the old one's."""


class Search(NamedTuple):
    """The lowest prediction of one search, and its seconds of the processor."""

    lowest_ms: float
    seconds: float


@dataclass(frozen=True)
class Case:
    """A space with its models, and the generations that may pass without an improvement."""

    space: Space
    fitness: Fitness
    patience: int


Searches = Mapping[str, Sequence[Search]]
"""By the name of the case, one for each seed."""


Both = tuple[dict[str, Search], dict[str, Search]]
"""What both checkouts find with a seed, by the name of the case."""


class Genetic(Question[int, Both]):
    """Does this checkout's genetic algorithm find as much as the other one's?"""

    seeds = SEEDS
    result = Both
    fixed = ("before",)

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("before", type=Path, nargs="?", default=ROOT, help="the other checkout")
        parser.add_argument("--out", type=Path, help="a CSV of each search")

    def cells(self) -> dict[str, int]:
        if not (self.given.before / "benchmarks" / Path(__file__).name).is_file():
            raise UnusableError(f"{self.given.before}: no checkout that has this benchmark")
        return {f"seed {seed}": seed for seed in self.seed_range()}

    @contextmanager
    def bed(self) -> Iterator[None]:
        with process(self.given.before) as old, process(ROOT) as new:
            self.workers = (old, new)
            yield

    def measure(self, cell: int) -> Both:
        old, new = self.workers
        if cell % 2:
            before = asked(old, cell)
            return before, asked(new, cell)
        now = asked(new, cell)
        return asked(old, cell), now

    def table(self, results: Mapping[str, Both]) -> Iterator[str]:
        old, new = by_case(results)
        if self.given.out is not None:
            seeds = [int(name.removeprefix("seed ")) for name in results]
            write(self.given.out, seeds, old, new)
        return report(old, new)

    def missed(self, results: Mapping[str, Both]) -> list[str]:
        return list(missed(*by_case(results)))


def by_case(results: Mapping[str, Both]) -> tuple[Searches, Searches]:
    """The searches of each checkout."""
    both = [
        {name: [found[place][name] for found in results.values()] for name in names}
        for place, names in enumerate(next(iter(results.values())))
    ]
    return both[0], both[1]


# One checkout -------------------------------------------------------------------------------------


def cases() -> dict[str, Case]:
    """Return the two cases, whose models are fitted here."""
    rows = read(TABLE)
    recorded, made_up = tables_offer(rows).space, search_speed.space()
    return {
        "recorded": Case(recorded, Fitness(search_speed.trees(as_samples(rows), 1)), PATIENCE),
        "made up": Case(
            made_up,
            Fitness(search_speed.models(made_up, search_speed.ROWS, 1)),
            search_speed.ENDLESS,
        ),
    }


def searched(case: Case, seed: int) -> Search:
    """Return what one search of a case finds."""
    began = time.process_time()
    best = search(
        case.space,
        case.fitness,
        seed=seed,
        population=POPULATION,
        generations=GENERATIONS,
        patience=case.patience,
        keep=1,
    ).candidates[0]
    return Search(best.rank_ms, time.process_time() - began)


def answer() -> None:
    """Search with each seed that stands on a line of the input, and print the results as JSON."""
    with one_thread():
        known = cases()
        for case in known.values():
            searched(case, 0)  # loads late imports
        for line in sys.stdin:
            results = {name: searched(case, int(line)) for name, case in known.items()}
            print(json.dumps(results), flush=True)


# Both ---------------------------------------------------------------------------------------------


def process(checkout: Path) -> subprocess.Popen[str]:
    """Return a process that answers with the code of a checkout."""
    return subprocess.Popen(
        [sys.executable, "-c", "from benchmarks.genetic import answer; answer()"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout.resolve())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def asked(worker: subprocess.Popen[str], seed: int) -> dict[str, Search]:
    """Return what a process finds with a seed, by case."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{seed}\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        raise UnusableError(f"seed {seed}: a checkout's process ended; see its message above")
    return {name: Search(*numbers) for name, numbers in json.loads(line).items()}


def write(path: Path, seeds: Sequence[int], old: Searches, new: Searches) -> None:
    """Write a row for each search."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["space", "seed", "checkout", *Search._fields])
        for checkout, searches in (("before", old), ("now", new)):
            for name, of_case in searches.items():
                for seed, (lowest_ms, seconds) in zip(seeds, of_case, strict=True):
                    rows.writerow([name, seed, checkout, lowest_ms, f"{seconds:.3f}"])


def report(old: Searches, new: Searches) -> Iterator[str]:
    """The table: a row for each case, with the old checkout's numbers before the new one's."""
    yield (
        "| space | seeds | lowest before (ms) | now (ms) | same, lower, higher on |"
        " seconds before | now | times |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for name in old:
        before, after = np.array(old[name]), np.array(new[name])
        sign = np.sign(after[:, 0] - before[:, 0])
        counts = ", ".join(str(np.count_nonzero(sign == kind)) for kind in (0, -1, 1))
        (low_before, s_before), (low_after, s_after) = before.mean(axis=0), after.mean(axis=0)
        yield (
            f"| {name} | {len(before)} | {low_before:.4f} | {low_after:.4f} | {counts} |"
            f" {s_before:.3f} | {s_after:.3f} | {s_after / s_before:.2f} |"
        )


def missed(old: Searches, new: Searches) -> Iterator[str]:
    """The bounds that the new checkout does not meet."""
    for name in old:
        lows, times = zip(np.mean(old[name], axis=0), np.mean(new[name], axis=0), strict=True)
        if lows[1] > lows[0] * (1 + 1e-12):
            yield f"{name}: {lows[1]:.4f} ms, before {lows[0]:.4f} ms"
        if times[1] > MOST_TIMES * times[0]:
            yield f"{name}: {times[1]:.3f} s, before {times[0]:.3f} s"
