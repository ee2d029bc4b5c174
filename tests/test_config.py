"""Configuration files: what they become, and every mistake in them at once, with its place."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from intop.config.location import default_path
from intop.config.study import Study, host_address, load_study
from intop.domain.baseline import Baseline
from intop.domain.cluster import (
    Balancing,
    Cluster,
    Direction,
    HostAddress,
    LabClients,
    LabSpec,
    Link,
    native_arch,
    other_arch,
)
from intop.domain.guardrails import NO_GUARDRAILS, Guardrails
from intop.domain.workload import ALIKE, Clients
from intop.errors import ConfigurationError, ResultMissingError, UsageError

CONFIGS = Path(__file__).parents[1] / "configs"
CATALOGUES = ("parameters.toml", "counters.toml", "nginx.toml")
STUDIES = sorted(p.name for p in CONFIGS.glob("*.toml") if p.name not in CATALOGUES)

GOOD = """\
[study]
name = "mine"
store = "mine.db"

[workload.slt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 2

[cluster.x86]
lab = "one"
link = { rate_mbit = 300 }

[cluster.arm]
url = "http://10.0.0.2"
nginx_restart = "systemctl restart nginx"
static_paths = ["/index.html"]
dynamic_path = "/dynamic"

[cluster.arm.load_generator]
hostname = "load.example"

[cluster.arm.load_balancer]
hostname = "10.0.0.2"
sudo = true
jump = { hostname = "jump.example", user = "me" }

[[cluster.arm.backends]]
hostname = "b1.example"

[[cluster.arm.backends]]
hostname = "b2.example"
name = "second"
"""

HEAD = GOOD[: GOOD.index("[cluster.x86]")]
REPLICA = '[[cluster.x86]]\nlab = "{}"\nlink = {{ rate_mbit = 300 }}\n\n'
REPLICAS = HEAD + REPLICA.format("one") + REPLICA.format("two")


MUST = "input should be"
AT_LEAST = f"{MUST} greater than or equal to"


def study(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return load_study(path)


def problems(tmp_path: Path, text: str) -> tuple[str, ...]:
    """Without the folder."""
    with pytest.raises(ConfigurationError) as caught:
        study(tmp_path, text)
    return tuple(problem.removeprefix(f"{tmp_path}/") for problem in caught.value.problems)


def edited(old: str, new: str, text: str = GOOD) -> str:
    assert 1 == text.count(old), old
    return text.replace(old, new)


def with_budget(line: str) -> str:
    return edited("[workload.slt]", f"[budget]\n{line}\n[workload.slt]")


# What comes with intop ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", STUDIES)
def test_every_shipped_study_loads(name: str) -> None:
    found = load_study(CONFIGS / name)
    assert {"slt", "dlt"} == set(found.workloads)
    assert found.clusters
    assert 100 <= len(found.catalogue.parameters)


def test_the_shipped_studies_are_there() -> None:
    assert {"lab.toml", "paper.toml", "cluster.example.toml"} <= set(STUDIES)


def test_the_lab_is_this_machines_architecture_and_a_guest_of_the_other() -> None:
    found = load_study(CONFIGS / "lab.toml")
    labs = [c for replicas in found.clusters.values() for c in replicas]
    kinds = {(c.arch, c.kind) for c in labs if isinstance(c, LabSpec)}
    assert {(native_arch(), "namespaces"), (other_arch(), "vm")} == kinds
    assert {other_arch()} == found.optional
    # Clusters that are compared have the same link, and a machine can't be two labs at once.
    assert 1 == len({c.link for c in labs})
    assert len(labs) == len({c.name for c in labs if isinstance(c, LabSpec)})


def test_the_example_has_an_x86_and_an_arm_cluster() -> None:
    found = load_study(CONFIGS / "cluster.example.toml").clusters
    assert {"x86", "arm"} == set(found)
    clusters = [c for replicas in found.values() for c in replicas if isinstance(c, Cluster)]
    assert [("php-fpm8.2",)] * 2 == [c.programs for c in clusters]


def uncommented(text: str, first: str, last: str) -> str:
    """The example with its settings from one line to another in force, which are comments."""
    start = text.index(f"# {first}")
    end = text.index(f"# {last}", start) + len(f"# {last}")
    lines = re.sub(r"^# (?=\w+ = |\[\[)", "", text[start:end], flags=re.MULTILINE)
    assert lines != text[start:end]
    return text[:start] + lines + text[end:]


def test_what_the_example_says_of_loads_in_comments_can_be_said(tmp_path: Path) -> None:
    text = (CONFIGS / "cluster.example.toml").read_text()
    behaving = study(tmp_path, uncommented(text, "duration_s = 20", "source = ")).workloads["slt"]
    assert ("poisson", 20) == (behaving.arrivals, behaving.duration_s)
    (clients,) = behaving.clients
    plain = Clients()
    same = {f.name for f in fields(Clients) if getattr(plain, f.name) == getattr(clients, f.name)}
    assert {"name", "share", "connections"} == same

    classes = uncommented(text, "[[workload.slt.clients]]", "requests_per_connection = 1\n")
    found = study(tmp_path, classes).workloads["slt"].clients
    assert ["people", "bots"] == [one.name for one in found]

    start = text.index("[cluster.x86.load_generator]")
    end = text.index("# [[cluster.x86.load_generators]]")
    shared = uncommented(text[:start] + text[end:], "[[cluster.x86", 'hostname = "192.0.2.11"')
    (x86,) = study(tmp_path, shared).clusters["x86"]
    assert isinstance(x86, Cluster)
    assert ["192.0.2.10", "192.0.2.11"] == [host.hostname for host in x86.load_generators]


def test_the_folders_own_study_comes_before_the_labs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert CONFIGS / "lab.toml" == default_path()
    (tmp_path / "intop.toml").write_text(GOOD)
    assert Path("intop.toml") == default_path()


# What a file becomes ------------------------------------------------------------------------------


def test_a_study_has_what_its_file_says_and_defaults_for_the_rest(tmp_path: Path) -> None:
    found = study(tmp_path, GOOD)
    mine = (found.name, found.store, found.seed, found.max_risk, found.warm_start)
    assert ("mine", "mine.db", 1, "medium", True) == mine
    assert ["slt"] == list(found.workloads)
    slt = found.workloads["slt"]
    assert (100, 8, 2) == (slt.rate_rps, slt.connections, slt.threads)
    assert (2, 1, 10) == (slt.duration_s, slt.warmup_s, slt.timeout_s)
    assert ("auto", "constant", (ALIKE,)) == (found.load_tool, slt.arrivals, slt.clients)
    assert "content" == slt.check
    defaults = {
        "level": 0.95, "judge_pairs": 10, "judge_looks": 2, "screen_stable": 3, "refine_batch": 4,
        "judge_duration_s": None,
        "explain_pairs": 16, "pilot_trials": 5, "pilot_max_s": 60, "pilot_resolution": 1.25,
        "max_steal": 0.1, "max_steal_cores": 0.2, "max_foreign_cores": 0.4, "max_load_cpu": 0.9,
        "max_lag": 0.2,
    }  # fmt: skip
    assert defaults == {name: getattr(found.budget, name) for name in defaults}
    assert ("*",) == found.wanted


def with_guardrails(lines: str) -> str:
    return edited("[workload.slt]", f"[guardrails]\n{lines}\n[workload.slt]")


def test_guardrails_have_defaults_and_can_be_moved_or_switched_off(tmp_path: Path) -> None:
    found = study(tmp_path, GOOD).guardrails
    assert Guardrails() == found
    assert (1.1, 0.99, 0.1, 5.0, 1.1, 64.0, 1.1) == tuple(vars(found).values())
    text = with_guardrails("p50_times = 1.5\nrate_times = false\nmemory_mib = 0")
    changed = {"p50_times": 1.5, "rate_times": None, "memory_mib": 0.0}
    assert replace(Guardrails(), **changed) == study(tmp_path, text).guardrails
    names = Guardrails.__dataclass_fields__
    off = with_guardrails("\n".join(f"{name} = false" for name in names))
    assert NO_GUARDRAILS == study(tmp_path, off).guardrails


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("p50_times = 0.9", f"6: guardrails.p50_times: {AT_LEAST} 1 (got 0.9)"),
        ("p50_times = true", "6: guardrails.p50_times: must be a number, or false to switch it"),
        ('cpu_times = "10 %"', "6: guardrails.cpu_times: input should be a valid number"),
        ("rate_times = 1.1", "6: guardrails.rate_times: input should be less than or equal to 1"),
        ("rate_times = 0", "6: guardrails.rate_times: input should be greater than 0"),
        ("cpu_points = -1", f"6: guardrails.cpu_points: {AT_LEAST} 0"),
        ("error_points = 101", "6: guardrails.error_points: input should be less than or equal"),
        ("memory_mib = -1", f"6: guardrails.memory_mib: {AT_LEAST} 0"),
        ("memory_points = 1", "6: guardrails.memory_points: extra inputs are not permitted"),
    ],
)
def test_a_mistake_in_the_guardrails_has_its_place(
    tmp_path: Path, line: str, expected: str
) -> None:
    (found,) = problems(tmp_path, with_guardrails(line))
    assert found.startswith(f"study.toml:{expected}")


def test_the_example_says_the_guardrails_that_there_are(tmp_path: Path) -> None:
    text = (CONFIGS / "cluster.example.toml").read_text()
    _, _, shown = text.partition("# [guardrails]\n")
    lines = [line.removeprefix("# ") for line in shown.splitlines()]
    assert Guardrails() == study(tmp_path, with_guardrails("\n".join(lines))).guardrails
    assert all(f"\n# {name} = " in text for name in Guardrails.__dataclass_fields__)


@pytest.mark.parametrize(
    ("name", "default"),
    [("prune_factor", 5.0), ("explain_rounds", 4), ("replicate_trials", None),
     ("refine_trials", 120)],
)  # fmt: skip
def test_what_a_study_can_do_without_is_left_out_at_nought(
    tmp_path: Path, name: str, default: float | None
) -> None:
    assert default == getattr(study(tmp_path, GOOD).budget, name)
    assert 0 == getattr(study(tmp_path, with_budget(f"{name} = 0")).budget, name)


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
    assert (7, 2) == (slt.connections, slt.threads)


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
    assert ("poisson", (expected,)) == (slt.arrivals, slt.clients)
    assert slt.traffic.startswith("poisson arrivals; requests_per_connection=20.0, lifetimes=geom")


CLASSES = """\
[[workload.slt.clients]]
name = "people"
share = 0.8
think_ms = 20
[[workload.slt.clients]]
name = "bots"
share = 0.2
connections = 2
requests_per_connection = 1
"""


def with_classes(old: str = "[[", new: str = "[[") -> str:
    classes = CLASSES if old == new else edited(old, new, CLASSES)
    return edited(DURATION, f"{DURATION}\n{classes}")


def test_classes_of_clients_share_a_workload(tmp_path: Path) -> None:
    slt = study(tmp_path, with_classes()).workloads["slt"]
    people = Clients(name="people", share=0.8, think_ms=20)
    bots = Clients(name="bots", share=0.2, connections=2, requests_per_connection=1)
    assert ((people, bots), 8) == (slt.clients, slt.connections)


GENERATOR = """\
[cluster.arm.load_generator]
hostname = "load.example"
"""
GENERATORS = """\
[[cluster.arm.load_generators]]
hostname = "load.example"

[[cluster.arm.load_generators]]
hostname = "load-2.example"
name = "more"
"""


def test_several_generators_may_share_a_load(tmp_path: Path) -> None:
    (arm,) = study(tmp_path, edited(GENERATOR, GENERATORS)).clusters["arm"]
    assert isinstance(arm, Cluster)
    assert ["load.example", "more"] == [h.name for h in arm.load_generators]
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
    assert (expected,) == study(tmp_path, text).clusters["x86"]


def test_a_labs_load_balancer_may_start_badly_set(tmp_path: Path) -> None:
    keys = '{ "net.core.somaxconn" = 128, "net.ipv4.tcp_rmem" = "4096 8192 65536" }'
    text = f"link = {{ rate_mbit = 300 }}\nupstream_keepalive = 0\nbacklog = 511\nsysctls = {keys}"
    text += "\nworkers = 2\nproxy_buffers = 4\nproxy_buffer_kb = 8\ntls_key_bits = 2048"
    text += "\naccess_log = true\nsync_disk = true"
    (found,) = study(tmp_path, GOOD.replace("link = { rate_mbit = 300 }", text)).clusters["x86"]
    assert isinstance(found, LabSpec)
    assert found.balancing == Balancing(
        upstream_keepalive=0,
        backlog=511,
        workers=2,
        proxy_buffers=4,
        proxy_buffer_kb=8,
        tls_key_bits=2048,
        access_log=True,
        sync_disk=True,
        sysctls=(("net.core.somaxconn", "128"), ("net.ipv4.tcp_rmem", "4096 8192 65536")),
    )
    (told,) = problems(
        tmp_path,
        GOOD.replace(
            "{ rate_mbit = 300 }", '{ rate_mbit = 300 }\nsysctls = { "vm.swappiness" = 1 }'
        ),
    )
    assert "sysctls: only keys of net. can be a lab's own, got 'vm.swappiness'" in told


def test_a_link_may_differ_by_direction(tmp_path: Path) -> None:
    shaped = "rate_mbit = 75, limit_kb = 200, delay_ms = 30, jitter_ms = 2, loss_percent = 0.2"
    link = f"link = {{ {shaped}, seed = 3, up = {{ rate_mbit = 10, loss_percent = 0 }} }}"
    (found,) = study(tmp_path, GOOD.replace("link = { rate_mbit = 300 }", link)).clusters["x86"]
    assert isinstance(found, LabSpec)
    up = Direction(rate_mbit=10, limit_kb=200, delay_ms=30, jitter_ms=2, loss_percent=0)
    assert found.link == Link(
        rate_mbit=75, limit_kb=200, delay_ms=30, jitter_ms=2, loss_percent=0.2, seed=3, up=up
    )


def test_a_lab_may_have_classes_of_clients(tmp_path: Path) -> None:
    tables = """link = { rate_mbit = 300 }
clients = [
    { name = "lan", share = 0.75 },
    { name = "mobile", share = 0.25, link = { delay_ms = 40, loss_percent = 1 } },
]"""
    (found,) = study(tmp_path, GOOD.replace("link = { rate_mbit = 300 }", tables)).clusters["x86"]
    assert isinstance(found, LabSpec)
    mobile = LabClients(name="mobile", share=0.25, link=Link(delay_ms=40, loss_percent=1))
    assert found.clients == (LabClients(name="lan", share=0.75), mobile)
    (wrong,) = problems(tmp_path, GOOD.replace("link = { rate_mbit = 300 }", tables[:-1]
                                               .replace("0.75", "0.7") + "]"))  # fmt: skip
    assert "clients: their shares must add up to 1" in wrong


def test_an_architecture_may_have_replicas(tmp_path: Path) -> None:
    found = study(tmp_path, REPLICAS).clusters["x86"]
    assert ["one", "two"] == [c.name for c in found if isinstance(c, LabSpec)]
    assert 1 == len({c.link for c in found})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('lab = "two"', 'lab = "one"', ":11: cluster.x86: two replicas have lab one: each needs"),
        ('lab = "two"', 'lab = "two"\nfoo = 1', ":17: cluster.x86.1.foo: extra inputs are not"),
        ('lab = "two"', 'lab = "-"', ":15: cluster.x86.1: lab name '-'"),
    ],
)
def test_what_is_wrong_with_a_replica_is_named(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    (found,) = problems(tmp_path, edited(old, new, REPLICAS))
    assert said in found


def test_two_replicas_need_load_balancers_of_their_own(tmp_path: Path) -> None:
    arm = GOOD[GOOD.index("[cluster.arm]") :]
    more = arm.replace("[cluster.arm]", "[[cluster.arm]]")
    (found,) = problems(tmp_path, GOOD.replace(arm, more + more))
    assert "two replicas have load balancer 10.0.0.2:22: each needs its own" in found


def test_a_cluster_is_a_lab_or_hosts(tmp_path: Path) -> None:
    clusters = study(tmp_path, GOOD).clusters
    assert (LabSpec(name="one", arch="x86", link=Link(rate_mbit=300)),) == clusters["x86"]
    (arm,) = clusters["arm"]
    assert isinstance(arm, Cluster)
    assert arm.emulation == ""
    assert ["load.example", "10.0.0.2", "b1.example", "second"] == [h.name for h in arm.hosts]
    assert ["load-generator", "load-balancer", "backend", "backend"] == [h.role for h in arm.hosts]
    assert [False, True, False, False] == [h.sudo for h in arm.hosts]
    jump = arm.load_balancer.jump
    assert jump is not None
    assert ("jump.example", "me") == (jump.hostname, jump.user)
    # What a study doesn't say is for OpenSSH's configuration to say.
    assert (None, None, None) == (jump.port, arm.load_balancer.user, arm.load_balancer.port)


def test_a_host_may_ask_for_its_password_and_do_without_openssh(tmp_path: Path) -> None:
    text = edited("sudo = true", 'sudo = "ask"\nssh_config = "none"\nport = 2222\nuser = "me"')
    (arm,) = study(tmp_path, text).clusters["arm"]
    assert isinstance(arm, Cluster)
    host = arm.load_balancer
    assert ("ask", "none", 2222, "me") == (host.sudo, host.ssh_config, host.port, host.user)


def test_a_study_may_bring_its_own_catalogue_from_beside_it(tmp_path: Path) -> None:
    (tmp_path / "few.toml").write_text(
        "schema = 1\n[[parameter]]\n"
        'key = "net.core.somaxconn"\nkind = "integer"\nlow = 1\nhigh = 9\nscale = "linear"\n'
        'unit = ""\nscope = "namespace"\nrisk = "low"\nmechanism = "m"\ndocument = "d"\n'
    )
    text = edited('store = "mine.db"', 'catalogue = "few.toml"')
    assert ["net.core.somaxconn"] == [p.key for p in study(tmp_path, text).catalogue.parameters]


def test_an_own_set_of_paths_and_of_parameters(tmp_path: Path) -> None:
    text = edited('store = "mine.db"', 'parameters = ["net.core.*", "vm.swappiness"]')
    text = edited("duration_s = 2", 'duration_s = 2\npaths = ["/a", "/b"]', text)
    found = study(tmp_path, text)
    assert ("net.core.*", "vm.swappiness") == found.wanted
    assert ("/a", "/b") == found.workloads["slt"].paths


@pytest.mark.parametrize(
    ("line", "expected"), [("", "p99"), ('objective = "component"', "component")]
)
def test_models_learn_p99_unless_told(tmp_path: Path, line: str, expected: str) -> None:
    text = edited('store = "mine.db"', f'store = "mine.db"\n{line}')
    assert expected == study(tmp_path, text).objective


BASELINE = """\
schema = 1
title = "mine"
source = "me"

[values]
"net.core.somaxconn" = 9
"net.ipv4.tcp_rmem" = "1 2 3"
"""


def with_baselines(tmp_path: Path, text: str = BASELINE, name: str = "mine.toml") -> str:
    """A study that names a folder of its own with this file in it."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / name).write_text(text)
    return edited('store = "mine.db"', 'baselines = "own"')


def test_the_shipped_baselines_come_with_every_study(tmp_path: Path) -> None:
    shipped = {path.stem for path in (CONFIGS / "baselines").glob("*.toml")}
    found = study(tmp_path, GOOD).baselines
    assert shipped == set(found)
    assert all(name == baseline.name for name, baseline in found.items())
    assert all(baseline.title and baseline.source for baseline in found.values())


def test_a_study_may_bring_its_own_baselines_from_beside_it(tmp_path: Path) -> None:
    found = study(tmp_path, with_baselines(tmp_path)).baselines
    assert set(found) == {"mine", *study(tmp_path, GOOD).baselines}
    values = {"net.core.somaxconn": "9", "net.ipv4.tcp_rmem": "1 2 3"}
    assert Baseline(name="mine", title="mine", source="me", values=values) == found["mine"]


def test_an_own_baseline_replaces_ours_of_the_same_name(tmp_path: Path) -> None:
    text = with_baselines(tmp_path, name="ubuntu-18.04.toml")
    found = study(tmp_path, text).baselines
    assert "mine" == found["ubuntu-18.04"].title
    assert set(study(tmp_path, GOOD).baselines) == set(found)


SOMAXCONN, RMEM = '"net.core.somaxconn" = 9', '"net.ipv4.tcp_rmem"'
NO_VALUE = "a value is a text or a whole number"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("schema = 1", "schema = 2", ":1: schema: input should be 1 (got 2)"),
        ("schema = 1\n", "", ": schema: field required"),
        ('title = "mine"', 'title = ""', ":2: title: string should have at least 1"),
        ('source = "me"\n', "", ": source: field required"),
        ("[values]", "colour = 5\n[values]", ":5: colour: extra inputs are not permitted (got 5)"),
        (SOMAXCONN, SOMAXCONN.replace("9", "true"), f":6: values.net.core.somaxconn: {NO_VALUE}"),
        ('"1 2 3"', '" "', f":7: values.net.ipv4.tcp_rmem: {NO_VALUE}"),
        (RMEM, '"net/x"', ":7: values.net/x.[key]: string should match pattern"),
        (BASELINE[BASELINE.index(SOMAXCONN) :], "", ":5: values"),
        ('"1 2 3"', "1 2 3", ": is not TOML: "),
    ],
)
def test_a_mistake_in_a_baseline_has_its_place(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    (found,) = problems(tmp_path, with_baselines(tmp_path, edited(old, new, BASELINE)))
    assert found.startswith(f"own/mine.toml{expected}")


def test_a_key_without_quotes_is_told_how_to_be_written(tmp_path: Path) -> None:
    text = with_baselines(tmp_path, BASELINE.replace('"net.core.somaxconn"', "net.core.somaxconn"))
    expected = "own/mine.toml:6: values.net: a key has to stand in quotes, such as"
    assert any(problem.startswith(expected) for problem in problems(tmp_path, text))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("default.toml", "own/default.toml: a baseline can't be called default: the host's own"),
        ("tuned.toml", "own/tuned.toml: a baseline can't be called tuned: the campaign's own"),
        ("a b.toml", "own/a b.toml: a baseline's file is named of letters, digits, dots, _ and -"),
        ("mine.txt", "study.toml:3: study.baselines: there are no files *.toml in "),
    ],
)
def test_a_baseline_has_a_name_that_can_be_typed_and_nobody_else_has(
    tmp_path: Path, name: str, expected: str
) -> None:
    (found,) = problems(tmp_path, with_baselines(tmp_path, name=name))
    assert found.startswith(expected)


