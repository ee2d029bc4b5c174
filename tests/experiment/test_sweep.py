"""Sweeps with a testbed that says what each trial comes to."""

import re
from dataclasses import replace
from typing import Any

import pytest

from builders import results as findings
from builders import trials as samples
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import CONDITIONS
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.sweep import Sweep, Sweeps
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.workload import Clients
from intop.errors import IncomparableError, UsageError
from intop.experiment.sweep.request import SweepRequest
from intop.experiment.sweep.stage import SweepAlong
from intop.run.comparability import check_same
from intop.run.context import Task
from intop.run.executor import execute

QUICK = Configuration({"net.core.somaxconn": "64"})
VERDICT = replace(findings.VERDICT, configuration=QUICK)
RATE = 150  # of the lab's study
FILE_MAX = {"net.ipv4.tcp_fin_timeout": "60", "net.core.somaxconn": "4096"}


@pytest.fixture
def judged(testbed: FakeTestbed) -> FakeTestbed:
    """A task with a verdict, whose host was looked at."""
    testbed.task.store.put(testbed.task.subject, VERDICT)
    testbed.task.store.put(testbed.task.subject, probe_of(FILE_MAX))
    return testbed


def sweep(task: Task, request: SweepRequest) -> Sweep:
    return execute(SweepAlong(task, request)).latest


def planned(testbed: FakeTestbed) -> list[PlannedTrial]:
    return testbed.task.store.plan(testbed.task.subject, "sweep")


def outcomes(result: Sweep) -> dict[float, str]:
    return {p.value: one.outcome for p in result.points for one in p.arms if one.arm == "tuned"}


def with_statuses(testbed: FakeTestbed, status: Any) -> None:
    trial = testbed.trial

    def measured(p: PlannedTrial, *rest: Any) -> Trial:
        testbed.statuses = [status(p)]
        return trial(p, *rest)

    testbed.trial = measured  # type: ignore[method-assign]


def test_every_point_is_measured_with_every_arm_once_a_round(judged: FakeTestbed) -> None:
    result = sweep(judged.task, SweepRequest(points="0.5x,1x,225"))
    plan = planned(judged)
    assert (
        result.rounds,
        len(plan),
        [p.value for p in result.points],
    ) == (3, 18, [75.0, 150.0, 225.0])
    assert [p.times for p in result.points] == [0.5, 1.0, 1.5]
    orders = []
    for number in range(3):
        of_round = plan[6 * number : 6 * number + 6]
        assert {(number + 1, 1)} == {(p.round, p.series) for p in of_round}
        orders.append([(p.rate_rps, p.arm) for p in of_round])
        assert {
            (rate, arm, configuration.digest)
            for rate in (75.0, 150.0, 225.0)
            for arm, configuration in (("default", DEFAULT), ("tuned", QUICK))
        } == {(p.rate_rps, p.arm, p.configuration.digest) for p in of_round}
    assert len({tuple(order) for order in orders}) > 1
    stored = judged.task.store.get(judged.task.subject, Sweeps)
    assert Sweeps((result,)) == stored


def test_at_each_point_arms_have_p99_gain_rate_and_failures(judged: FakeTestbed) -> None:
    """Good at the workload's rate, worse above it, where the tuned side also fails once."""

    def latency(p: PlannedTrial) -> int:
        tuned = 6_000 if (p.rate_rps or 0) > RATE else 1_000
        return 2_000 if p.configuration.is_default else tuned

    judged.latency = latency
    with_statuses(
        judged,
        lambda p: "failed" if (p.arm, p.rate_rps, p.round) == ("tuned", 225.0, 1) else "ok",
    )
    result = sweep(judged.task, SweepRequest(points="0.5x,1x,1.5x", limit_ms=1.5))
    assert outcomes(result) == {75.0: "gain", 150.0: "gain", 225.0: "worse"}
    half, _, more = result.points
    assert half.arms[1].ratio is not None
    assert half.arms[1].judged_ms is not None
    assert pytest.approx((half.arms[1].ratio.value, half.arms[1].judged_ms.value), rel=0.01) == (
        2.0,
        1.0,
    )
    assert (more.arms[1].trials, more.arms[1].failed, more.arms[0].failed) == (3, 1, 0)
    # The default is above 1.5 ms everywhere, the tuned side from somewhere above 150/s on.
    default, tuned = result.capacities
    assert (default.rps, default.outside) == (None, "below")
    assert tuned.rps is not None
    assert 150 <= tuned.rps.value < 225


