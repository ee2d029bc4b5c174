"""Tuners on the lab: active learning against random search, Optuna's TPE and GP, and offline.

    python -m benchmarks.tuners                 on two replicas of the lab, slt: some 40 minutes
    python -m benchmarks.tuners --buffer 40     behind a shorter buffer, where the good is rare
    python -m benchmarks.tuners --tuners ours offline --first 8 --checkpoints 8 12 16 20 40
    python -m benchmarks.tuners --dry           on an emulator of it: two minutes

All minimise log P99 over the parameters of benchmarks/data/slt-collect.csv.gz with the same number
of trials, from several seeds, in rounds: in each of them every tuner with every seed gets its next
BATCH trials, and all of these are measured in random order. What a tuner asks for passes through
`Space.decode`, and it is told what was measured there. A trial that fails counts as one whose
requests all took the timeout.

ours      a Latin hypercube of --first, then the steps of learn/active.py, as `intop tune` has them,
          except that they go on when nothing better is expected
random    uniform on the parameters' own scales
tpe, gp   Optuna's samplers with their own settings; both take running trials into account
offline   the first n of a Latin hypercube in slices of --first; four tree models, each with the
          best hyper-parameters of TRIES tries, and one genetic search over their mean

What begins alike is measured once for both: the --first trials of ours and of offline with the same
seed, and the first ALIKE of random, tpe and gp, which begin at random.

What is the winner after n trials was settled before anything was measured: of ours and offline the
first candidate of a search over what they measured, for ours with the penalty of `intop search`; of
random, tpe and gp the configuration of the luckiest trial, which is what Optuna calls the best. No
tuner gets trials to compare finalists with. Then all winners meet the default in interleaved
rounds. The gain is the geometric mean of P99 of the default / that of the winner over rounds, and
of the seeds' gains.

The claim: with n trials ours reaches SHARE of the best gain (its logarithm) that any tuner has
after any number of trials, and offline needs at least 2 n for that.

All is kept in `--store`, and goes on where it was interrupted; an interrupted verification may go
on with fewer `--rounds`. The emulator is the mean of a
forest, of CatBoost and of Blend that learned the table; its noise is that of replicates of about
the same P99, and winners are judged without any noise.

Optuna's GP needs torch, which nothing else here does: pip install torch (one for CPUs will do).
"""

import argparse
import importlib.util
import json
import math
import random
import sys
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Protocol

import numpy as np

from benchmarks.datasets import context_of
from benchmarks.screening import as_samples, read
from intop.config.catalogue import load_catalogue
from intop.config.study import load_study
from intop.domain.baseline import HOST
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.domain.stats import paired_ratio
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IntopError
from intop.lab import cluster as lab
from intop.learn.active import pool, propose
from intop.learn.design import latin_hypercube
from intop.learn.families import FAMILIES
from intop.learn.fitness import Fitness
from intop.learn.parallel import each, one_thread
from intop.learn.samples import Samples
from intop.learn.searching.run import Predict
from intop.learn.searching.search import search
from intop.learn.surrogate import Predictor, fit, fit_trees
from intop.learn.tuning import tune
from intop.pipeline.blocks import blocks, p99_by_round
from intop.pipeline.context import Task
from intop.pipeline.measuring import measure_plan
from intop.pipeline.sampling import required_space
from intop.resources import shipped
from intop.store import opened

TABLE = Path(__file__).parent / "data" / "slt-collect.csv.gz"
BATCH = 4
MOST = 100
ALIKE = 8
"""Optuna's samplers have ten random trials before their first model."""
TRIES = 3
"""Hyper-parameters tried by family, the defaults first."""
TREES = tuple(name for name, family in FAMILIES.items() if family.is_tree and name != "Blend")
LEVEL = 0.95
SHARE = 0.95
EVERYBODYS = (40, 100)
"""Where winners of all tuners are judged; those of ours and offline at all checkpoints."""
OFTEN = ("ours", "offline")


@dataclass(frozen=True)
class Schedule:
    """How many trials ours begins with, and after how many winners are judged."""

    first: int = 20
    checkpoints: tuple[int, ...] = (20, 40, 50, 100)


@dataclass(frozen=True)
class Arm:
    """A tuner with a seed."""

    method: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.method} {self.seed}"


@dataclass(frozen=True)
class Shot:
    """A trial as a tuner sees it."""

    configuration: Configuration
    p99_ms: float


