"""explain: the smallest set of a winner's changes that keeps its gain, found by measurement."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from intop.domain.ablation import Ablation, Asked, Changes, Effect, Round, ablate
from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.explanation import (
    WANTED_KEYS,
    Contribution,
    Explanation,
    Interaction,
    Kept,
    Offer,
    kept,
)
from intop.domain.results import Verdict
from intop.domain.space import Space, mixture
from intop.domain.stats import RatioInterval
from intop.domain.trial import Block, PlannedTrial, Trial
from intop.errors import IntopError, UsageError
from intop.pipeline import steps
from intop.pipeline.baselines import chosen_baselines, fit
from intop.pipeline.blocks import Arms, blocks, p99_by_round
from intop.pipeline.context import Task
from intop.pipeline.dependence import curves
from intop.pipeline.measuring import measure_plan
from intop.pipeline.pilot import timed
from intop.pipeline.sampling import required_space
from intop.pipeline.verifying import Place, judge

WINNER, SMALLEST, FEW = "winner", "smallest set", "best few"
FEWEST_ROUNDS = 4
"""Of `intop explain` where the file says that `tune` explains nothing."""


def explain(task: Task) -> Explanation | Verdict:
    """Find the smallest set of changes that keeps the winner's gain, and judge it.

    A verdict that is no gain is returned as it is, and nothing is measured. Raises
    ResultMissingError before there is a verdict.
    """
    verdict = task.store.get(task.subject, Verdict)
    if verdict is None:
        raise steps.missing(task, "no verdict yet, so there is no winner to explain", "verify")
    if verdict.outcome != "gain":
        return verdict
    task = timed(task)
    winner = Winner.of(required_space(task), verdict.configuration, _base(task, verdict))
    found = _ablated(task, winner)
    explanation = _judged(task, verdict, winner, found)
    task.store.put(task.subject, explanation)
    return explanation


@dataclass(frozen=True)
class Winner:
    """A winner as changes to what it is held against, by the name of each change."""

    configuration: Configuration
    base: Configuration
    changes: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, str]]
    same: tuple[str, ...]

    @classmethod
    def of(cls, space: Space, configuration: Configuration, base: Configuration) -> "Winner":
        """Keys that only change together are one change; what equals the base is none."""
        groups = [tuple(sorted(g)) for g in space.together(configuration, base)]
        changed = {key for group in groups for key in group}
        before, after = ({**space.defaults, **c.values} for c in (base, configuration))
        return cls(
            configuration=configuration,
            base=base,
            changes={" + ".join(g): g for g in sorted(groups)},
            values={key: (before.get(key, ""), after.get(key, "")) for key in sorted(changed)},
            same=tuple(key for key in configuration.values if key not in changed),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The changes."""
        return tuple(self.changes)

    def made(self, changes: Changes) -> Configuration:
        """The base with these changes."""
        if not changes:
            return self.base
        keys = [key for name in changes for key in self.changes[name]]
        # What equals the base is no change, and is left out of all but the winner itself.
        return mixture(self.configuration, self.base, keys)

    def arm(self, changes: Changes) -> str:
        """What a set is called in a round; no two have one name."""
        if not changes:
            return HOST
        lacking = sorted(set(self.names) - changes)
        if not lacking:
            return WINNER
        if len(lacking) <= len(changes):
            return f"without {', '.join(lacking)}"
        return f"only {', '.join(sorted(changes))}"

    def arms(self, sets: Sequence[Changes]) -> Arms:
        """What is measured, by name."""
        return {self.arm(one): self.made(one) for one in sets}


def _base(task: Task, verdict: Verdict) -> Configuration:
    """What the verdict's default applied."""
    if not verdict.against:
        return DEFAULT
    (baseline,) = chosen_baselines(task.context.study, (verdict.against,))
    return fit(task, baseline).configuration


# Finding the set ----------------------------------------------------------------------------------


