"""Carrying out a stage: what is stored is not measured again."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self, TypeVar

from intop.domain.agreement import Agreement
from intop.domain.cluster import LabSpec
from intop.domain.probing import Probe
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import HostError, IncomparableError, LabError, UnreachableError
from intop.features import result_name
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.context import Task
from intop.run.distrust import distrusted, set_aside
from intop.run.measuring import is_settled, measure
from intop.run.opening import cluster_testbed
from intop.run.remote import RemoteTestbed, as_opened, known, opened_by_workers
from intop.run.replicas import Replicas, check_alike, in_common
from intop.run.stage import SoFar, Stage
from intop.run.testbed import Testbed

R = TypeVar("R")
Replica = TypeVar("Replica", ClusterTestbed, RemoteTestbed)

RECONNECT_S, RECONNECT_PAUSE_S = 180.0, 5.0
"""Seconds for which a host may be away, and between two tries: a virtual machine starts in them."""

FIRST = "replica 1"
"""The name of the only replica until its trials say it."""


class OpenTestbeds:
    """The testbeds of a task: all replicas that agree, or the context's own testbeds.

    They are connected to when the first trial is due, and held until the block ends, `close` is
    called, or another task asks. The caller closes those that are `ready` from the start.
    """

    def __init__(self, ready: Sequence[Testbed] = (), *, reconnections: int = 0) -> None:
        self._ready = tuple(ready)
        self._reconnections = reconnections
        self._task: Task | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def of(self, task: Task) -> tuple[Testbed, ...]:
        """Return the testbeds of a task. Raises what `replicas` does."""
        if self._task not in (None, task):  # such as a pilot's, which tries durations
            self.close()
        if not self._ready:
            here = remote_replicas if task.context.study.workers else replicas
            opened = task.context.testbeds or here
            self._ready = self._stack.enter_context(opened(task))
            self._task = task
        return self._ready

    def close(self) -> None:
        """Restore the hosts. The next `of` connects anew."""
        self._stack.close()
        self._ready, self._task = (), None

    def reconnect(self, task: Task, error: UnreachableError) -> None:
        """Connect again after a host was lost, within RECONNECT_S, as often as was allowed.

        A host restores itself meanwhile, or has started again. Raises the error where no further
        connection is allowed, and the last one where none could be made.
        """
        if not self._reconnections:
            raise error
        self._reconnections -= 1
        task.context.progress.say(f"{task.title}: {error}. intop connects again")
        with suppress(HostError):
            self.close()
        self._ready, self._task = (), None
        _start_guests(task)
        deadline = time.monotonic() + RECONNECT_S
        while True:
            try:
                self.of(task)
            except UnreachableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RECONNECT_PAUSE_S)
            else:
                return


def execute(stage: Stage[R], *, on: OpenTestbeds | None = None) -> R:
    """Measure what a stage asks for and is not in the store yet, and store its result.

    The plan is stored at once, so that a resumed stage measures what it set out to. Places
    before the stage's `start` are left alone. Testbeds that are given (`on`) stay open.

    Raises:
        AtWorkError: when another process works on the task.
        BaselineError: when the default can't be measured or does not carry the load.
        IntopError: when too many trials fail; and what connecting and the stage raise.
    """
    if on is None:
        with OpenTestbeds() as testbeds:
            trials = _measured(stage, testbeds)
    else:
        trials = _measured(stage, on)
    # Hosts that nobody holds are restored by now: models may take a while.
    result = stage.result(trials)
    if isinstance(result, stage.result_type) and result_name(stage.result_type):
        stage.task.store.put(stage.task.subject, result)
    return result


def _measured(stage: Stage[Any], testbeds: OpenTestbeds) -> list[Trial]:
    """Return the last attempts at all that a stage asks for."""
    task = stage.task
    plan = [p for p in task.store.plan(task.subject, stage.name) if p.index >= stage.start]
    # Read once and kept up to date: every stored trial costs some ms to decode.
    trials = _stored(stage)
    shown = 0
    try:
        while batch := stage.ask(_so_far(stage, plan, trials, testbeds)):
            stored = {p.index for p in plan}
            if new := [p for p in (*batch.trials, *batch.later) if p.index not in stored]:
                task.store.write_plan(task.subject, stage.name, new)
            plan += new
            due = [p for p in batch.trials if not is_settled(stage, trials.get(p.index), trials)]
            if not due:
                raise RuntimeError(f"{stage.name} asks for what is measured already")
            task.begin(stage.name)
            ready = testbeds.of(task)
            task.begin(stage.name)  # replicas may have been compared meanwhile
            # A stage that begins a further series knows its start only now.
            present = [p for p in plan if p.index >= stage.start]
            if shown != len(present):
                shown = len(present)
                done = len(_settled(stage, present, trials))
                task.context.progress.begin(f"{task.title}: {stage.name}", shown, done)
            try:
                measure(ready, stage, due, trials)
            except UnreachableError as error:
                testbeds.reconnect(task, error)
                # Other replicas may have stored trials that ended at the same time.
                trials = _stored(stage)
                continue
            if len(ready) > 1 and (replica := distrusted(stage, trials)):
                set_aside(stage, replica, plan, trials)
                testbeds.close()
    finally:
        if shown:
            task.context.progress.end()
    return [trials[p.index] for p in plan if p.index in trials]


def _start_guests(task: Task) -> None:
    """Start the virtual machines of the task's labs again that have ended, such as by a panic."""
    from intop.lab.cluster import up
    from intop.lab.guest import last_words, problem

    say = task.context.progress.say
    for replica in task.context.study.clusters.get(task.subject.arch, ()):
        if not isinstance(replica, LabSpec) or replica.kind == "namespaces":
            continue
        if (gone := problem(replica.name)) is not None:
            for line in (gone, *last_words(replica.name)):
                say(f"lab {replica.name}: {line}")
            with suppress(LabError):  # connecting says so again
                up(replica, say)


