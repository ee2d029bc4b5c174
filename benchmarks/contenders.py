"""The tuners that benchmarks/tuners.py compares: what each goes by is what was measured for it.

Each asks for so many configurations to measure next, has finalists after any number of them, and a
winner once these are measured. Ours are campaigns of the product, on a testbed that answers with
what the race has measured.
"""

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.packages import label_with_ezr, smac_tuner
from benchmarks.recorded import Answer, Offer, Onward, Shot, TrainTrees, campaign
from intop.campaign.collect.stage import Collect
from intop.campaign.search.stage import GlobalSearch
from intop.campaign.verify.pick import Pick
from intop.domain.configuration import Configuration
from intop.domain.rounds import planned_arms
from intop.domain.space import Space
from intop.domain.stats import geometric_mean
from intop.domain.trial import PlannedTrial
from intop.learn.parallel import one_thread
from intop.run.context import Task
from intop.run.executor import execute

MOST = 100
"""Trials of a tuner, at most."""
ALIKE = 8
"""Optuna's samplers have ten random trials before their first model."""
POOL = 1_000
"""The random configurations that FLASH and EZR choose among."""
MEASURED = ("collect", "refine")
"""The stages that the trials of a race are of."""
WATCHING = ("baseline", "sentinel")
"""Roles of trials that no budget counts."""


@dataclass(frozen=True)
class Arm:
    """A tuner with a seed, and with how many `trials` it has, where it begins by that."""

    method: str
    seed: int
    trials: int | None = None

    @property
    def name(self) -> str:
        words = (self.method, self.seed, *(() if self.trials is None else (self.trials,)))
        return " ".join(map(str, words))

    @classmethod
    def named(cls, name: str) -> "Arm":
        """The arm of this name."""
        method, *numbers = name.split()
        return cls(method, *map(int, numbers))


Shots = Sequence[Shot]
Shared = Mapping[Arm, Shots]
"""What was measured for each arm, in order."""


def counted(shots: Shots) -> int:
    """How many trials these are, without the default's.

    A campaign that has measured it for more than to watch it ends with so many fewer.
    """
    return sum(not shot.configuration.is_default for shot in shots)


def upto(shots: Shots, count: int) -> Shots:
    """The shots up to the given number of trials, which does not count the default's."""
    numbers = np.cumsum([not shot.configuration.is_default for shot in shots])
    return shots[: int(np.searchsorted(numbers, count, side="right"))]


@dataclass(frozen=True)
class Entry:
    """An arm in a race of so many `trials`: what it may tune, and where its campaigns are kept.

    Those of ours fill the space with the `first` trials.
    """

    arm: Arm
    offer: Offer
    trials: int
    first: int
    folder: Path


class Tuner(Protocol):
    """What takes part."""

    def ask(self, entry: Entry, shots: Shots, count: int) -> list[Configuration]:
        """What to measure next, beside so many trials maybe the default; nothing at the end."""

    def end(self, entry: Entry, shots: Shots) -> None:
        """All trials are measured; finalists are asked for next."""

    def finalists(self, entry: Entry, shots: Shots, count: int) -> list[Configuration]:
        """The best after so many trials."""

    def winner(
        self, entry: Entry, count: int, finalists: Sequence[Configuration], picked: "Picked"
    ) -> Configuration:
        """The best of them by trials that are no part of the count."""


Picked = Mapping[str, Shots]
"""Trials of finalists and the default in rounds, by digest."""


# Ours ---------------------------------------------------------------------------------------------


class NotMeasuredError(Exception):
    """A trial is due that nobody has measured yet."""


