"""pilot: how long a trial has to be, measured on the default before all else."""

from collections.abc import Sequence
from dataclasses import replace

from intop.domain.configuration import DEFAULT
from intop.domain.duration import chosen, durations, stalled, tried_duration
from intop.domain.results import Pilot, TriedDuration
from intop.domain.trial import PREPARING, PlannedTrial, Trial
from intop.errors import IncomparableError, IntopError, UsageError
from intop.pipeline.context import Task
from intop.pipeline.measuring import measure_plan
from intop.report.pilot import sentence


def timed(task: Task) -> Task:
    """The task with the duration of its trials: the file's, else the one that a pilot chose.

    A pilot that was not made yet, is made now. Raises IncomparableError where the campaign has
    trials of a duration that is no longer in the file.
    """
    if task.workload.duration_s is not None:
        return task
    found = task.store.get(task.subject, Pilot)
    if found is None:
        _check_untimed(task)
        found = pilot(task)
        task.context.progress.say(f"{task.title}: pilot: {sentence(found)}")
        _warn_of_others(task, found)
    return _of(task, found.duration_s)


def pilot(task: Task) -> Pilot:
    """Measure the default in trials of several durations, and choose one of them.

    One that was made stands, since the campaign's trials have its duration. Where the file has a
    duration, that is measured as well, and stands. Raises UsageError where the budget has no room
    for one duration, IntopError where too few trials of one could be measured.
    """
    given = task.workload.duration_s
    found = task.store.get(task.subject, Pilot)
    if found is None:
        found = _made(task, given)
        task.store.put(task.subject, found)
    return replace(found, given_s=given)


def _made(task: Task, given: int | None) -> Pilot:
    budget = task.context.study.budget
    try:
        ladder = durations(task.workload.rate_rps, budget.pilot_max_s)
    except ValueError as error:
        raise UsageError(
            f"{task.title}: {error}. Raise pilot_max_s in [budget] of {task.context.study.path}, "
            f"or set duration_s in [workload.{task.workload.name}]"
        ) from error
    tried: dict[int, TriedDuration] = {}
    if given is not None and given <= budget.pilot_max_s:
        tried[given] = _tried(task, given)
    for count, duration_s in enumerate(ladder, start=1):
        if duration_s not in tried:
            tried[duration_s] = _tried(task, duration_s)
        rungs = [tried[d] for d in ladder[:count]]
        if rungs[-1].resolution <= budget.pilot_resolution or stalled(rungs):
            break
    return chosen(
        list(tried.values()),
        shortest_s=ladder[0],
        wanted=budget.pilot_resolution,
        pairs=budget.judge_pairs,
        level=budget.level,
        given_s=given,
    )


def _tried(task: Task, duration_s: int) -> TriedDuration:
    budget = task.context.study.budget
    trials = _measured(task, duration_s)
    try:
        return tried_duration(
            duration_s,
            [t for t in trials if t.usable],
            pairs=budget.judge_pairs,
            wanted=budget.pilot_resolution,
            level=budget.level,
            look_count=budget.judge_looks,
        )
    except ValueError as error:
        why = next((t.detail for t in trials if not t.usable), "")
        raise IntopError(
            f"{task.title}: pilot: {error}, a spread takes two: {why}\n"
            f"Try again in a campaign of its own with --new, or set duration_s in "
            f"[workload.{task.workload.name}]"
        ) from error


def _measured(task: Task, duration_s: int) -> Sequence[Trial]:
    """The trials of one duration; its part of the plan is written when it is its turn."""
    before = task.store.plan(task.subject, "pilot")
    own = {p.index for p in before if p.duration_s == duration_s}
    if own and max(own) < before[-1].index:
        # The next duration was begun, so this one was through.
        return [t for t in task.trials("pilot") if t.planned.index in own]
    start = min(own, default=len(before))

    def plan(_: object) -> list[PlannedTrial]:
        return [
            PlannedTrial(index=index, role="sentinel", configuration=DEFAULT, duration_s=duration_s)
            for index in range(start, start + task.context.study.budget.pilot_trials)
        ]

    trying = replace(_of(task, duration_s), tries_durations=True)
    return measure_plan(trying, "pilot", plan, start=start)


def _of(task: Task, duration_s: int) -> Task:
    return replace(task, workload=replace(task.workload, duration_s=duration_s))


def _warn_of_others(task: Task, found: Pilot) -> None:
    """Said before a campaign is measured that can't be compared with another architecture's."""
    for arch in task.context.study.clusters:
        other = task.store.get(replace(task.subject, arch=arch), Pilot)
        if other is not None and other.duration_s != found.duration_s:
            task.context.progress.say(
                f"{task.title}: the pilot of {arch} chose {other.duration_s} s, and intop compare "
                f"needs the same on both sides: set duration_s = "
                f"{max(other.duration_s, found.duration_s)} in [workload.{task.workload.name}] of "
                f"{task.context.study.path} and begin anew with --new, if they are to be compared"
            )


def _check_untimed(task: Task) -> None:
    """Raises IncomparableError where there are trials that no pilot chose a duration for."""
    stored = task.store.trials(task.subject)
    made = {t.conditions.duration_s for t in stored if t.stage not in PREPARING}
    if made:
        before = ", ".join(map(str, sorted(made)))
        raise IncomparableError(
            f"{task.title}: this campaign's trials are of {before} s, and "
            f"{task.context.study.path} no longer says so: set duration_s = {max(made)} in "
            f"[workload.{task.workload.name}], or start anew with --new"
        )
