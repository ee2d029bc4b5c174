"""What trials are measured under: told in words, and refused where it is no longer so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders.testbeds import FakeTestbed, probe_of
from builders.trials import CONDITIONS, FACTS, cluster, trial
from intop.domain.cluster import HostAddress
from intop.domain.configuration import Configuration
from intop.domain.server import SERVERS
from intop.domain.trial import UNKNOWN, Conditions
from intop.domain.workload import Clients
from intop.errors import IncomparableError
from intop.hosts.load.types import LoadTool
from intop.hosts.rig import ClusterFacts
from intop.run.comparability import check_same, conditions_of

PROBE = probe_of({"net.core.somaxconn": "4096"})
TOOL = LoadTool(name="engine", version="LuaJIT 2.1.0", path="luajit")
BACKENDS = tuple(HostAddress(name=f"b{n}", role="backend", hostname=f"b{n}") for n in (1, 2, 3))
SAME = dict.fromkeys(("lg", "lb", "b1", "b2", "b3"), FACTS)


def described(testbed: FakeTestbed, **changes: Any) -> Conditions:
    """The conditions on a cluster of three backends, of whose facts these are others."""
    hosts: Mapping[str, Any] = {**SAME, **changes.pop("hosts", {})}
    known = {name: facts for name, facts in hosts.items() if facts is not None}
    facts = ClusterFacts(hosts=known, **changes)
    return conditions_of(testbed.task, cluster(backends=BACKENDS), facts, TOOL, PROBE)


# The load -----------------------------------------------------------------------------------------


def test_the_load_tool_and_its_threads_are_told(testbed: FakeTestbed) -> None:
    assert testbed.task.workload.threads > 1
    facts, made = ClusterFacts(hosts=SAME), cluster()
    result = conditions_of(testbed.task, made, facts, TOOL, PROBE)
    assert (result.load_tool, result.threads) == ("engine LuaJIT 2.1.0", 1)
    wrk2 = LoadTool(name="wrk2", version="4.0.0", path="wrk2")
    result = conditions_of(testbed.task, made, facts, wrk2, PROBE)
    assert ("wrk2 4.0.0", testbed.task.workload.threads) == (result.load_tool, result.threads)


def test_traffic_is_told_where_it_is_not_the_usual_one(testbed: FakeTestbed) -> None:
    task = testbed.task
    assert conditions_of(task, cluster(), ClusterFacts(hosts=SAME), TOOL, PROBE).traffic == ""
    workload = replace(task.workload, arrivals="poisson", clients=(Clients(think_ms=5),))
    result = conditions_of(
        replace(task, workload=workload), cluster(), ClusterFacts(hosts=SAME), TOOL, PROBE
    )
    assert result.traffic == "poisson arrivals; think_ms=5"


def test_all_generators_of_a_load_are_told(testbed: FakeTestbed) -> None:
    more = HostAddress(name="lg2", role="load-generator", hostname="lg2")
    hosts = {**SAME, "lg2": replace(FACTS, cpus=2)}
    made = cluster(more_generators=(more,))
    result = conditions_of(testbed.task, made, ClusterFacts(hosts=hosts), TOOL, PROBE).generator
    assert result == "EPYC, 2 CPUs, Linux 6.1.0; EPYC, 4 CPUs, Linux 6.1.0"
    pinned = replace(made, more_generators=(replace(more, load_cpus="0"),))
    result = conditions_of(testbed.task, pinned, ClusterFacts(hosts=hosts), TOOL, PROBE).generator
    assert result == "EPYC, 2 CPUs, Linux 6.1.0, load on CPUs 0; EPYC, 4 CPUs, Linux 6.1.0"


def test_what_the_load_balancer_starts_with_is_told(testbed: FakeTestbed) -> None:
    """The same host gains by other keys with another one, so these are never mixed."""
    assert described(testbed).congestion_control == ""
    probe = probe_of({"net.ipv4.tcp_congestion_control": "cubic"})
    facts = ClusterFacts(hosts=SAME)
    result = conditions_of(testbed.task, cluster(), facts, TOOL, probe)
    assert result.congestion_control == "cubic"
    (line,) = replace(result, congestion_control="bbr").differences(result)
    assert line == "congestion_control: bbr against cubic"


def test_what_the_other_hosts_start_with_is_a_condition_as_soon_as_all_are_known(
    testbed: FakeTestbed,
) -> None:
    assert described(testbed).peers_congestion_control == ""
    algorithms = {"lg": "cubic", "b1": "bbr", "b2": "cubic", "b3": "bbr"}
    hosts = {n: replace(f, congestion_control=algorithms.get(n, "")) for n, f in SAME.items()}
    result = described(testbed, hosts=hosts)
    assert result.peers_congestion_control == "clients cubic, backends bbr and cubic"
    (line,) = replace(result, peers_congestion_control="clients bbr").differences(result)
    assert line.startswith("peers_congestion_control: clients bbr against clients cubic")


# In words -----------------------------------------------------------------------------------------


def test_hosts_that_are_alike_are_counted(testbed: FakeTestbed) -> None:
    result = described(testbed)
    assert (result.cpus, result.generator) == (4, "EPYC, 4 CPUs, Linux 6.1.0")
    assert result.backends == "3 x EPYC, 4 CPUs, Linux 6.1.0, nginx 1.22.1"


def test_hosts_that_differ_are_told_apart_in_any_order(testbed: FakeTestbed) -> None:
    small = replace(FACTS, cpus=1, nginx="")
    expected = "2 x EPYC, 4 CPUs, Linux 6.1.0, nginx 1.22.1; EPYC, 1 CPU, Linux 6.1.0, no nginx"
    for name in ("b1", "b3"):
        message = described(testbed, hosts={name: small}).backends
        assert sorted(expected.split("; ")) == sorted(message.split("; "))
    assert described(testbed, hosts={"b1": small}).backends == message


def test_what_nobody_asked_is_not_recorded(testbed: FakeTestbed) -> None:
    result = described(testbed, hosts={"lg": None, "b2": None})
    assert (result.generator, result.backends, result.nginx_conf) == ("", "", "")


def test_of_nginx_there_is_a_fingerprint_or_the_word_that_it_is_not_known(
    testbed: FakeTestbed,
) -> None:
    result = [described(testbed, nginx_conf=(text,)).nginx_conf for text in ("a 1;", "a 2;", "")]
    assert len(set(result[:2])) == 2
    assert [len(text) for text in result[:2]] == [8, 8]
    assert UNKNOWN == result[2] == described(testbed, nginx_conf=()).nginx_conf


BACKEND = "EPYC, 4 CPUs, Linux 6.1.0, nginx 1.22.1"
CHANGED = "nginx.conf on lb, or a file that it includes, was changed"

# Refused ------------------------------------------------------------------------------------------


def stored(testbed: FakeTestbed, *replicas: tuple[str, str]) -> None:
    """A trial for each replica and its fingerprint of nginx.conf."""
    task = testbed.task
    trials = [
        replace(
            trial(index=n, conditions=replace(CONDITIONS, nginx_conf=nginx_conf)), replica=replica
        )
        for n, (replica, nginx_conf) in enumerate(replicas)
    ]
    task.store.write_plan(task.subject, "collect", [t.planned for t in trials])
    for made in trials:
        task.store.add(task.subject, made)


def refusal(testbed: FakeTestbed, replica: str = "lb", **changes: Any) -> str:
    """What is said against going on under CONDITIONS with these changes; "" for nothing."""
    try:
        check_same(testbed.task, replace(CONDITIONS, **changes), PROBE, PROBE, replica)
    except IncomparableError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"cpus": 8}, "cpus: 4 against 8"),
        (
            {"generator": "EPYC, 8 CPUs, Linux 6.2.0"},
            "generator: EPYC, 8 CPUs, Linux 6.1.0 against EPYC, 8 CPUs, Linux 6.2.0",
        ),
        (
            {"backends": BACKEND},
            f"backends: 2 x {BACKEND} against {BACKEND}",
        ),
        (
            {"nginx_conf": "99999999"},
            f"nginx_conf: 0a1b2c3d against 99999999: {CHANGED}",
        ),
        (
            {"nginx_conf": UNKNOWN},
            "nginx_conf: 0a1b2c3d against unknown: no nginx runs on lb, or nginx -T fails there",
        ),
    ],
)
def test_a_campaign_does_not_go_on_where_its_hosts_have_changed(
    testbed: FakeTestbed, changes: dict[str, Any], line: str
) -> None:
    stored(testbed, ("lb", "0a1b2c3d"))
    assert refusal(testbed) == ""
    message = refusal(testbed, **changes)
    assert f"\n  {line}\n" in message
    assert "Bring them back, or start anew with --new" in message


def test_what_an_earlier_intop_did_not_record_does_not_keep_a_campaign_from_going_on(
    testbed: FakeTestbed,
) -> None:
    task = testbed.task
    before = replace(CONDITIONS, cpus=None, nginx_conf="", generator="", backends="")
    task.store.write_plan(task.subject, "collect", [trial().planned])
    task.store.add(task.subject, replace(trial(conditions=before), replica="lb"))
    assert refusal(testbed) == ""
    assert "kernel: " in refusal(testbed, kernel="9.9")


def test_a_replicas_nginx_is_held_against_its_own_of_before(testbed: FakeTestbed) -> None:
    stored(testbed, ("lb", "0a1b2c3d"), ("lb-2", "22222222"))
    assert "" == refusal(testbed, "lb") == refusal(testbed, "lb-2", nginx_conf="22222222")
    assert "nginx.conf on lb," in refusal(testbed, "lb", nginx_conf="22222222")
    assert "nginx.conf on lb-2," in refusal(testbed, "lb-2")
    assert refusal(testbed, "lb-3", nginx_conf="33333333") == ""


def test_what_could_not_be_read_then_and_can_be_now_is_a_difference(testbed: FakeTestbed) -> None:
    stored(testbed, ("lb", UNKNOWN))
    assert refusal(testbed, nginx_conf=UNKNOWN) == ""
    assert "unknown against 0a1b2c3d: nginx -T could not be run on lb then" in refusal(testbed)


def test_the_server_is_a_condition(testbed: FakeTestbed) -> None:
    facts = ClusterFacts(hosts=SAME | {"lb": replace(FACTS, nginx="haproxy/2.6.12")})
    made = cluster(server=SERVERS["haproxy"], backends=BACKENDS)
    result = conditions_of(testbed.task, made, facts, TOOL, PROBE)
    assert (result.server, result.nginx) == ("haproxy", "haproxy/2.6.12")
    assert described(testbed).server == "nginx"


def test_trials_of_several_servers_are_never_mixed(testbed: FakeTestbed) -> None:
    stored(testbed, ("lb", "0a1b2c3d"))
    assert "\n  server: nginx against caddy\n" in refusal(testbed, server="caddy")
    message = refusal(testbed, server="caddy", nginx_conf="22222222")
    assert "Caddy's configuration on lb, or a file that it includes, was changed" in message
    message = refusal(testbed, server="caddy", nginx_conf=UNKNOWN)
    assert "no Caddy runs on lb, or its configuration can't be read there" in message


# What is not tuned any more -----------------------------------------------------------------------


def planned(testbed: FakeTestbed, **values: str) -> None:
    """A plan of one trial, which is not measured yet."""
    named = {key.replace("__", "."): value for key, value in values.items()}
    task = testbed.task
    task.store.write_plan(task.subject, "collect", [trial(Configuration(named)).planned])


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (
            {"net__core__default_qdisc": "fq"},
            "net.core.default_qdisc: tuned against left out, not offered: interfaces keep the",
        ),
        (
            {"kernel__pid_max": "400"},
            "kernel.pid_max: tuned against left out, on the deny list: without room for another",
        ),
        ({"net__core__made_up": "1"}, "net.core.made_up: tuned against left out, not in the cat"),
        (
            {"net__ipv4__ip_local_port_range": "2000 60000"},
            "net.ipv4.ip_local_port_range: '2000 60000' planned, which is beyond a hard bound: ",
        ),
        (
            {"net__ipv4__ip_local_port_range": "0x8000 0x8100"},
            "net.ipv4.ip_local_port_range: '0x8000 0x8100' planned, which is malformed: ",
        ),
        (
            {"net__ipv4__tcp_mtu_probing": "7"},
            "net.ipv4.tcp_mtu_probing: '7' planned, which is not offered: '7' is none of 0, 1, 2",
        ),
    ],
)
def test_a_plan_of_what_is_not_tuned_any_more_is_not_carried_out(
    testbed: FakeTestbed, values: dict[str, str], line: str
) -> None:
    planned(testbed, **values)
    own = {"net.ipv4.ip_local_port_range": "32768 60999", "net.ipv4.tcp_mtu_probing": "0"}
    probe = probe_of(own)
    with pytest.raises(IncomparableError) as caught:
        check_same(testbed.task, CONDITIONS, probe, probe, "lb")
    assert f"\n  {line}" in str(caught.value)
    assert "start anew with --new" in str(caught.value)


def test_what_was_measured_beyond_todays_bounds_is_data_as_any_other(testbed: FakeTestbed) -> None:
    planned(testbed, net__ipv4__ip_local_port_range="2000 60000")
    task = testbed.task
    (one,) = task.store.plan(task.subject, "collect")
    task.store.add(task.subject, replace(trial(one.configuration), planned=one))
    probe = probe_of({"net.ipv4.ip_local_port_range": "32768 60999"})
    check_same(task, CONDITIONS, probe, probe, "lb")