def _ablated(task: Task, winner: Winner) -> Ablation:
    """The smallest set, by the stored rounds and those that are measured now."""
    if not winner.names:
        raise IntopError(
            f"{task.title}: the winner changes nothing, so there is nothing to explain. "
            f"Begin anew with: intop tune --new"
        )

    def more(trials: Sequence[Trial]) -> list[PlannedTrial]:
        asked = _next(task, winner, trials)
        if isinstance(asked, Ablation):
            return []
        plan = task.store.plan(task.subject, "explain")
        series = plan[-1].series + 1 if plan else 1
        arms = winner.arms(asked.sets)
        return blocks(task, "explain", arms, asked.rounds, series=series, start=len(plan))

    start = _judging_start(task)
    if start is None:
        trials = measure_plan(task, "explain", lambda _: more(()), failures_count=False, more=more)
    else:
        trials = [t for t in task.trials("explain") if t.planned.index < start]
    found = _next(task, winner, trials)
    if isinstance(found, Asked):
        raise IntopError(f"{task.title}: the explanation's trials in the store are not complete")
    return found


def _judging_start(task: Task) -> int | None:
    """The first place of the judgement, None while there is none."""
    plan = task.store.plan(task.subject, "explain")
    series = {p.series for p in plan if p.arm == SMALLEST}
    return min((p.index for p in plan if p.series in series), default=None)


def _next(task: Task, winner: Winner, trials: Sequence[Trial]) -> Asked | Ablation:
    """What the search asks for after these trials, or what it has found."""
    budget = task.context.study.budget
    search = ablate(winner.names, rounds=budget.explain_rounds or FEWEST_ROUNDS, level=budget.level)
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


def _judged(task: Task, verdict: Verdict, winner: Winner, found: Ablation) -> Explanation:
    """The set, the winner and the default in fresh rounds, and all of it as a result."""
    budget = task.context.study.budget
    minimal: Changes = frozenset(found.minimal)
    few = _few(winner, found)
    arms = {WINNER: winner.configuration}
    if few != minimal:
        arms[FEW] = winner.made(few)
    plan = task.store.plan(task.subject, "explain")
    start = _judging_start(task)
    place = Place(
        stage="explain",
        rounds=budget.explain_pairs,
        looks=1,
        series=plan[-1].series + (start is None),
        start=len(plan) if start is None else start,
        beside=arms,
    )
    against = verdict.against or HOST
    judgement = judge(task, SMALLEST, winner.made(minimal), against, place)
    trials = task.trials("explain")
    fresh = [t for t in trials if t.planned.index >= place.start]
    share = partial(_kept, task, fresh, against)
    explanation = Explanation(
        winner=winner.configuration,
        minimal=winner.made(minimal),
        contributions=tuple(_contribution(winner, found, name) for name in _order(found)),
        interactions=tuple(
            Interaction(one=one, other=other, ratio=_ratio(effect))
            for (one, other), effect in found.interactions.items()
        ),
        same=winner.same,
        verdict=judgement,
        kept=share(SMALLEST),
        offer=Offer(configuration=arms[FEW], kept=share(FEW)) if FEW in arms else None,
        level=budget.level,
        trials=len(trials),
    )
    lines, reason = curves(task, explanation, trials)
    return replace(explanation, curves=lines, without_curves=reason)


def _few(winner: Winner, found: Ablation) -> Changes:
    """The strongest of the set, as many as have no more keys than are wanted; one at least."""
    chosen: list[str] = []
    room = WANTED_KEYS
    for name in found.minimal:
        room -= len(winner.changes[name])
        if room < 0 and chosen:
            break
        chosen.append(name)
    return frozenset(chosen)


def _kept(task: Task, fresh: Sequence[Trial], against: str, arm: str) -> Kept:
    """Raises IntopError with fewer than two rounds that have all three arms."""
    p99 = p99_by_round(fresh)
    three = [p99.get(name, {}) for name in (against, WINNER, arm)]
    rounds = [n for n in three[0] if all(n in one for one in three)]
    if len(rounds) < 2:
        raise IntopError(
            f"{task.title}: only {len(rounds)} rounds have the default, the winner and the {arm}; "
            f"how much of the gain is kept needs two. Look at the cluster with: intop doctor"
        )
    default, full, smaller = ([one[n] for n in rounds] for one in three)
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


def _known(effects: Mapping[str, Effect], name: str) -> RatioInterval | None:
    return _ratio(effects[name]) if name in effects else None


def _ratio(effect: Effect) -> RatioInterval:
    """A difference of logarithms as a ratio; no interval is wider than a float can say."""
    low, mean, high = (
        math.exp(max(-700.0, min(700.0, x))) for x in (effect.low, effect.mean, effect.high)
    )
    return RatioInterval(mean, low, high)
