"""Does screening find what matters, and nothing else? On made-up surfaces, and on the lab's tables.

python -m benchmarks.screening                    made up: 100 parameters of which 8 matter
python -m benchmarks.screening benchmarks/data    the tables that benchmarks/datasets.py measured

Prints Markdown. Everything follows from the seeds.
"""

import argparse
import csv
import gzip
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean, variance

import numpy as np

from benchmarks.datasets import DUMMIES
from intop.config.catalogue import load_catalogue
from intop.domain.encoding import Matrix, Variable
from intop.domain.ranking import Ranking
from intop.domain.ranks import is_stable
from intop.domain.space import parameter_columns
from intop.learn.design import sliced_genes
from intop.learn.samples import Samples
from intop.learn.screening import rank
from intop.resources import shipped
from intop.stages.screen import FIRST_LOOK, LOOKS

KEEP = 20
STABLE = 3
"""The file's defaults."""

# Made-up surfaces ---------------------------------------------------------------------------------

NUMBERS, VECTORS, SWITCHES, CHOICES = 70, 5, 20, 5
MATTER = ("n0", "n1", "n2", "n3", "n4", "v0", "s0", "c0")


@dataclass(frozen=True)
class Surface:
    """100 parameters of all kinds, of which MATTER act on log P99, and where they turn."""

    variables: tuple[Variable, ...]
    steps: tuple[float, float]
    bows: tuple[float, float]
    slow: int

    @classmethod
    def made(cls, rng: np.random.Generator) -> "Surface":
        """Numbers n0 to n69, vectors of three, switches, and choices of four."""
        variables = [Variable(name=f"n{n}", key=f"n{n}") for n in range(NUMBERS)]
        variables += [
            Variable(name=f"v{n}[{place}]", key=f"v{n}") for n in range(VECTORS) for place in "abc"
        ]
        variables += [
            Variable(name=f"s{n}", key=f"s{n}", choices=("0", "1")) for n in range(SWITCHES)
        ]
        variables += [
            Variable(name=f"c{n}", key=f"c{n}", choices=tuple("abcd")) for n in range(CHOICES)
        ]
        order = rng.permutation(len(variables))
        return cls(
            variables=tuple(variables[n] for n in order),
            steps=(rng.uniform(0.3, 0.7), rng.uniform(0.3, 0.7)),
            bows=(rng.uniform(0.4, 0.6), rng.uniform(0.4, 0.6)),
            slow=int(rng.integers(4)),
        )

    def values(self, genes: Matrix) -> Matrix:
        """Numbers from 0 to 1, and the index of a choice."""
        counts = np.array([max(1, len(v.choices)) for v in self.variables])
        return np.where(counts > 1, np.floor(genes * counts), genes)

    def log_p99(self, values: Matrix) -> Matrix:
        """Two steps, two bows, a slope, a choice, and a number that acts where a switch is on.

        From the best to the worst value of each, P99 grows by 30 to 100 %.
        """
        of = {v.name: values[:, n] for n, v in enumerate(self.variables)}
        return np.asarray(
            3.0
            + 0.5 * (of["n0"] > self.steps[0])
            + 0.3 * (of["n1"] > self.steps[1])
            + 1.2 * (of["n2"] - self.bows[0]) ** 2
            + 2.0 * (of["n3"] - self.bows[1]) ** 2
            + 0.4 * of["v0[b]"]
            + 0.4 * (of["c0"] == self.slow)
            + 0.6 * of["n4"] * of["s0"]
        )

    def measured(
        self, trials: int, noise: float, rng: np.random.Generator, *, flat: bool = False
    ) -> Samples:
        """A design like that of `screen`, each measured once; on a flat surface nothing matters."""
        size = -(-trials // LOOKS)
        values = self.values(sliced_genes(len(self.variables), LOOKS, size, rng))[:trials]
        truth = np.zeros(trials) if flat else self.log_p99(values)
        measured = np.exp(truth + rng.normal(0, noise, trials))
        return Samples(
            variables=self.variables, values=values, measured=tuple((v,) for v in measured.tolist())
        )


@dataclass(frozen=True)
class Found:
    """What one screening of a made-up surface came to."""

    right: int
    wrong: int
    trials: int
    seconds: float


def screened(seed: int, trials: int, noise: float, *, flat: bool = False, stable: int = 0) -> Found:
    """One screening, which ends early after so many `stable` looks."""
    rng = np.random.default_rng(seed)
    samples = Surface.made(rng).measured(trials, noise, rng, flat=flat)
    began = time.perf_counter()
    count, ranking = until_stable(samples, seed, stable)
    seconds = time.perf_counter() - began
    matter = () if flat else MATTER
    passing = ranking.passing[:KEEP]
    right = sum(key in matter for key in passing)
    return Found(right, len(passing) - right, count, seconds)


def until_stable(samples: Samples, seed: int, stable: int) -> tuple[int, Ranking]:
    """After how many configurations it ended, and with which ranking."""
    total, batch = len(samples), -(-len(samples) // LOOKS)
    rankings: list[Ranking] = []
    for count in range(batch, total, batch) if stable else ():
        if count >= FIRST_LOOK:
            rankings.append(rank(samples.rows(range(count)), keep=KEEP, seed=seed))
            if is_stable(rankings, stable):
                return count, rankings[-1]
    return total, rank(samples, keep=KEEP, seed=seed)


def synthetic(seeds: int) -> Iterator[str]:
    """A table of what is found, how often something wrong passes, and what is saved."""
    yield "| trials | sd of log P99 | of 8 found: mean, least | wrong | trials spent | time |"
    yield "|---:|---:|---:|---:|---:|---:|"
    for trials, noise, stable in (
        (300, 0.1, 0),
        (300, 0.1, STABLE),
        (300, 0.3, 0),
        (100, 0.1, 0),
        (100, 0.3, 0),
        (48, 0.1, 0),
    ):
        found = [screened(seed, trials, noise, stable=stable) for seed in range(1, seeds + 1)]
        right = [f.right for f in found]
        spent = f"{fmean(f.trials for f in found):.0f}" if stable else "all"
        yield (
            f"| {trials} | {noise} | {fmean(right):.1f}, {min(right)} | "
            f"{sum(f.wrong for f in found)} in {seeds} | {spent} | "
            f"{fmean(f.seconds for f in found):.0f} s |"
        )
    flat = [screened(seed, 100, 0.3, flat=True) for seed in range(1, 2 * seeds + 1)]
    yield ""
    yield (
        f"Where nothing matters (100 trials), something passed in {sum(f.wrong > 0 for f in flat)} "
        f"of {len(flat)} screenings."
    )


# The lab's tables ---------------------------------------------------------------------------------

STRONGEST, TOP = 4, 6


@dataclass(frozen=True)
class Strength:
    """The most that one parameter alone did to log P99, with the standard error of that.

    `separated` says whether it can be told from zero among all pairs of arms that were looked at.
    """

    key: str
    arms: tuple[str, str]
    effect: float
    error: float
    separated: bool


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def as_samples(rows: Sequence[dict[str, str]], target: str = "p99_ms") -> Samples:
    """A table of `datasets.py`: each configuration with all of its trials."""
    catalogue = load_catalogue(shipped("configs") / "parameters.toml")
    known = {c.name: c.variable for p in catalogue.parameters for c in parameter_columns(p)}
    names = [n for n in rows[0] if n in known]
    variables = [known[n] for n in names]
    for n, variable in enumerate(variables):
        if variable.choices:
            # The host's, which may be others than the catalogue's.
            said = tuple(sorted({row[variable.name] for row in rows}))
            variables[n] = Variable(name=variable.name, key=variable.key, choices=said)
    first: dict[str, list[float]] = {}
    measured: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        digest = row["configuration"]
        measured[digest].append(float(row[target]))
        first.setdefault(
            digest,
            [float(v.choices.index(row[v.name]) if v.choices else row[v.name]) for v in variables],
        )
    return Samples(
        variables=tuple(variables),
        values=np.array(list(first.values())),
        measured=tuple(tuple(measured[digest]) for digest in first),
    )


def strengths(rows: Sequence[dict[str, str]]) -> dict[str, Strength]:
    """What each parameter did alone, to the default or to another base, by its key.

    Between its two arms that lie farthest apart, the base among them. Arms meet in rounds, whose
    means are taken out. The error has the scatter of all arms together; separated are those that
    Student's t tells from zero at 95 %, for all pairs of all parameters together (Bonferroni).
    """
    from scipy.stats import t as student_t

    logs: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        logs[row["arm"]].append(math.log(float(row["p99_ms"])))
    count = max(len(values) for values in logs.values())
    rounds = [fmean(v[n] for v in logs.values() if len(v) > n) for n in range(count)]
    left = {
        arm: [v - m for v, m in zip(values, rounds[: len(values)], strict=True)]
        for arm, values in logs.items()
    }
    several = [values for values in left.values() if len(values) > 1]
    freedom = sum(len(values) - 1 for values in several) - (count - 1)
    squares = sum(variance(values) * (len(values) - 1) for values in several)
    pooled = squares / freedom
    (base,) = {"default", "base"} & set(left)
    arms: dict[str, list[str]] = defaultdict(lambda: [base])
    for arm in left:
        if arm != base:
            arms[arm.partition("[")[0].partition(":")[0]].append(arm)
    pairs = sum(math.comb(len(of), 2) for of in arms.values())
    limit = float(student_t.ppf(1 - 0.025 / pairs, freedom))

    def strongest(key: str) -> Strength:
        def apart(pair: tuple[str, str]) -> float:
            return abs(fmean(left[pair[0]]) - fmean(left[pair[1]]))

        pair = max(combinations(arms[key], 2), key=apart)
        error = math.sqrt(pooled * sum(1 / len(left[arm]) for arm in pair))
        return Strength(key, pair, apart(pair), error, apart(pair) > limit * error)

    return {key: strongest(key) for key in arms}


ALONE = {"slt-alone.csv.gz": "the default", "slt-alone-best.csv.gz": "a good configuration"}


def lab(folder: Path, seeds: int) -> Iterator[str]:
    """The screening's first against the strongest one at a time, and what dummies come to."""
    for workload in ("slt", "dlt"):
        path = folder / f"{workload}-screen.csv.gz"
        if not path.exists():
            continue
        samples = as_samples(read(path))
        rankings = [rank(samples, keep=KEEP, seed=seed) for seed in range(1, seeds + 1)]
        yield f"### {workload}: {len(samples)} configurations, {rankings[0].trials} trials"
        yield ""
        yield "| parameter | median rank | permutation (seed 1) | passes |"
        yield "|---|---:|---:|---:|"
        for one in rankings[0].importances[: 2 * TOP]:
            place, passed = rank_of(rankings, one.key), passes(rankings, one.key)
            yield f"| {name(one.key)} | {place} | {100 * one.permutation:.1f} % | {passed} |"
        level = rankings[0].probe_level or 0.0
        yield f"| probe level | | {100 * level:.1f} % | |"
        yield ""
        dummies = sum(key in DUMMIES for r in rankings for key in r.passing)
        yield f"Dummies that passed: {dummies} in {seeds} seeds."
        yield ""
        if workload == "slt":
            tables = {base: folder / file for file, base in ALONE.items()}
            found = {b: strengths(read(path)) for b, path in tables.items() if path.exists()}
            for base, alone in found.items():
                yield from beside(base, alone, rankings)
            if len(found) > 1:
                yield from beside(
                    "whichever of them it does more to", more(*found.values()), rankings
                )
    for workload in ("slt", "dlt"):
        path = folder / f"{workload}-screen.csv.gz"
        if path.exists():
            samples = as_samples(read(path))
            count, ranking = until_stable(samples, 1, STABLE)
            yield (
                f"{workload}: with looks it ends after {count} of {len(samples)} configurations, "
                f"with {', '.join(ranking.passing) or 'nothing that passes'}."
            )


def more(one: dict[str, Strength], other: dict[str, Strength]) -> dict[str, Strength]:
    """Each parameter where it does more: some act only together with others."""
    return {key: max(one[key], other[key], key=lambda s: s.effect) for key in one if key in other}


def beside(base: str, found: dict[str, Strength], rankings: Sequence[Ranking]) -> Iterator[str]:
    """The strongest one at a time, and where the screenings have them."""
    ordered = sorted(found.values(), key=lambda s: -s.effect)
    yield f"One at a time, from {base}:"
    yield ""
    yield "| parameter | P99 between its arms | standard error | separated | median rank |"
    yield "|---|---:|---:|---|---:|"
    for one in ordered[: 2 * STRONGEST]:
        told = "yes" if one.separated else "no"
        yield (
            f"| {name(one.key)} | {math.exp(one.effect):.2f} times | "
            f"{math.exp(one.error):.2f} times | {told} | {rank_of(rankings, one.key)} |"
        )
    yield ""
    for keys, which in (
        ({s.key for s in ordered[:STRONGEST]}, f"the {STRONGEST} strongest"),
        ({s.key for s in ordered if s.separated}, "those that are separated from zero"),
    ):
        hits = [sum(i.key in keys for i in r.importances[:TOP]) for r in rankings]
        yield (
            f"Of {which} ({len(keys)}), the first {TOP} of the screening hold "
            f"{', '.join(map(str, hits))} (by seed)."
        )
    yield ""


def name(key: str) -> str:
    return f"{key} (dummy)" if key in DUMMIES else key


def rank_of(rankings: Sequence[Ranking], key: str) -> str:
    return f"{np.median(list(places(rankings, key))):g}"


def places(rankings: Iterable[Ranking], key: str) -> Iterator[int]:
    for ranking in rankings:
        yield [i.key for i in ranking.importances].index(key) + 1


def passes(rankings: Sequence[Ranking], key: str) -> str:
    return f"{sum(key in r.passing for r in rankings)} of {len(rankings)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="of benchmarks/datasets.py")
    parser.add_argument("--seeds", type=int, default=10, help="(10)")
    arguments = parser.parse_args()
    lines = (
        lab(arguments.folder, arguments.seeds) if arguments.folder else synthetic(arguments.seeds)
    )
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
