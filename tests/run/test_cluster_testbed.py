"""What a place of a plan says of its load, without hosts."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fakes import FakeTestbed
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.server import NGINX
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Workload
from intop.errors import CommandError, NginxRefusedError, UnreachableError, UsageError
from intop.hosts.expected import ExpectedAnswers
from intop.hosts.load.types import LoadTool
from intop.run import cluster_testbed
from intop.run.cluster_testbed import ClusterTestbed, load_words
from intop.run.loads import Sent
from samples import CONDITIONS, cluster

NOTHING: Any = None


@pytest.mark.parametrize(
    ("coordinates", "expected"),
    [
        ({}, (150, 64, 2, "")),
        ({"rate_rps": 75.0}, (75.0, 64, 2, "")),
        ({"duration_s": 7}, (150, 64, 7, "")),
        ({"rate_rps": 225.0, "duration_s": 1}, (225.0, 64, 1, "")),
        ({"connections": 8}, (150, 8, 2, "")),
        ({"connections": 8, "closed_loop": True}, (0.0, 8, 2, "closed loop")),
        ({"path": "/one.html"}, (150, 64, 2, "")),
    ],
)
def test_a_trial_has_the_load_of_its_place(
    testbed: FakeTestbed,
    monkeypatch: pytest.MonkeyPatch,
    coordinates: dict[str, Any],
    expected: tuple[float, int, int, str],
) -> None:
    asked: list[Workload] = []

    def measure(_rig: Any, _tool: Any, workload: Workload, **_: Any) -> Any:
        asked.append(workload)
        raise CommandError("lg", "that is all")

    monkeypatch.setattr(cluster_testbed, "measure", measure)
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: "")
    guard = SimpleNamespace(apply=lambda _: None, draining=0)
    ready = measuring(testbed, guard)
    planned = PlannedTrial(index=0, role="sentinel", configuration=DEFAULT, **coordinates)
    found = ready.trial(planned, "sweep", 0)
    rate_rps, connections, duration_s, traffic = expected
    assert [(rate_rps or 150, connections, duration_s, traffic)] == [
        (w.rate_rps, w.connections, w.duration_s, w.traffic) for w in asked
    ]
    assert expected == (
        found.conditions.rate_rps,
        found.conditions.connections,
        found.conditions.duration_s,
        found.conditions.traffic,
    )
    path = coordinates.get("path", "")
    assert (path, path or CONDITIONS.paths) == (asked[0].only_path, found.conditions.paths)
    guard.draining = 3
    told = ready.trial(planned, "sweep", 0).detail
    assert "lb still had 3 old workers of nginx with connections" in told


def test_a_block_of_a_soak_is_measured_as_the_host_is(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    applied: list[Configuration] = []

    def measure(*_: Any, **options: Any) -> Any:
        asked.append(options)
        raise CommandError("lg", "that is all")

    monkeypatch.setattr(cluster_testbed, "measure", measure)
    monkeypatch.setattr(cluster_testbed, "settle", pytest.fail)
    found = Configuration({"net.core.somaxconn": "512"})
    guard = SimpleNamespace(
        apply=applied.append,
        as_found=found,
        applied={"arch": "x86", "workload": "slt", "study": "s", "campaign": "3", "since": "then"},
    )
    ready = measuring(testbed, guard)
    planned = PlannedTrial(index=0, role="soak", configuration=DEFAULT, duration_s=60)
    ready.trial(planned, "soak", 0)
    assert [found] == applied
    assert [(1, True)] == [(one["points"], one["footprint"]) for one in asked]
    assert "x86 slt of study s, campaign 3, since then" == ready.applied
    assert "" == measuring(testbed, SimpleNamespace(applied={})).applied


def test_a_trial_under_another_workload_has_all_of_its_load(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Workload] = []

    def measure(_rig: Any, _tool: Any, workload: Workload, **_: Any) -> Any:
        asked.append(workload)
        raise CommandError("lg", "that is all")

    monkeypatch.setattr(cluster_testbed, "measure", measure)
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: "")
    ready = measuring(testbed, SimpleNamespace(apply=lambda _: None, draining=0))
    other = testbed.task.context.study.workloads["dlt"]
    planned = PlannedTrial(
        index=0, role="sentinel", configuration=DEFAULT, duration_s=3, other_workload="dlt"
    )
    found = ready.trial(planned, "across", 0)
    assert [replace(other, duration_s=3)] == asked
    assert ("dlt", "engine 2.1", other.rate_rps, 3) == (
        found.conditions.workload,
        found.conditions.load_tool,
        found.conditions.rate_rps,
        found.conditions.duration_s,
    )
    gone = replace(planned, other_workload="cdn")
    with pytest.raises(UsageError, match=r"has no \[workload.cdn\] any more"):
        ready.trial(gone, "across", 0)


def test_the_arms_of_a_round_get_one_load_also_when_one_is_measured_again(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seed(attempt: int, **place: Any) -> int:
        seeds: list[int] = []

        def measure(*_: Any, seed: int, **__: Any) -> Any:
            seeds.append(seed)
            raise CommandError("lg", "that is all")

        monkeypatch.setattr(cluster_testbed, "measure", measure)
        monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: "")
        ready = measuring(testbed, SimpleNamespace(apply=lambda _: None, draining=0))
        planned = PlannedTrial(index=3, role="sentinel", configuration=DEFAULT, **place)
        ready.trial(planned, "judge", attempt)
        return seeds[0]

    assert seed(0, round=2, arm="a") == seed(1, round=2, arm="b") != seed(0, round=3, arm="a")
    assert seed(0) != seed(1)


def test_a_load_that_wrk2_can_not_send_is_refused_before_anything_is_set(
    testbed: FakeTestbed,
) -> None:
    guard = SimpleNamespace(apply=pytest.fail, draining=0)
    wrk2 = LoadTool(name="wrk2", path="/usr/bin/wrk2", version="4.0.0")
    rig = SimpleNamespace(cluster=cluster())
    ready = replace(measuring(testbed, guard, wrk2), rig=rig)  # type: ignore[arg-type]
    closed = PlannedTrial(index=0, role="sentinel", configuration=DEFAULT, closed_loop=True)
    with pytest.raises(UsageError, match=r"wrk2, which can't send a closed loop. Set load_tool"):
        ready.trial(closed, "sweep", 0)


ENGINE = LoadTool(name="engine", path="/usr/bin/luajit", version="2.1")


def measuring(testbed: FakeTestbed, guard: Any, tool: LoadTool = ENGINE) -> ClusterTestbed:
    """What measures trials with this guard and load tool."""

    def ready(workload: Workload) -> Sent:
        conditions = {"workload": workload.name, "load_tool": f"{tool.name} {tool.version}"}
        return Sent(
            rig=NOTHING, tool=tool, paths=(), expected=ExpectedAnswers(), conditions=conditions
        )

    balancer = SimpleNamespace(address=SimpleNamespace(name="lb"))
    return ClusterTestbed(
        task=testbed.task,
        rig=SimpleNamespace(load_balancer=balancer),  # type: ignore[arg-type]
        loads=SimpleNamespace(ready=ready),  # type: ignore[arg-type]
        guard=guard,
        probe=NOTHING,
        probed=NOTHING,
        conditions=replace(CONDITIONS, rate_rps=150, duration_s=2),
    )


def test_a_configuration_that_nginx_refuses_is_a_failed_trial_with_its_words(
    testbed: FakeTestbed,
) -> None:
    def apply(configuration: Configuration) -> None:
        if not configuration.is_default:
            raise NginxRefusedError("lb", "nginx: [emerg] no such thing")

    wanted = Configuration({"nginx:main.worker_processes": "2"})
    planned = PlannedTrial(index=0, role="design", configuration=wanted)
    found = measuring(testbed, SimpleNamespace(apply=apply)).trial(planned, "screen", 0)
    assert ("failed", "lb: nginx: [emerg] no such thing") == (found.status, found.detail)


def ended(guard: Any, restart: str = "systemctl restart nginx") -> list[str]:
    """What is said at the end of a session with this guard."""
    said: list[str] = []
    ready = ClusterTestbed(
        task=NOTHING,
        rig=SimpleNamespace(  # type: ignore[arg-type]
            cluster=SimpleNamespace(server_restart=restart, server=NGINX),
            load_balancer=SimpleNamespace(address=SimpleNamespace(name="lb")),
        ),
        loads=NOTHING,
        guard=guard,
        probe=NOTHING,
        probed=NOTHING,
        conditions=CONDITIONS,
    )
    cluster_testbed._end(ready, said.append)
    return said


@pytest.mark.parametrize(
    ("was_tuned", "is_left", "expected"),
    [(True, False, ["restored", "restarted"]), (False, False, []), (True, True, [])],
    ids=["tuned", "never", "applied"],
)
def test_nginx_is_restarted_under_the_hosts_own_values_before_it_is_given_back(
    monkeypatch: pytest.MonkeyPatch, was_tuned: bool, is_left: bool, expected: list[str]
) -> None:
    done: list[str] = []
    monkeypatch.setattr(cluster_testbed, "restart", lambda _: done.append("restarted"))

    def apply(configuration: Configuration) -> None:
        assert configuration.is_default
        done.append("restored")

    guard = SimpleNamespace(is_left=is_left, was_tuned=was_tuned, as_found=DEFAULT, apply=apply)
    assert [] == ended(guard)
    assert expected == done
    assert not guard.was_tuned or is_left


def test_where_nginx_can_not_be_restarted_it_is_said_what_to_type() -> None:
    def lost(_: Configuration) -> None:
        raise UnreachableError("lb", "the connection is gone")

    guard = SimpleNamespace(is_left=False, was_tuned=True, as_found=DEFAULT, apply=lost)
    (told,) = ended(guard)
    assert "as root there: systemctl restart nginx (the connection is gone)" in told


def test_both_sides_at_a_rate_have_the_same_load_as_all_of_their_round() -> None:
    one, other = (
        PlannedTrial(
            index=index,
            role="finalist",
            configuration=DEFAULT,
            arm=arm,
            round=3,
            series=2,
            rate_rps=rate,
        )
        for index, arm, rate in ((0, "tuned", 75.0), (1, "default", 150.0))
    )
    assert "2.3" == load_words(one) == load_words(other)
    assert (3, (2, 3)) == (one.turn, other.block)
