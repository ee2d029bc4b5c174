"""Does screening find what matters, and nothing else? On made-up clusters, and the lab's tables.

    python -m benchmarks screening           made-up clusters (benchmarks/made_up.py)
    python -m benchmarks screening-hidden    made-up clusters where a strong effect hides others
    python -m benchmarks screening-tables    the tables of benchmarks/data

Made-up clusters are screened by the product's stage over a recorded testbed. Everything follows
from the seeds, of which nothing was chosen by the first ones; others are for that.

Terms of screening-hidden, fixed on 28 November 2026 before a seed of the claim was screened. The
bed is `made_up.hidden`, at two standard deviations of a trial's log P99. A screening measures 88
configurations. The parameters `s0` and `n0` are hinted, as the default's counters hint theirs on
static-wan. Development has seeds 201 to 330; the claim has 401 to 430.

- Each of the three true parameters is chosen in 27 of 30 screenings, at both noises.
- At most a tenth of all that is chosen does nothing.
"""

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean, variance
from unittest import mock

import numpy as np

from benchmarks.harness import Question
from benchmarks.made_up import HIDDEN_ACTS, HIDDEN_TRUE, MadeUp, hidden, issue, like_lab
from benchmarks.recorded import campaign
from benchmarks.tables import DUMMIES, as_samples, read
from intop.campaign.screen import stage
from intop.campaign.screen.stage import FIRST_LOOK, LOOKS
from intop.domain.ranking import Ranking, Screening, is_stable
from intop.learn.effects import screening
from intop.learn.samples import Samples
from intop.learn.screening import rank

KEEP = 20
STABLE = 3
"""The file's defaults."""

# Made-up clusters ---------------------------------------------------------------------------------

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
        ranking = stage.screen(task, trials)
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


class Screenings(Question[Case, list[Found]]):
    """Does a screening of a made-up cluster find what matters?"""

    seeds = 12
    first_seed = 9101
    result = list[Found]
    fixed = ("seeds", "start")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--first", type=int, default=len(CASES), help="only so many rows")

    def cells(self) -> dict[str, Case]:
        return {case.words: case for case in CASES[: self.given.first]}

    def measure(self, cell: Case) -> list[Found]:
        made = map(cell.made, self.seed_range())
        return [screened(one, cell.trials, stable=cell.stable) for one in made]

    def table(self, results: Mapping[str, list[Found]]) -> Iterator[str]:
        return synthetic(results)


