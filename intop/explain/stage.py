"""explain: the smallest set of a winner's changes that keeps its gain, found by measurement."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Self

from intop.campaign.baselines import base_of
from intop.campaign.collected import required_space
from intop.campaign.pilot.stage import timed
from intop.campaign.verify.change_rounds import Changes, NextRounds
from intop.campaign.verify.judge import Judgement, required_verdict
from intop.campaign.verify.promised import promised
from intop.campaign.verify.winner import WINNER, Winner
from intop.domain.baseline import HOST
from intop.domain.explanation import (
    Contribution,
    Explanation,
    Interaction,
    Kept,
    Offer,
    Promised,
)
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.domain.workload import Budget
from intop.errors import IntopError, UsageError
from intop.explain.ablation import (
    FEWEST_CANDIDATES,
    NESTED,
    NESTED_ROUNDS,
    PROMISED,
    PROMISED_ROUNDS,
    Ablation,
    ablate,
)
from intop.explain.models import curves
from intop.explain.outcome import by_evidence, contribution, few_of, kept_by
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.rounds import series_plan
from intop.run.stage import Batch, Expected, SoFar, Stage

SMALLEST, FEW = "smallest set", "best few"
FEWEST_ROUNDS = 4
"""Rounds of `intop explain` where the file says that `tune` explains nothing."""

FURTHER, FURTHER_AT_MOST = 125, 340
"""Trials after the first sets, for many changes, by `tests/campaign/test_expected.py`. Half of its
searches take about FURTHER where models know something. Nineteen of twenty take no more than
FURTHER_AT_MOST after all changes are ranked."""


class Explain(Stage[Explanation]):
    """The smallest set of a winner's changes that keeps its gain, judged against the default.

    A configuration that fails is a result here. Raises UsageError where it was begun with another
    budget, IntopError where the winner changes nothing, or too few rounds could be measured.
    """

    name = "explain"
    description = "the fewest changes that keep the gain"
    command = "explain"
    finds = "ablation"
    is_of_the_paper = False
    result_type = Explanation
    needs = ("judge",)
    ends_by_failures = False
    ends_by_overload = False
    stays_on_replicas = True

    def __init__(self, task: Task, verdict: Verdict) -> None:
        super().__init__(timed(task))
        self.verdict = verdict
        base = base_of(task, verdict.against)
        self.winner = Winner.of(required_space(task), verdict.configuration, base)
        if not self.winner.names:
            raise IntopError(
                f"{task.title}: the winner changes nothing, so there is nothing to explain. "
                f"Begin again with: intop tune --new"
            )

    @classmethod
    def begin(cls, task: Task) -> Self:
        verdict = required_verdict(task)
        # It takes about half as long as all before, and who waits wants to know now.
        task.context.progress.say(
            f"{task.title}: {verdict.short}: {verdict.gain}; next are the fewest changes that keep "
            f"it"
        )
        return cls(task, verdict)

    def ask(self, so_far: SoFar) -> Batch | None:
        """Return what the search asks for, then the rounds that judge the smallest set.

        Nothing for a winner of one change: its verdict says all that there is to be known.
        """
        if len(self.winner.names) == 1 and not so_far.plan:
            return None
        if (start := _judging_start(so_far.plan)) is not None:
            ablation = self._ablation(so_far.trials, start)
            series = so_far.plan[start].series
        elif so_far.unfinished:
            return so_far.unfinished
        else:
            if not so_far.plan:
                # Stored: the order must stay where models are trained again before the end.
                order = promised(self.task, self.winner, "explain")
                self.task.store.put(self.task.subject, Promised(order=order))
            following = self._next(so_far.trials)
            series = so_far.plan[-1].series + 1 if so_far.plan else 1
            start = len(so_far.plan)
            if isinstance(following, NextRounds):
                arms, rounds = self.winner.arms(following.sets), following.rounds
                return Batch(
                    series_plan(self.task, self.name, arms, rounds, series=series, start=start)
                )
            ablation = following
        return self._judgement(ablation, series, start).ask(so_far.beginning_at(start))

    def result(self, trials: Sequence[Trial]) -> Explanation:
        if len(self.winner.names) == 1 and not trials:
            explanation = self._of_one_change()
        else:
            explanation = self._of_the_search(trials)
        lines, reason = curves(self.task, explanation, trials)
        return replace(explanation, curves=lines, without_curves=reason)

    def _of_the_search(self, trials: Sequence[Trial]) -> Explanation:
        start = _judging_start([t.planned for t in trials])
        if start is None:
            raise IntopError(f"{self.task.title}: the explanation's trials are not complete")
        ablation = self._ablation(trials, start)
        fresh = [t for t in trials if t.planned.index >= start]
        judgement = self._judgement(ablation, fresh[0].planned.series, start)

        def kept(arm: str) -> Kept:
            return kept_by(self.task, fresh, (judgement.against, WINNER, arm))

        few = judgement.beside.get(FEW)
        return Explanation(
            winner=self.winner.configuration,
            minimal=judgement.configuration,
            contributions=tuple(
                contribution(self.winner, ablation, name) for name in by_evidence(ablation)
            ),
            interactions=tuple(
                Interaction(first=first, second=second, ratio=effect.ratio)
                for (first, second), effect in ablation.interactions.items()
            ),
            same=self.winner.same,
            verdict=judgement.verdict(fresh),
            kept=replace(kept(SMALLEST), was_seen=ablation.keeps_gain),
            offer=None if few is None else Offer(configuration=few, kept=kept(FEW)),
            level=self.budget.level,
            trials=len(trials),
        )

    def _of_one_change(self) -> Explanation:
        """Return the winner's own verdict as an explanation."""
        verdict, (name,) = self.verdict, self.winner.names
        ratio = verdict.interval
        keys = self.winner.changes[name]
        before, after = zip(*(self.winner.values[key] for key in keys), strict=True)
        return Explanation(
            winner=self.winner.configuration,
            minimal=self.winner.with_only(frozenset([name])),
            contributions=(
                Contribution(keys=keys, before=before, after=after, left_out=ratio, alone=ratio),
            ),
            interactions=(),
            same=self.winner.same,
            verdict=verdict,
            kept=Kept(share=1, low=1, high=1, full=ratio, smaller=ratio, rounds=verdict.pairs),
            offer=None,
            level=self.budget.level,
            trials=0,
        )

    def _ablation(self, trials: Sequence[Trial], start: int) -> Ablation:
        """Return the search's result by the rounds before the judgement."""
        ablation = self._next([t for t in trials if t.planned.index < start])
        if isinstance(ablation, NextRounds):
            raise IntopError(
                f"{self.task.title}: the explanation's trials in the store are not complete"
            )
        return ablation

    def _next(self, trials: Sequence[Trial]) -> NextRounds | Ablation:
        """Return what the search asks for after these trials, or its result."""
        names = self.winner.names
        stored = self.task.store.get(self.task.subject, Promised)
        search = ablate(
            names,
            rounds=self.budget.explain_rounds or FEWEST_ROUNDS,
            level=self.budget.level,
            promised=stored.order if stored and set(stored.order) == set(names) else (),
        )
        asked = next(search)
        try:
            for _, series in groupby(trials, lambda t: t.planned.series):
                answers = list(series)
                self._check_asked(asked, answers)
                asked = search.send(self.winner.rounds(asked.sets, answers))
        except StopIteration as end:
            ablation: Ablation = end.value
            return ablation
        return asked

    def _check_asked(self, asked: NextRounds, answers: Sequence[Trial]) -> None:
        """Raises UsageError where a series is not what is asked for now."""
        arms = {t.planned.arm for t in answers}
        rounds = {t.planned.series_round for t in answers}
        if arms != self.winner.arms(asked.sets).keys() or len(rounds) != asked.rounds:
            raise UsageError(
                f"{self.task.title}: this campaign's explanation was begun with another "
                f"explain_rounds or level in [budget], or by another version of intop. Go on as it "
                f"was begun, or begin another campaign: intop tune --new"
            )

    def _judgement(self, ablation: Ablation, series: int, start: int) -> Judgement:
        """Return the comparison of the set, the winner and the default in fresh rounds."""
        minimal: Changes = frozenset(ablation.minimal)
        few = few_of(self.winner, ablation)
        beside = {WINNER: self.winner.configuration}
        if few != minimal:
            beside[FEW] = self.winner.with_only(few)
        return Judgement(
            task=self.task,
            stage=self.name,
            origin=SMALLEST,
            configuration=self.winner.with_only(minimal),
            against=self.verdict.against or HOST,
            rounds=self.budget.explain_pairs,
            looks=1,
            series=series,
            start=start,
            beside=beside,
        )

    @classmethod
    def is_wanted(cls, prospect: Prospect) -> bool:
        return prospect.budget.explain_rounds > 0

    @classmethod
    def is_idle(cls, prospect: Prospect) -> bool:
        return prospect.verdict is not None and not prospect.verdict.is_gain

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """Return an estimate: the trials depend on the results and the keys of the winner."""
        verdict, budget = prospect.verdict, prospect.budget
        keys = (len(verdict.configuration.values) if verdict else 0) or budget.keep
        if keys == 1 and not prospect.places(cls.name):
            return Expected(trials=0)
        trials = max(len(prospect.places(cls.name)), explained(budget, keys))
        most = max(trials, explained_at_most(budget, keys))
        return Expected(trials=trials, bound="about", most=most)