Shots = Sequence[Shot]
Shared = Mapping[Arm, Shots]
"""What was measured for each arm, in the order in which it asked."""

# The tuners: functions of what was measured for them so far, and of the seed ----------------------


def samples_of(space: Space, shots: Shots) -> Samples:
    """One row for each configuration, with all of its trials."""
    found: dict[str, list[Shot]] = defaultdict(list)
    for shot in shots:
        found[shot.configuration.digest].append(shot)
    return Samples(
        variables=space.variables,
        values=space.values([same[0].configuration for same in found.values()]) + 0.0,
        measured=tuple(tuple(s.p99_ms for s in same) for same in found.values()),
    )


def ours(space: Space, shots: Shots, count: int, seed: int, first: int) -> list[Configuration]:
    if len(shots) < first:
        return offline(space, shots, min(count, first - len(shots)), seed, first)
    samples, step_seed = samples_of(space, shots), _seed(seed, shots)
    with one_thread():
        rows = pool(space, samples, seed=step_seed)
        step = propose(samples, rows, count=count, seed=step_seed)
    return space.configurations(np.array([p.values for p in step.proposals]))


def at_random(space: Space, shots: Shots, count: int, seed: int, _: int) -> list[Configuration]:
    rng = np.random.default_rng(_seed(seed, shots))
    return space.configurations(space.decode(rng.random((count, len(space.columns)))))


def tpe(space: Space, shots: Shots, count: int, seed: int, _: int) -> list[Configuration]:
    from optuna.samplers import TPESampler

    return _optunas(TPESampler(seed=_seed(seed, shots), constant_liar=True), space, shots, count)


def gp(space: Space, shots: Shots, count: int, seed: int, _: int) -> list[Configuration]:
    import torch
    from optuna.samplers import GPSampler

    torch.set_num_threads(1)
    return _optunas(GPSampler(seed=_seed(seed, shots)), space, shots, count)