def test_a_default_that_fails_is_a_result(judged: FakeTestbed) -> None:
    with_statuses(judged, lambda p: "failed" if p.rate_rps == 300.0 else "ok")
    result = sweep(judged.task, SweepRequest(points="1x,2x"))
    assert outcomes(result) == {150.0: "no significant gain", 300.0: "not measured"}
    assert (result.points[1].arms[0].failed, result.points[1].arms[0].judged_ms) == (3, None)
    # Asked again, nothing is tried again.
    count = len(judged.measured)
    assert result == sweep(judged.task, SweepRequest(points="1x,2x"))
    assert count == len(judged.measured)


def test_killed_it_goes_on_and_another_sweep_is_a_further_series(judged: FakeTestbed) -> None:
    one = SweepRequest(points="0.5x,1x")
    judged.dies_after = 7
    with pytest.raises(KeyboardInterrupt):
        sweep(judged.task, one)
    judged.dies_after = None
    result = sweep(judged.task, one)
    assert list(range(12)) == judged.measured

    closed = SweepRequest(axis="connections", loop="closed", points="0.5x,1x")
    other = sweep(judged.task, closed)
    assert list(range(24)) == judged.measured
    assert "another sweep than those before" in judged.output.getvalue()
    assert sorted({p.series for p in planned(judged)}) == [1, 2]
    assert Sweeps((result, other)) == judged.task.store.get(judged.task.subject, Sweeps)
    # The first one is still known, and more rounds are no continuation: all are interleaved.
    assert result == sweep(judged.task, one)
    assert len(judged.measured) == 24
    assert sweep(judged.task, replace(one, rounds=4)).rounds == 4
    assert len(judged.measured) == 40


def test_again_measures_anew_unless_the_last_one_was_interrupted(judged: FakeTestbed) -> None:
    one = SweepRequest(points="1x")
    sweep(judged.task, one)
    assert len(judged.measured) == 6
    judged.dies_after = 9
    with pytest.raises(KeyboardInterrupt):
        sweep(judged.task, replace(one, again=True))
    judged.dies_after = None
    sweep(judged.task, replace(one, again=True))
    assert list(range(12)) == judged.measured


def test_connections_and_closed_loops_are_loads_of_their_own(judged: FakeTestbed) -> None:
    result = sweep(judged.task, SweepRequest(axis="connections", points="16,1x", seconds=3))
    assert [(p.value, p.times) for p in result.points] == [(16.0, 0.25), (64.0, 1.0)]
    assert {(p.connections, p.rate_rps, p.closed_loop, p.duration_s) for p in planned(judged)} == {
        (16, None, False, 3),
        (64, None, False, 3),
    }
    assert result.knees == ()
    sweep(judged.task, SweepRequest(axis="connections", loop="closed", points="16,1x"))
    assert {p.closed_loop for p in planned(judged) if p.series == 2} == {True}
    assert re.search(r"tuned with (16|64) connections: P99 5.0 ms", judged.output.getvalue())


def test_a_file_is_the_one_path_that_all_requests_ask_for(judged: FakeTestbed) -> None:
    request = SweepRequest(axis="file", loop="closed", points="/b.jpg, /a.css")
    result = sweep(judged.task, request)
    assert [(p.value, p.label, p.times) for p in result.points] == [
        (1.0, "/b.jpg", None),
        (2.0, "/a.css", None),
    ]
    assert {(p.path, p.closed_loop) for p in planned(judged)} == {
        ("/b.jpg", True),
        ("/a.css", True),
    }
    assert result.knees == ()
    # The same files in another order are the same trials.
    assert [
        p.label for p in sweep(judged.task, replace(request, points="/a.css,/b.jpg")).points
    ] == ["/a.css", "/b.jpg"]
    assert len(judged.measured) == 12
    dynamic = replace(judged.task, workload=replace(judged.task.workload, name="dlt", kind="dlt"))
    with pytest.raises(UsageError, match="--over file asks for static files: --workload slt"):
        SweepAlong(dynamic, request)


def test_without_a_verdict_the_hosts_own_values_are_alone_with_baselines(
    testbed: FakeTestbed,
) -> None:
    testbed.task.store.put(testbed.task.subject, probe_of(FILE_MAX))
    result = sweep(testbed.task, SweepRequest(points="1x", names=("openeuler-25.09",)))
    assert [arm.name for arm in result.arms] == ["default", "openeuler-25.09"]
    assert result.arms[1].configuration.values["net.ipv4.tcp_fin_timeout"] == "30"


