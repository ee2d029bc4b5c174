"""Do models of small tables err more when their training has a quarter of their trials' time?

    python -m benchmarks training-time ../shared/bench --share 0        as many tries as a study has
    python -m benchmarks training-time ../shared/bench                  as many as there is time for

Tables are 50 rows of a public system, whose target has got 10 % of noise; models are judged by all
its other rows, without noise. They are three quarters of 66 rows, whose trials took four minutes.
The terms, set before the first run: of 10 tables, the median of (error with a quarter of the time
/ error with all tries, the same table and seed) is at most 1.05 for the family that inner folds
select, and at most 1.15 for each family.
"""

import argparse
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.harness import Question
from benchmarks.models import table
from intop.learn import accuracy
from intop.learn.families import FAMILIES
from intop.learn.hyperparameters import Effort, best_of, continued
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import fit, predicted

SYSTEMS = ("Apache", "LLVM")
ROWS, KNOWN, NOISE = 66, 50, 0.1
TRIALS_S = 240.0


@dataclass(frozen=True)
class Outcome:
    """A family's error over inner folds and over all other rows, and the search's seconds."""

    inner_score: float
    mape: float
    seconds: float
    tries: int


class TrainingTime(Question[tuple[str, int], dict[str, Outcome]]):
    """Do models of small tables err more with a quarter of their trials' time to train?"""

    seeds = 5
    first_seed = 0
    result = dict[str, Outcome]
    fixed = ("share",)
    is_parallel = True

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("data", type=Path, help="the folder that has prediction/")
        parser.add_argument("--share", type=float, default=0.25, help="(0.25); 0: no limit")

    def cells(self) -> dict[str, tuple[str, int]]:
        return {f"{name} {seed}": (name, seed) for name in SYSTEMS for seed in self.seed_range()}

    def measure(self, cell: tuple[str, int]) -> dict[str, Outcome]:
        system, seed = cell
        whole = table(self.given.data / "prediction", system)
        rng = np.random.default_rng([seed, 48])
        order = rng.permutation(len(whole))
        known, others = whole.rows(order[:KNOWN]), whole.rows(order[KNOWN:])
        known = Samples(
            variables=known.variables,
            values=known.values,
            measured=tuple(
                (target * math.exp(rng.normal(0, NOISE)),) for (target,) in known.measured
            ),
        )
        efforts = efforts_of(self.given.share, sum(len(v.features) for v in known.variables), seed)
        return {name: outcome(name, known, others, efforts[name]) for name in FAMILIES}

    def table(self, results: Mapping[str, dict[str, Outcome]]) -> Iterator[str]:
        yield "| family | median error | tries | seconds of a search |"
        yield "|---|---:|---:|---:|"
        for family in FAMILIES:
            runs = [result[family] for result in results.values()]
            mape, tries = median(r.mape for r in runs), median(r.tries for r in runs)
            yield f"| {family} | {mape:.2f} | {tries} | {median(r.seconds for r in runs):.1f} |"


def efforts_of(share: float, features: int, seed: int) -> Mapping[str, Effort]:
    """The efforts by family."""
    effort = Effort(folds=4, repeats=2, trials=20, timeout_s=60.0, seed=seed)
    if not share:
        return dict.fromkeys(FAMILIES, effort)
    from dataclasses import replace

    from intop.learn.allotment import allotted

    limited = replace(effort, time_s=share * TRIALS_S)
    return allotted(tuple(FAMILIES), ROWS, features, limited)


def outcome(family: str, known: Samples, others: Samples, effort: Effort) -> Outcome:
    started = time.process_time()
    tries = continued(family, known, effort)
    best = best_of(family, tries)
    seconds = time.process_time() - started
    with one_thread():
        build = FAMILIES[family].build(known.variables, best.hyperparameters, effort.seed)
        guesses = predicted(fit(build, known), others.values)
    return Outcome(best.inner_score, accuracy.mape(others.log_target, guesses), seconds, len(tries))