def _optunas(sampler: object, space: Space, shots: Shots, count: int) -> list[Configuration]:
    """What a sampler asks for after these trials: as many at once, each aware of the others.

    The study is told of what was measured, where constraints may have moved what was asked for.
    Numbers are floats, rounded by us: of integers up to a million the GP makes a grid.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    known: dict[str, optuna.distributions.BaseDistribution] = {
        v.name: optuna.distributions.CategoricalDistribution(v.choices)
        if v.choices
        else optuna.distributions.FloatDistribution(v.low, v.high, log=v.scale == "log")
        for v in space.variables
    }
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=sampler)  # type: ignore[arg-type]
        for row, shot in zip(space.values([s.configuration for s in shots]), shots, strict=True):
            told = {
                v.name: v.choices[int(n)] if v.choices else float(n)
                for v, n in zip(space.variables, row, strict=True)
            }
            study.add_trial(
                optuna.trial.create_trial(
                    params=told, distributions=known, value=math.log(shot.p99_ms)
                )
            )
        asked = [study.ask(known).params for _ in range(count)]
    values = [
        [float(v.choices.index(p[v.name]) if v.choices else p[v.name]) for v in space.variables]
        for p in asked
    ]
    return space.configurations(space.decode(space.genes(np.array(values))))


def offline(space: Space, shots: Shots, count: int, seed: int, first: int) -> list[Configuration]:
    design = latin_hypercube(space, MOST, seed=seed, batch=first)
    return design[len(shots) :][:count]


def _seed(seed: int, shots: Shots) -> int:
    return 1_000 * seed + len(shots)


def luckiest(_space: Space, shots: Shots, _seed: int) -> Configuration:
    return min(shots, key=lambda s: s.p99_ms).configuration


def searched(space: Space, shots: Shots, seed: int) -> Configuration:
    return _candidate(space, shots, seed, lambda predictor: predictor)


def penalised(space: Space, shots: Shots, seed: int) -> Configuration:
    return _candidate(space, shots, seed, Fitness)


def _candidate(
    space: Space, shots: Shots, seed: int, scored: Callable[[Predictor], Predict]
) -> Configuration:
    samples = samples_of(space, shots)
    fitted = [tune(f, samples, trials=TRIES, timeout_s=None, seed=seed) for f in TREES]
    predictor = scored(fit_trees(fitted, samples, seed))
    start = space.genes(samples.values[np.argsort(samples.log_target)[:10]])
    with one_thread():
        found = search(space, predictor, seed=seed, start=start)
    return found.candidates[0].configuration


Ask = Callable[[Space, Shots, int, int, int], list[Configuration]]
Win = Callable[[Space, Shots, int], Configuration]
TUNERS: Mapping[str, tuple[Ask, Win]] = {
    "ours": (ours, penalised),
    "random": (at_random, luckiest),
    "tpe": (tpe, luckiest),
    "gp": (gp, luckiest),
    "offline": (offline, searched),
}

BEGUN: Mapping[str, tuple[str, int | None]] = {
    "offline": ("ours", None),
    "tpe": ("random", ALIKE),
    "gp": ("random", ALIKE),
}
"""Whose first trials they share, and how many; None: as many as the schedule begins with."""

# The race -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Race:
    """Who takes part, and how much each may measure. Models are fitted in `jobs` processes."""

    arms: tuple[Arm, ...]
    trials: int
    jobs: int | None = None
    schedule: Schedule = Schedule()

    def round(self, space: Space, so_far: Shared) -> list[tuple[Arm, Configuration]]:
        """What is measured next, in random order; none when all have had their trials."""
        tasks = []
        for arm in self.arms:
            shots = self.shots(arm, so_far)
            count = min(BATCH, self.trials - len(shots))
            if count and len(shots) >= self._shared(arm)[1]:
                tasks.append((arm, space, shots, count, self.schedule.first))
        asked = dict(each(_asked, tasks, jobs=self.jobs))
        places = [(arm, c) for arm in self.arms for c in asked.get(arm, ())]
        random.Random(sum(map(len, so_far.values()))).shuffle(places)
        return places

    def shots(self, arm: Arm, so_far: Shared) -> Shots:
        """All trials of an arm, with those that another one began with."""
        other, count = self._shared(arm)
        return [*so_far.get(other, ())[:count], *so_far.get(arm, ())]

    def _shared(self, arm: Arm) -> tuple[Arm, int]:
        method, count = BEGUN.get(arm.method, ("", 0))
        other = Arm(method, arm.seed)
        count = self.schedule.first if count is None else count
        return other, count if other in self.arms else 0

    def winners(self, space: Space, measured: Shared) -> "Winners":
        """The winner of each arm after each of its checkpoints."""
        tasks = [
            (arm, n, space, self.shots(arm, measured)[:n])
            for arm in self.arms
            for n in (self.schedule.checkpoints if arm.method in OFTEN else EVERYBODYS)
            if n <= self.trials
        ]
        found = dict(each(_won, tasks, jobs=self.jobs))
        return {(arm, n): found[arm, n] for arm, n, *_ in tasks}


Winners = Mapping[tuple[Arm, int], Configuration]


def _asked(
    arm: Arm, space: Space, shots: Shots, count: int, first: int
) -> tuple[Arm, list[Configuration]]:
    return arm, TUNERS[arm.method][0](space, shots, count, arm.seed, first)


def _won(arm: Arm, n: int, space: Space, shots: Shots) -> tuple[tuple[Arm, int], Configuration]:
    return (arm, n), TUNERS[arm.method][1](space, shots, arm.seed)


Round = Callable[[Space, Shared], list[tuple[Arm, Configuration]]]
ByRound = Mapping[str, float]
"""P99 (ms) by the number of the round."""


class Bed(Protocol):
    """Where it is measured."""

    def race(self, following: Round) -> Shared:
        """Measure round after round, until there is none."""

    def verify(self, winners: Sequence[Configuration], rounds: int) -> Mapping[str, ByRound]:
        """P99 of the default (as HOST) and of each configuration, by its digest."""

    @property
    def space(self) -> Space:
        """Known once a round was measured."""


class Emulator:
    """Models of the table in place of the lab, with the noise of its replicates."""

    def __init__(self) -> None:
        rows = read(TABLE)
        self._samples = as_samples(rows)
        self.space = _tables_space(rows)
        with one_thread():
            models = {
                name: fit(
                    FAMILIES[name].build(self._samples.variables, dict(FAMILIES[name].defaults), 1),
                    self._samples,
                )
                for name in ("RFR", "CatBoost", "Blend")
            }
        self._predictor = Predictor(models)

    @cached_property
    def _scatter(self) -> list[Matrix]:
        """Deviations of trials from their configuration's mean, by that mean."""
        several = [np.log(m) for m in self._samples.measured if len(m) > 1]
        several.sort(key=lambda logs: float(logs.mean()))
        self._means = np.array([logs.mean() for logs in several])
        return [(v - v.mean()) * math.sqrt(len(v) / (len(v) - 1)) for v in several]

    def truth(self, configurations: Sequence[Configuration]) -> Matrix:
        """Log P99 (n,) without noise."""
        with one_thread():
            return self._predictor(self.space.values(configurations))

    def race(self, following: Round) -> Shared:
        so_far: dict[Arm, list[Shot]] = defaultdict(list)
        while places := following(self.space, so_far):
            truth = self.truth([c for _, c in places])
            for (arm, configuration), log_p99 in zip(places, truth.tolist(), strict=True):
                # The same whoever else takes part.
                rng = np.random.default_rng([zlib.crc32(arm.name.encode()), len(so_far[arm])])
                noisy = math.exp(log_p99 + self._noise(log_p99, rng))
                so_far[arm].append(Shot(configuration, noisy))
        return so_far

    def verify(self, winners: Sequence[Configuration], rounds: int) -> Mapping[str, ByRound]:
        sides = {HOST: DEFAULT} | {c.digest: c for c in winners}
        found = np.exp(self.truth(list(sides.values()))).tolist()
        return {
            side: {str(n): p99 for n in range(1, rounds + 1)}
            for side, p99 in zip(sides, found, strict=True)
        }

    def _noise(self, log_p99: float, rng: np.random.Generator) -> float:
        """A deviation of one of the ten configurations whose P99 is nearest."""
        scatter = self._scatter
        nearest = np.argsort(np.abs(self._means - log_p99))[:10]
        return float(rng.choice(scatter[int(rng.choice(nearest))]))