def synthetic(results: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    """A table of what is chosen, how much of that is wrong, and what is lost."""
    trials = {case.words: case.trials for case in CASES}
    yield (
        "| case | trials | of 8 chosen: mean, least | wrong, of all chosen | "
        "frozen although they act | stay open | spent | time |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for words, found in results.items():
        right, wrong = [f.right for f in found], sum(f.wrong for f in found)
        yield (
            f"| {words} | {trials[words]} | {fmean(right):.2f}, {min(right)} | "
            f"{wrong} of {sum(right) + wrong} | {fmean(f.lost for f in found):.2f} | "
            f"{fmean(f.open for f in found):.0f} | {fmean(f.trials for f in found):.0f} | "
            f"{fmean(f.seconds for f in found):.1f} s |"
        )


# A strong effect that hides others ----------------------------------------------------------------

HIDDEN_NOISES = (0.12, 0.22)
HIDDEN_TRIALS = 88
HINTS = ("s0", "n0")
CHOSEN, FALSE = 0.9, 0.1
"""The claim's shares: of screenings that choose a true parameter, and of choices that are false."""

Chosen = list[tuple[str, ...]]
"""The parameters that each screening chose."""


class Hidden(Question[float, Chosen]):
    """Does a screening find effects that a strong one hides?"""

    seeds = 30
    first_seed = 401
    result = Chosen
    fixed = ("seeds", "start", "hints")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        words = f"expected to act ({' '.join(HINTS)})"
        parser.add_argument("--hints", nargs="*", default=list(HINTS), help=words)

    def cells(self) -> dict[str, float]:
        return {f"noise {noise:g}": noise for noise in HIDDEN_NOISES}

    def measure(self, cell: float) -> Chosen:
        hints = tuple(self.given.hints)
        with mock.patch.object(stage, "hinted", return_value=hints):
            return [chosen_of(hidden(seed, noise=cell)) for seed in self.seed_range()]

    def table(self, results: Mapping[str, Chosen]) -> Iterator[str]:
        yield f"| | {' | '.join(HIDDEN_TRUE)} | false, of all chosen |"
        yield f"|---|{'---:|' * (len(HIDDEN_TRUE) + 1)}"
        for name, chosen in results.items():
            counts = [sum(key in keys for keys in chosen) for key in HIDDEN_TRUE]
            false, total = false_choices(chosen)
            cells = [f"{count} of {len(chosen)}" for count in counts]
            yield f"| {name} | {' | '.join(cells)} | {false} of {total} |"

    def missed(self, results: Mapping[str, Chosen]) -> list[str]:
        problems = []
        for name, chosen in results.items():
            counts = {key: sum(key in keys for keys in chosen) for key in HIDDEN_TRUE}
            problems += [
                f"{name}: {key} in {count} of {len(chosen)}"
                for key, count in counts.items()
                if count < CHOSEN * len(chosen)
            ]
            false, total = false_choices(chosen)
            if false > FALSE * total:
                problems.append(f"{name}: {false} of {total} chosen are false")
        return problems


def chosen_of(made: MadeUp) -> tuple[str, ...]:
    """Return the parameters that one screening by the product's stage chooses."""
    with campaign(made.offer.with_budget(screen_stable=0, keep=KEEP), made.answer) as task:
        return stage.screen(task, HIDDEN_TRIALS).chosen


def false_choices(chosen: Chosen) -> tuple[int, int]:
    """Return how many choices do nothing, and how many there are."""
    return (
        sum(key not in HIDDEN_ACTS for keys in chosen for key in keys),
        sum(map(len, chosen)),
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


class Tables(Question[str, list[str]]):
    """Does a screening of the lab's tables find what acts alone, and no dummy?"""

    seeds = 10
    result = list[str]
    fixed = ("folder", "seeds", "start")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        default = Path("benchmarks/data")
        parser.add_argument("folder", type=Path, nargs="?", default=default, help=f"({default})")

    def cells(self) -> dict[str, str]:
        names = ("slt", "dlt")
        return {name: name for name in names if (self.given.folder / _screen(name)).exists()}

    def measure(self, cell: str) -> list[str]:
        return list(lab(self.given.folder, cell, self.seed_range()))

    def table(self, results: Mapping[str, list[str]]) -> Iterator[str]:
        for lines in results.values():
            yield from lines


def _screen(workload: str) -> str:
    return f"{workload}-screen.csv.gz"


ALONE = {"slt-alone.csv.gz": "the default", "slt-alone-best.csv.gz": "a good configuration"}


def lab(folder: Path, workload: str, seeds: range) -> Iterator[str]:
    """The screening's first against the strongest one at a time, and what dummies come to."""
    samples = as_samples(read(folder / _screen(workload)))
    rankings = [ranked(samples, seed) for seed in seeds]
    yield f"### {workload}: {len(samples)} configurations, {rankings[0].trials} trials"
    yield ""
    yield f"| parameter | median rank | permutation (seed {seeds[0]}) | passes |"
    yield "|---|---:|---:|---:|"
    for one in rankings[0].importances[: 2 * TOP]:
        place, passed = rank_of(rankings, one.key), passes(rankings, one.key)
        yield f"| {name(one.key)} | {place} | {100 * one.permutation:.1f} % | {passed} |"
    level = rankings[0].probe_level or 0.0
    yield f"| probe level | | {100 * level:.1f} % | |"
    yield ""
    dummies = sum(key in DUMMIES for r in rankings for key in r.passing)
    yield f"Dummies that passed: {dummies} in {len(seeds)} seeds."
    acting = rankings[0].screening
    assert acting is not None
    chosen = sum(key in DUMMIES for r in rankings for key in r.chosen)
    yield (
        f"Found to act (seed {seeds[0]}): "
        f"{', '.join(map(name, acting.keys('chosen'))) or 'nothing'}; "
        f"dummies in {len(seeds)} seeds: {chosen}. Frozen: {len(acting.keys('frozen'))}, open: "
        f"{len(acting.keys('open'))}, detectable: {acting.detectable} times."
    )
    yield ""
    if workload == "slt":
        tables = {base: folder / file for file, base in ALONE.items()}
        found = {b: strengths(read(path)) for b, path in tables.items() if path.exists()}
        for base, alone in found.items():
            yield from beside(base, alone, rankings)
        if len(found) > 1:
            yield from beside("whichever of them it does more to", more(*found.values()), rankings)
    count, ended = until_stable(samples, 1, STABLE)
    yield (
        f"{workload}: with looks it ends after {count} of {len(samples)} configurations, "
        f"with {', '.join(ended.keys('chosen')) or 'nothing that acts'}."
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
