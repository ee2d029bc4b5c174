"""plan: what deploying changes, on a real namespace and on replicas that are made up."""

import os
from collections.abc import Iterator
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pytest

from builders.results import BROKEN_CPU, COSTLY, DEPLOYMENT, DOUBTED, SWEEP, VERDICT
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import trial
from intop.config.catalogue import load_catalogue
from intop.deploy.deployable import deployments
from intop.deploy.host_plans import Seen, SeenCluster, host_plan, look, look_around, replica_plan
from intop.deploy.plan import plan, plan_again
from intop.deploy.result import HostPlan, Plan, SavedPlan, planned_key
from intop.domain.applied import Applied, StayingKey
from intop.domain.cluster import Cluster, HostAddress, LabSpec, native_arch, other_arch
from intop.domain.configuration import Configuration
from intop.domain.explanation import Explanation, Kept
from intop.domain.host_state import Answer, HostState
from intop.domain.persistent import Persistent
from intop.domain.stats import Interval
from intop.domain.sweep import Arm, Sweeps
from intop.errors import IntopError, LabError, ResultMissingError, UnreachableError, UsageError
from intop.hosts.guard import unwritable
from intop.hosts.host import Host
from intop.hosts.load.types import LoadTool
from intop.hosts.rig import ClusterFacts
from intop.lab import cluster as lab
from intop.resources import shipped
from intop.run.comparability import conditions_of
from intop.run.context import Context
from kit.golden import Golden
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


def address(name: str) -> HostAddress:
    return HostAddress(name=name, role="load-balancer", hostname=name)


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


def replica(testbed: FakeTestbed, seen: SeenCluster, **changes: Any) -> HostPlan:
    return replica_plan(testbed.task, seen, 0, replace(DEPLOYMENT, **changes), persist=False)


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
    assert (result.has_it, result.problems) == (True, ())
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


# A study ------------------------------------------------------------------------------------------


def refuse(address: HostAddress) -> Host:
    raise UnreachableError(address.name, "the network is gone")


@pytest.fixture
def context(testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch) -> Context:
    def not_up(name: str) -> None:
        raise LabError(f"lab {name} is not up")

    monkeypatch.setattr(lab, "cluster", not_up)
    return replace(testbed.task.context, connect=refuse)


def judged(testbed: FakeTestbed, verdict: Any = VERDICT) -> None:
    values = {RMEM: "4096 131072 6291456", SOMAXCONN: "4096"}
    testbed.task.store.put(testbed.task.subject, probe_of(values))
    testbed.task.store.put(testbed.task.subject, verdict)


def test_without_a_verdict_the_next_step_is_named(context: Context) -> None:
    with pytest.raises(ResultMissingError, match=r"x86: no verdict yet\. Run: intop tune --arch"):
        plan(context)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (
            "net.ipv4.ip_local_port_range",
            "2000 60000",
            "'2000 60000', which is beyond a hard",
        ),
        ("net.ipv4.ip_local_port_range", "0x8000 0x8100", "'0x8000 0x8100', which is malformed"),
        ("net.core.default_qdisc", "fq", "longer tunes .net.core.default_qdisc: not offered"),
        ("kernel.pid_max", "400", "longer tunes .kernel.pid_max: on the deny list"),
    ],
)
def test_a_stored_winner_that_can_hurt_a_host_does_not_leave_the_campaign(
    testbed: FakeTestbed, context: Context, key: str, value: str, words: str
) -> None:
    judged(testbed, replace(VERDICT, configuration=Configuration({key: value})))
    own = {key: "32768 60999" if " " in value else "1"}
    testbed.task.store.put(testbed.task.subject, probe_of(own))
    with pytest.raises(UsageError, match=words):
        plan(context)


def test_what_has_no_gain_keeps_the_defaults(testbed: FakeTestbed, context: Context) -> None:
    judged(testbed, replace(VERDICT, ratio_low=0.9))
    assert plan(context) == {"x86": None}
    both = replace(context, archs=("x86", "arm"))
    assert plan(both) == {"x86": None}
    assert "left out: arm: no verdict yet" in testbed.output.getvalue()