def _tables_space(rows: Sequence[Mapping[str, str]]) -> Space:
    """The space of the table's columns, with the defaults of its first row, which is the default.

    Ranges are the catalogue's: a host's may be narrower.
    """
    catalogue = load_catalogue(shipped("configs") / "parameters.toml")
    keys = _keys(rows)
    chosen = tuple(p for p in catalogue.parameters if p.key in keys)
    defaults = {
        p.key: " ".join(v for name, v in rows[0].items() if name.partition("[")[0] == p.key)
        for p in chosen
    }
    return Space(chosen, catalogue.constraints, defaults)


def _keys(rows: Sequence[Mapping[str, str]]) -> set[str]:
    return {n.partition("[")[0] for n in rows[0]} - {"configuration", "side", "p99_ms"}


class Lab:
    """Replicas of the lab, under a guard of the pipeline's."""

    def __init__(self, task: Task) -> None:
        self._task = task

    @property
    def space(self) -> Space:
        return required_space(self._task).restricted(_keys(read(TABLE)))

    def race(self, following: Round) -> Shared:
        def more(trials: Sequence[Trial]) -> list[PlannedTrial]:
            return [
                PlannedTrial(
                    index=index,
                    role="proposal",
                    configuration=configuration,
                    # Of no round: all trials take turns on the replicas.
                    label=f": {arm.name}",
                )
                for index, (arm, configuration) in enumerate(
                    following(self.space, self._shared(trials)), start=len(trials)
                )
            ]

        trials = measure_plan(
            self._task, "collect", lambda _: more([]), failures_count=False, more=more
        )
        return self._shared(trials)

    def verify(self, winners: Sequence[Configuration], rounds: int) -> Mapping[str, ByRound]:
        sides = {HOST: DEFAULT} | {c.digest: c for c in winners}
        plan = blocks(self._task, "contest", sides, rounds)
        trials = measure_plan(
            self._task,
            "contest",
            lambda _: plan,
            failures_count=False,
            # What was planned with more rounds, and interrupted, may end with fewer.
            looks=lambda _: [rounds * len(sides)],
            enough=lambda _: True,
        )
        return p99_by_round(trials)

    def _shared(self, trials: Sequence[Trial]) -> Shared:
        found: dict[Arm, list[Shot]] = defaultdict(list)
        worst = 1_000.0 * self._task.workload.timeout_s
        for trial in trials:
            method, _, seed = trial.planned.side.partition(" ")
            p99_ms = worst if trial.histogram is None else trial.p99_ms
            found[Arm(method, int(seed))].append(Shot(trial.configuration, p99_ms))
        return found


