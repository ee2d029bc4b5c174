"""Carrying out trials: on all replicas at once, each trial on disk before the next."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from textwrap import shorten

from intop.domain.trial import PlannedTrial, Stage, Trial
from intop.errors import BaselineError, IntopError
from intop.pipeline.bench import Bench
from intop.pipeline.context import Task
from intop.pipeline.hopeless import limit_ms

ARM_WIDTH = 60
"""Characters of an arm's name that are told while it is measured."""


def carry_out(
    benches: Sequence[Bench],
    stage: Stage,
    due: Iterable[PlannedTrial],
    made: dict[int, Trial],
    *,
    max_failures: int,
) -> None:
    """Measure what is due, and add the last attempt at each trial to `made`, by its place.

    What is disturbed is put off until all else is measured, and then waits for quiet. Raises
    BaselineError when the default can't be measured, IntopError when more than `max_failures` of
    the trials in `made` have failed, UnreachableError when a host is lost.
    """
    task = benches[0].task
    queues = {bench.name: deque[PlannedTrial]() for bench in benches}
    for planned in due:
        queues[benches[_turn(planned) % len(benches)].name].append(planned)
    running: dict[Future[Trial], Bench] = {}

    def begin(bench: Bench) -> None:
        if queue := queues[bench.name]:
            planned = queue.popleft()
            before = made.get(planned.index)
            attempt = 0 if before is None else before.attempt + 1
            limit = limit_ms(planned, stage, made.values(), task.context.study.budget.hopeless)
            running[pool.submit(_attempt, bench, planned, stage, attempt, limit)] = bench

    with ThreadPoolExecutor(len(benches)) as pool:
        try:
            for bench in benches:
                begin(bench)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    bench = running.pop(future)
                    trial = future.result()
                    _keep(task, trial, made)
                    if is_due_again(task, trial):
                        bench.check_connections()
                        queues[bench.name].append(trial.planned)
                    _check_failures(task, trial, made, max_failures)
                    begin(bench)
        except BaseException:  # Ctrl-C too
            _abandon(task, running)
            raise


def is_due_again(task: Task, trial: Trial) -> bool:
    """Whether a trial is to be measured again: disturbed, with attempts left."""
    return trial.status == "disturbed" and trial.attempt < task.context.study.budget.retries


def _turn(planned: PlannedTrial) -> int:
    """What the number of its replica is counted from: the same for all arms of a round."""
    if planned.round is not None:
        return planned.round
    # The pilot counts from 1, as it did in its first version.
    return planned.index + 1 if planned.duration_s is not None else planned.index


def _attempt(
    bench: Bench, planned: PlannedTrial, stage: Stage, attempt: int, hopeless_ms: float | None
) -> Trial:
    if attempt:
        bench.wait_until_quiet()
    return bench.trial(planned, stage, attempt, hopeless_ms)


def _abandon(task: Task, running: Mapping[Future[Trial], Bench]) -> None:
    """Keep the trials that just ended; nobody waits for the end of the others' loads."""
    for future, bench in running.items():
        if future.done() and future.exception() is None:
            task.store.add(task.subject, future.result())
        bench.abort()


def _keep(task: Task, trial: Trial, made: dict[int, Trial]) -> None:
    """Store a trial, and tell of it."""
    task.store.add(task.subject, trial)
    made[trial.planned.index] = trial
    progress = task.context.progress
    if trial.status in ("disturbed", "failed"):
        progress.say(f"{task.title}: trial {trial.planned.index} {trial.status}: {trial.detail}")
    if not is_due_again(task, trial):
        progress.step(_told(trial))


def _check_failures(task: Task, trial: Trial, made: Mapping[int, Trial], limit: int) -> None:
    if trial.status != "failed":
        return
    if trial.configuration.is_default:
        raise BaselineError(
            f"{task.title}: the default configuration can't be measured: {trial.detail}\n"
            f"Look at the cluster with: intop doctor --arch {task.subject.arch}"
        )
    failures = sum(t.status == "failed" for t in made.values())
    if failures > limit:
        raise IntopError(
            f"{task.title}: {failures} trials of {trial.stage} have failed, more than "
            f"max_failures ({limit}) allows; the last one: {trial.detail}"
        )


def _told(trial: Trial) -> str:
    default = "default" if trial.configuration.is_default else trial.configuration.digest
    planned = trial.planned
    duration = "" if planned.duration_s is None else f"{planned.duration_s} s"
    # An arm of an explanation is called by all of its keys.
    name = planned.arm or planned.reason or duration
    who = shorten(name, ARM_WIDTH, placeholder=" ...") or default
    if trial.histogram is None:
        return f"{who}: {trial.status}"
    status = "" if trial.status == "ok" else f", {trial.status}"
    return f"{who}: P99 {trial.p99_ms:.1f} ms{status}"
