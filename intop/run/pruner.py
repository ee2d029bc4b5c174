"""Which trials are stopped before their end, and at what limit.

A trial of a stage that explores has done its duty once its P99 is certainly far above the
default's: it is a bad configuration, and by how much hardly matters. The default itself is never
pruned, nor is anything that a verdict or a multi-arm comparison rests on.
"""

from collections.abc import Iterable
from typing import Any

from intop.domain.stats import geometric_mean
from intop.domain.trial import PlannedTrial, Trial
from intop.run.stage import Stage


def prune_above_ms(stage: Stage[Any], planned: PlannedTrial, made: Iterable[Trial]) -> float | None:
    """The P99 (ms) above which a trial is pruned; None where it is not to be.

    That is `prune_factor` of the budget (0 prunes none) times the geometric mean of the P99 of the
    usable trials of the default among `made`, the trials of this stage so far.
    """
    factor = stage.budget.prune_factor
    if not stage.explores or planned.configuration.is_default or not factor:
        return None
    defaults = [t.p99_ms for t in made if t.configuration.is_default and t.usable]
    return factor * geometric_mean(defaults) if defaults else None
