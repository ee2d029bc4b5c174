"""What a study's file becomes."""

from pathlib import Path

import pytest

from builders.config_files import (
    DURATION,
    GENERATOR,
    GENERATORS,
    GOOD,
    LAB,
    REPLICAS,
    STORE,
    edited,
    problems,
    study,
    with_budget,
    with_classes,
)
from intop.domain.balancing import Balancing
from intop.domain.cluster import Cluster, Direction, LabClients, LabSpec, Link
from intop.domain.workload import ALIKE, Clients
from intop.errors import ConfigurationError, ResultMissingError


def test_a_study_has_what_its_file_says_and_defaults_for_the_rest(tmp_path: Path) -> None:
    result = study(tmp_path, GOOD)
    mine = (result.name, result.store, result.seed, result.max_risk, result.warm_start)
    assert mine == ("mine", "mine.db", 1, "medium", True)
    assert list(result.workloads) == ["slt"]
    slt = result.workloads["slt"]
    assert (slt.rate_rps, slt.connections, slt.threads) == (100, 8, 2)
    assert (slt.duration_s, slt.warmup_s, slt.timeout_s) == (2, 1, 10)
    assert (result.load_tool, slt.arrivals, slt.clients) == ("auto", "constant", (ALIKE,))
    assert slt.check == "content"
    defaults = {
        "level": 0.95, "judge_pairs": 10, "judge_looks": 2, "screen_stable": 3, "refine_batch": 4,
        "judge_duration_s": None,
        "explain_pairs": 16, "pilot_trials": 5, "pilot_max_s": 60, "pilot_resolution": 1.25,
        "max_steal": 0.1, "max_steal_cores": 0.2, "max_foreign_cores": 0.4, "max_load_cpu": 0.9,
        "max_lag": 0.2,
    }  # fmt: skip
    assert defaults == {name: getattr(result.budget, name) for name in defaults}
    assert result.wanted == ("*",)


@pytest.mark.parametrize(
    ("name", "default"),
    [("prune_factor", 5.0), ("explain_rounds", 4), ("replicate_trials", None),
     ("refine_trials", 120)],
)  # fmt: skip
def test_what_a_study_can_do_without_is_left_out_at_nought(
    tmp_path: Path, name: str, default: float | None
) -> None:
    assert default == getattr(study(tmp_path, GOOD).budget, name)
    assert getattr(study(tmp_path, with_budget(f"{name} = 0")).budget, name) == 0


def test_a_refinement_can_do_without_the_trials_before_it(tmp_path: Path) -> None:
    assert not study(tmp_path, edited("[study]", "[study]\nwarm_start = false")).warm_start


def test_a_duration_is_left_to_the_pilot_where_the_file_has_none(tmp_path: Path) -> None:
    workload = study(tmp_path, edited("duration_s = 2\n", "")).workloads["slt"]
    assert workload.duration_s is None
    with pytest.raises(ResultMissingError, match="intop pilot --workload slt"):
        _ = workload.counted_s


@pytest.mark.parametrize("tool", ["auto", "engine", "wrk2"])
def test_the_load_tool_is_the_studys(tmp_path: Path, tool: str) -> None:
    assert tool == study(tmp_path, edited(STORE, f'{STORE}\nload_tool = "{tool}"')).load_tool


def test_threads_are_for_wrk2_and_connections_need_not_go_by_them(tmp_path: Path) -> None:
    text = edited("threads = 2\n", "", edited("connections = 8", "connections = 7"))
    slt = study(tmp_path, text).workloads["slt"]
    assert (slt.connections, slt.threads) == (7, 2)


def test_a_workload_says_how_its_clients_behave(tmp_path: Path) -> None:
    lines = """\
arrivals = "poisson"
requests_per_connection = 20
lifetimes = "geometric"
think_ms = 2.5
read_kb_per_s = 100
tls_resume = true
http = "2"
streams_per_connection = 10
headers = ["Accept-Encoding: gzip", "X-Test: a: b"]
method = "POST"
body_bytes = 2048
source = "192.0.2.11"
"""
    slt = study(tmp_path, edited(DURATION, f"{DURATION}\n{lines}")).workloads["slt"]
    expected = Clients(
        requests_per_connection=20,
        lifetimes="geometric",
        think_ms=2.5,
        read_kb_per_s=100,
        tls_resume=True,
        http="2",
        streams_per_connection=10,
        headers=("Accept-Encoding: gzip", "X-Test: a: b"),
        method="POST",
        body_bytes=2048,
        source="192.0.2.11",
    )
    assert (slt.arrivals, slt.clients) == ("poisson", (expected,))
    assert slt.traffic.startswith("poisson arrivals; requests_per_connection=20.0, lifetimes=geom")


