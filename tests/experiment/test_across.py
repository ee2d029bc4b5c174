"""A configuration under several workloads, with a testbed that says what each trial comes to."""

from dataclasses import replace
from typing import Any

import pytest

from builders import results as findings
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import CONDITIONS
from intop.domain.across import Across, AcrossByName
from intop.domain.configuration import Configuration
from intop.domain.sweep import Sweeps
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.workload import Workload
from intop.errors import IncomparableError, ResultMissingError, UsageError
from intop.experiment.across.stage import AcrossRequest, AcrossWorkloads
from intop.experiment.sweep import request as sweep_request
from intop.experiment.sweep import stage as sweep
from intop.run.comparability import check_same
from intop.run.context import Task
from intop.run.executor import execute

QUICK = Configuration({"net.core.somaxconn": "64"})
VERDICT = replace(findings.VERDICT, configuration=QUICK)
HOST_HAS = {"net.ipv4.tcp_fin_timeout": "60", "net.core.somaxconn": "4096"}


def slow_where(*workloads: str) -> Any:
    """The winner is twice as fast as the default, and half as fast under these workloads."""

    def latency(p: PlannedTrial) -> int:
        noise = 10 * ((p.round or 0) % 3)
        if p.configuration.is_default:
            return 1_000 + noise
        return (2_000 if p.other_workload in workloads else 500) + noise

    return latency


@pytest.fixture
def judged(testbed: FakeTestbed) -> FakeTestbed:
    """A task with a verdict and two further workloads; loads are what workloads say."""
    study = testbed.task.context.study
    dlt = study.workloads["dlt"]
    more = {"cdn": replace(dlt, name="cdn", kind="slt"), "api": replace(dlt, name="api")}
    study = replace(study, workloads={**study.workloads, **more})
    testbed.task = replace(testbed.task, context=replace(testbed.task.context, study=study))
    testbed.task.store.put(testbed.task.subject, VERDICT)
    testbed.task.store.put(testbed.task.subject, probe_of(HOST_HAS))
    measure = testbed.trial

    def trial(planned: PlannedTrial, *rest: Any) -> Trial:
        made = measure(planned, *rest)
        load = study.workloads[planned.other_workload or testbed.task.workload.name]
        conditions = replace(
            made.conditions,
            workload=load.name,
            rate_rps=load.due_rps,
            connections=load.connections,
            timeout_s=load.timeout_s,
            traffic=load.traffic,
        )
        return replace(made, conditions=conditions)

    testbed.trial = trial  # type: ignore[method-assign]
    testbed.latency = slow_where()
    return testbed


def across(task: Task, workloads: tuple[Workload, ...], **options: Any) -> Across:
    return execute(AcrossWorkloads(task, AcrossRequest(workloads=workloads, **options)))


def workloads(task: Task) -> tuple[Workload, ...]:
    return tuple(task.context.study.workloads.values())


def planned(testbed: FakeTestbed) -> list[PlannedTrial]:
    return testbed.task.store.plan(testbed.task.subject, "across")


def test_every_workload_has_both_arms_once_a_round_one_after_the_other(
    judged: FakeTestbed,
) -> None:
    result = across(judged.task, workloads(judged.task), rounds=3)
    plan = planned(judged)
    assert (
        result.rounds,
        len(plan),
        [one.workload for one in result.workloads],
    ) == (3, 24, ["slt", "dlt", "cdn", "api"])
    orders = set()
    for number in range(3):
        of_round = plan[8 * number : 8 * number + 8]
        assert {(number + 1, 1)} == {(p.round, p.series) for p in of_round}
        pairs = [of_round[n : n + 2] for n in range(0, 8, 2)]
        assert all(one.other_workload == other.other_workload for one, other in pairs)
        assert {("default", ""), ("tuned", QUICK.values["net.core.somaxconn"])} == {
            (p.arm, p.configuration.values.get("net.core.somaxconn", "")) for p in of_round
        }
        orders.add(tuple(p.other_workload for p in of_round))
    assert len(orders) > 1
    # The task's own has no other workload's name, and the duration of all its trials.
    assert {(p.other_workload, p.duration_s) for p in plan} == {
        ("", None),
        ("dlt", 2),
        ("cdn", 2),
        ("api", 2),
    }
    assert result == judged.task.store.get(judged.task.subject, Across)


def test_the_newest_result_of_each_configuration_is_kept(judged: FakeTestbed) -> None:
    first = across(judged.task, workloads(judged.task)[:1], rounds=2)
    baseline = across(
        judged.task, workloads(judged.task)[:1], rounds=2, configuration="openeuler-25.09"
    )
    kept = judged.task.store.get(judged.task.subject, AcrossByName)
    assert kept == AcrossByName((first, baseline))
    second = across(judged.task, workloads(judged.task)[:1], rounds=3)
    kept = judged.task.store.get(judged.task.subject, AcrossByName)
    assert kept is not None
    assert (kept.named("winner"), kept.named("openeuler-25.09")) == (second, baseline)
    assert kept.named("kernel-6.1") is None


