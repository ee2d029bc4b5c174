"""Measuring trials: on all replicas at once, each trial on disk before the next."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from textwrap import shorten
from typing import Any

from intop.domain.job import LEASE_S, Lease
from intop.domain.stats import geometric_mean
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import BaselineError, IntopError
from intop.run.context import Task
from intop.run.distrust import distrusted
from intop.run.overload import doubted, is_repeated, remedies
from intop.run.remote import RemoteTestbed, request_of, this_process
from intop.run.stage import Stage
from intop.run.testbed import Testbed

ARM_WIDTH = 60
"""Shown characters of an arm's name."""


def measure(
    testbeds: Sequence[Testbed],
    stage: Stage[Any],
    due: Iterable[PlannedTrial],
    trials: dict[int, Trial],
) -> None:
    """Measure what is due, and add the last attempt at each trial to `trials`, by its index.

    It ends early once a replica can't be trusted (`run/distrust.py`). A disturbed trial is put off
    until all else is measured, and then waits for quiet. A stage's first default is measured again
    at once when it is overloaded.

    Raises:
        BaselineError: when the default can't be measured, or is overloaded twice in a row.
        IntopError: when too many of the trials in `trials` have failed.
        UnreachableError: when a host is lost.
    """
    task = stage.task
    queues = {testbed.name: deque[PlannedTrial]() for testbed in testbeds}
    for planned in due:
        queues[testbeds[planned.turn % len(testbeds)].name].append(planned)
    running: dict[Future[Trial], tuple[Testbed, Lease | None]] = {}
    repeated: dict[int, Trial] = {}

    def begin(testbed: Testbed) -> None:
        if queue := queues[testbed.name]:
            planned = queue.popleft()
            before = trials.get(planned.index)
            attempt = 0 if before is None else before.attempt + 1
            limit = prune_above_ms(stage, planned, trials.values())
            lease = _lease(testbed, stage, planned, attempt, limit)
            future = pool.submit(_attempt, testbed, planned, stage.name, attempt, limit)
            running[future] = testbed, lease

    with ThreadPoolExecutor(len(testbeds)) as pool:
        try:
            for testbed in testbeds:
                begin(testbed)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    testbed, lease = running.pop(future)
                    trial = _kept(task, future, lease)
                    trials[trial.planned.index] = trial
                    if _is_due_again(stage, trial):
                        testbed.check_connections()
                        queues[testbed.name].append(trial.planned)
                    elif is_repeated(stage, trial, trials, repeated):
                        queues[testbed.name].appendleft(trial.planned)
                    else:
                        task.context.progress.step(_described(trial))
                        _check_host(stage, trial, testbed)
                        _check_failures(stage, trial, trials)
                    _end_by_distrust(stage, trial, trials, queues)
                    begin(testbed)
        except BaseException:  # Ctrl-C too
            _abandon(task, running)
            raise


def prune_above_ms(
    stage: Stage[Any], planned: PlannedTrial, trials: Iterable[Trial]
) -> float | None:
    """Return the judged latency (ms) above which a trial is pruned; None for one that never is.

    Only stages that explore prune: a configuration that is certainly far above the default is bad,
    and by how much hardly matters. The limit is `prune_factor` of the budget (0 prunes none) times
    the geometric mean of the usable defaults among `trials`, the trials of this stage. A mean is
    not certain before the last request, so it prunes none.
    """
    factor = stage.budget.prune_factor
    if not stage.explores or planned.configuration.is_default or not factor:
        return None
    if stage.task.workload.judged_by == "mean latency":
        return None
    defaults = [t.judged_ms for t in trials if t.configuration.is_default and t.usable]
    return factor * geometric_mean(defaults) if defaults else None


def is_settled(stage: Stage[Any], trial: Trial | None, trials: Mapping[int, Trial]) -> bool:
    """Whether a planned trial needs no further attempt; `trials` has the stage's trials by index.

    A disturbed trial with attempts left needs one, and so does a default that ended the stage: one
    that failed, or the last of several that were overloaded. Somebody may have mended the cluster.
    """
    if trial is None or _is_due_again(stage, trial):
        return False
    if trial.status == "failed" and _has_to_work(trial):
        return False
    return doubted(stage, trial, trials) is None


def _has_to_work(trial: Trial) -> bool:
    return trial.configuration.is_default and not trial.planned.has_its_own_load


def _is_due_again(stage: Stage[Any], trial: Trial) -> bool:
    retries = 0 if _is_of_its_time(stage) else stage.budget.retries
    return trial.status == "disturbed" and trial.attempt < retries


def _is_of_its_time(stage: Stage[Any]) -> bool:
    return stage.observes or stage.measures_once