def test_the_winner_of_a_verdict_against_a_baseline_has_that_beside_it(
    judged: FakeTestbed,
) -> None:
    against = replace(VERDICT, against="openeuler-25.09")
    judged.task.store.put(judged.task.subject, against)
    result = sweep(judged.task, SweepRequest(points="1x"))
    assert (
        result.reference,
        [arm.name for arm in result.arms],
    ) == ("openeuler-25.09", ["openeuler-25.09", "tuned"])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (SweepRequest(points="0.1x"), r"at 1 requests/s 64 connections are idle for longer"),
        (
            SweepRequest(axis="connections", points="1000"),
            r"at 10 requests/s 1000 connections are idle",
        ),
        (SweepRequest(axis="cores"), "--over cores needs --points, such as 1,2,4"),
        (SweepRequest(axis="file"), "--over file needs --points, such as /small.html"),
        (SweepRequest(axis="file", points="/a,/a"), "--points: a file is there twice"),
        (SweepRequest(axis="file", points="/a b"), "--points: a path begins with / and has no"),
        (SweepRequest(loop="closed"), "a closed loop has no rate"),
        (SweepRequest(axis="connections", limit_ms=1.0), "takes --over rate"),
        (SweepRequest(points="1x", names=("nosuch",)), "there is no baseline nosuch"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    judged: FakeTestbed, request_: SweepRequest, message: str
) -> None:
    slow = replace(judged.task.workload, rate_rps=10.0, connections=64, timeout_s=10)
    with pytest.raises(UsageError, match=message):
        SweepAlong(replace(judged.task, workload=slow), request_)
    assert judged.measured == []


def test_points_that_no_study_could_have_are_refused(judged: FakeTestbed) -> None:
    much = replace(judged.task.workload, rate_rps=1_000_000.0, connections=2000)
    task = replace(judged.task, workload=much)
    with pytest.raises(UsageError, match=r"--points: connections: .* equal to 100000 .got 200000."):
        SweepAlong(task, SweepRequest(axis="connections", points="1x,100x"))
    with pytest.raises(UsageError, match=r"--points: rate_rps: .* equal to 10000000 .got 2"):
        SweepAlong(task, SweepRequest(points="1x,20x"))


def test_connections_of_a_class_of_its_own_are_not_swept(judged: FakeTestbed) -> None:
    bots = Clients(name="bots", share=0.5, connections=2)
    own = replace(judged.task.workload, clients=(Clients(name="people", share=0.5), bots))
    task = replace(judged.task, workload=own)
    with pytest.raises(UsageError, match="clients of slt have connections of their own"):
        SweepAlong(task, SweepRequest(axis="connections"))


def test_workers_are_set_where_nginx_is_tuned_only(judged: FakeTestbed) -> None:
    with pytest.raises(UsageError, match=r'set tunes = \["kernel", "nginx"\] in \[study\]'):
        sweep(judged.task, SweepRequest(axis="cores", points="1,2"))
    assert judged.measured == []


def test_a_campaign_may_have_sweeps_only(judged: FakeTestbed) -> None:
    task, probe = judged.task, probe_of(FILE_MAX)
    usual = replace(CONDITIONS, rate_rps=RATE, connections=64)
    trial = judged.trial

    def measured(p: PlannedTrial, *rest: Any) -> Trial:
        check_same(task, usual, probe, probe, "lb")
        return replace(trial(p, *rest), conditions=replace(usual, rate_rps=p.rate_rps or 0.0))

    judged.trial = measured  # type: ignore[method-assign,assignment]
    sweep(task, SweepRequest(points="0.5x,2x"))
    sweep(task, SweepRequest(axis="connections", loop="closed", points="16"))
    with pytest.raises(IncomparableError, match=r"kernel: .* against 9.9"):
        check_same(task, replace(usual, kernel="9.9"), probe, probe, "lb")


def test_trials_of_a_sweep_do_not_keep_others_from_being_measured(judged: FakeTestbed) -> None:
    """The load is a condition: what comes after the sweep has the workload's again."""
    task = judged.task
    collected = replace(samples.trial(), conditions=replace(CONDITIONS, rate_rps=RATE))
    task.store.write_plan(task.subject, "collect", [collected.planned])
    task.store.add(task.subject, collected)
    probe = probe_of(FILE_MAX)
    trial = judged.trial

    def measured(p: PlannedTrial, *rest: Any) -> Trial:
        conditions = replace(CONDITIONS, rate_rps=RATE, connections=p.connections or 64)
        return replace(trial(p, *rest), conditions=conditions)

    judged.trial = measured  # type: ignore[method-assign,assignment]
    sweep(task, SweepRequest(axis="connections", points="16,32"))
    check_same(task, collected.conditions, probe, probe, collected.replica)
    other = replace(collected.conditions, connections=16)
    with pytest.raises(IncomparableError, match=r"connections: .* against 16"):
        check_same(task, other, probe, probe, collected.replica)