def test_what_costs_too_much_keeps_the_defaults_unless_that_is_accepted(
    testbed: FakeTestbed, context: Context, golden: Golden
) -> None:
    judged(testbed, COSTLY)
    assert plan(context) == {"x86": None}
    output = testbed.output.getvalue()
    golden(output)
    named = [address("far")]
    result = plan(context, hosts=named, accept_costs=True)["x86"]
    assert result is not None
    assert (result.accept_costs, result.deployment.verdict) == (True, COSTLY)
    # What P99 does not show, nobody can accept.
    judged(testbed, replace(COSTLY, ratio_low=0.9))
    assert plan(context, accept_costs=True) == {"x86": None}
    judged(testbed, DOUBTED)
    result = plan(context, hosts=named)["x86"]
    assert result is not None
    assert not result.accept_costs


def test_a_saved_plan_that_accepts_costs_is_made_again_so(
    testbed: FakeTestbed, context: Context
) -> None:
    judged(testbed, COSTLY)
    clusters = {"x86": (LabSpec(name="gone"),)}
    here = replace(context, study=replace(context.study, clusters=clusters))
    then = plan(here, accept_costs=True)["x86"]
    assert then is not None
    saved = SavedPlan(
        study=here.study.name,
        campaign=here.campaign.id,
        started_at=here.campaign.started_at,
        made_at="2026-11-22T18:00:00+00:00",
        whole=False,
        plans=(then,),
    )
    # Only its host is in the way, which can't be asked.
    with pytest.raises(IntopError, match="lab gone is not up"):
        plan_again(here, saved)
    without = replace(saved, plans=(replace(then, accept_costs=False),))
    with pytest.raises(IntopError, match="its verdict is no gain any more"):
        plan_again(here, without)


def test_what_the_winner_is_worth_under_other_loads_goes_with_it(
    testbed: FakeTestbed, context: Context
) -> None:
    judged(testbed)
    result = deployments(context)["x86"]
    assert result is not None
    assert result.sweeps == ()
    testbed.task.store.put(testbed.task.subject, Sweeps((SWEEP,)))
    result = deployments(context)["x86"]
    assert result is not None
    assert result.sweeps == (SWEEP,)
    arm = Arm(name="tuned", configuration=Configuration({SOMAXCONN: "1"}))
    other = replace(SWEEP, arms=(SWEEP.arms[0], arm))
    testbed.task.store.put(testbed.task.subject, Sweeps((other,)))
    result = deployments(context)["x86"]
    assert result is not None
    assert result.sweeps == ()


def test_a_host_that_cannot_be_asked_has_its_error_in_its_place(
    testbed: FakeTestbed, context: Context
) -> None:
    judged(testbed)
    clusters = {"x86": (LabSpec(name="gone"),)}
    result = plan(replace(context, study=replace(context.study, clusters=clusters)))["x86"]
    assert result is not None
    assert [(a.name, a.error) for a in result.hosts] == [("lab gone", "lab gone is not up")]
    named = HostAddress(name="far", role="load-balancer", hostname="far")
    result = plan(context, hosts=[named])["x86"]
    assert result is not None
    assert [(a.name, a.error) for a in result.hosts] == [("far", "far: the network is gone")]
    assert set(result.deployment.values) == {RMEM, SOMAXCONN}


def test_a_host_gets_what_one_architecture_has(testbed: FakeTestbed, context: Context) -> None:
    judged(testbed)
    subject = replace(testbed.task.subject, arch="arm")
    testbed.task.store.put(subject, probe_of({RMEM: "4096 131072 6291456", SOMAXCONN: "4096"}))
    testbed.task.store.put(subject, VERDICT)
    named = HostAddress(name="far", role="load-balancer", hostname="far")
    with pytest.raises(UsageError, match=r"x86 and arm have a gain.*say with --arch"):
        plan(replace(context, archs=("x86", "arm")), hosts=[named])


