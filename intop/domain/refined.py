"""Refinements: trials that were chosen in small steps, each by all trials before it."""

import math
from dataclasses import dataclass
from typing import Literal

from intop.domain.configuration import Configuration
from intop.domain.histogram import Statistic

End = Literal["budget", "nothing better expected", "nothing left"]
"""The reason why no step follows: the budget is spent, the models expect no gain, or there is
nothing more to propose."""


@dataclass(frozen=True, kw_only=True)
class BestKnown:
    """The configuration that is believed to be best."""

    configuration: Configuration
    judged_ms: float
    """The geometric mean of its trials."""
    trials: int


@dataclass(frozen=True, kw_only=True)
class RefineStep:
    """One step: configurations that were measured together, and the best known after it."""

    number: int
    reasons: dict[str, int]
    """Trials by reason: promise, uncertainty or replicate."""
    improvement: float
    """The expected fall of the logarithm of Trial.guide_ms by the best of them, below the best
    known."""
    spent: int
    """Trials of all steps so far."""
    failures: int
    best: BestKnown

    @property
    def trials(self) -> int:
        """The number of trials that were measured in it."""
        return sum(self.reasons.values())


@dataclass(frozen=True, kw_only=True)
class Refined:
    """The steps of a refinement, and why it ended.

    The trials are not here: they are in the store.
    """

    before: BestKnown
    """The best known of the first design."""
    collected: int
    """Configurations of the first design."""
    steps: tuple[RefineStep, ...]
    ended: End
    budget: int
    """Trials that all steps may take."""
    earlier: int
    """Trials of earlier campaigns that were taken into account when trials were chosen. They are in
    none of the figures here."""
    default_ms: float
    """The geometric mean of all usable trials of the default in both stages."""
    judged_by: Statistic = "P99"
    improvement: float | None = None
    """The expected gain of a further step, where the refinement ended since nothing better was
    expected."""
    least: float | None = None
    """The gain from which on that step would have been worth its trials."""

    @property
    def spent(self) -> int:
        """The trials that were measured, without those of the default."""
        return self.steps[-1].spent if self.steps else 0

    @property
    def best(self) -> BestKnown:
        """The best known at the end."""
        return self.steps[-1].best if self.steps else self.before


def expected_percent(improvement: float) -> float | None:
    """Return by how many percent a latency falls with its logarithm, None for no number."""
    return -100 * math.expm1(-improvement) if math.isfinite(improvement) else None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The basis on which a step was decided."""

    best: BestKnown
    """The best known before the step."""
    improvement: float
    """The improvement that was expected of it."""
    least: float = 0.01
    """The improvement from which on it is worth its trials. Decisions of before it was kept went by
    a hundredth."""


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """The decisions on all steps so far, in their order, the last one perhaps against a step.

    Each is kept as it is made, so that a stage that was killed needs not fit all models again.
    """

    made: tuple[Decision, ...] = ()
