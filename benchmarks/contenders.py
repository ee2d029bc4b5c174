"""The tuners that benchmarks/tuners.py compares: functions of what was measured for them so far.

Each asks for so many configurations to measure next, and has finalists after any number of them.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from intop.domain.configuration import Configuration
from intop.domain.space import Space
from intop.learn.active import best_known, pool, propose
from intop.learn.design import latin_hypercube
from intop.learn.families import FAMILIES
from intop.learn.finalists import diverse
from intop.learn.fitness import Fitness
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples
from intop.learn.searching.run import Predict
from intop.learn.searching.search import search
from intop.learn.surrogate import Predictor, fit_trees
from intop.learn.tuning import tune
from intop.stages.search import KEPT_CANDIDATES

MOST = 100
"""Trials of a tuner, at most."""
TRIES = 3
"""Hyper-parameters tried by family, the defaults first."""
TREES = tuple(name for name, family in FAMILIES.items() if family.is_tree and name != "Blend")
ALIKE = 8
"""Optuna's samplers have ten random trials before their first model."""
FINALISTS = 3
"""As `intop verify` has them: one is the best that was measured."""


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
    tail_ms: float


Shots = Sequence[Shot]
Shared = Mapping[Arm, Shots]
"""What was measured for each arm, in the order in which it asked."""


def samples_of(
    space: Space, shots: Shots, target: Callable[[Shot], float] = lambda shot: shot.p99_ms
) -> Samples:
    """One row for each configuration, with all of its trials."""
    found: dict[str, list[Shot]] = defaultdict(list)
    for shot in shots:
        found[shot.configuration.digest].append(shot)
    return Samples(
        variables=space.variables,
        values=space.values([same[0].configuration for same in found.values()]) + 0.0,
        measured=tuple(tuple(target(s) for s in same) for same in found.values()),
    )


def ours(space: Space, shots: Shots, count: int, seed: int, first: int) -> list[Configuration]:
    return _refined(space, shots, count, seed, first, lambda shot: shot.tail_ms)


def without_tails(
    space: Space, shots: Shots, count: int, seed: int, first: int
) -> list[Configuration]:
    return _refined(space, shots, count, seed, first, lambda shot: shot.p99_ms)


def _refined(
    space: Space,
    shots: Shots,
    count: int,
    seed: int,
    first: int,
    leads: Callable[[Shot], float],
) -> list[Configuration]:
    if len(shots) < first:
        return offline(space, shots, min(count, first - len(shots)), seed, first)
    samples, step_seed = samples_of(space, shots), _seed(seed, shots)
    tails = samples_of(space, shots, leads)
    with one_thread():
        rows = pool(space, samples, tails=tails, seed=step_seed)
        step = propose(samples, rows, tails=tails, count=count, seed=step_seed)
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


def lowest(_space: Space, shots: Shots, _seed: int) -> list[Configuration]:
    ranked = sorted(shots, key=lambda s: s.p99_ms)
    return different([s.configuration for s in ranked])[:FINALISTS]


def searched(space: Space, shots: Shots, seed: int) -> list[Configuration]:
    return _finalists(space, shots, seed, lambda predictor: predictor)


def penalised(space: Space, shots: Shots, seed: int) -> list[Configuration]:
    return _finalists(space, shots, seed, Fitness)


def _finalists(
    space: Space, shots: Shots, seed: int, scored: Callable[[Predictor], Predict]
) -> list[Configuration]:
    samples = samples_of(space, shots)
    fitted = [tune(f, samples, trials=TRIES, timeout_s=None, seed=seed) for f in TREES]
    predictor = scored(fit_trees(fitted, samples, seed))
    start = space.genes(samples.values[np.argsort(samples.log_target)[:10]])
    tails = samples_of(space, shots, lambda shot: shot.tail_ms)
    with one_thread():
        found = search(space, predictor, seed=seed, start=start)
        best = best_known(tails, seed=seed)
    promising = diverse(space, found.candidates, KEPT_CANDIDATES)[: FINALISTS - 1]
    known = space.configurations(tails.values[[best]])
    return different([*(c.configuration for c in promising), *known])


def different(configurations: Iterable[Configuration]) -> list[Configuration]:
    """Each of these once, in their order."""
    return list({c.digest: c for c in configurations}.values())


Ask = Callable[[Space, Shots, int, int, int], list[Configuration]]
Finalists = Callable[[Space, Shots, int], list[Configuration]]
TUNERS: Mapping[str, tuple[Ask, Finalists]] = {
    "ours": (ours, penalised),
    "p99": (without_tails, penalised),
    "random": (at_random, lowest),
    "tpe": (tpe, lowest),
    "gp": (gp, lowest),
    "offline": (offline, searched),
}

BEGUN: Mapping[str, tuple[str, int | None]] = {
    "offline": ("ours", None),
    "p99": ("ours", None),
    "tpe": ("random", ALIKE),
    "gp": ("random", ALIKE),
}
"""Whose first trials they share, and how many; None: as many as the schedule begins with."""