def test_gains_and_what_is_worse_are_told_apart_and_hold_together(judged: FakeTestbed) -> None:
    judged.latency = slow_where("cdn")
    result = across(judged.task, workloads(judged.task), rounds=4)
    assert {one.workload: one.outcome for one in result.workloads} == {
        "slt": "gain",
        "dlt": "gain",
        "cdn": "worse",
        "api": "gain",
    }
    (cdn,) = result.worse
    (message,) = (harm for harm in cdn.harms if harm.startswith("P99"))
    assert message.startswith(("P99 is 1.9", "P99 is 2.0"))
    assert not result.is_gain
    # Four intervals hold together at 95 %, so each has 98.75 %.
    assert (result.level, result.each_level) == (0.95, pytest.approx(0.9875))
    verdict = result.workloads[0].verdict
    assert verdict is not None
    assert (verdict.level, verdict.pairs, verdict.origin) == (0.95, 4, "winner")
    judged.latency = slow_where()
    assert across(judged.task, workloads(judged.task), rounds=4, again=True).is_gain


def test_what_fails_under_another_workload_is_a_result(judged: FakeTestbed) -> None:
    measure = judged.trial

    def trial(p: PlannedTrial, *rest: Any) -> Trial:
        tuned_in_api = p.other_workload == "api" and p.arm == "tuned"
        judged.statuses = ["failed" if p.other_workload == "cdn" or tuned_in_api else "ok"]
        return measure(p, *rest)

    judged.trial = trial  # type: ignore[method-assign]
    result = across(judged.task, workloads(judged.task), rounds=2)
    by_name = {one.workload: one for one in result.workloads}
    assert (
        by_name["cdn"].outcome,
        by_name["cdn"].harms,
        by_name["api"].outcome,
        by_name["api"].harms,
    ) == ("not measured", (), "worse", ("2 of 2 trials fail",))
    assert by_name["cdn"].problem == "0 pairs could be measured, and it takes two: because"
    assert by_name["slt"].outcome == "gain"


def test_killed_it_goes_on_and_is_read_from_the_store_afterwards(judged: FakeTestbed) -> None:
    judged.dies_after = 5
    with pytest.raises(KeyboardInterrupt):
        across(judged.task, workloads(judged.task), rounds=2)
    judged.dies_after = None
    result = across(judged.task, workloads(judged.task), rounds=2)
    assert list(range(16)) == judged.measured
    assert result == across(judged.task, workloads(judged.task), rounds=2)
    assert len(judged.measured) == 16
    # Other workloads, or another load of one of them, are another measurement.
    across(judged.task, workloads(judged.task)[:2], rounds=2)
    assert len(judged.measured) == 24
    assert "all of it is measured" in judged.output.getvalue()
    study = judged.task.context.study
    faster = {**study.workloads, "dlt": replace(study.workloads["dlt"], rate_rps=99)}
    context = replace(judged.task.context, study=replace(study, workloads=faster))
    task = replace(judged.task, context=context)
    across(task, workloads(task)[:2], rounds=2)
    assert (len(judged.measured), {p.series for p in planned(judged)}) == (32, {1, 2, 3})


def test_a_baseline_may_take_the_winners_place(judged: FakeTestbed) -> None:
    result = across(judged.task, workloads(judged.task), configuration="ubuntu-18.04", rounds=2)
    assert (result.name, result.reference) == ("ubuntu-18.04", "default")
    assert {p.arm for p in planned(judged)} == {"default", "ubuntu-18.04"}


@pytest.mark.parametrize(
    ("name", "problem"),
    [("default", "is what the others are measured against"), ("none", "there is no baseline none")],
)
def test_other_names_are_refused(judged: FakeTestbed, name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        across(judged.task, workloads(judged.task), configuration=name)
    assert judged.measured == []


def test_a_winner_takes_a_verdict(testbed: FakeTestbed) -> None:
    with pytest.raises(ResultMissingError, match=r"slt: no verdict yet. Run: intop .*intop verify"):
        across(testbed.task, workloads(testbed.task))


def test_a_campaign_of_other_workloads_alone_can_go_on(judged: FakeTestbed) -> None:
    """What its trials have of their workloads says nothing of the next session's own."""
    across(judged.task, workloads(judged.task)[1:], rounds=2)
    probe = probe_of(HOST_HAS)
    check_same(judged.task, CONDITIONS, probe, None, "lb")
    with pytest.raises(IncomparableError, match=r"kernel: .* against 9\.9"):
        check_same(judged.task, replace(CONDITIONS, kernel="9.9"), probe, None, "lb")


def test_sweeps_stay_what_they_are(judged: FakeTestbed) -> None:
    swept = execute(sweep.SweepAlong(judged.task, sweep_request.SweepRequest(points="1x"))).latest
    across(judged.task, workloads(judged.task), rounds=2)
    assert Sweeps((swept,)) == judged.task.store.get(judged.task.subject, Sweeps)
