"""Carrying out a plan, with a bench that says what each trial comes to."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fakes import FakeBench
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import BaselineError, IntopError, ResultMissingError, UnreachableError, UsageError


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def plan(count: int) -> Callable[[Any], list[PlannedTrial]]:
    return lambda _: with_sentinels(configurations(count), 2)


def test_sentinels_stand_between_the_configurations() -> None:
    made = with_sentinels(configurations(5), 2)
    roles = ["baseline", *("design",) * 2, "sentinel", *("design",) * 2, "sentinel", "design"]
    assert roles == [p.role for p in made]
    assert list(range(8)) == [p.index for p in made]
    assert all(p.configuration == DEFAULT for p in made if p.role != "design")


def test_what_is_stored_is_not_measured_again(bench: FakeBench) -> None:
    first = measured(bench.task, "collect", plan(4))
    assert [0, 1, 2, 3, 4, 5, 6] == bench.measured
    again = measured(bench.task, "collect", pytest.fail("a new plan"))
    assert first == again
    assert 7 == len(bench.measured)


def test_the_default_stands_there_once_for_each_replica() -> None:
    made = with_sentinels(configurations(5), 2, replicas=2)
    roles = [*("baseline",) * 2, *("design",) * 4, *("sentinel",) * 2, "design"]
    assert roles == [p.role for p in made]
    assert list(range(9)) == [p.index for p in made]


def test_a_disturbed_trial_is_put_off_to_the_end_and_both_are_kept(bench: FakeBench) -> None:
    bench.statuses = ["ok", "disturbed", "ok"]
    trials = measured(bench.task, "collect", plan(2))
    assert [0, 1, 2, 3, 1] == bench.measured
    assert 1 == bench.waited
    assert [0, 1, 2, 3] == [t.planned.index for t in trials]
    assert {"ok"} == {t.status for t in trials}
    stored = bench.task.store.trials(bench.task.subject, "collect")
    assert [(1, 0, "disturbed"), (1, 1, "ok")] == [
        (t.planned.index, t.attempt, t.status) for t in stored if t.planned.index == 1
    ]


def test_all_that_is_disturbed_is_put_off(bench: FakeBench) -> None:
    bench.statuses = ["ok", *("disturbed",) * 3]
    trials = measured(bench.task, "collect", plan(2))
    assert [0, 1, 2, 3, 1, 2, 3] == bench.measured
    assert {"ok"} == {t.status for t in trials}


def test_a_trial_that_stays_disturbed_is_given_up_at_last(bench: FakeBench) -> None:
    bench.statuses = ["ok", "disturbed", "ok", "ok", "disturbed", "disturbed"]
    trials = measured(bench.task, "collect", plan(2))
    assert [0, 1, 2, 3, 1, 1] == bench.measured
    assert "disturbed" == next(t.status for t in trials if t.planned.index == 1)


def test_a_lost_connection_stops_and_the_trial_is_due_again(bench: FakeBench) -> None:
    bench.statuses, bench.connected = ["ok", "disturbed"], False
    with pytest.raises(UnreachableError):
        measured(bench.task, "collect", plan(2))
    bench.connected = True
    measured(bench.task, "collect", plan(2))
    assert [0, 1, 1, 2, 3] == bench.measured
    assert bench.aborted is False  # no other trial was under way


def test_nothing_goes_on_after_a_failed_baseline(bench: FakeBench) -> None:
    bench.statuses = ["failed"]
    with pytest.raises(BaselineError, match="intop doctor --arch x86"):
        measured(bench.task, "collect", plan(4))
    assert [0] == bench.measured
    measured(bench.task, "collect", plan(4))
    assert [0, 0, 1, 2, 3, 4, 5, 6] == bench.measured


def test_a_failed_configuration_is_a_result(bench: FakeBench) -> None:
    bench.statuses = ["ok", "failed"]
    trials = measured(bench.task, "collect", plan(4))
    assert [0, 1, 2, 3, 4, 5, 6] == bench.measured
    assert [False, True] == [t.usable for t in trials[1:3]]


def test_too_many_failures_stop_the_stage(bench: FakeBench) -> None:
    limit = bench.task.context.study.budget.max_failures
    bench.statuses = ["ok", *("failed",) * 50]
    everything = with_sentinels(configurations(40), 100)
    with pytest.raises(IntopError, match=f"more than max_failures \\({limit}\\)"):
        measured(bench.task, "collect", everything)
    assert limit + 2 == len(bench.measured)


def test_what_is_collected_has_the_drift_of_its_sentinels(bench: FakeBench) -> None:
    bench.task.store.write_plan(bench.task.subject, "collect", plan(4)(None))
    found = sampling.collect(bench.task)
    assert 7 == len(found.trials)
    # The made-up trials are all of one moment.
    assert (3, None) == (found.drift.sentinels, found.drift.change)
    assert bench.task.context.study.budget.level == found.drift.level


def test_training_waits_for_the_whole_plan(bench: FakeBench) -> None:
    bench.task.store.write_plan(bench.task.subject, "collect", plan(4)(None))
    with pytest.raises(ResultMissingError, match="0 of 7 trials of collect are measured"):
        sampling.collected_trials(bench.task)


def test_a_plan_of_another_size_is_refused(bench: FakeBench) -> None:
    measured(bench.task, "collect", plan(4))
    with pytest.raises(UsageError, match="has 4 configurations already"):
        sampling.collect(bench.task, 9)


# Ending before the plan does ----------------------------------------------------------------------


def test_a_stage_ends_as_soon_as_there_is_enough(bench: FakeBench) -> None:
    asked: list[int] = []

    def enough(trials: Sequence[Trial]) -> bool:
        asked.append(len(trials))
        return len(trials) == 3

    def measured() -> list[Trial]:
        return measured(bench.task, "collect", plan(4), looks=lambda _: (2, 3, 5), enough=enough)

    first = measured()
    assert [0, 1, 2] == [t.planned.index for t in first]
    assert {2, 3} == set(asked)
    assert 7 == len(bench.task.store.plan(bench.task.subject, "collect"))
    # Ended, not unfinished.
    assert first == measured()
    assert [0, 1, 2] == bench.measured


def test_what_is_due_again_is_measured_before_it_is_enough(bench: FakeBench) -> None:
    bench.statuses = ["ok", "ok", "ok", "failed"]  # the fourth place is a sentinel
    with pytest.raises(BaselineError):
        measured(bench.task, "collect", plan(4))
    made = measured(bench.task, "collect", plan(4), looks=lambda _: (4,), enough=lambda _: True)
    assert [0, 1, 2, 3, 3] == bench.measured
    assert {"ok"} == {t.status for t in made}


def test_what_is_disturbed_is_put_off_no_further_than_to_the_look(bench: FakeBench) -> None:
    bench.statuses = ["disturbed"]
    measured(bench.task, "collect", plan(4), looks=lambda _: (3,))
    assert [0, 1, 2, 0, 3, 4, 5, 6] == bench.measured
