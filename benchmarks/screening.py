"""Does screening find what matters, and nothing else? On made-up clusters, and the lab's tables.

python -m benchmarks.screening                    made-up clusters (benchmarks/made_up.py)
python -m benchmarks.screening benchmarks/data    the tables that benchmarks/datasets.py measured

Made-up clusters are screened by the product's stage over a recorded testbed. Prints Markdown.
Everything follows from the seeds.
"""

import argparse
import csv
import gzip
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean, variance

import numpy as np

from benchmarks.datasets import DUMMIES
from benchmarks.made_up import MadeUp, issue, like_lab
from benchmarks.recorded import campaign
from intop.config.catalogue import load_catalogue
from intop.domain.encoding import Variable
from intop.domain.ranking import Ranking, Screening, is_stable
from intop.domain.space import parameter_columns
from intop.learn.effects import screening
from intop.learn.samples import Samples
from intop.learn.screening import rank
from intop.resources import shipped
from intop.stages.screen import FIRST_LOOK, LOOKS, screen

KEEP = 20
STABLE = 3
"""The file's defaults."""

# Made-up clusters ---------------------------------------------------------------------------------

SEEDS = tuple(range(9101, 9113))
"""Of the made-up clusters. Nothing was chosen by them; other seeds are for that."""

TRIALS = 100


@dataclass(frozen=True)
class Found:
    """What one screening of a made-up cluster came to.

    `right` and `wrong` are chosen, `lost` are frozen at their defaults although they act, `open`
    are all that stay in the space without being chosen.
    """

    right: int
    wrong: int
    lost: int
    open: int
    trials: int
    seconds: float


def screened(made: MadeUp, trials: int = TRIALS, *, stable: int = 0) -> Found:
    """One screening by the product's stage, which ends early after so many `stable` looks."""
    offered = made.offer.with_budget(screen_stable=stable, keep=KEEP)
    began = time.perf_counter()
    with campaign(offered, made.answer) as task:
        ranking = screen(task, trials)
        spent = sum(t.planned.role == "design" for t in task.trials("screen"))
    seconds = time.perf_counter() - began
    chosen, stays = set(ranking.chosen), set(ranking.space)
    right = len(chosen & made.matter)
    return Found(
        right=right,
        wrong=len(chosen) - right,
        lost=len(made.matter - stays),
        open=len(stays - chosen),
        trials=spent,
        seconds=seconds,
    )


@dataclass(frozen=True)
class Case:
    """A row of the table: what is screened, with how many trials, and whether it may end early."""

    words: str
    made: Callable[[int], MadeUp]
    trials: int = TRIALS
    stable: int = 0


CASES = (
    Case("the issue's: 8 of 100, noise 0.1", issue),
    Case("in the shape of the lab: 8 of 80", like_lab),
    Case("nothing acts, noise 0.3", partial(issue, noise=0.3, flat=True)),
    Case("noise 0.3", partial(issue, noise=0.3)),
    Case("the issue's, may end early", issue, stable=STABLE),
    Case("the lab's shape, may end early", like_lab, stable=STABLE),
    Case("48 trials", issue, trials=48),
    Case("300 trials", issue, trials=300),
)


def synthetic(seeds: Sequence[int], cases: Sequence[Case] = CASES) -> Iterator[str]:
    """A table of what is chosen, how much of that is wrong, and what is lost."""
    yield (
        "| case | trials | of 8 chosen: mean, least | wrong, of all chosen | "
        "frozen although they act | stay open | spent | time |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for case in cases:
        found = [screened(case.made(s), case.trials, stable=case.stable) for s in seeds]
        right, wrong = [f.right for f in found], sum(f.wrong for f in found)
        yield (
            f"| {case.words} | {case.trials} | {fmean(right):.2f}, {min(right)} | "
            f"{wrong} of {sum(right) + wrong} | {fmean(f.lost for f in found):.2f} | "
            f"{fmean(f.open for f in found):.0f} | {fmean(f.trials for f in found):.0f} | "
            f"{fmean(f.seconds for f in found):.1f} s |"
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


def effects(samples: Samples, seed: int) -> Screening:
    """What acts, by the product."""
    return screening(samples.variables, samples.values, {"P99": samples.log_target}, seed=seed)


def ranked(samples: Samples, seed: int) -> Ranking:
    """The same with the ranking of the models."""
    return rank(samples, screening=effects(samples, seed), keep=KEEP, seed=seed)


def until_stable(samples: Samples, seed: int, stable: int) -> tuple[int, Screening]:
    """After how many configurations it ended, and with what."""
    total, batch = len(samples), -(-len(samples) // LOOKS)
    screenings: list[Screening] = []
    for count in range(batch, total, batch) if stable else ():
        if count >= FIRST_LOOK:
            screenings.append(effects(samples.rows(range(count)), seed))
            if is_stable(screenings, stable):
                return count, screenings[-1]
    return total, effects(samples, seed)


ALONE = {"slt-alone.csv.gz": "the default", "slt-alone-best.csv.gz": "a good configuration"}


def lab(folder: Path, seeds: int) -> Iterator[str]:
    """The screening's first against the strongest one at a time, and what dummies come to."""
    for workload in ("slt", "dlt"):
        path = folder / f"{workload}-screen.csv.gz"
        if not path.exists():
            continue
        samples = as_samples(read(path))
        rankings = [ranked(samples, seed) for seed in range(1, seeds + 1)]
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
        acting = rankings[0].screening
        assert acting is not None
        chosen = sum(key in DUMMIES for r in rankings for key in r.chosen)
        yield (
            f"Found to act (seed 1): {', '.join(map(name, acting.keys('chosen'))) or 'nothing'}; "
            f"dummies in {seeds} seeds: {chosen}. Frozen: {len(acting.keys('frozen'))}, open: "
            f"{len(acting.keys('open'))}, detectable: {acting.detectable} times."
        )
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
            count, found = until_stable(samples, 1, STABLE)
            yield (
                f"{workload}: with looks it ends after {count} of {len(samples)} configurations, "
                f"with {', '.join(found.keys('chosen')) or 'nothing that acts'}."
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
    parser.add_argument("--seeds", type=int, default=10, help="of the tables' rankings (10)")
    parser.add_argument("--first", type=int, default=len(CASES), help="only so many rows")
    parser.add_argument("--others", type=int, help="so many other seeds, to choose a method by")
    arguments = parser.parse_args()
    seeds = range(1, arguments.others + 1) if arguments.others else SEEDS
    lines = (
        lab(arguments.folder, arguments.seeds)
        if arguments.folder
        else synthetic(seeds, CASES[: arguments.first])
    )
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
