"""What a refinement did: trials that were chosen in small steps, each by all trials before it."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from intop.domain.configuration import Configuration
from intop.domain.trial import PlannedTrial

End = Literal["budget", "nothing better expected", "nothing left"]
"""Why no step follows: the budget is spent, the models expect no gain, or there is nothing more to
propose."""


@dataclass(frozen=True, kw_only=True)
class BestKnown:
    """The configuration that is believed to be best, with the geometric mean of its P99s (ms)."""

    configuration: Configuration
    p99_ms: float
    trials: int


@dataclass(frozen=True, kw_only=True)
class RefineStep:
    """One step: `trials` configurations that were measured together, and what that came to.

    `reasons` counts them by why they were measured (promise, uncertainty, replicate). When it was
    decided on, the best of them was expected to lower the tail's logarithm by `improvement` below
    the best known (Trial.tail_ms). `best` is what is known after it; `spent` are the trials of all
    steps so far.
    """

    number: int
    reasons: dict[str, int]
    improvement: float
    spent: int
    failures: int
    best: BestKnown

    @property
    def trials(self) -> int:
        """How many were measured in it."""
        return sum(self.reasons.values())


@dataclass(frozen=True, kw_only=True)
class Refined:
    """The steps of a refinement of `budget` trials, and why it ended.

    `before` is the best known of the first design, of `collected` configurations. `improvement` is
    what a further step was expected to bring when it `ended` since nothing better was; else None.
    `earlier` trials of earlier campaigns were taken into account when trials were chosen; they
    are in none of the figures here. `default_p99_ms` is the geometric mean of all usable trials of
    the default in both stages. The trials are not here: they are in the store.
    """

    before: BestKnown
    collected: int
    steps: tuple[RefineStep, ...]
    ended: End
    budget: int
    earlier: int
    default_p99_ms: float
    improvement: float | None = None

    @property
    def spent(self) -> int:
        """The trials that were measured, without those of the default."""
        return self.steps[-1].spent if self.steps else 0

    @property
    def best(self) -> BestKnown:
        """What is known at the end."""
        return self.steps[-1].best if self.steps else self.before


def expected_percent(improvement: float) -> float | None:
    """By how many percent P99 falls when its logarithm does by that; None for what is no number."""
    return -100 * math.expm1(-improvement) if math.isfinite(improvement) else None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a step was decided on by: the best known before it, and what it was to bring."""

    best: BestKnown
    improvement: float


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """The decisions on all steps so far, in their order, also on one that was not worth its trials.

    Each is kept as it is made, so that a stage that was killed needs not fit all models again.
    """

    made: tuple[Decision, ...] = ()


def reasons(places: Iterable[PlannedTrial]) -> dict[str, int]:
    """How many of the places were planned for which reason; the default's have none."""
    return dict(sorted(Counter(p.reason for p in places if p.reason).items()))


def last_step(plan: Sequence[PlannedTrial]) -> int:
    """How many steps a plan has."""
    return max((p.step or 0 for p in plan), default=0)
