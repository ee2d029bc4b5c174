"""What a search over four trained models takes, and which algorithm finds most.

    python -m benchmarks search-speed         the genetic algorithm, 100 generations of 200
    python -m benchmarks search-algorithms    all of them, the same predictions for each

A made-up space of 40 parameters (numbers, switches and choices) and a made-up surface, different
for each seed, of which `--rows` configurations are known with 5 % noise. The four tree families
learn them with their own defaults. No search stops early.

speed       Seconds of the processor, its share inside the models' predictions (from values to
            estimates), and what the same predictions would take one by one. For that, a sample of
            individuals is decoded and predicted alone and the time is scaled: by each model's own
            `predict`, as is, and by the quicker way in which populations are predicted.
algorithms  For each algorithm, how far the best prediction that it found (with the penalty) is
            above the best that any of them found for the same models: means over seeds with their
            standard errors, and on how many seeds it was the best of all.

Times are of the processor, so that a machine which others use, too, changes them little. All but
the times follows from the seeds.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from benchmarks.harness import Question
from intop.domain.encoding import Matrix
from intop.domain.parameter import Component, Parameter
from intop.domain.space import Space
from intop.domain.training import FittedFamily
from intop.learn.families import FAMILIES
from intop.learn.fitness import Estimate, Fitness
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples
from intop.learn.searching.search import ALGORITHMS, search
from intop.learn.surrogate import Predictor, fit_trees, predicted

POPULATION, GENERATIONS = 200, 100
PARAMETERS = 40
ROWS = 120
"""Known configurations of the made-up surface."""
ENDLESS = 10**6
KEPT = 2_000
"""Candidates, as `intop search` keeps them to choose different ones among them."""
KINDS: tuple[Literal["integer", "boolean", "choice"], ...] = (
    "integer",
    "integer",
    "boolean",
    "choice",
)


class Speed(Question[str, list[str]]):
    """How long does the genetic algorithm search?"""

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--sample", type=int, default=100, help="individuals one by one (100)")
        add("--rows", type=int, default=ROWS, help=f"known configurations ({ROWS})")

    def cells(self) -> dict[str, str]:
        return {"speed": ""}

    def measure(self, cell: str) -> list[str]:  # noqa: ARG002
        with one_thread():
            return speed(self.given.rows, self.given.sample)

    def table(self, results: Mapping[str, list[str]]) -> Iterable[str]:
        return results["speed"]


class Best(NamedTuple):
    """The logarithm of the lowest prediction that a search found, and its seconds."""

    log_ms: float
    seconds: float


class Algorithms(Question[int, dict[str, Best]]):
    """Which algorithm finds most?"""

    seeds = 10
    result = dict[str, Best]
    fixed = ("rows",)

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rows", type=int, default=ROWS, help=f"known configurations ({ROWS})")

    def cells(self) -> dict[str, int]:
        return {f"seed {seed}": seed for seed in self.seed_range()}

    def measure(self, cell: int) -> dict[str, Best]:
        with one_thread():
            return algorithms(self.given.rows, cell)

    def table(self, results: Mapping[str, dict[str, Best]]) -> Iterable[str]:
        return compared(list(results.values()))


# What is searched ---------------------------------------------------------------------------------


def space() -> Space:
    """Half of the parameters are numbers on a logarithmic scale, others switches and choices."""
    parameters = []
    for number in range(PARAMETERS):
        kind = KINDS[number % len(KINDS)]
        parameters.append(
            Parameter(
                key=f"p{number}",
                kind=kind,
                unit="",
                scope="namespace",
                risk="low",
                mechanism="made up",
                document="made up",
                components=(Component(name="", low=4096, high=1 << 24),) * (kind == "integer"),
                choices={"integer": (), "boolean": ("0", "1"), "choice": ("a", "b", "c")}[kind],
                scale="log" if kind == "integer" else "linear",
            )
        )
    defaults = {p.key: "4096" if p.is_numeric else p.choices[0] for p in parameters}
    return Space(tuple(parameters), (), defaults)


def surface(features: Matrix, rng: np.random.Generator) -> Matrix:
    """Log P99 (n,): slopes for two features of five, ten interactions, six bows."""
    count = features.shape[1]
    log_p99 = 3 + features @ (rng.normal(0, 0.3, count) * (rng.random(count) < 0.4))
    for one, other in rng.integers(0, count, (10, 2)):
        log_p99 += rng.normal(0, 0.8) * (features[:, one] - 0.5) * (features[:, other] - 0.5)
    for place in rng.integers(0, count, 6):
        log_p99 += abs(rng.normal(0, 1.5)) * (features[:, place] - rng.random()) ** 2
    return np.asarray(log_p99)


def models(where: Space, rows: int, seed: int) -> Predictor:
    """The four tree families, fitted to random configurations of a surface of their own."""
    rng = np.random.default_rng(seed)
    values = where.decode(rng.random((rows, PARAMETERS)))
    log_p99 = surface(where.encode(values), rng) + rng.normal(0, 0.05, rows)
    measured = tuple((value,) for value in np.exp(log_p99).tolist())
    return trees(Samples(variables=where.variables, values=values, measured=measured), seed)


# How fast -----------------------------------------------------------------------------------------


@dataclass
class Timed:
    """A fitness that knows how much of the processor's time its predictions took."""

    fitness: Fitness
    seconds: float = 0.0

    def __call__(self, values: Matrix) -> Estimate:
        began = time.process_time()
        told = self.fitness(values)
        self.seconds += time.process_time() - began
        return told


