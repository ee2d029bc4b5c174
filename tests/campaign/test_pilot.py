"""The pilot, with a testbed that says how each duration scatters."""

from dataclasses import replace
from typing import Any

import pytest

from builders.testbeds import FakeTestbed, probe_of
from builders.trials import CONDITIONS, trial
from intop.campaign.pilot import stage as pilot
from intop.domain.cluster import LabSpec
from intop.domain.configuration import DEFAULT
from intop.domain.pilot import Pilot
from intop.domain.trial import PlannedTrial
from intop.errors import BaselineError, IncomparableError, IntopError, UsageError
from intop.run.attempt import load_words
from intop.run.comparability import check_same
from intop.run.context import Task

ARCHS = ("x86", "arm")
SPREADS = {7: 2.0, 14: 1.6, 28: 1.02, 56: 1.01}
"""By which factor every second trial of a duration is slower, at the lab's 150 requests/s."""


def asked(testbed: FakeTestbed, *, duration_s: int | None = None, **budget: Any) -> Task:
    """The testbed's task as a file without a duration would have it."""
    study = testbed.task.context.study
    context = replace(
        testbed.task.context, study=replace(study, budget=replace(study.budget, **budget))
    )
    workload = replace(testbed.task.workload, duration_s=duration_s)
    testbed.task = replace(testbed.task, context=context, workload=workload)
    return testbed.task


def scattered(testbed: FakeTestbed, spreads: dict[int, float]) -> None:
    def latency(planned: PlannedTrial) -> int:
        assert planned.duration_s is not None
        return 1000 if planned.index % 2 else round(1000 * spreads[planned.duration_s])

    testbed.latency = latency


def measured(testbed: FakeTestbed) -> list[int | None]:
    """The durations of all trials, each of them once, in order of measurement."""
    trials = testbed.task.store.trials(testbed.task.subject, "pilot")
    return list(dict.fromkeys(t.planned.duration_s for t in trials))


def test_it_ends_with_the_first_duration_that_tells_enough(testbed: FakeTestbed) -> None:
    scattered(testbed, SPREADS)
    result = pilot.pilot(asked(testbed))
    assert measured(testbed) == [7, 14, 28]
    assert (
        result.duration_s,
        result.reached,
        result.stalled,
        result.given_s,
    ) == (28, True, False, None)
    assert [(t.duration_s, t.trials) for t in result.tried] == [(7, 5), (14, 5), (28, 5)]
    assert list(range(15)) == testbed.measured
    trials = testbed.task.store.trials(testbed.task.subject, "pilot")
    assert all(t.configuration == DEFAULT for t in trials)
    assert [t.planned.duration_s for t in trials] == [7] * 5 + [14] * 5 + [28] * 5
    # Each trial has a load of its own.
    assert [str(n) for n in range(1, 16)] == [load_words(t.planned) for t in trials]


def test_it_is_made_once(testbed: FakeTestbed) -> None:
    scattered(testbed, SPREADS)
    first = pilot.pilot(asked(testbed))
    assert first == pilot.pilot(asked(testbed, pilot_resolution=1.001))
    assert pilot.timed(testbed.task).workload.counted_s == 28
    assert measured(testbed) == [7, 14, 28]


def test_killed_it_goes_on_where_it_stopped(testbed: FakeTestbed) -> None:
    scattered(testbed, SPREADS)
    asked(testbed)
    for dies_after in (3, 7):
        testbed.dies_after = dies_after
        with pytest.raises(KeyboardInterrupt):
            pilot.pilot(testbed.task)
    assert testbed.task.store.get(testbed.task.subject, Pilot) is None
    testbed.dies_after = None
    assert pilot.pilot(testbed.task).duration_s == 28
    assert list(range(15)) == testbed.measured


def test_a_duration_is_not_gone_back_to_once_the_next_one_was_begun(testbed: FakeTestbed) -> None:
    scattered(testbed, SPREADS)
    task = asked(testbed, retries=0)
    testbed.statuses, testbed.dies_after = ["ok", "disturbed"], 7
    with pytest.raises(KeyboardInterrupt):
        pilot.pilot(task)
    testbed.dies_after = None
    pilot.pilot(asked(testbed, retries=2))
    assert list(range(15)) == testbed.measured


def test_where_longer_trials_scatter_no_less_it_stops_and_counts_the_cost(
    testbed: FakeTestbed,
) -> None:
    scattered(testbed, dict.fromkeys(SPREADS, 2.0))
    result = pilot.pilot(asked(testbed))
    assert measured(testbed) == [7, 14, 28]
    assert (result.reached, result.stalled) == (False, True)
    assert result.chosen.pairs_needed is not None
    assert result.chosen.pairs_needed > testbed.task.context.study.budget.judge_pairs


def test_the_budget_says_how_long_and_how_often(testbed: FakeTestbed) -> None:
    scattered(testbed, {7: 2.0, 14: 1.9})
    result = pilot.pilot(asked(testbed, pilot_max_s=20, pilot_trials=3))
    assert measured(testbed) == [7, 14]
    assert [t.trials for t in result.tried] == [3, 3]
    assert (result.reached, result.stalled) == (False, False)