def _stored(stage: Stage[Any]) -> dict[int, Trial]:
    """Return the last attempts at the places that count, by index."""
    trials = stage.task.trials(stage.name)
    return {trial.planned.index: trial for trial in trials if trial.planned.index >= stage.start}


def _so_far(
    stage: Stage[Any],
    plan: Sequence[PlannedTrial],
    trials: Mapping[int, Trial],
    testbeds: OpenTestbeds,
) -> SoFar:
    return SoFar(
        plan=tuple(plan),
        trials=_settled(stage, plan, trials),
        testbed=lambda: testbeds.of(stage.task)[0],
    )


def _settled(
    stage: Stage[Any], plan: Sequence[PlannedTrial], trials: Mapping[int, Trial]
) -> list[Trial]:
    measured = [trials[p.index] for p in plan if p.index in trials]
    return [trial for trial in measured if is_settled(stage, trial, trials)]


@contextmanager
def replicas(task: Task) -> Iterator[tuple[Testbed, ...]]:
    """Open every replica that agrees with the first; agreement is tested once per subject.

    Raises IncomparableError when they are of different kinds, and what `Task.check_ready`,
    `cluster_testbed` and measuring do.
    """
    task.check_ready()
    count = len(task.context.study.clusters[task.subject.arch])
    agreement = task.store.get(task.subject, Agreement)
    places = range(count) if agreement is None else _still_there(task, agreement, count)
    if agreement is not None and len(agreement.replicas) != count:
        task.context.progress.say(
            f"{task.title}: this campaign began with {len(agreement.replicas)} replicas, and goes "
            f"on with {len(places)} of them; --new begins one with {count}"
        )
    with ExitStack() as stack:
        ready = [stack.enter_context(cluster_testbed(task, n)) for n in places]
        for n, testbed in zip(places, ready, strict=True):
            if agreement is not None and testbed.name != (name := agreement.replicas[n].name):
                raise _changed(task, f"replica {n + 1} was {name}, not {testbed.name}")
        for testbed in ready[1:]:
            check_alike(task, ready[0], testbed)
        ready = in_common(ready)
        yield tuple(ready if agreement or count == 1 else _agreeing(task, ready))


@contextmanager
def remote_replicas(task: Task) -> Iterator[tuple[Testbed, ...]]:
    """Ask workers to open every replica of a task that agrees with the first.

    A campaign begins once there is a worker for each of them.

    Raises:
        IncomparableError: when the replicas are of different kinds.
        IntopError: with the words of a worker that can't open a replica.
    """
    count = len(task.context.study.clusters[task.subject.arch])
    probe = task.store.get(task.subject, Probe)
    agreement = task.store.get(task.subject, Agreement)
    if probe is not None and agreement is not None:
        places = _still_there(task, agreement, count)
        ready = known(task, probe, [replica.name for replica in agreement.replicas])
        ready = [ready[n] for n in places]
    elif probe is not None and count == 1:
        ready = known(task, probe, [FIRST])
    else:
        opened = opened_by_workers(task, count)
        for replica in opened[1:]:
            check_alike(task, opened[0], replica)
        ready = in_common(as_opened(task, opened))
        ready = ready if count == 1 else _agreeing(task, ready)
    try:
        yield tuple(ready)
    finally:
        for testbed in ready:
            testbed.abort()


def _still_there(task: Task, agreement: Agreement, count: int) -> list[int]:
    """Return the places of replicas in use that the study has. Raises IncomparableError."""
    places = [n for n in agreement.in_use if n < count]
    if not places:
        used = ", ".join(agreement.replicas[n].name for n in agreement.in_use)
        raise _changed(task, f"it measured on {used} of {len(agreement.replicas)} replicas")
    return places


def _changed(task: Task, what: str) -> IncomparableError:
    return IncomparableError(
        f"{task.title}: the replicas are not those with which this campaign began: {what}. Put "
        f"the earlier ones back into {task.context.study.path}, or begin a campaign with --new"
    )


def _agreeing(task: Task, ready: Sequence[Replica]) -> list[Replica]:
    """Measure which replicas agree with the first, and return these."""
    agreement = execute(Replicas(task, [testbed.name for testbed in ready]), on=OpenTestbeds(ready))
    return [ready[n] for n in agreement.in_use]
