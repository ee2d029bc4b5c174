"""Carrying out a stage: what is stored is not measured again."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Self, TypeVar

from intop.domain.trial import PlannedTrial, Trial
from intop.errors import HostError, UnreachableError
from intop.features import result_name
from intop.run.context import Task
from intop.run.distrust import distrusted, set_aside
from intop.run.measuring import is_settled, measure
from intop.run.stage import SoFar, Stage
from intop.run.testbed import Testbed

R = TypeVar("R")

RECONNECT_S, RECONNECT_PAUSE_S = 180.0, 5.0
"""Seconds for which a host may be away, and between two tries: a virtual machine starts in them."""


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
            from intop.run.all_replicas import remote_replicas, replicas

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
        from intop.run.opening import start_guests

        start_guests(task)
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
            ready = _ready(stage, testbeds)
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
        testbed=lambda: _ready(stage, testbeds)[0],
        testbeds=lambda: _ready(stage, testbeds),
    )


def _ready(stage: Stage[Any], testbeds: OpenTestbeds) -> tuple[Testbed, ...]:
    """Return the testbeds. Tells of the work first, so another process of the store is refused."""
    stage.task.begin(stage.name)
    ready = testbeds.of(stage.task)
    stage.task.begin(stage.name)  # replicas may have been compared meanwhile
    return ready


def _settled(
    stage: Stage[Any], plan: Sequence[PlannedTrial], trials: Mapping[int, Trial]
) -> list[Trial]:
    measured = [trials[p.index] for p in plan if p.index in trials]
    return [trial for trial in measured if is_settled(stage, trial, trials)]