def test_classes_of_clients_share_a_workload(tmp_path: Path) -> None:
    slt = study(tmp_path, with_classes()).workloads["slt"]
    people = Clients(name="people", share=0.8, think_ms=20)
    bots = Clients(name="bots", share=0.2, connections=2, requests_per_connection=1)
    assert ((people, bots), 8) == (slt.clients, slt.connections)


def test_several_generators_may_share_a_load(tmp_path: Path) -> None:
    (arm,) = study(tmp_path, edited(GENERATOR, GENERATORS)).clusters["arm"]
    assert isinstance(arm, Cluster)
    assert [h.name for h in arm.load_generators] == ["load.example", "more"]
    names = ["load.example", "10.0.0.2", "more", "b1.example", "second"]
    assert names == [h.name for h in arm.hosts]
    roles = ["load-generator", "load-balancer", "load-generator", "backend", "backend"]
    assert roles == [h.role for h in arm.hosts]


def test_one_of_several_generators_is_as_good_as_the_only_one(tmp_path: Path) -> None:
    text = edited(GENERATOR, GENERATOR.replace("[cluster.arm.load_generator]",
                                               "[[cluster.arm.load_generators]]"))  # fmt: skip
    assert study(tmp_path, GOOD).clusters["arm"] == study(tmp_path, text).clusters["arm"]


def test_a_lab_has_a_guest_where_it_is_asked_for(tmp_path: Path) -> None:
    shaped = 'kind = "vm"\nlink = { delay_ms = 10, loss_percent = 0.5 }'
    text = GOOD.replace("link = { rate_mbit = 300 }", shaped)
    expected = LabSpec(name="one", kind="vm", link=Link(delay_ms=10, loss_percent=0.5))
    assert study(tmp_path, text).clusters["x86"] == (expected,)


def test_a_labs_load_balancer_may_start_badly_set(tmp_path: Path) -> None:
    keys = '{ "net.core.somaxconn" = 128, "net.ipv4.tcp_rmem" = "4096 8192 65536" }'
    text = f"link = {{ rate_mbit = 300 }}\nupstream_keepalive = 0\nbacklog = 511\nsysctls = {keys}"
    text += (
        "\nworkers = 2\nproxy_buffers = 4\nproxy_buffer_kb = 8\nsndbuf_kb = 32\ntls_key_bits = 2048"
    )
    text += "\naccess_log = true\ndisk_iops = 300"
    (result,) = study(tmp_path, GOOD.replace("link = { rate_mbit = 300 }", text)).clusters["x86"]
    assert isinstance(result, LabSpec)
    assert result.balancing == Balancing(
        upstream_keepalive=0,
        backlog=511,
        workers=2,
        proxy_buffers=4,
        proxy_buffer_kb=8,
        sndbuf_kb=32,
        tls_key_bits=2048,
        access_log="disk",
        disk_iops=300,
        sysctls=(("net.core.somaxconn", "128"), ("net.ipv4.tcp_rmem", "4096 8192 65536")),
    )
    (message,) = problems(
        tmp_path,
        GOOD.replace(
            "{ rate_mbit = 300 }", '{ rate_mbit = 300 }\nsysctls = { "vm.swappiness" = 1 }'
        ),
    )
    assert "sysctls: only keys of net. can be a lab's own, got 'vm.swappiness'" in message


def test_a_link_may_differ_by_direction(tmp_path: Path) -> None:
    shaped = "rate_mbit = 75, limit_kb = 200, delay_ms = 30, jitter_ms = 2, loss_percent = 0.2"
    link = f"link = {{ {shaped}, seed = 3, up = {{ rate_mbit = 10, loss_percent = 0 }} }}"
    (result,) = study(tmp_path, GOOD.replace("link = { rate_mbit = 300 }", link)).clusters["x86"]
    assert isinstance(result, LabSpec)
    up = Direction(rate_mbit=10, limit_kb=200, delay_ms=30, jitter_ms=2, loss_percent=0)
    assert result.link == Link(
        rate_mbit=75, limit_kb=200, delay_ms=30, jitter_ms=2, loss_percent=0.2, seed=3, up=up
    )