def test_mistakes_of_all_baselines_are_told_at_once_beside_the_studys(tmp_path: Path) -> None:
    text = with_baselines(tmp_path, "schema = 1\n")
    (tmp_path / "own" / "other.toml").write_text("schema = 1\n")
    found = problems(tmp_path, edited('lab = "one"', 'lab = "NOT-A-LAB"', text))
    files = [problem.partition(":")[0] for problem in found]
    assert ["study.toml", *["own/mine.toml"] * 3, *["own/other.toml"] * 3] == files


# Mistakes -----------------------------------------------------------------------------------------


def test_six_different_mistakes_are_told_at_once_each_with_its_line_and_place(
    tmp_path: Path,
) -> None:
    text = edited('store = "mine.db"', "seed = -1")
    text = edited("rate_rps = 100\n", "", text)
    text = edited("threads = 2\n", 'threads = "two"\n', text)
    text = edited('lab = "one"', 'lab = "NOT-A-LAB"', text)
    text = edited('hostname = "load.example"', 'hostname = "load.example"\nport = 0', text)
    text = edited('name = "second"', 'colour = "red"', text)
    expected = """\
study.toml:3: study.seed: input should be greater than or equal to 0 (got -1)
study.toml:5: workload.slt.rate_rps: field required
study.toml:7: workload.slt.threads: input should be a valid integer, unable to parse string as an \
integer (got 'two')
study.toml:10: cluster.x86: lab name 'NOT-A-LAB': one to nine of a-z, 0-9 and hyphen are allowed, \
the hyphen neither first nor last
study.toml:22: cluster.arm.load_generator.port: input should be greater than or equal to 1 (got 0)
study.toml:34: cluster.arm.backends.1.colour: extra inputs are not permitted (got 'red')
"""
    assert expected.splitlines() == list(problems(tmp_path, text))


