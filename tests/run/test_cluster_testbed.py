"""What a place of a plan says of its load, without hosts."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from builders.nginx_files import FACTS, catalogue, conf
from builders.recordings import busy_hour
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import CONDITIONS, cluster
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.nginx.probe import probed
from intop.domain.recording import Slots
from intop.domain.server import NGINX
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Workload
from intop.errors import CommandError, NginxRefusedError, UnreachableError, UsageError
from intop.hosts.expected import ExpectedAnswers
from intop.hosts.load.types import LoadTool
from intop.hosts.settle import Unsettled
from intop.run import cluster_testbed, opening
from intop.run.attempt import load_words
from intop.run.available_space import probed_of
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.loads import Sent

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
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: Unsettled())
    guard = SimpleNamespace(apply=lambda _: None, draining=0)
    ready = measuring(testbed, guard)
    planned = PlannedTrial(index=0, role="sentinel", configuration=DEFAULT, **coordinates)
    result = ready.trial(planned, "sweep", 0)
    rate_rps, connections, duration_s, traffic = expected
    assert [(rate_rps or 150, connections, duration_s, traffic)] == [
        (w.rate_rps, w.connections, w.duration_s, w.traffic) for w in asked
    ]
    assert (
        result.conditions.rate_rps,
        result.conditions.connections,
        result.conditions.duration_s,
        result.conditions.traffic,
    ) == expected
    path = coordinates.get("path", "")
    assert (path, path or CONDITIONS.paths) == (asked[0].only_path, result.conditions.paths)
    guard.draining = 3
    message = ready.trial(planned, "sweep", 0).detail
    assert "lb still had 3 old workers of nginx with connections" in message


@pytest.mark.parametrize(
    ("coordinates", "why"),
    [
        ({"rate_rps": 1e12}, "rate_rps: input should be less than or equal to 10000000"),
        ({"rate_rps": 15_100.0}, "rate_rps: 15100 is out of a sweep's reach, where the workload"),
        ({"rate_rps": 0.5}, "rate_rps: input should be greater than or equal to 1 "),
        ({"rate_rps": float("nan")}, "rate_rps: "),
        ({"rate_rps": float("inf")}, "rate_rps: "),
        ({"rate_rps": -1.0}, "rate_rps: "),
        ({"connections": 10**9}, "connections: input should be less than or equal to 100000"),
        ({"connections": 6_401}, "connections: 6401 is out of a sweep's reach"),
        ({"connections": 0}, "connections: "),
        ({"duration_s": 3601}, "duration_s: input should be less than or equal to 3600"),
        ({"duration_s": 0}, "duration_s: "),
        ({"path": "/a HTTP/1.1\r\nHost: evil"}, "only_path: a path begins with / and has no"),
        ({"path": "--lua"}, "only_path: a path begins with / and has no"),
        ({"path": "/one.html", "other_workload": "dlt"}, "path: dlt asks for no files"),
        ({"rate_rps": 1e12, "role": "soak"}, "rate_rps: "),
    ],
)
def test_a_place_with_a_load_that_no_command_plans_is_not_measured(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch, coordinates: dict[str, Any], why: str
) -> None:
    monkeypatch.setattr(cluster_testbed, "measure", pytest.fail)
    guard = Written()
    planned = PlannedTrial(
        **{"index": 3, "role": "sentinel", "configuration": DEFAULT} | coordinates
    )
    with pytest.raises(UsageError, match=f"trial 3 is planned .* doesn't allow, {re.escape(why)}"):
        measuring(testbed, guard).trial(planned, "sweep", 0)
    assert guard.applied == []


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
    result = Configuration({"net.core.somaxconn": "512"})
    guard = SimpleNamespace(
        apply=applied.append,
        as_found=result,
        applied={"arch": "x86", "workload": "slt", "study": "s", "campaign": "3", "since": "then"},
    )
    ready = measuring(testbed, guard)
    planned = PlannedTrial(index=0, role="soak", configuration=DEFAULT, duration_s=60)
    ready.trial(planned, "soak", 0)
    assert [result] == applied
    assert [(one["points"], one["footprint"]) for one in asked] == [(1, True)]
    assert ready.applied == "x86 slt of study s, campaign 3, since then"
    assert measuring(testbed, SimpleNamespace(applied={})).applied == ""


def test_a_trial_under_another_workload_has_all_of_its_load(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Workload] = []

    def measure(_rig: Any, _tool: Any, workload: Workload, **_: Any) -> Any:
        asked.append(workload)
        raise CommandError("lg", "that is all")

    monkeypatch.setattr(cluster_testbed, "measure", measure)
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: Unsettled())
    ready = measuring(testbed, SimpleNamespace(apply=lambda _: None, draining=0))
    other = testbed.task.context.study.workloads["dlt"]
    planned = PlannedTrial(
        index=0, role="sentinel", configuration=DEFAULT, duration_s=3, other_workload="dlt"
    )
    result = ready.trial(planned, "across", 0)
    assert [replace(other, duration_s=3)] == asked
    assert ("dlt", "engine 2.1", other.rate_rps, 3) == (
        result.conditions.workload,
        result.conditions.load_tool,
        result.conditions.rate_rps,
        result.conditions.duration_s,
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
        monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: Unsettled())
        ready = measuring(testbed, SimpleNamespace(apply=lambda _: None, draining=0))
        planned = PlannedTrial(index=3, role="sentinel", configuration=DEFAULT, **place)
        ready.trial(planned, "judge", attempt)
        return seeds[0]

    assert seed(0, round=2, arm="a") == seed(1, round=2, arm="b") != seed(0, round=3, arm="a")
    assert seed(0) != seed(1)


def test_the_arms_of_a_round_play_the_same_windows_of_a_recording_and_the_next_round_others(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour, words = busy_hour()
    own = replace(
        testbed.task.workload, arrivals="recorded", recording=hour, rate_rps=hour.rate_rps
    )
    guard = SimpleNamespace(apply=lambda _: None, draining=0, as_found=DEFAULT)
    ready = measuring(testbed, guard)
    sent = replace(ready.loads.ready(own), words=words)
    ready = replace(
        ready,
        task=replace(testbed.task, workload=own),
        loads=SimpleNamespace(ready=lambda _: sent),  # type: ignore[arg-type]
    )
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: Unsettled())

    def slots(attempt: int = 0, **place: Any) -> list[int] | None:
        asked: list[Slots | None] = []

        def measure(*_: Any, slots: Slots | None, **__: Any) -> Any:
            asked.append(slots)
            raise CommandError("lg", "that is all")

        monkeypatch.setattr(cluster_testbed, "measure", measure)
        planned = PlannedTrial(**{"index": 3, "role": "sentinel", "configuration": DEFAULT} | place)
        ready.trial(planned, "judge", attempt)
        return None if asked[0] is None else asked[0].due_us.tolist()

    first = slots(round=1, arm="a")
    assert first == slots(round=1, arm="b", index=4) == slots(attempt=1, round=1, arm="b")
    others = [slots(round=2), slots(round=1, series=2), slots(), slots(index=4)]
    assert all(other != first for other in others)
    assert slots() == slots(attempt=1) != slots(index=4)
    # A soak's blocks, and a closed loop, which has no times.
    assert slots(role="soak", index=0) != slots(role="soak", index=1)
    assert slots(closed_loop=True) is None


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
        probe=PROBE,
        probed=NOTHING,
        conditions=replace(CONDITIONS, rate_rps=150, duration_s=2),
    )


PORTS, PROBING, OVERCOMMIT = (
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_mtu_probing",
    "vm.overcommit_memory",
)
OWN = {PORTS: "32768 60999", PROBING: "0", OVERCOMMIT: "0", "net.ipv4.tcp_fin_timeout": "7"}
PROBE = probe_of(OWN)
FIT = {PORTS: "40000 65000", PROBING: "1", OVERCOMMIT: "1", "net.ipv4.tcp_fin_timeout": "7"}
UNFIT = [
    (PORTS, "1024 1100", "beyond a hard bound: 1024 is below 32768"),
    (PORTS, "0x400 0x44c", "malformed"),
    (PORTS, "0120000 0160000", "malformed"),  # octal: 40960 57344
    (PROBING, "7", "not offered: '7' is none of 0, 1, 2"),
    (OVERCOMMIT, "2", "not offered: '2' is none of 0, 1"),
    ("kernel.pid_max", "400", "on the deny list"),
    ("net.core.somaxconn", "128", "this kernel doesn't have it"),
    ("nginx:main.worker_processes", "2", "not in the catalogue"),
    ("\ud800", "\0", "not on the list of keys that may be tuned"),
]


def with_nginx(ready: ClusterTestbed) -> ClusterTestbed:
    """The same where nginx's directives are tuned, too."""
    context = ready.task.context
    study = replace(context.study, tunes=("kernel", "nginx"))
    probe = replace(ready.probe, nginx=probed(catalogue(), conf(), FACTS))
    task = replace(ready.task, context=replace(context, study=study))
    return replace(ready, task=task, probe=probe)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("main.worker_processes", "2; user root", "malformed"),
        ("http.sendfile", "on; include /tmp/evil", "not offered"),
        ("main.user", "root", "on the deny list"),
        ("http.gzip", "on", "on the deny list unless the study allows it by its name"),
    ],
)
def test_a_directive_that_does_not_fit_the_host_is_never_written(
    testbed: FakeTestbed, name: str, value: str, why: str
) -> None:
    guard = Written()
    ready = with_nginx(measuring(testbed, guard))
    with pytest.raises(UsageError, match=re.escape(f"'nginx:{name}' = {value!r}, {why}")):
        ready.refusal(Configuration({f"nginx:{name}": value}))
    assert guard.applied == [DEFAULT]
    fit = Configuration({"nginx:main.worker_processes": "2", "nginx:http.sendfile": "off"})
    assert ready.refusal(fit) is None
    assert fit in guard.applied