def test_a_lab_may_have_classes_of_clients(tmp_path: Path) -> None:
    tables = """link = { rate_mbit = 300 }
clients = [
    { name = "lan", share = 0.75 },
    { name = "mobile", share = 0.25, link = { delay_ms = 40, loss_percent = 1 } },
]"""
    (result,) = study(tmp_path, GOOD.replace("link = { rate_mbit = 300 }", tables)).clusters["x86"]
    assert isinstance(result, LabSpec)
    mobile = LabClients(name="mobile", share=0.25, link=Link(delay_ms=40, loss_percent=1))
    assert result.clients == (LabClients(name="lan", share=0.75), mobile)
    (wrong,) = problems(tmp_path, GOOD.replace("link = { rate_mbit = 300 }", tables[:-1]
                                               .replace("0.75", "0.7") + "]"))  # fmt: skip
    assert "clients: their shares must add up to 1" in wrong


def test_a_lab_may_answer_late(tmp_path: Path) -> None:
    link = "link = { rate_mbit = 300 }"
    tables = (
        f'{link}\nfiles = {{ "/a" = 1.5, "/b" = 2 }}\nwaits = {{ "/a" = {{ 4 = 120, 90 = 5 }} }}'
    )
    (result,) = study(tmp_path, edited(link, tables)).clusters["x86"]
    assert isinstance(result, LabSpec)
    assert result.files == (("/a", 1.5), ("/b", 2.0))
    assert result.waits == (("/a", ((4, 120), (90, 5))),)


@pytest.mark.parametrize(
    "waits", ['{ "/a" = { x = 1 } }', '{ "/a" = { 4 = 0.5 } }', '{ "/a" = 4 }']
)
def test_waits_are_whole_ms_with_weights(tmp_path: Path, waits: str) -> None:
    link = "link = { rate_mbit = 300 }"
    text = edited(link, f'{link}\nfiles = {{ "/a" = 1 }}\nwaits = {waits}')
    assert "cluster.x86.waits" in problems(tmp_path, text)[0]


def test_an_architecture_may_have_replicas(tmp_path: Path) -> None:
    result = study(tmp_path, REPLICAS).clusters["x86"]
    assert [c.name for c in result if isinstance(c, LabSpec)] == ["one", "two"]
    assert len({c.link for c in result}) == 1


@pytest.mark.parametrize(
    ("old", "new", "output"),
    [
        ('lab = "two"', 'lab = "one"', ":11: cluster.x86: two replicas have lab one: each needs"),
        ('lab = "two"', 'lab = "two"\nfoo = 1', ":17: cluster.x86.1.foo: extra inputs are not"),
        ('lab = "two"', 'lab = "-"', ":15: cluster.x86.1: lab name '-'"),
    ],
)
def test_what_is_wrong_with_a_replica_is_named(
    tmp_path: Path, old: str, new: str, output: str
) -> None:
    (result,) = problems(tmp_path, edited(old, new, REPLICAS))
    assert output in result


def test_two_replicas_need_load_balancers_of_their_own(tmp_path: Path) -> None:
    arm = GOOD[GOOD.index("[cluster.arm]") :]
    more = arm.replace("[cluster.arm]", "[[cluster.arm]]")
    (result,) = problems(tmp_path, GOOD.replace(arm, more + more))
    assert "two replicas have load balancer 10.0.0.2:22: each needs its own" in result


def test_a_cluster_is_a_lab_or_hosts(tmp_path: Path) -> None:
    clusters = study(tmp_path, GOOD).clusters
    assert (LabSpec(name="one", arch="x86", link=Link(rate_mbit=300)),) == clusters["x86"]
    (arm,) = clusters["arm"]
    assert isinstance(arm, Cluster)
    assert arm.emulation == ""
    assert [h.name for h in arm.hosts] == ["load.example", "10.0.0.2", "b1.example", "second"]
    assert [h.role for h in arm.hosts] == ["load-generator", "load-balancer", "backend", "backend"]
    assert [h.sudo for h in arm.hosts] == [False, True, False, False]
    jump = arm.load_balancer.jump
    assert jump is not None
    assert (jump.hostname, jump.user) == ("jump.example", "me")
    # What a study doesn't say is for OpenSSH's configuration to say.
    assert (jump.port, arm.load_balancer.user, arm.load_balancer.port) == (None, None, None)


def test_a_load_may_be_tied_to_processors(tmp_path: Path) -> None:
    pinned = edited('hostname = "load.example"', 'hostname = "load.example"\nload_cpus = "0-3,8"')
    pinned = edited(LAB, f'{LAB}\nload_cpus = "1"', pinned)
    result = study(tmp_path, pinned)
    (lab,), (arm,) = result.clusters["x86"], result.clusters["arm"]
    assert isinstance(lab, LabSpec)
    assert isinstance(arm, Cluster)
    assert (
        lab.load_cpus,
        arm.load_generator.load_cpus,
        arm.load_balancer.load_cpus,
    ) == ("1", "0-3,8", "")


