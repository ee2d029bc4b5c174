"""Further pairs of a verdict: the error rate that is kept for them, and how many would decide it.

A verdict spends all but RESERVE of its error rate (1 - level). Each look at further pairs spends
half of what is left of the reserve. So the intervals of all looks hold together at the level
(Bonferroni), however many there are, and however the number of pairs was chosen between them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from intop.domain.stats import Interval, Look, looks, student_quantile

RESERVE = 0.2
"""The part of a verdict's error rate that is kept for looks at further pairs. It makes the first
interval 6 % wider over ten pairs. A half would make it 19 % wider, and save hardly any of the
further pairs."""

MATTERS = 1.2
"""The factor by which latency has to change for it to matter: between a parameter's values, or from
the default to a winner."""

FEWEST, MOST = 3, 50
"""Further pairs of one look that are advised. Fewer are not worth the level of a look."""

POWER_SD = 0.84
"""Standard errors that four of five means stay above, below their expectation."""


@dataclass(frozen=True, kw_only=True)
class EarlierLook:
    """A look at the pairs before the one that a verdict rests on."""

    pairs: int
    ratio: Interval
    """The geometric mean of default latency / tuned latency over these pairs."""
    level: float
    """The level of the ratio's interval."""


@dataclass(frozen=True, kw_only=True)
class Further:
    """An estimate of the further pairs that would decide a verdict."""

    pairs: int
    seconds: float | None
    """The time that they take; None where too few trials tell the pace."""


def first_level(level: float) -> float:
    """Return the level of all looks before further pairs together."""
    return 1 - (1 - level) * (1 - RESERVE)


def further_level(level: float, number: int) -> float:
    """Return the level of the look at the further pairs that are the `number`-th, from 1 on."""
    return 1 - (1 - level) * RESERVE * 0.5**number


def looks_with_reserve(
    rounds: int, count: int, further: Sequence[int], *, level: float
) -> tuple[Look, ...]:
    """Return up to `count` looks at the first `rounds`, and one after each further part of rounds.

    `further` has the rounds of each part. The intervals of all looks hold together at `level`.
    """
    schedule = [*looks(rounds, count, level=first_level(level))]
    for number, more in enumerate(further, start=1):
        schedule.append(Look(schedule[-1].rounds + more, further_level(level, number)))
    return tuple(schedule)


def pairs_to_decide(ratios: Sequence[float], *, level: float) -> int:
    """Return how many more pairs would show a gain, or exclude one that matters.

    `ratios` are default / tuned latency of the pairs so far. The next look has this `level`.
    If their scatter and their mean are the true ones, so many are enough in four cases of five. It
    is FEWEST to MOST. Raises StatisticsError for fewer than two ratios.
    """
    logs = [math.log(ratio) for ratio in ratios]
    mean, scatter = fmean(logs), stdev(logs)
    distance = max(mean, math.log(MATTERS) - mean)

    def is_enough(pairs: int) -> bool:
        errors = student_quantile(level, pairs - 1) + POWER_SD
        return errors * scatter / math.sqrt(pairs) <= distance

    return next((more for more in range(FEWEST, MOST) if is_enough(len(logs) + more)), MOST)


def pairs_to_settle(
    distances: Iterable[float], pairs: int, *, level: float, next_level: float
) -> int:
    """Return how many more pairs would show whether each guardrail in doubt is kept or broken.

    `distances` are the guardrails' `distance` by the intervals of so many `pairs`, at `level`. The
    next look has `next_level`. If effects and scatter are the true ones, an interval then ends at
    its margin: an even chance. The result is FEWEST to MOST.
    """

    def half_width(count: int, level: float) -> float:
        return student_quantile(level, count - 1) / math.sqrt(count)

    narrow = min(distances) * half_width(pairs, level)
    further = range(FEWEST, MOST)
    return next((n for n in further if half_width(pairs + n, next_level) <= narrow), MOST)
