"""Carrying out a stage: what is stored is not measured again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self, TypeVar

from intop.domain.agreement import Agreement
from intop.domain.probing import Probe
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IncomparableError
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.context import Task
from intop.run.distrust import distrusted, set_aside
from intop.run.measuring import is_settled, measure
from intop.run.opening import cluster_testbed
from intop.run.remote import RemoteTestbed, as_opened, known, opened_by_workers
from intop.run.replicas import Replicas, check_alike, in_common
from intop.run.stage import SoFar, Stage
from intop.run.testbed import Testbed
from intop.store.kinds import KINDS

R = TypeVar("R")
Replica = TypeVar("Replica", ClusterTestbed, RemoteTestbed)

FIRST = "replica 1"
"""What the only replica is called until its trials say it."""


class OpenTestbeds:
    """Where trials are measured: all replicas of a task that agree, or the context's own testbeds.

    They are connected to when the first trial is due, and held until the block ends, `close` is
    called, or another task's are asked for. Those that are `ready` from the start are somebody
    else's to close.
    """

    def __init__(self, ready: Sequence[Testbed] = ()) -> None:
        self._ready = tuple(ready)
        self._task: Task | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def of(self, task: Task) -> tuple[Testbed, ...]:
        """The testbeds of a task. Raises what `replicas` does."""
        if self._task not in (None, task):  # such as one of a pilot, which tries durations
            self.close()
        if not self._ready:
            here = remote_replicas if task.context.study.workers else replicas
            opened = task.context.testbeds or here
            self._ready = self._stack.enter_context(opened(task))
            self._task = task
        return self._ready

    def close(self) -> None:
        """Give the hosts back. Whoever asks again connects anew."""
        self._stack.close()
        self._ready, self._task = (), None


def execute(stage: Stage[R], *, on: OpenTestbeds | None = None) -> R:
    """Measure what a stage asks for and is not in the store yet, and store what it finds.

    The plan is stored as it is made, so that a resumed stage measures what it set out to. Places
    before the stage's `start` are left alone. What trials are measured on (`on`), if it is told,
    stays open for the next stage. Raises BaselineError when the default can't be measured or does
    not carry the load, IntopError when too many trials fail, and what connecting and the stage do.
    """
    if on is None:
        with OpenTestbeds() as testbeds:
            made = _measured(stage, testbeds)
    else:
        made = _measured(stage, on)
    # Hosts that nobody holds have been given back by now: models may take a while.
    found = stage.result(made)
    if isinstance(found, stage.result_type) and stage.result_type in KINDS:
        stage.task.store.put(stage.task.subject, found)
    return found


def _measured(stage: Stage[Any], testbeds: OpenTestbeds) -> list[Trial]:
    """The last attempts at all that a stage asked for."""
    task = stage.task
    plan = [p for p in task.store.plan(task.subject, stage.name) if p.index >= stage.start]
    # Read once and kept up to date: every stored trial costs some ms to decode.
    made = {t.planned.index: t for t in task.trials(stage.name) if t.planned.index >= stage.start}
    shown = 0
    try:
        while batch := stage.ask(_so_far(stage, plan, made, testbeds)):
            stored = {p.index for p in plan}
            if new := [p for p in (*batch.trials, *batch.later) if p.index not in stored]:
                task.store.write_plan(task.subject, stage.name, new)
            plan += new
            due = [p for p in batch.trials if not is_settled(stage, made.get(p.index), made)]
            if not due:
                raise RuntimeError(f"{stage.name} asks for what is measured already")
            ready = testbeds.of(task)
            if shown != len(plan):
                shown = len(plan)
                done = len(_settled(stage, plan, made))
                task.context.progress.begin(f"{task.title}: {stage.name}", shown, done)
            measure(ready, stage, due, made)
            if len(ready) > 1 and (replica := distrusted(stage, made)):
                set_aside(stage, replica, plan, made)
                testbeds.close()
    finally:
        if shown:
            task.context.progress.end()
    return [made[p.index] for p in plan if p.index in made]


def _so_far(
    stage: Stage[Any],
    plan: Sequence[PlannedTrial],
    made: Mapping[int, Trial],
    testbeds: OpenTestbeds,
) -> SoFar:
    return SoFar(
        plan=tuple(plan),
        trials=_settled(stage, plan, made),
        testbed=lambda: testbeds.of(stage.task)[0],
    )


def _settled(
    stage: Stage[Any], plan: Sequence[PlannedTrial], made: Mapping[int, Trial]
) -> list[Trial]:
    trials = [made[p.index] for p in plan if p.index in made]
    return [trial for trial in trials if is_settled(stage, trial, made)]


@contextmanager
def replicas(task: Task) -> Iterator[tuple[Testbed, ...]]:
    """A testbed on each replica that agrees with the first one, which the first task finds out.

    Raises IncomparableError when they are of different kinds, and what `Task.check_ready`,
    `cluster_testbed` and measuring do.
    """
    task.check_ready()
    count = len(task.context.study.clusters[task.subject.arch])
    found = task.store.get(task.subject, Agreement)
    wanted = range(count) if found is None else _still_there(task, found, count)
    if found is not None and len(found.replicas) != count:
        task.context.progress.say(
            f"{task.title}: this campaign began with {len(found.replicas)} replicas, and goes on "
            f"with {len(list(wanted))} of them; --new begins one with {count}"
        )
    with ExitStack() as stack:
        ready = [stack.enter_context(cluster_testbed(task, n)) for n in wanted]
        for n, one in zip(wanted, ready, strict=True):
            if found is not None and one.name != found.replicas[n].name:
                raise _changed(
                    task, f"replica {n + 1} was {found.replicas[n].name}, not {one.name}"
                )
        for other in ready[1:]:
            check_alike(task, ready[0], other)
        ready = in_common(ready)
        yield tuple(ready if found or count == 1 else _agreeing(task, ready))


@contextmanager
def remote_replicas(task: Task) -> Iterator[tuple[Testbed, ...]]:
    """All replicas of a task that agree, on which workers measure.

    A campaign begins once there is a worker for each of them. Raises IncomparableError when they
    are of different kinds, and IntopError with what a worker says that can't open one of them.
    """
    count = len(task.context.study.clusters[task.subject.arch])
    probe, found = task.store.get(task.subject, Probe), task.store.get(task.subject, Agreement)
    if probe is not None and found is not None:
        places = _still_there(task, found, count)
        ready = known(task, probe, [replica.name for replica in found.replicas])
        ready = [ready[n] for n in places]
    elif probe is not None and count == 1:
        ready = known(task, probe, [FIRST])
    else:
        opened = opened_by_workers(task, count)
        for other in opened[1:]:
            check_alike(task, opened[0], other)
        ready = in_common(as_opened(task, opened))
        ready = ready if count == 1 else _agreeing(task, ready)
    try:
        yield tuple(ready)
    finally:
        for one in ready:
            one.abort()


def _still_there(task: Task, found: Agreement, count: int) -> list[int]:
    """The places of the replicas in use that the study's file has. Raises IncomparableError."""
    places = [n for n in found.in_use if n < count]
    if not places:
        used = ", ".join(found.replicas[n].name for n in found.in_use)
        raise _changed(task, f"it measured on {used} of {len(found.replicas)} replicas")
    return places


def _changed(task: Task, what: str) -> IncomparableError:
    return IncomparableError(
        f"{task.title}: the replicas are not those with which this campaign began: {what}. Put "
        f"the earlier ones back into {task.context.study.path}, or begin a campaign with --new"
    )


def _agreeing(task: Task, ready: Sequence[Replica]) -> list[Replica]:
    """Those that agree with the first one, which is measured now."""
    found = execute(Replicas(task, [one.name for one in ready]), on=OpenTestbeds(ready))
    return [ready[n] for n in found.in_use]
