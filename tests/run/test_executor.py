"""Carrying out a stage, with a testbed that says what each trial comes to."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from benchmarks.campaign import FixedPlan, measured
from builders.testbeds import FakeTestbed
from intop.campaign.sentinels import with_sentinels
from intop.domain.configuration import Configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import BaselineError, IntopError, UnreachableError
from intop.run import executor
from intop.run.context import Task
from intop.run.executor import OpenTestbeds, execute
from intop.run.stage import Batch, SoFar


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def plan(count: int) -> list[PlannedTrial]:
    return with_sentinels(configurations(count), 2)


def test_what_is_stored_is_not_measured_again(testbed: FakeTestbed) -> None:
    first = measured(testbed.task, "collect", plan(4))
    assert testbed.measured == [0, 1, 2, 3, 4, 5, 6]
    again = measured(testbed.task, "collect", lambda _: pytest.fail("a new plan"))
    assert first == again
    assert len(testbed.measured) == 7


def test_a_disturbed_trial_is_put_off_to_the_end_and_both_are_kept(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "disturbed", "ok"]
    trials = measured(testbed.task, "collect", plan(2))
    assert testbed.measured == [0, 1, 2, 3, 1]
    assert testbed.waited == 1
    assert [t.planned.index for t in trials] == [0, 1, 2, 3]
    assert {t.status for t in trials} == {"ok"}
    stored = testbed.task.store.trials(testbed.task.subject, "collect")
    assert [(t.planned.index, t.attempt, t.status) for t in stored if t.planned.index == 1] == [
        (1, 0, "disturbed"),
        (1, 1, "ok"),
    ]


def test_all_that_is_disturbed_is_put_off(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", *("disturbed",) * 3]
    trials = measured(testbed.task, "collect", plan(2))
    assert testbed.measured == [0, 1, 2, 3, 1, 2, 3]
    assert {t.status for t in trials} == {"ok"}


def test_a_trial_that_stays_disturbed_is_given_up_at_last(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "disturbed", "ok", "ok", "disturbed", "disturbed"]
    trials = measured(testbed.task, "collect", plan(2))
    assert testbed.measured == [0, 1, 2, 3, 1, 1]
    assert next(t.status for t in trials if t.planned.index == 1) == "disturbed"


def test_a_lost_connection_stops_and_the_trial_is_due_again(testbed: FakeTestbed) -> None:
    testbed.statuses, testbed.connected = ["ok", "disturbed"], False
    with pytest.raises(UnreachableError):
        measured(testbed.task, "collect", plan(2))
    testbed.connected = True
    measured(testbed.task, "collect", plan(2))
    assert testbed.measured == [0, 1, 1, 2, 3]
    assert testbed.aborted is False  # no other trial was under way


def test_a_lost_host_is_connected_to_again_where_that_is_allowed(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "RECONNECT_PAUSE_S", 0.0)
    opened: list[str] = []

    @contextmanager
    def opening(_: Task) -> Iterator[tuple[FakeTestbed, ...]]:
        opened.append("open")
        if len(opened) == 2:
            raise UnreachableError("lb", "it starts again")
        testbed.connected = len(opened) > 1
        yield (testbed,)
        if len(opened) == 1:
            raise UnreachableError("lb", "it can't be restored from here")

    context = replace(testbed.task.context, testbeds=opening)
    testbed.task = replace(testbed.task, context=context)
    testbed.statuses = ["ok", "disturbed"]
    with OpenTestbeds(reconnections=1) as held:
        trials = execute(
            FixedPlan(testbed.task, "collect", plan(2), ends_by_failures=True), on=held
        )
        assert [t.planned.index for t in trials] == [0, 1, 2, 3]
        assert testbed.measured == [0, 1, 1, 2, 3]
        assert len(opened) == 3
        assert "lb: gone. intop connects again" in testbed.output.getvalue()
        testbed.statuses, testbed.connected = ["disturbed"], False
        with pytest.raises(UnreachableError, match="gone"):  # only once
            execute(FixedPlan(testbed.task, "screen", plan(2), ends_by_failures=True), on=held)


def test_nothing_goes_on_after_a_failed_baseline(testbed: FakeTestbed) -> None:
    testbed.statuses = ["failed"]
    with pytest.raises(BaselineError, match="intop doctor --arch x86"):
        measured(testbed.task, "collect", plan(4))
    assert testbed.measured == [0]
    measured(testbed.task, "collect", plan(4))
    assert testbed.measured == [0, 0, 1, 2, 3, 4, 5, 6]


def test_a_failed_configuration_is_a_result(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "failed"]
    trials = measured(testbed.task, "collect", plan(4))
    assert testbed.measured == [0, 1, 2, 3, 4, 5, 6]
    assert [t.usable for t in trials[1:3]] == [False, True]


def test_too_many_failures_stop_the_stage(testbed: FakeTestbed) -> None:
    limit = testbed.task.context.study.budget.max_failures
    testbed.statuses = ["ok", *("failed",) * 50]
    everything = with_sentinels(configurations(40), 100)
    with pytest.raises(IntopError, match=f"more than max_failures \\({limit}\\)"):
        measured(testbed.task, "collect", everything)
    assert limit + 2 == len(testbed.measured)


# Ending before the plan does ----------------------------------------------------------------------


class Looked(FixedPlan):
    """A plan whose trials are looked at after each of so many places."""

    def __init__(
        self,
        task: Task,
        looks: Sequence[int],
        enough: Callable[[Sequence[Trial]], bool] = lambda _: False,
    ) -> None:
        super().__init__(task, "collect", plan(4), ends_by_failures=True)
        self._looks = looks
        self._enough = enough

    def ask(self, so_far: SoFar) -> Batch | None:
        places = so_far.plan or plan(4)
        for end in self._looks:
            trials = so_far.first(end)
            if len(trials) < end:
                return Batch(places[:end], later=places[end:])
            if self._enough(trials):
                return None
        return so_far.unfinished


def test_a_stage_ends_as_soon_as_there_is_enough(testbed: FakeTestbed) -> None:
    looked_at: list[int] = []

    def enough(trials: Sequence[Trial]) -> bool:
        looked_at.append(len(trials))
        return len(trials) == 3

    first = execute(Looked(testbed.task, (2, 3, 5), enough))
    assert [t.planned.index for t in first] == [0, 1, 2]
    assert set(looked_at) == {2, 3}
    assert len(testbed.task.store.plan(testbed.task.subject, "collect")) == 7
    # Ended, not unfinished.
    assert first == execute(Looked(testbed.task, (2, 3, 5), enough))
    assert testbed.measured == [0, 1, 2]


def test_what_is_due_again_is_measured_before_it_is_enough(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "ok", "ok", "failed"]  # the fourth place is a sentinel
    with pytest.raises(BaselineError):
        measured(testbed.task, "collect", plan(4))
    made = execute(Looked(testbed.task, (4,), lambda _: True))
    assert testbed.measured == [0, 1, 2, 3, 3]
    assert {t.status for t in made} == {"ok"}


def test_what_is_disturbed_is_put_off_no_further_than_to_the_look(testbed: FakeTestbed) -> None:
    testbed.statuses = ["disturbed"]
    execute(Looked(testbed.task, (3,)))
    assert testbed.measured == [0, 1, 2, 0, 3, 4, 5, 6]


# What a stage is given ----------------------------------------------------------------------------


def test_a_stage_that_asks_for_what_is_measured_is_stopped(testbed: FakeTestbed) -> None:
    class Endless(FixedPlan):
        def ask(self, so_far: SoFar) -> Batch | None:
            return Batch(plan(2))

    with pytest.raises(RuntimeError, match="collect asks for what is measured already"):
        execute(Endless(testbed.task, "collect", (), ends_by_failures=True))
    assert testbed.measured == [0, 1, 2, 3]


def test_testbeds_are_opened_once_and_only_for_trials(testbed: FakeTestbed) -> None:
    opened: list[Task] = []

    @contextmanager
    def counted(task: Task) -> Iterator[tuple[FakeTestbed, ...]]:
        opened.append(task)
        yield (testbed,)

    task = replace(testbed.task, context=replace(testbed.task.context, testbeds=counted))
    execute(Looked(task, (2, 3, 5)))
    assert len(opened) == 1
    execute(Looked(task, (2, 3, 5)))
    assert len(opened) == 1


def test_testbeds_are_held_for_stages_of_one_task(testbed: FakeTestbed) -> None:
    heard: list[str] = []

    @contextmanager
    def opened(task: Task) -> Iterator[tuple[FakeTestbed, ...]]:
        heard.append(f"open {task.workload.duration_s}")
        yield (testbed,)
        heard.append("close")

    task = replace(testbed.task, context=replace(testbed.task.context, testbeds=opened))
    other = replace(task, workload=replace(task.workload, duration_s=99))
    again = replace(task, workload=replace(other.workload, duration_s=task.workload.duration_s))
    with OpenTestbeds() as held:
        for name in ("collect", "refine"):
            assert (testbed,) == held.of(task if name == "collect" else again)
            execute(FixedPlan(task, name, plan(2), ends_by_failures=False), on=held)
        held.of(other)
        held.close()
        held.of(other)
    first = [f"open {task.workload.duration_s}", "close"]
    assert [*first, "open 99", "close", "open 99", "close"] == heard
    mine = OpenTestbeds((testbed,))
    assert (testbed,) == mine.of(task) == mine.of(other)


def test_places_before_the_start_are_left_alone(testbed: FakeTestbed) -> None:
    testbed.task.store.write_plan(testbed.task.subject, "collect", plan(4))
    stage = FixedPlan(testbed.task, "collect", (), ends_by_failures=True)
    stage.start = 5
    assert [t.planned.index for t in execute(stage)] == [5, 6]
    assert testbed.measured == [5, 6]