def test_a_host_may_ask_for_its_password_and_do_without_openssh(tmp_path: Path) -> None:
    text = edited("sudo = true", 'sudo = "ask"\nssh_config = "none"\nport = 2222\nuser = "me"')
    (arm,) = study(tmp_path, text).clusters["arm"]
    assert isinstance(arm, Cluster)
    host = arm.load_balancer
    assert (host.sudo, host.ssh_config, host.port, host.user) == ("ask", "none", 2222, "me")


def test_a_study_may_bring_its_own_catalogue_from_beside_it(tmp_path: Path) -> None:
    (tmp_path / "few.toml").write_text(
        "schema = 1\n[[parameter]]\n"
        'key = "net.core.somaxconn"\nkind = "integer"\nlow = 1\nhigh = 9\nscale = "linear"\n'
        'unit = ""\nscope = "namespace"\nrisk = "low"\nmechanism = "m"\ndocument = "d"\n'
    )
    text = edited('store = "mine.db"', 'catalogue = "few.toml"')
    assert [p.key for p in study(tmp_path, text).catalogue.parameters] == ["net.core.somaxconn"]


def test_an_own_set_of_paths_and_of_parameters(tmp_path: Path) -> None:
    text = edited('store = "mine.db"', 'parameters = ["net.core.*", "vm.swappiness"]')
    text = edited("duration_s = 2", 'duration_s = 2\npaths = ["/a", "/b"]', text)
    result = study(tmp_path, text)
    assert result.wanted == ("net.core.*", "vm.swappiness")
    assert result.workloads["slt"].paths == ("/a", "/b")


MORE = """
[workload.cdn]
kind = "slt"
tuned = false
scheme = "https"
script = "load/mine.lua"
rate_rps = 5
connections = 2
paths = { "/a" = 6, "/b" = 3 }

[workload.api-v2]
kind = "dlt"
rate_rps = 5
connections = 2
"""


def test_workloads_have_names_weights_and_scripts_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "load").mkdir()
    (tmp_path / "load" / "mine.lua").write_text("")
    result = study(tmp_path, edited("[workload.slt]", f"{MORE}\n[workload.slt]")).workloads
    assert list(result) == ["slt", "cdn", "api-v2"]
    cdn = result["cdn"]
    assert (cdn.kind, cdn.tuned, cdn.scheme) == ("slt", False, "https")
    assert cdn.paths == ("/a", "/a", "/b")
    assert (str(tmp_path / "load" / "mine.lua"), "mine") == (cdn.script, cdn.own_script)
    api = result["api-v2"]
    assert (api.kind, api.tuned, api.scheme, api.own_script) == ("dlt", True, "", "")


def test_two_scripts_of_one_name_would_meet_on_the_load_generator(tmp_path: Path) -> None:
    for folder in ("load", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.lua").write_text("")
    two = MORE.replace('kind = "dlt"', 'kind = "dlt"\nscript = "other/mine.lua"')
    with pytest.raises(
        ConfigurationError, match=r"workload\.api-v2\.script: there is another mine"
    ):
        study(tmp_path, edited("[workload.slt]", f"{two}\n[workload.slt]"))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("true", "disk"), ("false", "off"), ('"memory"', "memory"), ('"off"', "off")],
)
def test_an_access_log_has_three_modes(tmp_path: Path, mode: str, expected: str) -> None:
    text = edited(LAB, f'{LAB}\naccess_log = {mode}\nserver_cpus = "0-1,3"')
    (spec,) = study(tmp_path, text).clusters["x86"]
    assert isinstance(spec, LabSpec)
    assert (spec.balancing.access_log, spec.balancing.server_cpus) == (expected, "0-1,3")


@pytest.mark.parametrize(
    ("line", "objective", "judged_by"),
    [
        ("", "p99", "P99"),
        ('objective = "component"', "component", "P99"),
        ('objective = "p90"', "p90", "P90"),
        ('objective = "p99.9"', "p99.9", "P99.9"),
        ('objective = "mean"', "mean", "mean latency"),
    ],
)
def test_p99_is_judged_unless_the_file_names_another_latency(
    tmp_path: Path, line: str, objective: str, judged_by: str
) -> None:
    loaded = study(tmp_path, edited('store = "mine.db"', f'store = "mine.db"\n{line}'))
    assert loaded.objective == objective
    assert {workload.judged_by for workload in loaded.workloads.values()} == {judged_by}


def test_an_unknown_objective_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    text = edited('store = "mine.db"', 'store = "mine.db"\nobjective = "p42"')
    with pytest.raises(ConfigurationError, match=r"study\.objective: .*'p50'.*'p99\.9', 'mean'"):
        study(tmp_path, text)