NAME, STORE, SLT, SUDO = 'name = "mine"', 'store = "mine.db"', "[workload.slt]", "sudo = true"
DURATION, LAB, LINK = "duration_s = 2", 'lab = "one"', "link = { rate_mbit = 300 }"
URL, FIRST = 'url = "http://10.0.0.2"', 'hostname = "b1.example"'
NO_HOST = ":30: cluster.arm.backends.0.hostname: string should match pattern"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[study]", "[studi]", ": study: field required"),
        ("[study]", "[studi]", ":1: studi: extra inputs are not permitted"),
        (NAME, 'name = "a b"', ":2: study.name: string should match pattern"),
        (NAME, f'{NAME}\nmax_risk = "none"',
         ":3: study.max_risk: input should be 'low', 'medium' or 'high' (got 'none')"),
        (STORE, 'parameters = ["net.tcp"]', ":3: study.parameters: net.tcp matches no p"),
        (STORE, "parameters = []", ":3: study.parameters: tuple should have at least 1"),
        (STORE, 'objective = "p50"', ":3: study.objective: input should be 'p99' or"),
        (SLT, "[workload.web]",
         ":5: workload.web.[key]: input should be 'slt' or 'dlt' (got 'web')"),
        (SLT, "[workload.dlt]\npaths = ['/a']", ":6: workload.dlt.paths: dlt asks for the clu"),
        (STORE, 'load_tool = "wrk"',
         f":3: study.load_tool: {MUST} 'auto', 'engine' or 'wrk2' (got 'wrk')"),
        ("connections = 8", "connections = 0", f":7: workload.slt.connections: {AT_LEAST} 1 (got"),
        ("threads = 2", "threads = 0", f":8: workload.slt.threads: {AT_LEAST} 1 (got 0)"),
        (DURATION, "duration_s = 0",
         ":9: workload.slt.duration_s: input should be greater than or equal to 1"),
        (DURATION, f'{DURATION}\npaths = ["a b"]', ":10: workload.slt.paths.0: a path begins"),
        ("[cluster.x86]", "[cluster.riscv]",
         f":11: cluster.riscv.[key]: {MUST} 'x86', 'arm', 'native' or 'other' (got 'riscv')"),
        ("[cluster.x86]", "[cluster]\nx86 = []\n[nothing]",
         ":12: cluster.x86.list[dict[str,any]]: list should have at least 1 item"),
        (LAB, f"{LAB}\noptional = 1.5", ":13: cluster.x86.optional: input should be a"),
        (LINK, "link = { }",
         ":11: cluster.x86: link: give it a rate_mbit, a delay_ms or a loss_percent"),
        (LINK, "link = { delay_ms = 1, limit_kb = 20 }",
         ":11: cluster.x86: link: burst_kb and limit_kb belong to a rate_mbit"),
        (LINK, "link = { rate_mbit = 9, delay_ms = 1, burst_kb = 20 }",
         ":11: cluster.x86: link: burst_kb belongs to a rate_mbit without delay"),
        (LINK, "link = { rate_mbit = 9, seed = 2 }",
         ":11: cluster.x86: link: seed belongs to a loss or jitter"),
        (LINK, "link = { loss_percent = 100 }",
         ":13: cluster.x86.link.loss_percent: input should be less than 100 (got 100)"),
        (LINK, "link = { rate_mbit = -1 }",
         ":13: cluster.x86.link.rate_mbit: input should be greater than 0 (got -1)"),
        (URL, 'url = "http://10.0.0.2/x"', ":16: cluster.arm.url: must be http://HOST:PORT"),
        (FIRST, 'hostname = "-oProxyCommand=x"', NO_HOST),
        (FIRST, 'hostname = "b1$(id)"', NO_HOST),
        (SUDO, f'{SUDO}\nuser = "me;id"',
         ":27: cluster.arm.load_balancer.user: string should match pattern"),
        (SUDO, 'sudo = "aks"',
         ":26: cluster.arm.load_balancer.sudo: input should be False, True or 'ask'"),
        ('name = "second"', 'name = "b1.example"',
         ":15: cluster.arm: two hosts are called b1.example: give each a name"),
        (SUDO, f"{SUDO}\nlease_s = 1",
         f":27: cluster.arm.load_balancer.lease_s: {AT_LEAST} 2 (got 1)"),
        (SUDO, f'{SUDO}\nstate_dir = "state"',
         ":27: cluster.arm.load_balancer.state_dir: string should match pattern"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    found = problems(tmp_path, edited(old, new))
    assert any(problem.startswith(f"study.toml{expected}") for problem in found), found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('arrivals = "bursts"', f"arrivals: {MUST} 'constant' or 'poisson' (got 'bursts')"),
        ('check = "all"', f"check: {MUST} 'content', 'length' or 'status' (got 'all')"),
        ("requests_per_connection = 0.5", f"requests_per_connection: {AT_LEAST} 1 (got 0.5)"),
        ("requests_per_connection = nan", "requests_per_connection: must be a number, not nan"),
        ('lifetimes = "long"', f"lifetimes: {MUST} 'fixed' or 'geometric' (got 'long')"),
        ("think_ms = -1", f"think_ms: {AT_LEAST} 0 (got -1)"),
        ("think_ms = inf", "think_ms: must be a number, not inf"),
        ("read_kb_per_s = 0", f"read_kb_per_s: {AT_LEAST} 1 (got 0)"),
        ('tls_resume = "perhaps"', f"tls_resume: {MUST} a valid boolean"),
        ('http = "3"', f"http: {MUST} '1.1' or '2' (got '3')"),
        ("http = 2", f"http: {MUST} '1.1' or '2' (got 2)"),
        ("streams_per_connection = 0", f"streams_per_connection: {AT_LEAST} 1 (got 0)"),
        ("streams_per_connection = 1001", "streams_per_connection: input should be less than or"),
        ('headers = ["bad"]', "headers.0: string should match pattern"),
        ('headers = ["A: b", "A : b"]', "headers.1: string should match pattern"),
        ('headers = ["A: b\\r\\nHost: evil"]', "headers.0: has a text with the control character"),
        ('headers = ["A: b\\n"]', "headers.0: string should match pattern"),
        ('headers = ["Ä: b"]', "headers.0: string should match pattern"),
        ('method = "get"', "method: string should match pattern"),
        ('method = "GET /"', "method: string should match pattern"),
        ("body_bytes = -1", f"body_bytes: {AT_LEAST} 0 (got -1)"),
        ("body_bytes = 1.5", f"body_bytes: {MUST} a valid integer"),
        ('source = "nowhere"', "source: value is not a valid IPv4 or IPv6 address"),
        ('source = "192.0.2.1; id"', "source: value is not a valid IPv4 or IPv6 address"),
        ("timeout_s = 0", f"timeout_s: {AT_LEAST} 1 (got 0)"),
        ("clients = 5", "clients: "),
        ("client = []", "client: extra inputs are not permitted"),
    ],
)
def test_a_mistake_in_the_load_has_its_place(tmp_path: Path, line: str, expected: str) -> None:
    (found,) = problems(tmp_path, edited(DURATION, f"{DURATION}\n{line}"))
    assert found.startswith(f"study.toml:10: workload.slt.{expected}")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("streams_per_connection = 2", 'streams_per_connection is for http = "2"'),
        ('http = "2"\nheaders = ["A: b", "Connection: x"]', "headers: HTTP/2 has no Connection"),
        ('http = "2"\nheaders = ["upgrade: x"]', "headers: HTTP/2 has no upgrade"),
    ],
)
def test_what_does_not_fit_the_version_of_http_is_said(
    tmp_path: Path, lines: str, expected: str
) -> None:
    (found,) = problems(tmp_path, edited(DURATION, f"{DURATION}\n{lines}"))
    assert found.startswith(f"study.toml:5: workload.slt: {expected}")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("share = 0.2", "share = 0.1",
         "5: workload.slt: the shares of its clients add up to 0.9, not to 1"),
        ("share = 0.2", "share = 0.3",
         "5: workload.slt: the shares of its clients add up to 1.1, not to 1"),
        ('name = "bots"', 'name = "people"',
         "5: workload.slt: two classes of clients are called people"),
        ("share = 0.2\n", "", "14: workload.slt.clients.1.share: field required"),
        ('name = "people"\n', "", "10: workload.slt.clients.0.name: field required"),
        ('name = "bots"', 'name = "a b"', "15: workload.slt.clients.1.name: string should match"),
        ("share = 0.8", "share = 0", f"12: workload.slt.clients.0.share: {MUST} greater than 0"),
        ("share = 0.8", "share = 1.5", f"12: workload.slt.clients.0.share: {MUST} less than or eq"),
        ("share = 0.8", "share = nan", "12: workload.slt.clients.0.share: must be a number, not"),
        ("connections = 2", "connections = 0", "17: workload.slt.clients.1.connections: input sho"),
        ("think_ms = 20", "think_ms = -20", f"13: workload.slt.clients.0.think_ms: {AT_LEAST} 0"),
        ("think_ms = 20", "rate_rps = 20", "13: workload.slt.clients.0.rate_rps: extra inputs"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_class_of_clients_has_its_place(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    (found,) = problems(tmp_path, with_classes(old, new))
    assert found.startswith(f"study.toml:{expected}")


def test_what_all_classes_have_is_said_in_each_of_them(tmp_path: Path) -> None:
    text = edited(DURATION, f'{DURATION}\nthink_ms = 5\nmethod = "POST"\n{CLASSES}')
    expected = (
        "5: workload.slt: method, think_ms: there are [[...clients]], so say it in each of th"
    )
    (found,) = problems(tmp_path, text)
    assert found.startswith(f"study.toml:{expected}")


BOTH = f'{GENERATOR}name = "first"\n\n{GENERATORS}'


@pytest.mark.parametrize("generators", ["", BOTH], ids=["none", "both"])
def test_a_cluster_has_one_generator_or_several(tmp_path: Path, generators: str) -> None:
    (found,) = problems(tmp_path, edited(GENERATOR, generators))
    expected = "give it a load_generator, or [[...load_generators]] where several share the load"
    assert found.startswith(f"study.toml:15: cluster.arm: {expected} (got {{")


def test_generators_have_names_of_their_own(tmp_path: Path) -> None:
    text = edited(GENERATOR, edited("load-2.example", "load.example", GENERATORS))
    assert study(tmp_path, text).clusters["arm"]
    (found,) = problems(tmp_path, edited('name = "more"\n', "", text))
    assert "15: cluster.arm: two hosts are called load.example: give each a name" in found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("keep = 0", "6: budget.keep: in"),
        ("max_lag = 0", "6: budget.max_lag: input should be greater than 0"),
        ("max_lag = 1.5", "6: budget.max_lag: input should be less than or equal to 1"),
        ("kep = 1", "6: budget.kep: extra"),
        ("judge_looks = 0", f"6: budget.judge_looks: {AT_LEAST} 1"),
        ("replicate_trials = -1", f"6: budget.replicate_trials: {AT_LEAST} 0"),
        ("max_foreign_cores = 0", "6: budget.max_foreign_cores: input should be greater than 0"),
        ("max_steal_cores = 0", "6: budget.max_steal_cores: input should be greater than 0"),
        ("max_steal = 1", "6: budget.max_steal: input should be less than 1"),
        ("prune_factor = 1", "5: budget: prune_factor (1) must be more than 1, or 0 to prune none"),
        ("pilot_trials = 2", f"6: budget.pilot_trials: {AT_LEAST} 3"),
        ("pilot_max_s = 1", f"6: budget.pilot_max_s: {AT_LEAST} 2"),
        ("pilot_resolution = 1.0", "6: budget.pilot_resolution: input should be greater than 1"),
        ("explain_rounds = 1", "5: budget: explain_rounds (1) must be 2 or more"),
        # A population is what every algorithm takes.
        ("population = 4", f"6: budget.population: {AT_LEAST} 5"),
    ],
)
def test_a_mistake_in_the_budget_has_its_place(tmp_path: Path, line: str, expected: str) -> None:
    (found,) = problems(tmp_path, with_budget(line))
    assert found.startswith(f"study.toml:{expected}")