@contextmanager
def the_lab(store_path: Path, replicas: int, buffer_kb: int | None) -> Iterator[Lab]:
    """Labs of our own, up as long as it lasts; a `buffer_kb` is that of their link."""
    whole = load_study(shipped("configs") / "lab.toml")
    arch = native_arch()
    (cluster, *_) = whole.clusters[arch]
    link = cluster.link
    if link is not None and buffer_kb is not None:
        link = replace(link, limit_kb=buffer_kb)
    specs = tuple(LabSpec(name=f"tuners-{n}", arch=arch, link=link) for n in range(1, replicas + 1))
    study = replace(
        whole,
        name="tuners",
        clusters={arch: specs},
        wanted=tuple(sorted(_keys(read(TABLE)))),
        workloads={"slt": whole.workloads["slt"]},
        budget=replace(whole.budget, hopeless=0.0),
    )
    try:
        for spec in specs:
            lab.up(spec)
        with opened(str(store_path)) as store:
            (task,) = context_of(store, study).subjects()
            yield Lab(task)
    finally:
        for spec in specs:
            lab.down(spec.name)


# What it came to ----------------------------------------------------------------------------------

Gains = Mapping[tuple[str, int], Mapping[int, float]]
"""Log gains by seed, of a method after so many trials."""


def gains_of(winners: Winners, verified: Mapping[str, ByRound]) -> Gains:
    """The log gain of each winner over the rounds that it has in common with the default."""
    found: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for (arm, n), configuration in winners.items():
        if interval := gain(configuration, verified):
            found[arm.method, n][arm.seed] = math.log(interval[0])
    return found


def gain(
    configuration: Configuration, verified: Mapping[str, ByRound]
) -> tuple[float, float, float] | None:
    """P99 of the default / that of the configuration, with its interval; None if never measured."""
    default, own = verified[HOST], verified.get(configuration.digest, {})
    common = [number for number in default if number in own]
    if len(common) < 2:
        return None
    found = paired_ratio([default[n] for n in common], [own[n] for n in common], level=LEVEL)
    return found.ratio, found.low, found.high


def mean_gain(gains: Gains, method: str, n: int) -> float | None:
    """The mean log gain over seeds."""
    seeds = gains.get((method, n))
    return fmean(seeds.values()) if seeds else None


def needed(gains: Gains, method: str, target: float) -> int | None:
    """The first checkpoint at which a method's mean log gain reaches the target."""
    for n in sorted({n for who, n in gains if who == method}):
        found = mean_gain(gains, method, n)
        if found is not None and found >= target:
            return n
    return None


def markdown(gains: Gains, where: str) -> Iterator[str]:
    """A row for each tuner, and what became of the claim."""
    checkpoints = sorted({n for _, n in gains})
    yield "| tuner | " + " | ".join(f"after {n}" for n in checkpoints) + " |"
    yield "|---|" + "---:|" * len(checkpoints)
    for method in [m for m in TUNERS if any(m == who for who, _ in gains)]:
        cells = []
        for n in checkpoints:
            seeds = gains.get((method, n))
            if not seeds:
                cells.append("")
                continue
            mean = math.exp(fmean(seeds.values()))
            low, high = math.exp(min(seeds.values())), math.exp(max(seeds.values()))
            cells.append(f"{mean:.2f} ({low:.2f} to {high:.2f})")
        yield f"| {method} | " + " | ".join(cells) + " |"
    if all(any(who == method for method, _ in gains) for who in OFTEN):
        yield ""
        yield claim(gains, where)


def claim(gains: Gains, where: str) -> str:
    """Whether ours gets as far as offline with half of its trials, in a sentence."""
    means = {key: fmean(seeds.values()) for key, seeds in gains.items() if seeds}
    (method, n), best = max(means.items(), key=lambda item: item[1])
    target = SHARE * best
    mine, theirs = (needed(gains, who, target) for who in OFTEN)
    most = max(n for _, n in means)
    limit = theirs if theirs is not None else most + 1
    holds = mine is not None and 2 * mine <= limit
    return (
        f"The best gain {where} is that of {method} after {n} trials, {math.exp(best):.2f}; "
        f"{SHARE:.0%} of its logarithm is a gain of {math.exp(target):.2f}. Ours reaches that "
        f"{_after(mine, most)}, offline {_after(theirs, most)}: the claim "
        f"{'holds' if holds else 'does not hold'}."
    )


def _after(n: int | None, most: int) -> str:
    return f"not within {most} trials" if n is None else f"after {n} trials"


