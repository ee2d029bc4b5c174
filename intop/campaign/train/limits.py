"""The limits of a training: by the study, its trials' time and their noise."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from intop.domain.histogram import Histogram
from intop.domain.replicates import together
from intop.domain.training import NEAR_CEILING, Ceiling
from intop.domain.trial import Trial
from intop.run.context import Task

if TYPE_CHECKING:
    from intop.learn.samples import Samples
    from intop.learn.tuning_effort import Effort

TAUGHT = ("screen", "collect", "refine")
"""The stages whose trials models may learn from."""


def noise_ceiling(task: Task, samples: "Samples", trials: Sequence[Trial]) -> Ceiling | None:
    """Return the accuracy of a perfect model of what was collected and refined."""
    from intop.learn.ceiling import ceiling

    return ceiling(samples.own, _histograms(task, trials), task.workload.judged_by)


def limited_effort(task: Task, best: Ceiling | None) -> "Effort":
    """Return the effort of a task's training, where a perfect model has the accuracy `best`."""
    from intop.learn.tuning_effort import Effort

    budget = task.context.study.budget
    return Effort(
        folds=budget.folds,
        trials=budget.tuning_trials,
        timeout_s=budget.tuning_timeout_s,
        seed=task.seed("train"),
        repeats=budget.repeats,
        level=budget.level,
        time_s=budget.tuning_share * trials_s(task) if budget.tuning_share else None,
        # Of errors in per cent, those of the logarithm: about the same where they are small.
        enough=NEAR_CEILING * math.log1p(best.mape / 100) if best else 0.0,
    )


def trials_s(task: Task) -> float:
    """Return the seconds that the trials took, measured side by side on the replicas."""
    trials = [trial for stage in TAUGHT for trial in task.trials(stage)]
    replicas = len({trial.replica for trial in trials})
    return math.fsum(trial.seconds for trial in trials) / max(replicas, 1)


def _histograms(task: Task, trials: Sequence[Trial]) -> list[list[Histogram]]:
    """Return the latencies behind each row; none where models learn something else."""
    if task.context.study.objective == "component":
        return []
    return [
        [t.histogram for t in row if t.usable and t.histogram is not None]
        for row in together(trials)
    ]