@dataclass(frozen=True)
class Campaign:
    """A campaign of the product without screening: Collect, Refine, Train, GlobalSearch, Pick.

    Without refining all trials are Collect's, as it has them then: configurations, and a replicate
    for each four. By P99 means that it is not told tails.
    """

    refines: bool = True
    by_p99: bool = False

    def ask(self, entry: Entry, shots: Shots, count: int) -> list[Configuration]:
        taken: Counter[str] = Counter()
        with campaign(self._offer(entry), self._answer(shots, taken), _url(entry)) as task:
            taken.update(t.configuration.digest for t in task.trials(*MEASURED))
            with suppress(NotMeasuredError):
                execute(Collect(task))
                if self.refines:
                    execute(Onward(task))
            due = [p.configuration for stage in MEASURED for p in _unmeasured(task, stage)]
        numbers = np.cumsum([not configuration.is_default for configuration in due])
        return due[: int(np.searchsorted(numbers, count, side="right"))]

    def end(self, entry: Entry, shots: Shots) -> None:
        # The campaign takes note of the last of them.
        self.ask(entry, shots, 0)

    def finalists(self, entry: Entry, shots: Shots, count: int) -> list[Configuration]:
        del shots  # which the campaign of the whole race knows
        offer = self._offer(entry)
        with (
            campaign(offer, _nobody, _url(entry)) as whole,
            campaign(offer, _nobody, _url(entry, count)) as task,
        ):
            _copy(whole, task, count)
            execute(TrainTrees(task))
            execute(GlobalSearch(task))
            with suppress(NotMeasuredError):
                execute(Pick(task))
            arms = planned_arms(task.store.plan(task.subject, Pick.name))
        return [c for c in arms.values() if not c.is_default]

    def winner(
        self, entry: Entry, count: int, finalists: Sequence[Configuration], picked: Picked
    ) -> Configuration:
        del finalists  # which the campaign knows

        def answer(planned: PlannedTrial, _: str) -> Shot:
            assert planned.round is not None
            return picked[planned.configuration.digest][planned.round - 1]

        with campaign(self._offer(entry), answer, _url(entry, count)) as task:
            return execute(Pick(task)).configuration

    def _offer(self, entry: Entry) -> Offer:
        trials = entry.trials if entry.arm.trials is None else entry.arm.trials
        if self.refines:
            offer = entry.offer.with_budget(
                collect_trials=entry.first, refine_trials=trials - entry.first
            )
        else:
            design = next(n for n in range(trials, 0, -1) if n + n // 4 <= trials)
            offer = entry.offer.with_budget(collect_trials=design, refine_trials=0)
        # How wrong models are is not asked here.
        offer = offer.with_budget(folds=2, repeats=1)
        return replace(offer, study=replace(offer.study, seed=entry.arm.seed))

    def _answer(self, shots: Shots, taken: Counter[str]) -> Answer:
        """The shots of each configuration one after the other, beside those that are taken."""
        known: dict[str, list[Shot]] = defaultdict(list)
        for shot in shots:
            known[shot.configuration.digest].append(shot)

        def answer(planned: PlannedTrial, _: str) -> Shot:
            digest = planned.configuration.digest
            if taken[digest] == len(known[digest]):
                raise NotMeasuredError
            taken[digest] += 1
            shot = known[digest][taken[digest] - 1]
            return replace(shot, tail_ms=shot.p99_ms) if self.by_p99 else shot

        return answer


def _nobody(_planned: PlannedTrial, _stage: str) -> Shot:
    """Nothing more is measured."""
    raise NotMeasuredError


def _url(entry: Entry, count: int | None = None) -> str:
    """The store of an arm's campaign, or of the part of it that was there after so many trials."""
    name = entry.arm.name if count is None else f"{entry.arm.name} after {count}"
    return str(entry.folder / f"{name}.db")


def _unmeasured(task: Task, stage: str) -> list[PlannedTrial]:
    """What is planned and has no trial."""
    made = {trial.planned.index for trial in task.trials(stage)}
    return [p for p in task.store.plan(task.subject, stage) if p.index not in made]


def _copy(whole: Task, task: Task, count: int) -> None:
    """The first so many trials of a campaign, and of its plans, in another one."""
    left = count
    for stage in MEASURED:
        trials = []
        for trial in whole.trials(stage):
            left -= trial.planned.role not in WATCHING
            if left < 0:
                break
            trials.append(trial)
        if trials:
            task.store.write_plan(task.subject, stage, [t.planned for t in trials])
        for trial in trials:
            task.store.add(task.subject, trial)


# Their rivals -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rival:
    """What chooses configurations by the trials so far, and has the lowest of them as finalists."""

    choose: Callable[[Space, Shots, int, int], list[Configuration]]

    def ask(self, entry: Entry, shots: Shots, count: int) -> list[Configuration]:
        return self.choose(entry.offer.space, shots, count, entry.arm.seed)

    def end(self, entry: Entry, shots: Shots) -> None:
        """Nothing is kept."""

    def finalists(self, entry: Entry, shots: Shots, count: int) -> list[Configuration]:
        # As many as ours may have.
        most = entry.offer.study.budget.pick_arms - 1
        ranked = sorted(upto(shots, count), key=lambda shot: shot.p99_ms)
        return different(shot.configuration for shot in ranked)[:most]

    def winner(
        self,
        entry: Entry,  # noqa: ARG002
        count: int,  # noqa: ARG002
        finalists: Sequence[Configuration],
        picked: Picked,
    ) -> Configuration:
        return min(
            finalists, key=lambda c: geometric_mean([shot.p99_ms for shot in picked[c.digest]])
        )


def at_random(space: Space, shots: Shots, count: int, seed: int) -> list[Configuration]:
    rng = np.random.default_rng(_seed(seed, shots))
    return space.configurations(space.decode(rng.random((count, len(space.columns)))))


def tpe(space: Space, shots: Shots, count: int, seed: int) -> list[Configuration]:
    from optuna.samplers import TPESampler

    return _optunas(TPESampler(seed=_seed(seed, shots), constant_liar=True), space, shots, count)


def gp(space: Space, shots: Shots, count: int, seed: int) -> list[Configuration]:
    import torch
    from optuna.samplers import GPSampler

    torch.set_num_threads(1)
    return _optunas(GPSampler(seed=_seed(seed, shots)), space, shots, count)


def flash(space: Space, shots: Shots, count: int, seed: int) -> list[Configuration]:
    """Return what a regression tree predicts to be the lowest of a random pool."""
    from sklearn.tree import DecisionTreeRegressor

    measured = space.values([shot.configuration for shot in shots])
    tree = DecisionTreeRegressor(random_state=seed).fit(measured, [s.p99_ms for s in shots])
    pool = space.values(at_random(space, shots, POOL, seed))
    lowest = np.argsort(tree.predict(pool), kind="stable")[:count]
    return space.configurations(pool[lowest])


def ezr(space: Space, shots: Shots, _count: int, seed: int) -> list[Configuration]:
    """Return the row of a random pool that EZR labels next. It labels one after the other."""
    first = [shot.configuration for shot in shots[:ALIKE]]
    pool = different([*first, *at_random(space, (), POOL, seed)])
    labels = {shot.configuration.digest: math.log(shot.p99_ms) for shot in shots}
    due = []

    def label(row: int) -> float:
        if pool[row].digest not in labels:
            due.append(pool[row])
            raise NotMeasuredError
        return labels[pool[row].digest]

    with suppress(NotMeasuredError):
        label_with_ezr(space.values(pool), label, first=ALIKE, budget=MOST, seed=seed)
    return due


def smac(space: Space, shots: Shots, count: int, seed: int) -> list[Configuration]:
    places = space.genes(space.values([shot.configuration for shot in shots]))
    costs = [math.log(shot.p99_ms) for shot in shots]
    with one_thread(), smac_tuner(places, costs, _seed(seed, shots)) as tuner:
        asked = [tuner.ask() for _ in range(count)]
    return space.configurations(space.decode(np.array(asked)))


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


def _seed(seed: int, shots: Shots) -> int:
    return 1_000 * seed + len(shots)


def different(configurations: Iterable[Configuration]) -> list[Configuration]:
    """Each of these once, in their order."""
    return list({c.digest: c for c in configurations}.values())


TUNERS: Mapping[str, Tuner] = {
    "ours": Campaign(),
    "p99": Campaign(by_p99=True),
    "random": Rival(at_random),
    "tpe": Rival(tpe),
    "gp": Rival(gp),
    "flash": Rival(flash),
    "ezr": Rival(ezr),
    "smac": Rival(smac),
    "offline": Campaign(refines=False),
}

BEGUN: Mapping[str, tuple[str, int | None]] = {
    "p99": ("ours", None),
    **dict.fromkeys(("tpe", "gp", "flash", "ezr", "smac"), ("random", ALIKE)),
}
"""Whose first trials they share, and how many; None: as many as the schedule begins with."""