def as_json(
    race: Race, measured: Shared, winners: Winners, verified: Mapping[str, ByRound]
) -> dict[str, object]:
    """Everything that was measured."""
    return {
        "trials": race.trials,
        "measured": {
            arm.name: [
                {"configuration": s.configuration.digest, "p99_ms": round(s.p99_ms, 3)}
                for s in race.shots(arm, measured)
            ]
            for arm in race.arms
        },
        "winners": [
            {
                "method": arm.method,
                "seed": arm.seed,
                "after": n,
                "configuration": configuration.digest,
                "values": dict(configuration.values),
                "gain": gain(configuration, verified),
            }
            for (arm, n), configuration in winners.items()
        ],
        "verified_p99_ms": {side: dict(found) for side, found in verified.items()},
    }


def run(bed: Bed, race: Race, rounds: int) -> tuple[Shared, Winners, Mapping[str, ByRound]]:
    """The race, its winners, and their verification; how long what took is told."""
    spent = 0.0

    def following(space: Space, so_far: Shared) -> list[tuple[Arm, Configuration]]:
        nonlocal spent
        began = time.perf_counter()
        places = race.round(space, so_far)
        spent += time.perf_counter() - began
        return places

    began = time.perf_counter()
    measured = bed.race(following)
    raced = time.perf_counter()
    winners = race.winners(bed.space, measured)
    won = time.perf_counter()
    distinct = list({c.digest: c for c in winners.values()}.values())
    verified = bed.verify(distinct, rounds)
    print(
        f"{raced - began:.0f} s for the race, {spent:.0f} s of them for choosing; {won - raced:.0f}"
        f" s for winners, {time.perf_counter() - won:.0f} s to verify {len(distinct)} of them",
        file=sys.stderr,
    )
    return measured, winners, verified


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry", action="store_true", help="on an emulator of the lab")
    parser.add_argument("--tuners", nargs="+", choices=list(TUNERS), default=list(TUNERS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="(1 2 3)")
    parser.add_argument("--trials", type=int, default=100, help="for each tuner and seed (100)")
    parser.add_argument(
        "--first", type=int, default=Schedule.first, help="trials that ours begins with (20)"
    )
    parser.add_argument(
        "--checkpoints",
        nargs="+",
        type=int,
        metavar="N",
        default=list(Schedule.checkpoints),
        help="trials after which winners of ours and offline are judged (20 40 50 100)",
    )
    parser.add_argument("--rounds", type=int, default=6, help="of verification (6)")
    parser.add_argument("--jobs", type=int, help="processes for models (one a processor)")
    parser.add_argument("--replicas", type=int, default=2, help="of the lab (2)")
    parser.add_argument(
        "--buffer", type=int, metavar="KB", help="of the lab's link (that of configs/lab.toml)"
    )
    parser.add_argument("--store", type=Path, default=Path("tuners.db"), help="(tuners.db)")
    parser.add_argument("--out", type=Path, default=Path("tuners.json"), help="(tuners.json)")
    arguments = parser.parse_args(words)
    if "gp" in arguments.tuners and importlib.util.find_spec("torch") is None:
        others = " ".join(name for name in TUNERS if name != "gp")
        parser.error(
            "Optuna's GP needs torch, which is not installed here: pip install torch, or do "
            f"without it: --tuners {others}"
        )
    if not min(EVERYBODYS) <= arguments.trials <= MOST:
        parser.error(f"--trials must be from {min(EVERYBODYS)} to {MOST}")
    if not 2 <= arguments.first <= min(arguments.checkpoints):
        parser.error("--first must be at least 2 and at most the first of --checkpoints")
    if arguments.rounds < 2:
        parser.error("--rounds must be at least 2: an interval needs two rounds")
    return arguments


def main(words: Sequence[str] | None = None) -> None:
    arguments = parsed(words)
    arms = tuple(Arm(method, seed) for seed in arguments.seeds for method in arguments.tuners)
    schedule = Schedule(arguments.first, tuple(arguments.checkpoints))
    race = Race(arms, arguments.trials, arguments.jobs, schedule)
    try:
        if arguments.dry:
            outcome = run(Emulator(), race, arguments.rounds)
        else:
            with the_lab(arguments.store, arguments.replicas, arguments.buffer) as bed:
                outcome = run(bed, race, arguments.rounds)
    except KeyboardInterrupt:
        sys.exit(f"stopped; the same command goes on with {arguments.store}")
    except IntopError as error:
        sys.exit(str(error))
    arguments.out.write_text(json.dumps(as_json(race, *outcome), indent=1) + "\n")
    where = "on the emulator" if arguments.dry else "on the lab"
    print("\n".join(markdown(gains_of(*outcome[1:]), where)))


if __name__ == "__main__":
    main()
