"""The fewest changes of a winner that are worth their place, by a few rounds of measurement.

Four steps ask for rounds, each of them in fresh ones:

1. No change, the first one, two, three, five and eight changes of an order, and all of them. The
   smallest set stays that is as low as the lowest.
2. That set without each of its changes. A change stays where the latency is higher without it.
3. The set that is left, beside that of step 2, beside no change, and without each of its own
   changes. Of two changes that do the same, each seems to do nothing in step 2. The smaller set
   stays if it is as low as the larger one. What does nothing in it goes, too, by step 3 again.
4. A set of several changes without each of them, in twice as many rounds. Now a change has to show
   that it acts: the latency is higher without it, at a one-sided level of 90 %. The less helpful
   half of those that don't show it goes, and the rest is measured again.

A set is judged by the slowest tenth of its requests (`Trial.guide_ms`). In trials of some hundred
requests a P99 rests on one or two of them, and scatters four times as much. A smaller set may lose
a standard error of the difference (the one standard error rule of Breiman, Friedman, Olshen and
Stone, Classification and Regression Trees, 1984), or SHARE of the gain, and EACH of the gain for
every change that it is without. It never may lose more than MOST of the gain, so that noise alone
drops nothing, and MARGIN is nothing at all. Its P99 must not be clearly higher, either. Step 4
asks for more: what the measurements can't tell from nothing goes, however large it may be.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from intop.campaign.verify.change_rounds import Changes, Effect, NextRounds, Round, Rounds

SIZES = (1, 2, 3, 5, 8)
"""The sizes of the sets of step 1, beside none and all changes."""
MOST_ARMS = 12
"""The most arms of step 2. Of more changes, the last ones are left out in groups."""
MARGIN = math.log(1.05)
"""A difference that is nothing, as a logarithm."""
SHARE = 0.1
"""The share of the gain that a smaller set may lose."""
EACH = 0.01
"""The share of the gain that a change has to bring, beside others."""
MOST = 0.25
"""The share of the gain that it may seem to lose, however wide the interval."""
CLEAR_ERRORS = 2.0
"""Standard errors of a difference of latency that is clear."""
PROOF_ROUNDS = 2
"""The rounds of step 4, as a multiple of the others'."""
PROOF_ERRORS = 1.3
"""Standard errors of a difference of the tail that proves a change, one-sided 90 %."""
LEVEL = 0.95
NONE: Changes = frozenset()


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The rounds that were asked for: the logarithms of what is judged, and of the tail."""

    judged: Sequence[Round]
    tail: Sequence[Round]


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A difference between two sets, by both quantities."""

    judged: Effect
    tail: Effect


@dataclass(frozen=True, kw_only=True)
class Trimming:
    """The changes that stay, and what the rounds say of each set and change."""

    kept: Changes
    prefixes: Mapping[Changes, Loss]
    """By set of step 1: latency with it less that with all changes."""
    left_out: Mapping[Changes, Loss]
    """By change, or group of changes, of the last set that was measured without each of its own:
    latency without it less that with it. Step 4 may have dropped one of them."""


class Measured:
    """The rounds of one step, and the gain that they show."""

    def __init__(self, answers: Answers) -> None:
        self._judged = Rounds(answers.judged)
        self._tail = Rounds(answers.tail)

    def losses(self, contrasts: Mapping[Changes, tuple[Changes, Changes]]) -> dict[Changes, Loss]:
        """Return the latency of the first set less that of the second one, by name."""
        named = {str(n): {more: 1, less: -1} for n, (more, less) in enumerate(contrasts.values())}
        judged, tail = (rounds.effects(named, LEVEL) for rounds in (self._judged, self._tail))
        return {
            name: Loss(judged=judged[key], tail=tail[key])
            for key, name in zip(named, contrasts, strict=True)
            if key in judged and key in tail
        }

    def gain(self, changes: Changes) -> float:
        """Return what a set takes off the tail of no change, or 0 where that is not known."""
        loss = self.losses({changes: (NONE, changes)}).get(changes)
        return max(loss.tail.mean, 0.0) if loss else 0.0


Asking = Generator[NextRounds, Answers, Trimming]
StepAsking = Generator[NextRounds, Answers, tuple[Changes, Mapping[Changes, Loss]]]


def trim(names: Sequence[str], rounds: int) -> Asking:
    """Yield the sets to measure, and return the fewest of these changes that are worth it.

    `names` begins with the change that most speaks for. Each step has so many rounds.
    """
    kept, prefixes = yield from _shortest(names, rounds)
    smaller, left_out = yield from _each_left_out([n for n in names if n in kept], rounds)
    while smaller != kept:
        fewest, parts, is_as_low = yield from _together_left_out(kept, smaller, rounds)
        if not is_as_low:
            break
        kept, left_out, smaller = smaller, parts, fewest
    if len(kept) > 1:
        kept, left_out = yield from only_proven(kept, PROOF_ROUNDS * rounds)
    return Trimming(kept=kept, prefixes=prefixes, left_out=left_out)


