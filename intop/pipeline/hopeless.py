"""Which trials are stopped before their end, and at what limit.

A trial of `screen`, `collect` or `refine` has done its duty once its P99 is certainly far above the
default's: it is a bad configuration, and by how much hardly matters. The default itself is never
stopped, nor is what a verdict or a contest rests on.
"""

from collections.abc import Iterable

from intop.domain.stats import geometric_mean
from intop.domain.trial import PlannedTrial, Stage, Trial

STAGES: tuple[Stage, ...] = ("screen", "collect", "refine")


def limit_ms(
    planned: PlannedTrial, stage: Stage, made: Iterable[Trial], factor: float
) -> float | None:
    """The P99 (ms) above which a trial is hopeless; None where it is not to be stopped.

    That is `factor` (of the budget; 0 stops none) times the geometric mean of the P99 of the usable
    trials of the default among `made`, the trials of this stage so far.
    """
    if stage not in STAGES or planned.configuration.is_default or not factor:
        return None
    defaults = [t.p99_ms for t in made if t.configuration.is_default and t.usable]
    return factor * geometric_mean(defaults) if defaults else None


def told(stopped_after_s: float | None, planned_s: float, hopeless_ms: float | None) -> str:
    """Why a trial was stopped, in a sentence; empty where it was not."""
    if stopped_after_s is None or hopeless_ms is None:
        return ""
    return (
        f"stopped after {stopped_after_s:.1f} of {planned_s:g} s: "
        f"its P99 is certainly above {hopeless_ms:.0f} ms (hopeless x the default's)"
    )
