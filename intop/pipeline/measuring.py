"""Carrying out a plan of trials: what is stored, is not measured again."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial, Stage, Trial
from intop.pipeline.bench import Bench
from intop.pipeline.carrying import carry_out, is_due_again
from intop.pipeline.context import Task
from intop.pipeline.replicas import benches


def with_sentinels(
    configurations: Sequence[Configuration], every: int, replicas: int = 1
) -> list[PlannedTrial]:
    """The default first, then the configurations, the default again after every so many.

    Replicas take turns: on each of them stands the default first, and again after every so many.
    """
    plan = [PlannedTrial(index=n, role="baseline", configuration=DEFAULT) for n in range(replicas)]
    for count, configuration in enumerate(configurations, start=1):
        plan.append(PlannedTrial(index=len(plan), role="design", configuration=configuration))
        if count % (every * replicas) == 0:
            plan += [
                PlannedTrial(index=len(plan) + n, role="sentinel", configuration=DEFAULT)
                for n in range(replicas)
            ]
    return plan


def measure_plan(
    task: Task,
    stage: Stage,
    make_plan: Callable[[Bench], list[PlannedTrial]],
    *,
    start: int = 0,
    on: Bench | None = None,
    failures_count: bool = True,
    looks: Callable[[Sequence[PlannedTrial]], Sequence[int]] = lambda _: (),
    enough: Callable[[Sequence[Trial]], bool] = lambda _: False,
    more: Callable[[Sequence[Trial]], list[PlannedTrial]] = lambda _: [],
) -> list[Trial]:
    """All trials of a stage: those that are in the store, and now the missing ones.

    The plan is made once and stored, so that a resumed stage measures what it set out to. Places
    before `start` are left alone: they were given up for later ones. They are measured on the one
    bench that is open already (`on`), or on all that agree.
    After the first so many places of each of the plan's `looks`, when all of them are measured,
    `enough` is asked of their trials whether they will do. When all is measured, `more` is asked
    for further places, until it has none. Both must go by the trials alone, so that a stage that
    was killed goes on and ends as it would have.
    Raises BaselineError when the default can't be measured, IntopError when too many fail, unless
    a failure is no more than a result there (`failures_count`).
    """
    plan = [p for p in task.store.plan(task.subject, stage) if p.index >= start]
    # Read once and kept up to date: every stored trial costs some ms to decode.
    made = {t.planned.index: t for t in task.trials(stage) if t.planned.index >= start}
    if plan and not _due(task, plan, made, looks(plan), enough) and not more(_in_order(plan, made)):
        return _in_order(plan, made)
    progress = task.context.progress
    with benches(task) if on is None else nullcontext((on,)) as ready:
        if not plan:
            plan = make_plan(ready[0])
            task.store.write_plan(task.subject, stage, plan)
        limit = task.context.study.budget.max_failures if failures_count else len(plan)
        while True:
            done = len(plan) - len(_missing(task, plan, made))
            progress.begin(f"{task.title}: {stage}", len(plan), done)
            try:
                while due := _due(task, plan, made, looks(plan), enough):
                    carry_out(ready, stage, due, made, max_failures=limit)
            finally:
                progress.end()
            further = more(_in_order(plan, made))
            if not further:
                return _in_order(plan, made)
            task.store.write_plan(task.subject, stage, further)
            plan += further


def _due(
    task: Task,
    plan: Sequence[PlannedTrial],
    made: Mapping[int, Trial],
    looks: Sequence[int],
    enough: Callable[[Sequence[Trial]], bool],
) -> list[PlannedTrial]:
    """What is missing up to the next look, or to the end; nothing when the stage has ended."""
    for end in sorted({*looks, len(plan)}):
        if missing := _missing(task, plan[:end], made):
            return missing
        if end in looks and enough(_in_order(plan[:end], made)):
            return []
    return []


def _missing(
    task: Task, plan: Sequence[PlannedTrial], made: Mapping[int, Trial]
) -> list[PlannedTrial]:
    """What has no trial yet, or only one that is due again.

    Due again is a disturbed trial with attempts left, and a default that failed: nothing can do
    without it.
    """

    def is_missing(planned: PlannedTrial) -> bool:
        trial = made.get(planned.index)
        return (
            trial is None
            or is_due_again(task, trial)
            or (trial.status == "failed" and trial.configuration.is_default)
        )

    return [p for p in plan if is_missing(p)]


def _in_order(plan: Sequence[PlannedTrial], made: Mapping[int, Trial]) -> list[Trial]:
    return [made[p.index] for p in plan if p.index in made]