def test_a_catalogue_that_is_not_there_is_named(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, edited(STORE, 'catalogue = "nosuch.toml"'))
    assert found.startswith("nosuch.toml: can't be read: No such file or directory")


def test_native_beside_the_same_architecture_is_ambiguous(tmp_path: Path) -> None:
    for name, arch in (("native", native_arch()), ("other", other_arch())):
        twice = f'\n[cluster.{name}]\nlab = "two"\n[cluster.{arch}]\nlab = "one"\n'
        (found,) = problems(tmp_path, HEAD + twice)
        assert f"cluster.{arch}: it means {arch} here, which stands there already" in found


@pytest.mark.parametrize("text", ["", "study = 5\nworkload = 5\ncluster = 5\n", "x = 1\n"])
def test_files_of_another_shape_are_told_not_crashed_on(tmp_path: Path, text: str) -> None:
    found = problems(tmp_path, text)
    for place in ("study", "workload", "cluster"):
        assert any(re.search(rf": {place}: ", problem) for problem in found)


def test_a_file_that_is_not_toml_is_told_with_the_line(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "[study]\nname = mine\n")
    assert found.startswith("study.toml: is not TOML: ")
    assert "line 2" in found


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        load_study(path)


@pytest.mark.parametrize(
    ("name", "why"), [("nosuch.toml", "No such file or directory"), ("", "Is a directory")]
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=f"can't be read: {why}"):
        load_study(tmp_path / name)


