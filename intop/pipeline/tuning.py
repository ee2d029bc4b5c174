"""tune: all stages after one another, each skipped when its result is there already."""

from collections.abc import Callable
from dataclasses import dataclass

from intop.domain.explanation import Explanation
from intop.domain.refined import Refined
from intop.domain.results import Ranking, Search, Training, Verdict
from intop.pipeline.context import Context, Task
from intop.pipeline.explaining import explain
from intop.pipeline.modelling import search, train
from intop.pipeline.refining import refine
from intop.pipeline.sampling import collect, screen
from intop.pipeline.verifying import verify


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """Everything that one architecture's campaign found out under one workload.

    `refined` is None where the budget has no `refine_trials`.
    """

    arch: str
    workload: str
    ranking: Ranking
    refined: Refined | None
    training: Training
    search: Search
    verdict: Verdict
    explanation: Explanation | None


def tune(context: Context, done: Callable[[Tuned], None]) -> list[Tuned]:
    """All that was asked for, one architecture and workload after the other.

    `done` hears of each as soon as its verdict is there.
    """
    results: list[Tuned] = []
    for task in context.subjects():
        results.append(_tuned(task))
        done(results[-1])
    context.store.finish(context.campaign)
    return results


def _tuned(task: Task) -> Tuned:
    """The stages in reading order."""
    get = task.store.get
    ranking = get(task.subject, Ranking) or screen(task)
    training = get(task.subject, Training)
    if training is None:
        collect(task)
        if task.context.study.budget.refine_trials:
            refine(task)
        training = train(task)
    found = get(task.subject, Search) or search(task)
    verdict = get(task.subject, Verdict) or verify(task)
    return Tuned(
        arch=task.subject.arch,
        workload=task.workload.name,
        ranking=ranking,
        refined=get(task.subject, Refined),
        training=training,
        search=found,
        verdict=verdict,
        explanation=_explained(task, verdict),
    )


def _explained(task: Task, verdict: Verdict) -> Explanation | None:
    """Nothing where there is no gain, or the file does without."""
    if verdict.outcome != "gain" or not task.context.study.budget.explain_rounds:
        return None
    found: Explanation | Verdict | None = task.store.get(task.subject, Explanation)
    if found is None:
        # It takes as long as all before, and who waits wants to know now.
        task.context.progress.say(
            f"{task.title}: gain: {verdict.gain}; next are the fewest changes that keep it"
        )
        found = explain(task)
    return found if isinstance(found, Explanation) else None