def explain(task: Task) -> Explanation | Verdict:
    """Find the smallest set of changes that keeps the winner's gain, and judge it.

    A verdict that is no gain is returned as it is, and nothing is measured. Raises
    ResultMissingError before there is a verdict, and what `Explain` and `execute` do.
    """
    verdict = required_verdict(task)
    return execute(Explain(task, verdict)) if verdict.is_gain else verdict


def explained(budget: Budget, keys: int) -> int:
    """Return the trials for so many changes, a few of which keep the gain as the models promised.

    These few are tried. Then there are elimination, taking back and interactions, and the rounds
    that judge the smallest set.
    """
    count = max(2, keys)
    return _tried(count) + min(FURTHER, 30 * (count - 1)) + 3 * budget.explain_pairs


def explained_at_most(budget: Budget, keys: int) -> int:
    """Return the same where the models promised wrongly: all changes are ranked by measurement."""
    count = max(2, keys)
    rounds = max(2, budget.explain_rounds)
    names = [str(n) for n in range(count)]
    first = next(ablate(names, rounds=rounds, level=budget.level))
    better = min(count, max(FEWEST_CANDIDATES, -(-count // 2)))
    ranked = len(first.sets) * first.rounds + (2 + 2 * better) * (rounds - first.rounds)
    sizes = sum(size < count for size in NESTED)
    nested = (1 + sizes) * NESTED_ROUNDS if sizes else 0
    # Few changes have little to be eliminated; of many, the nested sets leave a few.
    further = min(FURTHER_AT_MOST, 100 * (count - 1) - 60)
    return _tried(count) + ranked + nested + further + 3 * budget.explain_pairs


def _tried(count: int) -> int:
    return (2 + sum(size < count for size in PROMISED)) * PROMISED_ROUNDS


def _judging_start(plan: Sequence[PlannedTrial]) -> int | None:
    """Return the first place of the judgement, None while there is none."""
    series = {p.series for p in plan if p.arm == SMALLEST}
    return min((p.index for p in plan if p.series in series), default=None)