def speed(rows: int, sample: int) -> list[str]:
    where = space()
    predictor = models(where, rows, 1)
    fitness = Fitness(predictor)
    whole(where, fitness, 0)  # what is loaded late is loaded now
    timed = Timed(fitness)
    passing = time.perf_counter()
    seconds = seconds_of(lambda: whole(where, timed, 1))
    passed = time.perf_counter() - passing
    configurations = seconds_of(lambda: whole(where, fitness, 1, keep=KEPT)) - seconds_of(
        lambda: whole(where, fitness, 1)
    )
    genes = np.random.default_rng(1).random((sample, 1, PARAMETERS))
    count = POPULATION * (GENERATIONS + 1)
    scale = count / sample

    def by_pipelines() -> None:
        for one in genes:
            values = where.decode(one)
            for model in predictor.models.values():
                predicted(model, values)

    def by_fitness() -> None:
        for one in genes:
            fitness(where.decode(one))

    slow, quick = scale * seconds_of(by_pipelines), scale * seconds_of(by_fitness)
    return [
        f"{GENERATIONS} generations of {POPULATION}, {PARAMETERS} parameters, four models:",
        "",
        "| | |",
        "|---|---:|",
        f"| seconds of the processor | {seconds:.2f} |",
        f"| seconds that passed | {passed:.2f} |",
        f"| share inside the models' predictions | {timed.seconds / seconds:.0%} |",
        f"| {KEPT:,} candidates as configurations, beside that | {configurations:.2f} |",
        f"| {count:,} one by one, by the models' predict, scaled from {sample} | {slow:.0f} s |",
        f"| times as fast | {slow / seconds:.0f} |",
        f"| one by one, by the quicker way, scaled from {sample} | {quick:.0f} s |",
        f"| times as fast | {quick / seconds:.0f} |",
    ]


def whole(where: Space, fitness: Callable[[Matrix], Estimate], seed: int, *, keep: int = 1) -> None:
    """A search by the genetic algorithm that does not stop early."""
    search(
        where,
        fitness,
        seed=seed,
        population=POPULATION,
        generations=GENERATIONS,
        patience=ENDLESS,
        keep=keep,
    )


def seconds_of(work: Callable[[], object]) -> float:
    """Of the processor."""
    began = time.process_time()
    work()
    return time.process_time() - began


# Which finds most ---------------------------------------------------------------------------------


def algorithms(rows: int, seed: int) -> dict[str, Best]:
    """Search by each algorithm over the same models."""
    where = space()
    fitness = Fitness(models(where, rows, seed))
    found = {}
    for name in ALGORITHMS:
        began = time.process_time()
        best = search(
            where,
            fitness,
            seed=seed,
            algorithm=name,
            population=POPULATION,
            generations=GENERATIONS,
            patience=ENDLESS,
            keep=1,
        ).candidates[0]
        found[name] = Best(math.log(best.rank_ms), time.process_time() - began)
    return found


def compared(seeds: Sequence[Mapping[str, Best]]) -> list[str]:
    """The table of all algorithms."""
    logs = {name: np.array([found[name].log_ms for found in seeds]) for name in ALGORITHMS}
    lowest = np.min(list(logs.values()), axis=0)
    lines = [
        f"{POPULATION * (GENERATIONS + 1):,} predictions each, {len(seeds)} seeds:",
        "",
        "| algorithm | above the best found | worst seed | best of all on | seconds |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, found in logs.items():
        above = 100 * np.expm1(found - lowest)
        error = above.std(ddof=1) / math.sqrt(len(seeds)) if len(seeds) > 1 else math.nan
        seconds = sum(found[name].seconds for found in seeds) / len(seeds)
        lines.append(
            f"| {name} | {above.mean():.2f} ± {error:.2f} % | {above.max():.2f} % | "
            f"{np.count_nonzero(above == 0)} | {seconds:.1f} |"
        )
    return lines


def trees(samples: Samples, seed: int) -> Predictor:
    """The four tree families with their own defaults, fitted to all rows."""
    fitted = [
        FittedFamily(family=f.name, hyperparameters=dict(f.defaults), inner_score=0.0)
        for f in FAMILIES.values()
        if f.is_tree
    ]
    return fit_trees(fitted, samples, seed)
