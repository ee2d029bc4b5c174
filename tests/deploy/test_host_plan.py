"""What deploying changes on a host, and on a replica as it was measured."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.hosts import address, refuse
from builders.results import DEPLOYMENT
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import trial
from intop.config.catalogue import load_catalogue
from intop.deploy.host_plans import Seen, SeenCluster, host_plan, look, look_around, replica_plan
from intop.deploy.result import HostPlan
from intop.domain.applied import Applied, StayingKey
from intop.domain.cluster import Cluster, native_arch, other_arch
from intop.domain.host_state import HostState
from intop.domain.persistent import Persistent
from intop.hosts.guard import unwritable
from intop.hosts.load.types import LoadTool
from intop.hosts.rig import ClusterFacts
from intop.resources import shipped
from intop.run.comparability import conditions_of
from kit.namespace_host import LONG, NamespaceHost, namespace_host

CATALOGUE = {p.key: p for p in load_catalogue(shipped("configs") / "parameters.toml").parameters}
RMEM, SOMAXCONN = (change.key for change in DEPLOYMENT.changes)
NATIVE = replace(DEPLOYMENT, arch=native_arch())


@pytest.fixture
def host(tmp_path: Path) -> Iterator[NamespaceHost]:
    with namespace_host(tmp_path) as made:
        yield made


def planned(host: NamespaceHost, **changes: Any) -> HostPlan:
    deployment = replace(NATIVE, **changes)
    parameters = {key: CATALOGUE[key] for key in deployment.values if key in CATALOGUE}
    seen = look(host, parameters.values(), deployment)
    return host_plan(seen, deployment, parameters)


def test_a_host_is_read_and_nothing_is_written_there(host: NamespaceHost, tmp_path: Path) -> None:
    files = {
        "etc/sysctl.d/10-web.conf": f"{SOMAXCONN} = 1024\n",
        "etc/sysctl.d/99-zzz.conf": f"# later\n{RMEM} = 4096 8192 16384\n",
        "etc/tuned/active_profile": "web\n",
        "etc/tuned/web/tuned.conf": "[sysctl]\nnet.core.somaxconn = 2048\n",
    }
    root = Path(host.address.config_root)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert host.run(f"echo 64 > /proc/sys/{SOMAXCONN.replace('.', '/')}").exit_code == 0
    values = host.values()
    result = planned(host)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert values == host.values()
    rmem, somaxconn = result.keys
    assert ("changes", values[RMEM]) == (rmem.outcome, rmem.now)
    assert (somaxconn.outcome, somaxconn.now) == ("is so", "64")
    (late,) = rmem.rivals
    assert (late.wins, late.setting.place) == ("at boot", f"{root}/etc/sysctl.d/99-zzz.conf:2")
    # TuneD reads the files again after its profile, so they win, and ours over them.
    (early,) = somaxconn.rivals
    assert (early.wins, early.setting.place) == ("never", f"{root}/etc/sysctl.d/10-web.conf:1")
    assert (result.file, result.conflicts) == (f"{root}/etc/sysctl.d/99-zz-intop.conf", 1)
    assert (result.notes, result.problems, result.applied, result.has_it) == ((), (), None, False)
    assert (os.uname().machine, os.uname().release) == (result.machine, result.kernel)


def test_a_choice_that_a_host_does_not_have_is_not_surely_set(host: NamespaceHost) -> None:
    """No kernel of the tests has htcp, though the catalogue does."""
    key = "net.ipv4.tcp_congestion_control"
    root = Path(host.address.config_root)
    (root / "etc/sysctl.d").mkdir(parents=True)
    (root / "etc/sysctl.d/99-zzz.conf").write_text(f"{key} = htcp\n")
    change = replace(DEPLOYMENT.changes[1], key=key, value="reno", default="cubic")
    (key_plan,) = planned(host, changes=(change,)).keys
    (rival,) = key_plan.rivals
    assert (rival.wins, rival.effect) == ("at boot", "unknown")


def test_a_host_that_a_session_holds_and_another_machine_are_told(host: NamespaceHost) -> None:
    assert host.begin("one", LONG, SOMAXCONN).exit_code == 0
    result = planned(host, arch=other_arch())
    (note,) = result.notes
    assert f"and the gain was measured on {other_arch()}: measure there" in note
    (problem,) = result.problems
    assert "is held by somebody@elsewhere" in problem
    assert host.script("end", "one").exit_code == 0


def test_a_folder_that_cannot_be_written_is_found_without_writing(host: NamespaceHost) -> None:
    """Where a file is in its place; root may write to any folder that is mounted for writing."""
    state, root = Path(host.address.state_dir), Path(host.address.config_root)
    state.write_text("")
    (root / "etc").mkdir(parents=True)
    (root / "etc/sysctl.d").write_text("")
    folders = [str(state), str(root / "etc/sysctl.d"), str(root / "etc/new/one"), "relative"]
    assert tuple(folders[:2]) == unwritable(host, folders)
    seen = Seen(
        address=host.address,
        state=HostState(),
        probe=probe_of(OWN),
        persistent=Persistent(),
        unwritable=tuple(folders[:2]),
    )
    (first,) = host_plan(seen, NATIVE, CATALOGUE).problems
    assert f"its state folder {state} can't be written" in first
    _, second = host_plan(seen, NATIVE, CATALOGUE, persist=True).problems
    assert "etc/sysctl.d can't be written" in second


def test_a_key_that_a_host_does_not_have_is_impossible(host: NamespaceHost) -> None:
    key = "net.core.netdev_max_backlog"
    changes = (
        replace(DEPLOYMENT.changes[0], key=key),
        replace(DEPLOYMENT.changes[0], key="net.core.nosuch"),
    )
    deployment = replace(NATIVE, changes=changes)
    known, unknown = planned(host, changes=deployment.changes).keys
    assert (known.outcome, known.now) == ("impossible", None)
    assert "belongs to the whole machine" in known.obstacle
    assert (unknown.outcome, unknown.obstacle) == ("impossible", "this kernel doesn't have it")


# A replica ----------------------------------------------------------------------------------------

OWN = {change.key: change.default for change in DEPLOYMENT.changes}
LEFT = Applied(
    about={"study": "lab"},
    keys=tuple(
        StayingKey(key=c.key, before=c.default, left=c.value, now=c.value)
        for c in DEPLOYMENT.changes
    ),
)


def seen_cluster(state: HostState | None = None, values: Any = OWN, **facts: Any) -> SeenCluster:
    """A replica whose load balancer has these keys and no others."""
    probe = probe_of(values)
    cluster = Cluster(
        arch="x86",
        load_generator=address("lg"),
        load_balancer=address("lb"),
        backends=(address("web"),),
        url="http://192.0.2.1",
        server_restart="true",
        static_paths=("/",),
        dynamic_path="/",
        machines=("x86_64",),
    )
    balancer = Seen(
        address=cluster.load_balancer,
        state=state or HostState(),
        probe=replace(probe, facts=replace(probe.facts, **facts)),
        persistent=Persistent(),
        nginx_conf=("worker_processes 2;",),
    )
    tool = LoadTool(name="engine", version="LuaJIT 2.1.0", path="luajit")
    host_facts = dict.fromkeys(("lg", "web"), probe.facts)
    return SeenCluster(
        cluster=cluster, balancer=balancer, tool=tool, problems=(), host_facts=host_facts
    )


def replica(
    testbed: FakeTestbed, seen: SeenCluster, *, persist: bool = False, **changes: Any
) -> HostPlan:
    return replica_plan(testbed.task, seen, 0, replace(DEPLOYMENT, **changes), persist=persist)


def measured(testbed: FakeTestbed) -> None:
    """A campaign with a trial, made on this replica as it is."""
    store, subject = testbed.task.store, testbed.task.subject
    result = seen_cluster()
    store.put(subject, result.balancer.probe)
    assert result.tool is not None
    described = ClusterFacts(
        hosts={"lb": result.balancer.probe.facts, **result.host_facts},
        nginx_conf=result.balancer.nginx_conf,
    )
    conditions = conditions_of(
        testbed.task, result.cluster, described, result.tool, result.balancer.probe
    )
    store.write_plan(subject, "collect", [trial().planned])
    store.add(subject, replace(trial(conditions=conditions), replica="lb"))


def test_a_replica_as_it_was_measured_is_ready(testbed: FakeTestbed) -> None:
    measured(testbed)
    result = replica(testbed, seen_cluster())
    assert (
        result.problems,
        result.obstacles,
        [key.outcome for key in result.keys],
    ) == ((), (), ["changes", "changes"])


@pytest.mark.parametrize(
    ("values", "facts", "words"),
    [
        (OWN, {"kernel": "6.2.0"}, "kernel: 6.1.0 against 6.2.0"),
        ({**OWN, SOMAXCONN: "7"}, {}, f"{SOMAXCONN}: 4096 against 7"),
    ],
)
def test_what_a_campaign_would_refuse_is_found_before(
    testbed: FakeTestbed, values: dict[str, str], facts: dict[str, str], words: str
) -> None:
    measured(testbed)
    (problem,) = replica(testbed, seen_cluster(values=values, **facts)).problems
    assert words in problem
    # What a session has set there meanwhile says nothing of the host.
    held = HostState(holder="me", since="noon")
    (problem,) = replica(testbed, seen_cluster(held, values, **facts)).problems
    assert "is held by me" in problem


def test_what_a_campaign_would_refuse_of_the_other_hosts_and_of_nginx_is_found_too(
    testbed: FakeTestbed,
) -> None:
    measured(testbed)
    seen = seen_cluster()
    web = replace(seen.host_facts["web"], cpus=8)
    (problem,) = replica(
        testbed, replace(seen, host_facts={**seen.host_facts, "web": web})
    ).problems
    words = "EPYC, {} CPUs, Linux 6.1.0, nginx 1.22.1"
    assert f"backends: {words.format(4)} against {words.format(8)}" in problem
    changed = replace(seen.balancer, nginx_conf=("worker_processes 4;",))
    (problem,) = replica(testbed, replace(seen, balancer=changed)).problems
    assert "nginx.conf on lb, or a file that it includes, was changed" in problem
    # Measuring would start nginx and ask again.
    stopped = replace(seen.balancer, nginx_conf=())
    assert replica(testbed, replace(seen, balancer=stopped)).problems == ()


def test_what_an_apply_has_left_is_not_the_hosts_own(testbed: FakeTestbed) -> None:
    measured(testbed)
    seen = seen_cluster(HostState(applied=LEFT), dict(DEPLOYMENT.values))
    result = replica(testbed, seen)
    assert (result.has_it, result.lacks_file, result.problems) == (True, False, ())
    result = replica(testbed, seen, persist=True)
    assert (result.has_it, result.lacks_file, result.problems) == (False, True, ())
    other = (DEPLOYMENT.changes[0], replace(DEPLOYMENT.changes[1], value="65"))
    result = replica(testbed, seen, changes=other)
    assert (result.has_it, result.problems, result.applied) == (False, (), LEFT)
    assert {key.change.key: key.before for key in result.keys} == OWN
    assert [key.outcome for key in result.keys] == ["is so", "changes"]


def test_what_the_study_leaves_out_is_an_obstacle(testbed: FakeTestbed) -> None:
    study = replace(testbed.task.context.study, wanted=("net.ipv4.*",))
    testbed.task = replace(testbed.task, context=replace(testbed.task.context, study=study))
    (key,) = replica(testbed, seen_cluster()).obstacles
    assert key.change.key == SOMAXCONN
    assert "it is not among the parameters in [study]. Tune again" in key.obstacle
    # But what an apply has left, is guarded as well.
    assert replica(testbed, seen_cluster(HostState(applied=LEFT))).obstacles == ()


def test_a_machine_that_the_cluster_does_not_accept_is_in_the_way(testbed: FakeTestbed) -> None:
    (problem,) = replica(testbed, seen_cluster(machine="riscv64")).problems
    assert "is a riscv64 machine, and cluster x86 accepts x86_64" in problem


def test_the_other_hosts_of_a_cluster_are_asked_too(testbed: FakeTestbed) -> None:
    seen = seen_cluster()
    task = replace(testbed.task, context=replace(testbed.task.context, connect=refuse))
    result = look_around(task, seen.cluster, seen.balancer)
    assert result.tool is None
    message = [f"its cluster can't be measured on: {name}: the network is gone" for name in NAMES]
    assert message == list(result.problems)
    assert tuple(message) == replica(testbed, result).problems
    assert replica(testbed, replace(result, balancer=done().balancer)).problems == ()


def done() -> SeenCluster:
    """A replica that has the deployment already: nothing is to be measured there."""
    return seen_cluster(HostState(applied=LEFT), dict(DEPLOYMENT.values))


NAMES = ("lg", "web")