def test_the_files_duration_is_measured_too_and_stands(testbed: FakeTestbed) -> None:
    scattered(testbed, {2: 1.01, **SPREADS})
    task = asked(testbed, duration_s=2)
    result = pilot.pilot(task)
    assert measured(testbed) == [2, 7, 14, 28]
    assert (result.duration_s, result.given_s) == (28, 2)
    assert [t.duration_s for t in result.tried] == [2, 7, 14, 28]
    assert pilot.timed(task).workload.duration_s == 2


def test_the_files_duration_may_be_one_of_the_others(testbed: FakeTestbed) -> None:
    scattered(testbed, SPREADS)
    assert pilot.pilot(asked(testbed, duration_s=14)).duration_s == 28
    assert measured(testbed) == [14, 7, 28]
    assert list(range(15)) == testbed.measured


def test_with_a_duration_in_the_file_no_stage_needs_a_pilot(testbed: FakeTestbed) -> None:
    task = asked(testbed, duration_s=2)
    assert task == pilot.timed(task)
    assert measured(testbed) == []


def test_the_first_stage_makes_the_pilot_and_says_so(testbed: FakeTestbed) -> None:
    scattered(testbed, SPREADS)
    assert pilot.timed(asked(testbed)).workload.duration_s == 28
    assert "x86 slt: pilot: trials of 28 s" in testbed.output.getvalue()


def test_the_other_architectures_pilot_is_named_where_it_chose_otherwise(
    testbed: FakeTestbed,
) -> None:
    scattered(testbed, SPREADS)
    task = asked(testbed)
    study = replace(task.context.study, clusters={arch: (LabSpec(name=arch),) for arch in ARCHS})
    task = replace(task, context=replace(task.context, study=study))
    other = replace(task.subject, arch="arm")
    pilot.timed(task)
    assert "the pilot of arm" not in testbed.output.getvalue()
    result = task.store.get(task.subject, Pilot)
    assert result is not None
    task.store.put(other, result)
    pilot._warn_of_others(task, result)
    assert "the pilot of arm" not in testbed.output.getvalue()
    pilot._warn_of_others(task, replace(result, duration_s=7))
    message = testbed.output.getvalue()
    assert "x86 slt: the pilot of arm chose 28 s" in message
    assert "set duration_s = 28 in [workload.slt]" in message


def test_a_rate_that_needs_longer_than_the_budget_is_2_and_says_what_to_do(
    testbed: FakeTestbed,
) -> None:
    task = asked(testbed, pilot_max_s=6)
    with pytest.raises(UsageError, match=r"takes 7 s .* Raise pilot_max_s in \[budget\]"):
        pilot.pilot(task)


def test_a_default_that_fails_ends_it(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "failed"]
    with pytest.raises(BaselineError, match="the default configuration can't be measured"):
        pilot.pilot(asked(testbed))
    assert testbed.task.store.get(testbed.task.subject, Pilot) is None


def test_trials_that_all_stay_disturbed_say_nothing(testbed: FakeTestbed) -> None:
    testbed.statuses = ["disturbed"] * 15
    with pytest.raises(IntopError, match=r"only 0 of the trials of 7 s could be measured.*because"):
        pilot.pilot(asked(testbed))


def test_a_duration_taken_out_of_the_file_is_asked_for_again(testbed: FakeTestbed) -> None:
    task = asked(testbed)
    task.store.write_plan(task.subject, "screen", [trial().planned])
    task.store.add(task.subject, trial(stage="screen"))
    with pytest.raises(IncomparableError, match=r"are of 10 s.* set duration_s = 10 in \[workload"):
        pilot.timed(task)


# What its trials are compared with ----------------------------------------------------------------


def stored(task: Task, *stages: tuple[Any, int]) -> None:
    """A trial of each stage, of so many seconds: the campaign's own, or its stage's."""
    for stage, duration_s in stages:
        made = trial(stage=stage, conditions=replace(CONDITIONS, duration_s=duration_s))
        if stage in ("pilot", "judge"):
            made = replace(made, planned=replace(made.planned, duration_s=duration_s))
        task.store.write_plan(task.subject, stage, [made.planned])
        task.store.add(task.subject, made)
    task.store.put(task.subject, PROBE)


PROBE = probe_of({"net.core.somaxconn": "4096"})


def refused(task: Task, **changes: Any) -> bool:
    """Whether trials under CONDITIONS with these changes may be added."""
    try:
        check_same(task, replace(CONDITIONS, **changes), PROBE, PROBE, "lb")
    except IncomparableError:
        return True
    return False


def test_a_stage_after_a_pilot_may_have_another_duration_and_nothing_else(
    testbed: FakeTestbed,
) -> None:
    stored(testbed.task, ("pilot", 4))
    assert not refused(testbed.task, duration_s=10)
    assert refused(testbed.task, duration_s=10, kernel="6.1.0")


def test_a_pilot_may_have_any_duration_and_nothing_else_may_differ(testbed: FakeTestbed) -> None:
    stored(testbed.task, ("screen", 10))
    task = replace(testbed.task, tries_durations=True)
    assert not refused(task, duration_s=4)
    assert refused(task, duration_s=4, rate_rps=200.0)


@pytest.mark.parametrize("stage", ["pilot", "judge"])
def test_trials_of_another_duration_do_not_hide_what_was_measured_before(
    testbed: FakeTestbed, stage: str
) -> None:
    stored(testbed.task, ("screen", 10), (stage, 4))
    assert refused(testbed.task, duration_s=4)
    assert not refused(testbed.task, duration_s=10)