def _lease(
    testbed: Testbed, stage: Stage[Any], planned: PlannedTrial, attempt: int, limit_ms: float | None
) -> Lease | None:
    """Take the lease on a trial that this process measures; None for a worker's trial."""
    if isinstance(testbed, RemoteTestbed):
        return None
    task = stage.task
    seconds = planned.duration_s or task.workload.duration_s or 0
    return task.store.jobs.take(
        task.subject,
        stage.name,
        planned,
        attempt=attempt,
        request=request_of(task, prune_above_ms=limit_ms),
        worker=this_process(),
        lease_s=2 * seconds + stage.budget.settle_limit_s + LEASE_S,
    )


def _attempt(
    testbed: Testbed, planned: PlannedTrial, stage: str, attempt: int, limit_ms: float | None
) -> Trial:
    if attempt:
        testbed.wait_until_quiet()
    return testbed.trial(planned, stage, attempt, limit_ms)


def _abandon(task: Task, running: "Mapping[Future[Trial], tuple[Testbed, Lease | None]]") -> None:
    """Keep the trials that have just ended, and abort the others."""
    for testbed, _ in running.values():  # first, since the store may be what went wrong
        testbed.abort()
    for future, (_, lease) in running.items():
        if lease is not None and future.done() and future.exception() is None:
            task.store.jobs.complete(lease, future.result())
        else:
            _drop(task, lease)


def _drop(task: Task, lease: Lease | None) -> None:
    """End the job of a trial that this process does not measure any more."""
    if lease is not None:
        task.store.jobs.drop(lease)


def _kept(task: Task, future: Future[Trial], lease: Lease | None) -> Trial:
    """Store a trial that ended, unless a worker has done so, and say what went wrong with it.

    Raises what measuring did, and IntopError for a trial that somebody else measures meanwhile.
    """
    try:
        trial = future.result()
    except BaseException:
        _drop(task, lease)
        raise
    if lease is not None and not task.store.jobs.complete(lease, trial):
        raise IntopError(
            f"{task.title}: another process measures this campaign, too, and has trial "
            f"{trial.planned.index} of {trial.stage}. End one of them; this command goes on then"
        )
    title = f"{task.title}: trial {trial.planned.index}"
    if trial.status == "disturbed":
        task.context.progress.disturbed(title, trial.detail)
    elif trial.status == "failed":
        task.context.progress.say(f"{title} failed: {trial.detail}")
    return trial


def _end_by_distrust(
    stage: Stage[Any],
    trial: Trial,
    trials: Mapping[int, Trial],
    queues: Mapping[str, deque[PlannedTrial]],
) -> None:
    """Empty the queues once a replica can't be trusted, so that the executor asks again."""
    if len(queues) > 1 and trial.configuration.is_default and distrusted(stage, trials):
        for queue in queues.values():
            queue.clear()


def _check_host(stage: Stage[Any], trial: Trial, testbed: Testbed) -> None:
    """Keep a lost host from using up a plan of which nothing is measured again.

    Raises what `check_connections` does.
    """
    if _is_of_its_time(stage) and trial.status == "disturbed":
        testbed.check_connections()


def _check_failures(stage: Stage[Any], trial: Trial, trials: Mapping[int, Trial]) -> None:
    if trial.status != "failed":
        return
    task = stage.task
    if _has_to_work(trial):
        raise BaselineError(
            f"{task.title}: the default configuration can't be measured: {trial.detail}\n"
            f"{remedies(task, [trial])}"
        )
    limit = task.context.study.budget.max_failures
    failures = sum(t.status == "failed" for t in trials.values())
    if stage.ends_by_failures and failures > limit:
        raise IntopError(
            f"{task.title}: {failures} trials of {trial.stage} have failed, more than "
            f"max_failures ({limit}) allows; the last one: {trial.detail}"
        )


def _described(trial: Trial) -> str:
    default = "default" if trial.configuration.is_default else trial.configuration.digest
    # An arm of an explanation is named after all of its keys.
    who = shorten(trial.planned.arm, ARM_WIDTH, placeholder=" ...") or default
    if trial.planned.rate_rps is not None:
        who += f" at {trial.planned.rate_rps:g} requests/s"
    if trial.planned.connections is not None:
        who += f" with {trial.planned.connections} connections"
    if trial.planned.path:
        who += f" with {trial.planned.path}"
    if trial.histogram is None:
        return f"{who}: {trial.status}"
    status = "" if trial.status == "ok" else f", {trial.status}"
    return f"{who}: {trial.conditions.judged_by} {trial.judged_ms:.1f} ms{status}"