@dataclass
class Written:
    """A guard that notes what it is given."""

    applied: list[Configuration] = field(default_factory=list)
    kept: list[Configuration] = field(default_factory=list)
    draining = 0

    def apply(self, configuration: Configuration) -> None:
        self.applied.append(configuration)

    def keep(self, configuration: Configuration, *_: object) -> None:
        self.kept.append(configuration)


def ways(ready: ClusterTestbed) -> list[Callable[[Configuration], object]]:
    """All ways of giving a host a configuration that somebody asks for."""

    def trial(configuration: Configuration) -> object:
        planned = PlannedTrial(index=0, role="design", configuration=configuration)
        return ready.trial(planned, "collect", 0)

    return [trial, ready.refusal, lambda configuration: ready.leave(configuration, {})]


@pytest.mark.parametrize(("key", "value", "why"), UNFIT)
@pytest.mark.parametrize("way", range(3), ids=["trial", "refusal", "leave"])
def test_a_value_that_does_not_fit_the_host_is_never_written(
    testbed: FakeTestbed,
    monkeypatch: pytest.MonkeyPatch,
    way: int,
    key: str,
    value: str,
    why: str,
) -> None:
    monkeypatch.setattr(cluster_testbed, "measure", pytest.fail)
    guard = Written()
    with pytest.raises(UsageError, match=re.escape(f"{key!r} = {value!r}, {why}")):
        ways(measuring(testbed, guard))[way](Configuration(FIT | {key: value}))
    assert not any(configuration.values for configuration in guard.applied)
    assert guard.kept == []


