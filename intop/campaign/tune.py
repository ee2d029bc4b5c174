"""tune: all stages after one another, without those that have ended."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from intop.domain.explanation import Explanation
from intop.domain.ranking import Ranking
from intop.domain.refined import Refined
from intop.domain.search import Search
from intop.domain.training import Training
from intop.domain.verdict import Verdict
from intop.run.context import Context, Task
from intop.run.executor import OpenTestbeds, execute
from intop.run.prospect import Prospect
from intop.run.registry import in_tune

T = TypeVar("T")

RECONNECTIONS = 2
"""Lost connections of a task after which a night of work goes on by itself."""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The results of one architecture under one workload."""

    arch: str
    workload: str
    ranking: Ranking
    refined: Refined | None
    """None where the budget has no `refine_trials`."""
    training: Training
    search: Search
    verdict: Verdict
    explanation: Explanation | None
    """None where there is no gain, or the budget has no `explain_rounds`."""


def tune(
    context: Context,
    done: Callable[[Tuned], None],
    begins: Callable[[Task, str], None] = lambda *_: None,
) -> list[Tuned]:
    """Tune all that was asked for, one architecture and workload after the other.

    `begins` hears of each stage before it is carried out, by its name; `done` of each task as soon
    as its verdict is there. Raises AtWorkError where another process works on a task.
    """
    results: list[Tuned] = []
    for task in context.subjects():
        results.append(_tuned(task, begins))
        done(results[-1])
    context.store.finish(context.campaign)
    return results


def _tuned(task: Task, begins: Callable[[Task, str], None]) -> Tuned:
    study, store, subject = task.context.study, task.store, task.subject
    # Connecting, probing and taking the guard takes seconds: the next stage finds it done.
    with OpenTestbeds(reconnections=RECONNECTIONS) as held:
        for stage in in_tune():
            if not stage.is_left(Prospect.of(study, task.workload, subject, store)):
                continue
            task.begin(stage.name)
            begins(task, stage.name)
            if not stage.measures:
                held.close()  # models take a while
            execute(stage.begin(task), on=held)
    return Tuned(
        arch=subject.arch,
        workload=task.workload.name,
        ranking=_required(task, Ranking),
        refined=store.get(subject, Refined),
        training=_required(task, Training),
        search=_required(task, Search),
        verdict=_required(task, Verdict),
        explanation=store.get(subject, Explanation),
    )


def _required(task: Task, kind: type[T]) -> T:
    """Return the result of a stage that nobody can leave out."""
    result = task.store.get(task.subject, kind)
    if result is None:
        raise RuntimeError(f"{task.title}: the stages of tune leave no {kind.__name__}")
    return result
