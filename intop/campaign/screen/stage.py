"""screen: which parameters matter."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from intop.campaign.collected import check_samples, required_space, samples_of, usable
from intop.campaign.hints import hinted
from intop.campaign.pilot.stage import timed
from intop.campaign.sentinels import with_sentinels
from intop.domain.drift import drift
from intop.domain.histogram import COARSE
from intop.domain.ranking import RankAgreement, Ranking, Screening, is_stable, rank_agreement
from intop.domain.replicates import by_configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import ResultMissingError
from intop.run.context import Context, Task
from intop.run.executor import execute
from intop.run.prospect import Prospect, designed
from intop.run.replicas import replicas_in_use
from intop.run.stage import Batch, Expected, SoFar, Stage
from intop.store import Subject

if TYPE_CHECKING:
    from intop.learn.samples import Vector

LOOKS = 10
"""Parts of a screening, each of which varies everything alike. After one it may be looked at."""

FIRST_LOOK = 30
"""Configurations before a first look at a screening. Fewer show next to nothing of a hundred
parameters, and what they show changes."""


class Screen(Stage[Ranking]):
    """Trials of configurations that vary many parameters at once, in batches that do so alike.

    They tell which parameters act (SRP or DRP), which don't matter, and how they rank by SGBRT. It
    ends at a look where that choice is stable. `samples` overrides the budget's number of
    configurations. Raises ResultMissingError when too few could be measured, UsageError for
    another number than planned.
    """

    name = "screen"
    description = "which parameters matter"
    command = "screen"
    finds = "importance of the parameters"
    hands_on = ("SRP", "DRP")
    result_type = Ranking
    explores = True

    def __init__(self, task: Task, samples: int | None = None) -> None:
        check_samples(task, self.name, samples)
        super().__init__(timed(task))
        self.samples = samples
        self._screenings: dict[tuple[tuple[int, int], ...], Screening] = {}

    def ask(self, so_far: SoFar) -> Batch | None:
        plan = so_far.plan or self._design(so_far)
        looks: list[Screening] = []
        for end in _looks(plan) if self.budget.screen_stable else ():
            trials = so_far.first(end)
            if len(trials) < end:
                return Batch(plan[:end], later=plan[end:])
            looks.append(self._screened(trials))
            if is_stable(looks, self.budget.screen_stable):
                return None
        return Batch(plan) if len(so_far.trials) < len(plan) else None

    def result(self, trials: Sequence[Trial]) -> Ranking:
        saved = len(self.task.store.plan(self.task.subject, self.name)) - len(trials)
        if saved:
            self.task.context.progress.say(
                f"{self.task.title}: screen: the choice is stable, so {saved} trials need not be "
                f"measured"
            )
        change = drift(trials, level=self.budget.level)
        return replace(self._ranking(trials), drift=change, saved=saved)

    def _design(self, so_far: SoFar) -> list[PlannedTrial]:
        from intop.learn.design import screening_design

        count = self.samples or self.budget.screen_trials
        space, batch = so_far.testbed().probed.space, -(-count // LOOKS)
        design = screening_design(space, count, seed=self.task.seed("screen"), batch=batch)
        return with_sentinels(design, self.budget.sentinel_every, replicas_in_use(self.task))

    def _screened(self, trials: Sequence[Trial]) -> Screening:
        # By their attempts: what a replica has spoiled is measured again after a look, too.
        key = tuple((t.planned.index, t.attempt) for t in trials)
        if key not in self._screenings:
            self._screenings[key] = _screening(self.task, trials)
        return self._screenings[key]

    def _ranking(self, trials: Sequence[Trial]) -> Ranking:
        from intop.learn.screening import rank

        task = self.task
        with _enough(task, trials):
            samples = samples_of(required_space(task), by_configuration(usable(trials, task)))
            return rank(
                samples,
                screening=self._screened(trials),
                keep=min(self.budget.keep, len(required_space(task).parameters)),
                seed=task.seed("ranking"),
            )

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        budget = prospect.budget
        trials = len(prospect.places(cls.name)) or designed(
            budget.screen_trials, budget.sentinel_every, prospect.replicas
        )
        return Expected(trials=trials, bound="at most" if budget.screen_stable else "")


def screen(task: Task, samples: int | None = None) -> Ranking:
    """Rank all parameters, and choose the ones to tune. Raises what `Screen` and `execute` do."""
    return execute(Screen(task, samples))


def _looks(plan: Sequence[PlannedTrial]) -> list[int]:
    """Return after how many places of a screening's plan it is looked at."""
    ends = [place for place, p in enumerate(plan, start=1) if p.role == "design"]
    batch = max(1, -(-len(ends) // LOOKS))
    return [ends[n - 1] for n in range(batch, len(ends), batch) if n >= FIRST_LOOK]


def _screening(task: Task, trials: Sequence[Trial]) -> Screening:
    """Return what the trials so far show of all parameters. Raises ResultMissingError for too few.

    The default's trials are no part of it, since nobody drew their values. They say which
    parameters are expected to act.
    """
    from intop.learn.effects import screening

    space = required_space(task)
    drawn = [t for t in usable(trials, task) if not t.configuration.is_default]
    samples = samples_of(space, by_configuration(drawn))
    judged_by = task.workload.judged_by
    responses: dict[str, Vector] = {judged_by: samples.log_target}
    if judged_by in COARSE:
        tails = samples_of(space, by_configuration(drawn, lambda trial: trial.tail_ms))
        responses["tail"] = tails.log_target
    with _enough(task, trials):
        return screening(
            samples.variables,
            samples.values,
            responses,
            seed=task.seed("screening"),
            hinted=hinted(task, trials, space),
        )


@contextmanager
def _enough(task: Task, trials: Sequence[Trial]) -> Iterator[None]:
    """Turns what models say against so few trials into words. Raises ResultMissingError."""
    try:
        yield
    except ValueError as error:
        raise ResultMissingError(
            f"{task.title}: {len(trials)} trials are no screening: {error}. Measure more of them: "
            f"intop screen --new --samples 100 --arch {task.subject.arch} "
            f"--workload {task.workload.name}"
        ) from error


def workloads_agree(context: Context) -> dict[str, RankAgreement]:
    """Return the agreement of the rankings of each two workloads of an architecture."""
    agreements: dict[str, RankAgreement] = {}
    for arch in context.archs:
        rankings: dict[str, Ranking] = {}
        for workload in context.study.workloads:
            subject = Subject(campaign=context.campaign, arch=arch, workload=workload)
            if ranking := context.store.get(subject, Ranking):
                rankings[workload] = ranking
        for first, second in combinations(rankings, 2):
            names = (f"{arch} {first}", f"{arch} {second}")
            agreements[" and ".join(names)] = rank_agreement(
                names, rankings[first], rankings[second]
            )
    return agreements
