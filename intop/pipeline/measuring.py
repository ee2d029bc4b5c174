"""Carrying out a plan of trials: one after the other, each on disk before the next."""

from collections.abc import Callable, Mapping, Sequence

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial, Stage, Trial
from intop.errors import BaselineError, IntopError
from intop.pipeline.bench import Bench, bench
from intop.pipeline.context import Task
from intop.pipeline.hopeless import limit_ms


def with_sentinels(configurations: Sequence[Configuration], every: int) -> list[PlannedTrial]:
    """The default first, then the configurations, the default again after every so many."""
    plan = [PlannedTrial(index=0, role="baseline", configuration=DEFAULT)]
    for count, configuration in enumerate(configurations, start=1):
        plan.append(PlannedTrial(index=len(plan), role="design", configuration=configuration))
        if count % every == 0:
            plan.append(PlannedTrial(index=len(plan), role="sentinel", configuration=DEFAULT))
    return plan


def measure_plan(
    task: Task,
    stage: Stage,
    make_plan: Callable[[Bench], list[PlannedTrial]],
    *,
    start: int = 0,
    failures_count: bool = True,
    enough: Callable[[Sequence[Trial]], bool] = lambda _: False,
) -> list[Trial]:
    """All trials of a stage: those that are in the store, and now the missing ones.

    The plan is made once and stored, so that a resumed stage measures what it set out to. Places
    before `start` are left alone: they were given up for later ones.
    `enough` is asked before a new place is begun whether those that are done will do. It must go
    by these trials alone, so that a stage that was killed ends where it would have ended.
    Raises BaselineError when the default can't be measured, IntopError when too many fail, unless
    a failure is no more than a result there (`failures_count`).
    """
    plan = [p for p in task.store.plan(task.subject, stage) if p.index >= start]
    # Read once and kept up to date: every stored trial costs some ms to decode.
    made = {t.planned.index: t for t in task.trials(stage) if t.planned.index >= start}
    if plan and _ended(_missing(task, plan, made), made, enough):
        return list(made.values())
    with bench(task) as ready:
        if not plan:
            plan = make_plan(ready)
            task.store.write_plan(task.subject, stage, plan)
        limit = task.context.study.budget.max_failures if failures_count else len(plan)
        _carry_out(ready, stage, plan, made, limit, enough)
    return list(made.values())


def _carry_out(
    ready: Bench,
    stage: Stage,
    plan: Sequence[PlannedTrial],
    made: dict[int, Trial],
    limit: int,
    enough: Callable[[Sequence[Trial]], bool],
) -> None:
    """Measure what is missing, and add the last attempt at each trial to `made`, by its place.

    `limit` is how many of them may fail.
    """
    task = ready.task
    missing = _missing(task, plan, made)
    progress = task.context.progress
    progress.begin(f"{task.title}: {stage}", len(plan), len(plan) - len(missing))
    try:
        for number, planned in enumerate(missing):
            if _ended(missing[number:], made, enough):
                break
            before = made.get(planned.index)
            hopeless_ms = limit_ms(
                planned, stage, made.values(), task.context.study.budget.hopeless
            )
            trial = _settled(
                ready, stage, planned, before.attempt + 1 if before else 0, hopeless_ms
            )
            made[planned.index] = trial
            progress.step(_told(trial))
            if trial.status == "failed":
                failures = sum(t.status == "failed" for t in made.values())
                _after_failure(task, trial)
                if failures > limit:
                    raise IntopError(
                        f"{task.title}: {failures} trials of {stage} have failed, more than "
                        f"max_failures ({limit}) allows; the last one: {trial.detail}"
                    )
    finally:
        progress.end()


def _settled(
    ready: Bench, stage: Stage, planned: PlannedTrial, first: int, hopeless_ms: float | None
) -> Trial:
    """The trial, measured again while it is disturbed and attempts are left; all are stored.

    `first` is the number of its first attempt now.
    """
    task = ready.task
    for attempt in range(first, max(first, task.context.study.budget.retries) + 1):
        trial = ready.trial(planned, stage, attempt, hopeless_ms)
        task.store.add(task.subject, trial)
        if trial.status != "disturbed":
            break
        task.context.progress.say(f"{task.title}: trial {planned.index} disturbed: {trial.detail}")
        ready.check_connections()
    return trial


def _after_failure(task: Task, trial: Trial) -> None:
    task.context.progress.say(f"{task.title}: trial {trial.planned.index} failed: {trial.detail}")
    if trial.configuration.is_default:
        raise BaselineError(
            f"{task.title}: the default configuration can't be measured: {trial.detail}\n"
            f"Look at the cluster with: intop doctor --arch {task.subject.arch}"
        )


def _missing(
    task: Task, plan: Sequence[PlannedTrial], made: Mapping[int, Trial]
) -> list[PlannedTrial]:
    """What has no trial yet, or only one that is due again.

    Due again is a disturbed trial with attempts left, and a default that failed: nothing can do
    without it.
    """
    retries = task.context.study.budget.retries
    done = {
        index
        for index, t in made.items()
        if t.usable
        or (t.status == "disturbed" and t.attempt >= retries)
        or (t.status == "failed" and not t.configuration.is_default)
    }
    return [p for p in plan if p.index not in done]


def _ended(
    missing: Sequence[PlannedTrial],
    made: Mapping[int, Trial],
    enough: Callable[[Sequence[Trial]], bool],
) -> bool:
    """Whether nothing is missing, or nothing that is still needed.

    A trial that is due again is needed: what was begun is never judged without it.
    """
    return not missing or (missing[0].index not in made and enough(list(made.values())))


def _told(trial: Trial) -> str:
    default = "default" if trial.configuration.is_default else trial.configuration.digest
    who = trial.planned.side or default
    if trial.histogram is None:
        return f"{who}: {trial.status}"
    status = "" if trial.status == "ok" else f", {trial.status}"
    return f"{who}: P99 {trial.p99_ms:.1f} ms{status}"
