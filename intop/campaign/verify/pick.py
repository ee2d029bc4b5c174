"""pick: which candidate is the best, measured in interleaved rounds."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from intop.campaign.collected import best_measured, collected_trials
from intop.campaign.pilot.stage import timed
from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.replicates import by_configuration
from intop.domain.rounds import Cells, cell, first_problem, judged_by_round, paired, planned_arms
from intop.domain.search import Search
from intop.domain.speedups import SpeedUps, speed_ups
from intop.domain.training import Training
from intop.domain.trial import SeriesRound, Trial
from intop.domain.verdict import Verdict
from intop.errors import IntopError
from intop.run import prerequisites
from intop.run.context import Task
from intop.run.prospect import Prospect
from intop.run.rounds import InRounds
from intop.run.stage import Expected

MEASURED_BEST = "best measured"


@dataclass(frozen=True, kw_only=True)
class Picked:
    """The best finalist: its name, its configuration, and the trials that say so."""

    origin: str
    configuration: Configuration
    trials: tuple[Trial, ...]


class Pick(InRounds[Picked]):
    """Measure all finalists and the default in interleaved rounds.

    They say which finalist is the best, and what each tree model's own winner is worth. Raises
    IntopError where no finalist could be measured.
    """

    name = "pick"
    description = "which candidate is the best"
    command = "verify"
    finds = "verdict"
    hands_on = ("verdict",)
    is_of_the_paper = False
    result_type = Picked
    needs = ("search",)

    def __init__(self, task: Task) -> None:
        self._finalists = finalists(task, task.context.study.budget.finalists)
        self.rounds = task.context.study.budget.pick_rounds
        super().__init__(timed(task))

    def cells(self) -> Cells:
        return [cell(name, arm) for name, arm in {**self._finalists, HOST: DEFAULT}.items()]

    def result(self, trials: Sequence[Trial]) -> Picked:
        origin, configuration = best_finalist(self.task, trials)
        return Picked(origin=origin, configuration=configuration, trials=tuple(trials))

    @classmethod
    def is_done(cls, prospect: Prospect) -> bool:
        return bool(prospect.places("judge")) or prospect.has(Verdict)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        if planned := len(prospect.places(cls.name)):
            return Expected(trials=planned)
        # A winner of a model may be a finalist already.
        budget = prospect.budget
        return Expected(trials=budget.pick_arms * budget.pick_rounds, bound="at most")


def finalists(task: Task, count: int) -> dict[str, Configuration]:
    """Return promising candidates, the best measured one, and each model's own winner.

    `count` is how many there are without the models' own. Models that explain nothing have one
    candidate. The lowest of single trials would be the luckiest, so the best is what is believed to
    be, given how noisy trials are, among those that never failed. A configuration has one arm only,
    the first that it would have.
    """
    search = task.store.get(task.subject, Search)
    if search is None or not search.candidates:
        raise prerequisites.missing(task, "no candidates yet", "search")
    best = best_measured(task, collected_trials(task))
    predicted = [c.configuration for c in search.candidates]
    room = count if best is None or count == 1 else count - 1
    training = task.store.get(task.subject, Training)
    if training is not None and not training.explains:
        room = min(room, 1)
    named = [(f"candidate {n}", c) for n, c in enumerate(predicted[:room], start=1)]
    if best is not None and room < count:
        named.append((MEASURED_BEST, best.configuration))
    named += [(winner.model, winner.configuration) for winner in search.winners]
    arms: dict[str, Configuration] = {}
    for name, configuration in named:
        if configuration not in arms.values():
            arms[name] = configuration
    return arms


def best_finalist(task: Task, picked: Sequence[Trial]) -> tuple[str, Configuration]:
    """Return the finalist with the lowest geometric mean of latency, among those that never failed.

    A disturbed trial says nothing about its finalist; one that is left with none is out, too. One
    that changes at most half as many keys as the lowest is preferred where it is within a standard
    error of the lowest (the one standard error rule of Breiman, Friedman, Olshen and Stone,
    Classification and Regression Trees, 1984): further keys have to show that they are worth it.
    The standard error is that of the difference in the rounds that both finalists have.
    """
    arms = {t.configuration.digest: t.planned.arm for t in picked}
    sound = {
        arms[measured.configuration.digest]: measured
        for measured in by_configuration(picked)
        if not measured.configuration.is_default and not measured.failures
    }
    if not sound:
        raise IntopError(
            f"{task.title}: every finalist failed, or was disturbed in all its trials: "
            f"{first_problem(picked)}"
        )
    lowest = min(sound, key=lambda n: sound[n].mean_log)
    judged_ms = judged_by_round(picked)
    keys = {n: len(measured.configuration.values) for n, measured in sound.items()}
    simple = [
        n
        for n in sound
        if 2 * keys[n] <= keys[lowest] and _is_as_good(judged_ms[n], judged_ms[lowest])
    ]
    name = min(simple, key=lambda n: (keys[n], sound[n].mean_log), default=lowest)
    return name, sound[name].configuration


def _is_as_good(
    judged_ms: Mapping[SeriesRound, float], lowest_ms: Mapping[SeriesRound, float]
) -> bool:
    """Return whether latency by round is within a standard error of the lowest finalist's."""
    longer = [math.log(a / b) for a, b in zip(*paired(judged_ms, lowest_ms), strict=True)]
    return len(longer) > 1 and fmean(longer) <= stdev(longer) / math.sqrt(len(longer))


def model_speed_ups(task: Task, picked: Sequence[Trial]) -> SpeedUps | None:
    """Return what the models' own winners are worth; None where none of them was measured."""
    search = task.store.get(task.subject, Search)
    planned = planned_arms([t.planned for t in picked]).items()
    measured = {configuration.digest: arm for arm, configuration in planned}
    arms = {
        winner.model: measured[winner.configuration.digest]
        for winner in (search.winners if search else ())
        if winner.configuration.digest in measured
    }
    if not arms:
        return None
    return speed_ups(
        arms,
        judged_by_round(picked),
        Counter(t.planned.arm for t in picked if t.status == "failed"),
        default=HOST,
        level=task.context.study.budget.level,
    )
