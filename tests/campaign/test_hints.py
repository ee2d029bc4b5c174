"""What a collection begins with, by what the default's kernel has counted."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import pytest

from builders.testbeds import FakeTestbed, probe_of
from builders.trials import ranking, screening, trial
from intop.campaign.collect.stage import collect
from intop.campaign.collected import required_space
from intop.campaign.hints import hinted, hints
from intop.domain.configuration import DEFAULT
from intop.domain.counters import HostCounters
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Clients
from intop.run.context import Task

IDLE, RTO = "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_rto_min_us"
WMEM = "net.ipv4.tcp_wmem"
OWN = {
    IDLE: "1",
    RTO: "200000",
    WMEM: "4096 16384 4194304",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.core.somaxconn": "4096",
}
TIMEOUTS = {"TcpExt.TCPTimeouts": 40.0}
IDLED = {"clients.cwnd.p10": 10.0}


def shows(testbed: FakeTestbed, counted: Mapping[str, float]) -> None:
    """Two trials of the default with these counters; names of levels have a dot more."""
    task = testbed.task
    task.store.put(task.subject, probe_of(OWN))
    levels = {name: (0.0, value) for name, value in counted.items() if name.count(".") > 1}
    growth = {name: (0, int(value)) for name, value in counted.items() if name not in levels}
    counters = HostCounters(at_s=(1.0, 2.0), growth=growth, levels=levels)
    plan = [PlannedTrial(index=n, role="baseline", configuration=DEFAULT) for n in range(2)]
    task.store.write_plan(task.subject, "screen", plan)
    for planned in plan:
        made = trial(DEFAULT, 50_000, stage="screen")
        made = replace(made, planned=planned, counters={made.replica: counters})
        task.store.add(task.subject, made)


def busy(task: Task) -> Task:
    """Under a load that leaves no connection idle."""
    return replace(task, workload=replace(task.workload, rate_rps=1000.0, connections=32))


def found(testbed: FakeTestbed, count: int = 16) -> list[dict[str, str]]:
    task = busy(testbed.task)
    return [dict(c.values) for c in hints(task, required_space(task), count)]


def expected(testbed: FakeTestbed) -> tuple[str, ...]:
    """What a screening expects to act, in a fixed order."""
    task = busy(testbed.task)
    order = [IDLE, RTO, WMEM, "net.ipv4.tcp_fin_timeout", "net.core.somaxconn"]
    result = hinted(task, task.trials("screen"), required_space(task))
    return tuple(sorted(result, key=order.index))


def test_all_together_come_first_then_each_alone(testbed: FakeTestbed) -> None:
    shows(testbed, TIMEOUTS | IDLED)
    both = {RTO: "20000", IDLE: "0"}
    assert [both, {RTO: "20000"}, {IDLE: "0"}] == found(testbed)
    assert expected(testbed) == (IDLE, RTO)
    assert [both] == found(testbed, 4)
    assert found(testbed, 3) == []
    assert "the default shows rto, slow-start-after-idle" in testbed.output.getvalue()


@pytest.mark.parametrize(
    "counted",
    [
        {},
        {"TcpExt.TCPTimeouts": 0.4},
        {"clients.cwnd.p10": 11.0},
        {"clients.sndbuf_limited_ms": 90.0},  # of a hundred requests
        {"clients.rto_ms.max": 204.0, "clients.rtt_us.p90": 41_000.0, "clients.recv_q.max": 9e5},
        {"upstreams.cwnd.p10": 10.0},  # requests to upstreams are small
    ],
)
def test_what_is_too_rare_for_a_p99_or_not_there_gives_no_hint(
    testbed: FakeTestbed, counted: dict[str, float]
) -> None:
    shows(testbed, counted)
    assert found(testbed) == []


@pytest.mark.parametrize(
    ("counted", "rate", "lifetime", "hint"),
    [
        ({}, 80.0, None, True),
        ({}, 80.0, 1.0, False),  # each request has a connection of its own
        ({}, 1000.0, None, False),
        ({"clients.cwnd.p10": 11.0}, 80.0, None, True),  # grown again by the end of an answer
        ({"clients.rto_ms.p50": 264.0}, 80.0, None, True),
        ({"clients.rto_ms.p50": 600.0}, 80.0, None, False),
    ],
)
def test_the_load_and_the_time_outs_say_whether_connections_are_idle(
    testbed: FakeTestbed,
    counted: dict[str, float],
    rate: float,
    lifetime: float | None,
    hint: bool,
) -> None:
    shows(testbed, {"TcpExt.TCPTimeouts": 0.4, **counted})
    clients = (Clients(requests_per_connection=lifetime),)
    task = busy(testbed.task)
    task = replace(task, workload=replace(task.workload, rate_rps=rate, clients=clients))
    space = required_space(task)
    assert ([{IDLE: "0"}] if hint else []) == [dict(c.values) for c in hints(task, space, 16)]
    # A longer time-out takes it away, too.
    keys = {IDLE, RTO} if hint else set()
    assert keys == set(hinted(task, task.trials("screen"), space))


def test_connections_that_the_accept_queue_drops_say_nothing_of_handshakes(
    testbed: FakeTestbed,
) -> None:
    shows(testbed, {"TcpExt.ListenOverflows": 40.0, "TcpExt.ListenDrops": 40.0})
    assert found(testbed) == [{"net.core.somaxconn": "65535"}]
    assert "the default shows accept-queue;" in testbed.output.getvalue()


def test_a_hint_that_the_default_has_or_the_space_has_not_is_none(testbed: FakeTestbed) -> None:
    shows(testbed, TIMEOUTS | IDLED | {"clients.sndbuf_limited_ms": 900.0})
    task = testbed.task
    task.store.put(task.subject, probe_of({**OWN, IDLE: "0"}))
    assert expected(testbed) == (IDLE, RTO, WMEM)
    assert all(IDLE not in one for one in found(testbed))
    frozen = required_space(task).restricted(["net.ipv4.tcp_fin_timeout"])
    assert hints(task, frozen, 16) == []
    assert hinted(task, task.trials("screen"), frozen) == ()


def test_a_study_may_want_none(testbed: FakeTestbed) -> None:
    shows(testbed, TIMEOUTS)
    study = replace(testbed.task.context.study, hints=False)
    context = replace(testbed.task.context, study=study)
    testbed.task = replace(testbed.task, context=context)
    assert found(testbed) == []
    assert expected(testbed) == ()


def test_a_collection_begins_with_them_and_is_no_longer_for_it(testbed: FakeTestbed) -> None:
    shows(testbed, TIMEOUTS)
    task = busy(testbed.task)
    task.store.put(task.subject, ranking(screening=screening(still=[IDLE, RTO, WMEM])))
    testbed.probed = SimpleNamespace(space=required_space(task))
    collect(task, 16)
    plan = [p for p in task.store.plan(task.subject, "collect") if p.role == "design"]
    assert (len(plan), dict(plan[0].configuration.values)) == (16, {RTO: "20000"})
    assert plan[1].configuration.values.keys() != {RTO}