def test_a_plan_says_how_it_is_to_be_rolled_out(testbed: FakeTestbed, context: Context) -> None:
    judged(testbed)
    named = [address("far")]
    result = plan(context, hosts=named)["x86"]
    assert result is not None
    pairs = context.study.budget.judge_pairs
    assert (pairs, False, True) == (result.rounds, result.persist, result.for_review)
    clusters = {"x86": (LabSpec(name="gone"),)}
    study = replace(context.study, clusters=clusters)
    result = plan(replace(context, study=study), persist=True, rounds=4)["x86"]
    assert result is not None
    assert (result.rounds, result.persist, result.for_review) == (4, True, False)
    assert result.problems == ("lab gone is not up",)


# A plan from a file -------------------------------------------------------------------------------

HOST = HostPlan(
    file="/f",
    keys=tuple(planned_key(c, c.default, "", Persistent(), "/f") for c in DEPLOYMENT.changes),
)


def saved_plan(
    context: Context, now: HostPlan, monkeypatch: pytest.MonkeyPatch, configuration: str = ""
) -> SavedPlan:
    """A plan of one host; made again, its host is `now`."""
    started = context.campaign.started_at
    deployment = replace(DEPLOYMENT, started_at=started, campaign=context.campaign.id)
    then = Plan(
        deployment=deployment,
        hosts=(Answer(name="lb", result=HOST),),
        rounds=4,
        persist=True,
    )

    def again(narrow: Context, **asked: object) -> dict[str, Plan | None]:
        expected = {"whole": True, "persist": True, "rounds": 4, "accept_costs": False}
        assert asked == expected | {"configuration": configuration}
        assert (narrow.archs, [w.name for w in narrow.workloads]) == (("x86",), ["slt"])
        return {"x86": replace(then, hosts=(Answer(name="lb", result=now),))}

    monkeypatch.setattr("intop.deploy.plan.plan", again)
    return SavedPlan(
        study=context.study.name,
        campaign=context.campaign.id,
        started_at=started,
        made_at="2026-11-22T18:00:00+00:00",
        whole=True,
        plans=(then,),
        configuration=configuration,
    )


