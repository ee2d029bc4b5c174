"""The study's baselines, as the stages use them."""

from collections.abc import Sequence

from intop.config.study import Study
from intop.domain.baseline import Baseline, Fitted, fitted
from intop.errors import ResultMissingError, UsageError
from intop.pipeline.bench import stored_probed
from intop.pipeline.context import Task


def chosen_baselines(study: Study, names: Sequence[str]) -> tuple[Baseline, ...]:
    """The baselines asked for, all of them for none. Raises UsageError for one that is unknown."""
    for name in names:
        if name not in study.baselines:
            raise UsageError(
                f"there is no baseline {name}; there are {', '.join(study.baselines)}. "
                f"Another is a file NAME.toml in a folder that [study] baselines names"
            )
    return tuple(study.baselines[name] for name in dict.fromkeys(names or study.baselines))


def fit(task: Task, baseline: Baseline) -> Fitted:
    """A baseline on the task's host as it was probed. Raises ResultMissingError before that."""
    probed = stored_probed(task)
    if probed is None:
        raise ResultMissingError(f"{task.title}: the host was not looked at yet")
    return fitted(baseline, probed)