def test_a_wrong_configuration_is_bad_usage() -> None:
    assert issubclass(ConfigurationError, UsageError)
    assert 2 == ConfigurationError.exit_code


# A host by itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "hostname", "given"),
    [
        ("lb", "lb", {}),
        ("10.0.0.5", "10.0.0.5", {}),
        ("alice@lb.example:2222", "lb.example", {"user": "alice", "port": 2222}),
        ("root@[fe80::1]:22", "fe80::1", {"user": "root", "port": 22}),
        ("[2001:db8::1]", "2001:db8::1", {}),
        ("alice@corp.example@lb", "lb", {"user": "alice@corp.example"}),
    ],
)
def test_a_host_can_be_named_as_ssh_names_it(
    word: str, hostname: str, given: dict[str, object]
) -> None:
    name = f"{hostname}:{given['port']}" if "port" in given else hostname
    plain = HostAddress(name=name, role="load-balancer", hostname=hostname)
    assert replace(plain, **given) == host_address(word)  # type: ignore[arg-type]


def test_what_else_is_known_of_a_host_is_said_as_in_a_file() -> None:
    known = {"sudo": True, "state_dir": "/srv/intop", "key_file": "k", "known_hosts": "h"}
    found = host_address("lb", **known)  # type: ignore[arg-type]
    assert known == {name: getattr(found, name) for name in known}


@pytest.mark.parametrize(
    "word",
    ["", "@", "a@", "@lb", "lb:", "lb:ssh", "a b", "lb\n", "2001:db8::1", "[x]", "lb:22:22",
     "lb:-1"],
)  # fmt: skip
def test_what_is_no_host_is_refused_with_the_form(word: str) -> None:
    with pytest.raises(UsageError, match=r"is no host: \[USER@\]HOST\[:PORT\]"):
        host_address(word)


@pytest.mark.parametrize(
    ("word", "options", "place"),
    [
        ("lb:0", {}, "port"),
        ("lb:65536", {}, "port"),
        ("-oProxyCommand=true", {}, "hostname"),
        ("lb", {"state_dir": "relative"}, "state_dir"),
        ("lb", {"config_root": "relative"}, "config_root"),
        ("lb", {"config_root": "/srv/"}, "config_root"),
    ],
)
def test_what_a_file_may_not_say_of_a_host_is_refused_by_name(
    word: str, options: dict[str, str], place: str
) -> None:
    with pytest.raises(UsageError, match=f"^--host {word}: {place}: "):
        host_address(word, **options)