def test_a_plan_whose_hosts_are_as_they_were_is_carried_out(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = saved_plan(context, HOST, monkeypatch)
    assert {"x86": saved.plans[0]} == plan_again(context, saved)
    every = replace(context, workloads=tuple(context.study.workloads.values()))
    assert {"x86": saved.plans[0]} == plan_again(every, saved)


def test_a_saved_plan_of_a_configuration_is_made_again_of_that(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = saved_plan(context, HOST, monkeypatch, configuration="ubuntu-18.04")
    assert {"x86": saved.plans[0]} == plan_again(context, saved)


def test_a_plan_whose_host_has_changed_is_refused(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = replace(HOST.keys[1], now="128", obstacle="can't be written")
    now = replace(HOST, keys=(HOST.keys[0], changed))
    with pytest.raises(IntopError) as error:
        plan_again(context, saved_plan(context, now, monkeypatch))
    lines = [line.strip() for line in str(error.value).splitlines()]
    assert "has changed, so nothing was touched on any host" in lines[0]
    assert lines[1] == f"lb: {SOMAXCONN}: 4096 in the plan, 128 now"
    assert "what is in its way: nothing in the plan, can't be written now" in lines[2]
    assert lines[3] == f"lb: {SOMAXCONN} can't be set to 64: can't be written"
    assert "intop plan --output" in lines[4]


def test_a_plan_of_what_is_not_there_any_more_is_refused(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = saved_plan(context, HOST, monkeypatch)
    with pytest.raises(UsageError, match=r"the plan is of the study other, and .* is lab"):
        plan_again(context, replace(saved, study="other"))
    with pytest.raises(IntopError, match=r"the plan is of campaign 7 .* and the latest one"):
        plan_again(context, replace(saved, campaign=7))
    with pytest.raises(IntopError, match="the plan is of campaign 1 of then"):
        plan_again(context, replace(saved, started_at="then"))
    monkeypatch.setattr("intop.deploy.plan.plan", lambda *_, **__: {"x86": None})
    with pytest.raises(IntopError, match="its verdict is no gain any more"):
        plan_again(context, saved)


def test_a_plan_for_review_is_refused(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = saved_plan(context, HOST, monkeypatch)
    review = replace(saved.plans[0], for_review=True)
    with pytest.raises(UsageError, match="for review only"):
        plan_again(context, replace(saved, plans=(review,)))


# Which set leaves the campaign --------------------------------------------------------------------


def explained(testbed: FakeTestbed, **changes: Any) -> None:
    """A winner of two keys, of which one is the smallest set and keeps all of the gain."""
    judged(testbed)
    ratio = Interval(VERDICT.ratio, VERDICT.ratio_low, VERDICT.ratio_high)
    minimal = Configuration({SOMAXCONN: VERDICT.configuration.values[SOMAXCONN]})
    made = Explanation(
        winner=VERDICT.configuration,
        minimal=minimal,
        contributions=(),
        interactions=(),
        same=(),
        verdict=replace(VERDICT, configuration=minimal),
        kept=Kept(share=1.0, low=0.8, high=1.2, full=ratio, smaller=ratio, rounds=16),
        offer=None,
        level=0.95,
        trials=60,
    )
    testbed.task.store.put(testbed.task.subject, replace(made, **changes))


def kept_of(share: float, high: float, smaller: float = 3.0, full: float = 3.0) -> Kept:
    ratios = [Interval(r, r / 1.2, r * 1.2) for r in (full, smaller)]
    return Kept(share=share, low=0.5, high=high, full=ratios[0], smaller=ratios[1], rounds=16)


def leaving(context: Context, *, whole: bool = False) -> tuple[str, set[str], str]:
    result = deployments(context, whole=whole)["x86"]
    assert result is not None
    return result.origin, set(result.values), result.instead


def test_the_smallest_set_leaves_where_it_is_a_gain_and_keeps_enough(
    testbed: FakeTestbed, context: Context
) -> None:
    explained(testbed, kept=kept_of(0.7, high=0.9))
    assert leaving(context) == ("smallest set", {SOMAXCONN}, "")
    assert leaving(context, whole=True) == ("winner", {RMEM, SOMAXCONN}, "")


def test_a_set_that_keeps_less_than_was_asked_for_stays(
    testbed: FakeTestbed, context: Context
) -> None:
    explained(testbed, kept=kept_of(0.7, high=0.899))
    why = "it keeps clearly less than 90% of the gain"
    assert ("winner", {RMEM, SOMAXCONN}, why) == leaving(context)


def test_a_set_that_is_no_gain_by_itself_stays(testbed: FakeTestbed, context: Context) -> None:
    explained(testbed, verdict=replace(VERDICT, ratio_low=0.9))
    why = "by itself it is no gain (no significant gain)"
    assert ("winner", {RMEM, SOMAXCONN}, why) == leaving(context)


def test_a_set_that_costs_too_much_by_itself_stays(testbed: FakeTestbed, context: Context) -> None:
    explained(testbed, verdict=replace(VERDICT, guardrails=(BROKEN_CPU,)))
    origin, keys, why = leaving(context)
    assert (origin, keys) == ("winner", {RMEM, SOMAXCONN})
    assert why.startswith("by itself it costs more than is accepted: CPU is higher by 12 points")


@pytest.mark.parametrize(
    ("smaller", "origin"), [(1.5, "smallest set"), (0.8, "smallest set"), (0.6, "winner")]
)
def test_beside_a_winner_without_a_gain_the_set_leaves_unless_it_is_worse(
    testbed: FakeTestbed, context: Context, smaller: float, origin: str
) -> None:
    """In these rounds the winner had none, so there is no share of it."""
    explained(testbed, kept=kept_of(nan, nan, smaller=smaller, full=0.98))
    assert origin == leaving(context)[0]
