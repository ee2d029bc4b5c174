"""compare: two architectures of one campaign, workload by workload."""

from intop.domain.comparison import Comparison, Side, compared, side
from intop.domain.results import Ranking, Training, Verdict
from intop.domain.workload import Workload
from intop.errors import ResultMissingError
from intop.pipeline.context import Context, Task
from intop.store import Subject


def compare(context: Context, one: str, other: str) -> list[Comparison]:
    """All workloads that were asked for. Raises ResultMissingError for a side without trials."""
    return [
        compared(workload.name, *(_side(context, arch, workload) for arch in (one, other)))
        for workload in context.workloads
    ]


def _side(context: Context, arch: str, workload: Workload) -> Side:
    subject = Subject(campaign=context.campaign, arch=arch, workload=workload.name)
    task = Task(context=context, subject=subject, workload=workload)
    trials = [t for t in task.trials() if t.usable]
    try:
        return side(
            arch,
            trials,
            task.store.get(subject, Verdict),
            task.store.get(subject, Ranking),
            task.store.get(subject, Training),
        )
    except ValueError as error:
        raise ResultMissingError(
            f"{task.title}: nothing to compare ({error}). Measure it first: "
            f"intop collect --arch {arch} --workload {workload.name}"
        ) from error
