"""The outcome of an explanation: what each change does, and how much of the gain a set keeps."""

import math
from collections.abc import Mapping, Sequence
from statistics import stdev

from intop.campaign.verify.change_rounds import Changes, Effect
from intop.campaign.verify.winner import Winner
from intop.domain.explanation import WANTED_KEYS, Contribution, Kept
from intop.domain.rounds import judged_by_round, paired
from intop.domain.stats import Interval, paired_ratio, student_quantile
from intop.domain.trial import Trial
from intop.errors import IntopError
from intop.explain.ablation import Ablation
from intop.run.context import Task


def few_of(winner: Winner, ablation: Ablation) -> Changes:
    """Return the strongest changes with WANTED_KEYS keys at most; one change at least."""
    chosen: list[str] = []
    room = WANTED_KEYS
    for name in ablation.minimal:
        size = len(winner.changes[name])
        if size <= room or not chosen:
            chosen.append(name)
            room -= size
    return frozenset(chosen)


def by_evidence(ablation: Ablation) -> list[str]:
    """Return the smallest set first, then the other changes by evidence."""
    return [*ablation.minimal, *(n for n in ablation.order if n not in ablation.minimal)]


def contribution(winner: Winner, ablation: Ablation, name: str) -> Contribution:
    """Return what one change of the winner does."""

    def ratio(effects: Mapping[str, Effect]) -> Interval | None:
        return effects[name].ratio if name in effects else None

    keys = winner.changes[name]
    return Contribution(
        keys=keys,
        before=tuple(winner.values[key][0] for key in keys),
        after=tuple(winner.values[key][1] for key in keys),
        left_out=ratio(ablation.left_out),
        alone=ratio(ablation.alone),
        missed=ratio(ablation.missed),
        dropped=ablation.dropped.get(name, ""),
    )


def kept_by(task: Task, trials: Sequence[Trial], arms: tuple[str, str, str]) -> Kept:
    """Return the share of the gain that the last arm keeps, beside the default and the winner.

    Raises IntopError with fewer than two rounds that have all three arms.
    """
    judged_ms = judged_by_round(trials)
    default, full, smaller = paired(*(judged_ms.get(arm, {}) for arm in arms))
    if len(default) < 2:
        raise IntopError(
            f"{task.title}: only {len(default)} rounds have the default, the winner and the "
            f"{arms[-1]}; how much of the gain is kept needs two. Look at the cluster with: "
            f"intop doctor"
        )
    return kept(default, full, smaller, level=task.context.study.budget.level)


def kept(
    default: Sequence[float], full: Sequence[float], smaller: Sequence[float], *, level: float
) -> Kept:
    """Return the share of the gain that a smaller set keeps, by latencies (ms) of common rounds.

    The interval is Student's t on the linearised share (the delta method): both ratios hang on
    the same default, which the rounds account for. Where the winner has no gain in these rounds,
    the share is NaN. Raises ValueError for fewer than two rounds or lists of different lengths.
    """
    ratios = [paired_ratio(default, side, level=level) for side in (full, smaller)]
    gain, less = (ratio.value - 1 for ratio in ratios)
    rounds = len(default)
    share = low = high = math.nan
    if gain > 0:
        share = less / gain
        slopes = -share * ratios[0].value / gain, ratios[1].value / gain
        linear = [
            slopes[0] * math.log(d / f) + slopes[1] * math.log(d / s)
            for d, f, s in zip(default, full, smaller, strict=True)
        ]
        half = student_quantile(level, rounds - 1) * stdev(linear) / math.sqrt(rounds)
        low, high = share - half, share + half
    return Kept(share=share, low=low, high=high, full=ratios[0], smaller=ratios[1], rounds=rounds)
