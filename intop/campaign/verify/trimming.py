"""The fewest changes of a winner that are worth their place, by a few rounds of measurement.

Three steps ask for rounds, each of them in fresh ones:

1. The first one, two, three, five and eight changes of an order, and all of them. The smallest set
   stays whose P99 is as low as the lowest's.
2. That set without each of its changes. What is as low without a change drops it.
3. The set that is left, beside that of step 2, where several changes were dropped at once: of two
   that do the same, each seems to do nothing. If its P99 is clearly higher, by two standard errors,
   the larger set stays.

As low means within MARGIN, or within a standard error of the difference (the one standard error
rule of Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984): a change
has to show that it is worth it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intop.campaign.verify.change_rounds import (
    Asking,
    Changes,
    Effect,
    NextRounds,
    Rounds,
)

SIZES = (1, 2, 3, 5, 8)
"""The sizes of the sets of step 1, beside all changes."""
MOST_ARMS = 12
"""The most arms of step 2. Of more changes, the last ones are left out in groups."""
MARGIN = math.log(1.05)
"""A difference of P99 that is nothing, as a logarithm."""
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Trimming:
    """The changes that stay, and what the rounds say of each set and change."""

    kept: Changes
    prefixes: Mapping[Changes, Effect]
    """By set of step 1: log P99 with it less that with all changes."""
    left_out: Mapping[Changes, Effect]
    """By change of step 2, or group of changes: log P99 without it less that with it."""


def trim(names: Sequence[str], rounds: int) -> Asking[Trimming]:
    """Yield the sets to measure, and return the fewest of these changes that are worth it.

    `names` begins with the change that most speaks for. Each step has so many rounds.
    """
    shortest, effects = yield from _shortest(names, rounds)
    kept, left_out = yield from _each_left_out([n for n in names if n in shortest], rounds)
    if len(shortest - kept) > 1:
        kept = yield from _all_left_out(shortest, kept, rounds)
    return Trimming(kept=kept, prefixes=effects, left_out=left_out)


def _shortest(
    names: Sequence[str], rounds: int
) -> Asking[tuple[Changes, Mapping[Changes, Effect]]]:
    """The smallest prefix whose P99 is as low as the lowest's."""
    whole = frozenset(names)
    sets = [frozenset(names[:size]) for size in SIZES if size < len(names)]
    if not sets:
        return whole, {}
    measured = Rounds((yield NextRounds((*sets, whole), rounds)))
    to_whole = _effects(measured, {changes: {changes: 1, whole: -1} for changes in sets})
    lowest = min(to_whole, key=lambda changes: to_whole[changes].mean, default=whole)
    if not to_whole or to_whole[lowest].mean > 0:
        lowest = whole
    smaller = [changes for changes in to_whole if len(changes) < len(lowest)]
    to_lowest = _effects(measured, {changes: {changes: 1, lowest: -1} for changes in smaller})
    as_low = [changes for changes, effect in to_lowest.items() if _is_nothing(effect)]
    return min(as_low, key=len, default=lowest), to_whole


def _each_left_out(
    names: Sequence[str], rounds: int
) -> Asking[tuple[Changes, Mapping[Changes, Effect]]]:
    """The changes without which P99 is higher, or the most helpful ones."""
    changes = frozenset(names)
    if len(changes) < 2:
        return changes, {}
    groups = _in_groups(names)
    measured = Rounds((yield NextRounds((changes, *(changes - g for g in groups)), rounds)))
    effects = _effects(measured, {group: {changes - group: 1, changes: -1} for group in groups})
    # What could not be measured without a change says nothing against the change.
    dropped = [group for group, effect in effects.items() if _is_nothing(effect)]
    if len(dropped) == len(groups):
        dropped.remove(max(dropped, key=lambda group: effects[group].mean))
    return changes.difference(*dropped), effects


def _in_groups(names: Sequence[str]) -> list[Changes]:
    """Return each change by itself, and of many the last ones in groups."""
    if len(names) <= MOST_ARMS:
        return [frozenset({name}) for name in names]
    singles = [frozenset({name}) for name in names[: MOST_ARMS // 2]]
    rest, groups = names[len(singles) :], MOST_ARMS - len(singles)
    return [*singles, *(frozenset(rest[n::groups]) for n in range(groups))]


def _all_left_out(changes: Changes, kept: Changes, rounds: int) -> Asking[Changes]:
    """The smaller of two sets, unless its P99 is clearly higher."""
    measured = Rounds((yield NextRounds((changes, kept), rounds)))
    effects = _effects(measured, {kept: {kept: 1, changes: -1}})
    return kept if kept in effects and _is_nothing(effects[kept], errors=2) else changes


def _effects(
    measured: Rounds, contrasts: Mapping[Changes, Mapping[Changes, int]]
) -> dict[Changes, Effect]:
    names = {str(n): changes for n, changes in enumerate(contrasts)}
    effects = measured.effects({n: contrasts[names[n]] for n in names}, LEVEL)
    return {names[n]: effect for n, effect in effects.items()}


def _is_nothing(effect: Effect, errors: float = 1) -> bool:
    """Whether P99 is not higher by more than the margin, or so many standard errors."""
    return effect.mean <= max(MARGIN, errors * effect.error)