def _shortest(names: Sequence[str], rounds: int) -> StepAsking:
    """The smallest prefix that is as low as the lowest."""
    whole = frozenset(names)
    sets = [frozenset(names[:size]) for size in SIZES if size < len(names)]
    if not sets:
        return whole, {}
    measured = Measured((yield NextRounds((NONE, *sets, whole), rounds)))
    to_whole = measured.losses({changes: (changes, whole) for changes in sets})
    means = {whole: 0.0} | {changes: loss.tail.mean for changes, loss in to_whole.items()}
    gain = max(map(measured.gain, means))
    lowest = min(means, key=lambda changes: means[changes] + EACH * gain * len(changes))
    smaller = [changes for changes in to_whole if len(changes) < len(lowest)]
    to_lowest = measured.losses({changes: (changes, lowest) for changes in smaller})
    as_low = [
        changes
        for changes, loss in to_lowest.items()
        if is_nothing(loss, gain, len(lowest) - len(changes))
    ]
    return min(as_low, key=len, default=lowest), to_whole


def _each_left_out(names: Sequence[str], rounds: int) -> StepAsking:
    """The changes without which the latency is higher, or the most helpful one."""
    changes = frozenset(names)
    if len(changes) < 2:
        return changes, {}
    groups = _in_groups(names)
    sets = (NONE, changes, *(changes - group for group in groups))
    measured = Measured((yield NextRounds(sets, rounds)))
    losses = measured.losses({group: (changes - group, changes) for group in groups})
    return _without_idle(changes, losses, measured.gain(changes)), losses


def _without_idle(changes: Changes, losses: Mapping[Changes, Loss], gain: float) -> Changes:
    """Return the changes without the groups that do nothing, but at least the most helpful group.

    What could not be measured without a change says nothing against the change.
    """
    dropped = [group for group, loss in losses.items() if is_nothing(loss, gain, len(group))]
    if dropped and changes <= frozenset().union(*dropped):
        dropped.remove(max(dropped, key=lambda group: losses[group].tail.mean))
    return changes.difference(*dropped)


def _in_groups(names: Sequence[str]) -> list[Changes]:
    """Return each change by itself, and of many the last ones in groups."""
    if len(names) <= MOST_ARMS:
        return [frozenset({name}) for name in names]
    singles = [frozenset({name}) for name in names[: MOST_ARMS // 2]]
    rest, groups = names[len(singles) :], MOST_ARMS - len(singles)
    return [*singles, *(frozenset(rest[n::groups]) for n in range(groups))]


def _together_left_out(
    changes: Changes, smaller: Changes, rounds: int
) -> Generator[NextRounds, Answers, tuple[Changes, Mapping[Changes, Loss], bool]]:
    """Measure a smaller set beside the larger one, and without each of its changes.

    Returns what is left of the smaller set without idle changes, the loss without each of its
    changes, and whether it is as low as the larger one.
    """
    parts = _in_groups(sorted(smaller)) if len(smaller) > 1 else []
    sets = (NONE, changes, smaller, *(smaller - part for part in parts))
    measured = Measured((yield NextRounds(sets, rounds)))
    loss = measured.losses({smaller: (smaller, changes)}).get(smaller)
    left_out = measured.losses({part: (smaller - part, smaller) for part in parts})
    fewest = _without_idle(smaller, left_out, measured.gain(smaller))
    count = len(changes) - len(smaller)
    is_as_low = loss is not None and is_nothing(loss, measured.gain(changes), count)
    return fewest, left_out, is_as_low


def only_proven(changes: Changes, rounds: int) -> StepAsking:
    """The changes that show that they act, or the most helpful one.

    The less helpful half of those that don't show it goes, at least one. Of two that do the same,
    each seems to do nothing beside the other, so the larger set is measured once more. Where it is
    lower, only the least helpful change goes. A change without which nothing could be measured
    stays.
    """
    left_out: Mapping[Changes, Loss] = {}
    larger, least = changes, NONE
    while len(changes) > 1:
        parts = _in_groups(sorted(changes))
        doubted = (larger,) if larger - changes > least else ()
        sets = (*doubted, changes, *(changes - part for part in parts))
        measured = Measured((yield NextRounds(sets, rounds)))
        lost = measured.losses({more: (changes, more) for more in doubted})
        if doubted and (larger not in lost or is_proven(lost[larger])):
            changes = larger = larger - least
            continue
        left_out = measured.losses({part: (changes - part, changes) for part in parts})
        unproven = [part for part, loss in left_out.items() if not is_proven(loss)]
        if not unproven:
            break
        unproven.sort(key=lambda part: left_out[part].tail.mean)
        larger, least = changes, unproven[0]
        changes = changes.difference(*unproven[: max(1, len(unproven) // 2)])
    return changes, left_out


def is_proven(loss: Loss) -> bool:
    """Return whether the latency is higher beyond chance, by the tail or by what is judged."""
    is_slower = loss.tail.mean > PROOF_ERRORS * loss.tail.error
    return is_slower or is_clearly_higher(loss.judged)


def is_clearly_higher(judged: Effect) -> bool:
    """Return whether a latency is higher by more than nothing, and than its scatter."""
    return judged.mean > max(MARGIN, CLEAR_ERRORS * judged.error)


def is_nothing(loss: Loss, gain: float, dropped: int) -> bool:
    """Return whether a loss by so many changes fewer may be neglected.

    The gain is the logarithm of a ratio of tails, or of what is judged where there is none.
    """
    accepted = max(SHARE * gain, loss.tail.error) + EACH * gain * dropped
    accepted = max(MARGIN, min(accepted, MOST * gain))
    is_less = loss.tail.mean <= accepted
    # Where there is no tail, both are the same.
    return is_less and (loss.judged == loss.tail or not is_clearly_higher(loss.judged))
