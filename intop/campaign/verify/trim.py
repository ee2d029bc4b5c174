"""trim: the fewest changes of the picked candidate that are worth their place."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Self

from intop.campaign.collected import required_space
from intop.campaign.pilot.stage import timed
from intop.campaign.verify.change_rounds import Changes, NextRounds
from intop.campaign.verify.pick import Pick, Picked
from intop.campaign.verify.promised import by_evidence
from intop.campaign.verify.trim_view import slow_sentence, trim_sentence
from intop.campaign.verify.trimming import (
    LEVEL,
    MOST_ARMS,
    PROOF_ROUNDS,
    SIZES,
    Answers,
    Loss,
    Trimming,
    trim,
)
from intop.campaign.verify.winner import Winner
from intop.domain.configuration import DEFAULT, mixture
from intop.domain.trial import Trial
from intop.domain.trimmed import MeasuredSet, SlowChange, Trimmed, TrimOrder
from intop.errors import IntopError, UsageError
from intop.run.comparability import COMMON
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.rounds import series_plan
from intop.run.stage import Batch, Expected, SoFar, Stage

PROOF_ARMS = 9
"""The arms of step 4 for four changes of which one goes."""
BEFORE = ("screen", "collect", "refine", "pick")
"""The stages whose trials show slow requests."""


class Trim(Stage[Trimmed]):
    """Drop what does nothing from the picked candidate, so that few keys are judged and deployed.

    A search gives each parameter some value, and most do nothing. First a change goes whose trials
    have slow requests. `trimming.trim` says which sets of the others meet in rounds. A set that
    fails is a result here.
    """

    name = "trim"
    description = "the changes that are worth their place"
    command = "verify"
    finds = "verdict"
    hands_on = ("verdict",)
    is_of_the_paper = False
    result_type = Trimmed
    needs = ("pick",)
    ends_by_failures = False
    ends_by_overload = False
    stays_on_replicas = True

    def __init__(self, task: Task, picked: Picked) -> None:
        super().__init__(timed(task))
        self.picked = picked
        self.candidate = Winner.of(required_space(task), picked.configuration, DEFAULT)

    @classmethod
    def begin(cls, task: Task) -> Self:
        return cls(task, execute(Pick(task)))

    def ask(self, so_far: SoFar) -> Batch | None:
        if len(self.candidate.names) < 2:
            return None
        if so_far.unfinished:
            return so_far.unfinished
        if not so_far.plan:
            # Stored: the order must stay where models are trained again before the end.
            self.task.store.put(self.task.subject, self._new_order())
        if len(self._order.names) < 2:
            return None
        following = self._next(so_far.trials)
        if isinstance(following, Trimming):
            return None
        series = so_far.plan[-1].series + 1 if so_far.plan else 1
        arms = self.candidate.arms(following.sets)
        start = len(so_far.plan)
        rounds = following.rounds
        return Batch(series_plan(self.task, self.name, arms, rounds, series=series, start=start))

    def result(self, trials: Sequence[Trial]) -> Trimmed:
        trimming = self._next(trials) if trials else None
        if isinstance(trimming, NextRounds):
            raise IntopError(f"{self.task.title}: the trials of trim in the store are not complete")
        order = self._order
        kept = trimming.kept if trimming else frozenset(order.names)
        configuration = mixture(self.picked.configuration, DEFAULT, self._keys(kept))
        trimmed = Trimmed(
            origin=self.picked.origin,
            candidate=self.picked.configuration,
            configuration=configuration,
            sets=self._sets(trimming.prefixes.items()) if trimming else (),
            left_out=self._sets(trimming.left_out.items()) if trimming else (),
            trials=len(trials),
            slow=order.slow,
            judged_by=(trials[0].conditions if trials else self.task.workload).judged_by,
            level=LEVEL,
        )
        if trials and self.task.store.get(self.task.subject, Trimmed) is None:
            say = self.task.context.progress.say
            say(f"{self.task.title}: trim: {trim_sentence(trimmed)}")
        return trimmed

    @property
    def _order(self) -> TrimOrder:
        """The order that trim was begun with."""
        order = self.task.store.get(self.task.subject, TrimOrder)
        return order or TrimOrder(names=self.candidate.names)

    def _new_order(self) -> TrimOrder:
        """Return the order by the evidence so far, without slow changes."""
        slow = self._slow()
        for change in slow:
            say = self.task.context.progress.say
            say(f"{self.task.title}: trim: {slow_sentence(change)}")
        gone = {change.keys for change in slow}
        names = by_evidence(self.task, self.candidate)
        kept = tuple(name for name in names if self.candidate.changes[name] not in gone)
        return TrimOrder(names=kept, slow=slow)

    def _slow(self) -> tuple[SlowChange, ...]:
        """Return the candidate's slow changes by the campaign's trials under today's conditions."""
        if not self.picked.trials:
            return ()
        from intop.campaign.verify.slow_changes import slow_changes

        now = self.picked.trials[-1].conditions
        trials = [
            trial
            for stage in BEFORE
            for trial in self.task.trials(stage)
            if trial.status == "ok" and not trial.conditions.differences(now, COMMON)
        ]
        default = [trial for trial in trials if trial.configuration.is_default]
        limit_ms = self.task.context.study.guardrails.slow_limit_ms(default)
        if limit_ms is None:
            return ()
        return slow_changes(required_space(self.task), self.candidate, trials, limit_ms)

    def _keys(self, changes: Changes) -> list[str]:
        return sorted(key for name in changes for key in self.candidate.changes[name])

    def _sets(self, losses: Iterable[tuple[Changes, Loss]]) -> tuple[MeasuredSet, ...]:
        return tuple(
            MeasuredSet(
                keys=tuple(self._keys(changes)), ratio=loss.judged.ratio, tail=loss.tail.ratio
            )
            for changes, loss in losses
        )

    def _next(self, trials: Sequence[Trial]) -> NextRounds | Trimming:
        """Return what the search asks for after these trials, or its result."""
        search = trim(self._order.names, self.budget.trim_rounds)
        asked = next(search)
        try:
            for _, series in groupby(trials, lambda t: t.planned.series):
                answers = list(series)
                arms = {t.planned.arm for t in answers}
                rounds = len({t.planned.series_round for t in answers})
                if arms != self.candidate.arms(asked.sets).keys() or rounds != asked.rounds:
                    raise UsageError(
                        f"{self.task.title}: trim was begun with another trim_rounds in [budget], "
                        "or by another version of intop. Put it back, or begin another campaign: "
                        "intop tune --new"
                    )
                asked = search.send(self._answers(asked, answers))
        except StopIteration as end:
            trimming: Trimming = end.value
            return trimming
        return asked

    def _answers(self, asked: NextRounds, trials: Sequence[Trial]) -> Answers:
        tail = attrgetter("guide_ms")
        return Answers(
            judged=self.candidate.rounds(asked.sets, trials),
            tail=self.candidate.rounds(asked.sets, trials, tail),
        )

    @classmethod
    def is_wanted(cls, prospect: Prospect) -> bool:
        return prospect.budget.trim_rounds > 0

    @classmethod
    def is_done(cls, prospect: Prospect) -> bool:
        return prospect.has(Trimmed) or Pick.is_done(prospect)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """Return an estimate by the space, before the candidate is known."""
        keys, rounds = prospect.budget.keep, prospect.budget.trim_rounds
        first = sum(size < keys for size in SIZES) + 2
        # Simulated searches have 21 arms of a round in the mean (benchmarks/trim.py).
        planned = len(prospect.places(cls.name))
        likely = max(planned, (first + 14) * rounds)
        # Steps 2 and 3 with all of their arms, step 4 with a few; more turns of step 3 are rare.
        most_arms = first + (MOST_ARMS + 2) + (MOST_ARMS + 3) + PROOF_ROUNDS * PROOF_ARMS
        most = max(likely, most_arms * rounds)
        return Expected(trials=likely, bound="about", most=most)


def trimmed(task: Task, picked: Picked) -> Picked:
    """Return a picked candidate with the changes that are worth their place.

    It is left as it is where the study wants no trimming, or was judged before.
    """
    subject, store = task.subject, task.store
    result, is_judged = store.get(subject, Trimmed), bool(store.plan(subject, "judge"))
    if result is None and (is_judged or not task.context.study.budget.trim_rounds):
        return picked
    if result is None or not is_judged:
        result = execute(Trim(task, picked))
    if result.configuration == picked.configuration:
        return picked
    count = len(result.configuration.values)
    name = f"{picked.origin}, {count} of {len(picked.configuration.values)} keys"
    return Picked(origin=name, configuration=result.configuration, trials=picked.trials)
