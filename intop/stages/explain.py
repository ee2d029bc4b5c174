"""explain: the smallest set of a winner's changes that keeps its gain, found by measurement."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Self

from intop.domain.ablation import (
    FEWEST_CANDIDATES,
    NESTED,
    NESTED_ROUNDS,
    PROMISED,
    PROMISED_ROUNDS,
    Ablation,
    Asked,
    Changes,
    Effect,
    Round,
    ablate,
)
from intop.domain.baseline import HOST
from intop.domain.explanation import (
    WANTED_KEYS,
    Contribution,
    Explanation,
    Interaction,
    Kept,
    Offer,
    Promised,
    kept,
)
from intop.domain.rounds import p99_by_round, paired
from intop.domain.stats import Interval
from intop.domain.trial import Block, PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.domain.workload import Budget
from intop.errors import IntopError, UsageError
from intop.run import prerequisites
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.rounds import blocks
from intop.run.stage import Batch, Expected, SoFar, Stage
from intop.stages.baselines import base_of
from intop.stages.collected import required_space
from intop.stages.partial_dependence import curves
from intop.stages.pilot import timed
from intop.stages.promised import promised
from intop.stages.verify import Judgement
from intop.stages.winner import WINNER, Winner

SMALLEST, FEW = "smallest set", "best few"
FEWEST_ROUNDS = 4
"""Of `intop explain` where the file says that `tune` explains nothing."""


class Explain(Stage[Explanation]):
    """Which of a winner's changes keep its gain, and the smallest set of them against the default.

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
        """What the search asks for, then the rounds that judge what it has found.

        Nothing for a winner of one change: its verdict says all that there is to be known.
        """
        if len(self.winner.names) == 1 and not so_far.plan:
            return None
        if (start := _judging_start(so_far.plan)) is not None:
            found = self._ablation(so_far.trials, start)
            series = so_far.plan[start].series
        elif so_far.unfinished:
            return so_far.unfinished
        else:
            if not so_far.plan:
                # Stored: the order must stay where models are trained again before the end.
                order = promised(self.task, self.winner)
                self.task.store.put(self.task.subject, Promised(order=order))
            asked = _next(self.task, self.winner, so_far.trials)
            series = so_far.plan[-1].series + 1 if so_far.plan else 1
            start = len(so_far.plan)
            if isinstance(asked, Asked):
                arms, rounds = self.winner.arms(asked.sets), asked.rounds
                return Batch(blocks(self.task, self.name, arms, rounds, series=series, start=start))
            found = asked
        return self._judgement(found, series, start).ask(so_far.beginning_at(start))

    def result(self, trials: Sequence[Trial]) -> Explanation:
        if len(self.winner.names) == 1 and not trials:
            return self._of_one_change()
        planned = [t.planned for t in trials]
        start = _judging_start(planned)
        if start is None:
            raise IntopError(f"{self.task.title}: the explanation's trials are not complete")
        found = self._ablation(trials, start)
        fresh = [t for t in trials if t.planned.index >= start]
        judgement = self._judgement(found, fresh[0].planned.series, start)
        share = partial(_kept, self.task, fresh, judgement.against)
        explanation = Explanation(
            winner=self.winner.configuration,
            minimal=judgement.configuration,
            contributions=tuple(_contribution(self.winner, found, n) for n in _order(found)),
            interactions=tuple(
                Interaction(one=one, other=other, ratio=_ratio(effect))
                for (one, other), effect in found.interactions.items()
            ),
            same=self.winner.same,
            verdict=judgement.verdict(fresh),
            kept=replace(share(SMALLEST), was_seen=found.keeps_gain),
            offer=(
                Offer(configuration=judgement.beside[FEW], kept=share(FEW))
                if FEW in judgement.beside
                else None
            ),
            level=self.budget.level,
            trials=len(trials),
        )
        lines, reason = curves(self.task, explanation, trials)
        return replace(explanation, curves=lines, without_curves=reason)

    def _of_one_change(self) -> Explanation:
        """The winner's own verdict, in the words of an explanation."""
        verdict, (name,) = self.verdict, self.winner.names
        ratio = Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)
        keys = self.winner.changes[name]
        before, after = zip(*(self.winner.values[key] for key in keys), strict=True)
        explanation = Explanation(
            winner=self.winner.configuration,
            minimal=self.winner.made(frozenset([name])),
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
        lines, reason = curves(self.task, explanation, [])
        return replace(explanation, curves=lines, without_curves=reason)

    def _ablation(self, trials: Sequence[Trial], start: int) -> Ablation:
        """What the rounds before the judgement have found."""
        found = _next(self.task, self.winner, [t for t in trials if t.planned.index < start])
        if isinstance(found, Asked):
            raise IntopError(
                f"{self.task.title}: the explanation's trials in the store are not complete"
            )
        return found

    def _judgement(self, found: Ablation, series: int, start: int) -> Judgement:
        """The set, the winner and the default in fresh rounds."""
        minimal: Changes = frozenset(found.minimal)
        few = _few(self.winner, found)
        beside = {WINNER: self.winner.configuration}
        if few != minimal:
            beside[FEW] = self.winner.made(few)
        return Judgement(
            task=self.task,
            stage=self.name,
            origin=SMALLEST,
            configuration=self.winner.made(minimal),
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
        """How many it takes depends on what it finds, and on how many keys the winner has."""
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


def required_verdict(task: Task) -> Verdict:
    """Raises ResultMissingError before there is one."""
    verdict = task.store.get(task.subject, Verdict)
    if verdict is None:
        why = "no verdict yet, so there is no winner to explain"
        raise prerequisites.missing(task, why, "verify")
    return verdict


FURTHER, FURTHER_AT_MOST = 125, 340
"""Of what an explanation of many changes asks for once the first sets are measured: half of the
searches that `tests/stages/test_expected.py` simulates take about FURTHER trials, where models know
something, and nineteen of twenty no more than FURTHER_AT_MOST after all changes are ranked."""


def explained(budget: Budget, keys: int) -> int:
    """Trials for so many changes, a few of which keep the gain as the models promised.

    These few are tried, then there are elimination, giving back and interactions, and the rounds
    that judge the smallest set.
    """
    count = max(2, keys)
    return _tried(count) + min(FURTHER, 30 * (count - 1)) + 3 * budget.explain_pairs


def explained_at_most(budget: Budget, keys: int) -> int:
    """The same where the models promised wrongly: all changes are ranked by measurement, too."""
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


# Finding the set ----------------------------------------------------------------------------------


def _judging_start(plan: Sequence[PlannedTrial]) -> int | None:
    """The first place of the judgement, None while there is none."""
    series = {p.series for p in plan if p.arm == SMALLEST}
    return min((p.index for p in plan if p.series in series), default=None)


def _next(task: Task, winner: Winner, trials: Sequence[Trial]) -> Asked | Ablation:
    """What the search asks for after these trials, or what it has found."""
    budget = task.context.study.budget
    known = task.store.get(task.subject, Promised)
    search = ablate(
        winner.names,
        rounds=budget.explain_rounds or FEWEST_ROUNDS,
        level=budget.level,
        promised=known.order if known and set(known.order) == set(winner.names) else (),
    )
    asked = next(search)
    try:
        for _, series in groupby(trials, lambda t: t.planned.series):
            told = list(series)
            _check_asked(task, winner, asked, told)
            asked = search.send(_rounds(winner, asked.sets, told))
    except StopIteration as end:
        found: Ablation = end.value
        return found
    return asked


def _check_asked(task: Task, winner: Winner, asked: Asked, told: Sequence[Trial]) -> None:
    """Raises UsageError where a series is not what is asked for now."""
    arms = {t.planned.arm for t in told}
    rounds = {t.planned.block for t in told}
    if arms != winner.arms(asked.sets).keys() or len(rounds) != asked.rounds:
        raise UsageError(
            f"{task.title}: this campaign's explanation was begun with another explain_rounds or "
            f"level in [budget], or by another version of intop. Go on as it was begun, or begin "
            f"another campaign: intop tune --new"
        )


def _rounds(winner: Winner, sets: Sequence[Changes], trials: Sequence[Trial]) -> list[Round]:
    """Log P99 of the sets, round by round.

    One that failed counts as a trial in which every request took the whole timeout.
    """
    by_arm = {winner.arm(one): one for one in sets}
    rounds: dict[Block | None, dict[Changes, float]] = {t.planned.block: {} for t in trials}
    for trial in trials:
        if trial.usable:
            p99_ms = trial.p99_ms
        elif trial.status == "failed":
            p99_ms = 1000.0 * trial.conditions.timeout_s
        else:
            continue
        rounds[trial.planned.block][by_arm[trial.planned.arm]] = math.log(p99_ms)
    return list(rounds.values())


# Judging it ---------------------------------------------------------------------------------------


def _few(winner: Winner, found: Ablation) -> Changes:
    """The strongest of the set, as many as have no more keys than are wanted; one at least."""
    chosen: list[str] = []
    room = WANTED_KEYS
    for name in found.minimal:
        size = len(winner.changes[name])
        if size <= room or not chosen:
            chosen.append(name)
            room -= size
    return frozenset(chosen)


def _kept(task: Task, fresh: Sequence[Trial], against: str, arm: str) -> Kept:
    """Raises IntopError with fewer than two rounds that have all three arms."""
    p99 = p99_by_round(fresh)
    default, full, smaller = paired(*(p99.get(name, {}) for name in (against, WINNER, arm)))
    if len(default) < 2:
        raise IntopError(
            f"{task.title}: only {len(default)} rounds have the default, the winner and the {arm}; "
            f"how much of the gain is kept needs two. Look at the cluster with: intop doctor"
        )
    return kept(default, full, smaller, level=task.context.study.budget.level)


def _order(found: Ablation) -> list[str]:
    """The smallest set first, then the others by evidence."""
    return [*found.minimal, *(n for n in found.order if n not in found.minimal)]


def _contribution(winner: Winner, found: Ablation, name: str) -> Contribution:
    keys = winner.changes[name]
    return Contribution(
        keys=keys,
        before=tuple(winner.values[key][0] for key in keys),
        after=tuple(winner.values[key][1] for key in keys),
        left_out=_known(found.left_out, name),
        alone=_known(found.alone, name),
        missed=_known(found.missed, name),
        dropped=found.dropped.get(name, ""),
    )


def _known(effects: Mapping[str, Effect], name: str) -> Interval | None:
    return _ratio(effects[name]) if name in effects else None


def _ratio(effect: Effect) -> Interval:
    """A difference of logarithms as a ratio; no interval is wider than a float can say."""
    low, mean, high = (
        math.exp(max(-700.0, min(700.0, x))) for x in (effect.low, effect.mean, effect.high)
    )
    return Interval(mean, low, high)