def test_values_of_the_host_and_within_hard_bounds_are_written(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range of searches is no hard bound, and what the host has by itself is always fit."""

    def measure(*_: Any, **__: Any) -> Any:
        raise CommandError("lg", "that is all")

    monkeypatch.setattr(cluster_testbed, "measure", measure)
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: Unsettled())
    own = OWN | {PORTS: "1024 60999"}
    for values in (FIT, own):
        guard = Written()
        ready = replace(measuring(testbed, guard), probe=probe_of(own))
        for way in ways(ready):
            way(Configuration(values))
        assert guard.applied.count(Configuration(values)) == 3
        assert [Configuration(values)] == guard.kept


def test_no_probe_of_the_store_widens_what_a_host_is_given(testbed: FakeTestbed) -> None:
    """Replicas have in common what the campaign's stored probe says."""
    guard = Written()
    stored = probe_of(OWN | {PORTS: "1024 60999", "net.core.somaxconn": "128"})
    ready = replace(measuring(testbed, guard), probed=probed_of(testbed.task.context.study, stored))
    for key, value in ((PORTS, "1024 60999"), ("net.core.somaxconn", "128")):
        with pytest.raises(UsageError, match="nothing was set"):
            ready.refusal(Configuration({key: value}))


def test_a_configuration_that_nginx_refuses_is_a_failed_trial_with_its_words(
    testbed: FakeTestbed,
) -> None:
    def apply(configuration: Configuration) -> None:
        if not configuration.is_default:
            raise NginxRefusedError("lb", "nginx: [emerg] no such thing")

    wanted = Configuration({"nginx:main.worker_processes": "2"})
    planned = PlannedTrial(index=0, role="design", configuration=wanted)
    ready = with_nginx(measuring(testbed, SimpleNamespace(apply=apply)))
    result = ready.trial(planned, "screen", 0)
    assert (result.status, result.detail) == ("failed", "lb: nginx: [emerg] no such thing")


def ended(guard: Any, restart: str = "systemctl restart nginx") -> list[str]:
    """What is said at the end of a session with this guard."""
    output: list[str] = []
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
    opening._end(ready, output.append)
    return output


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
    assert ended(guard) == []
    assert done == expected
    assert not guard.was_tuned or is_left


def test_where_nginx_can_not_be_restarted_it_is_said_what_to_type() -> None:
    def lost(_: Configuration) -> None:
        raise UnreachableError("lb", "the connection is gone")

    guard = SimpleNamespace(is_left=False, was_tuned=True, as_found=DEFAULT, apply=lost)
    (message,) = ended(guard)
    assert "as root there: systemctl restart nginx (the connection is gone)" in message


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
    assert (one.turn, other.series_round) == (3, (2, 3))
