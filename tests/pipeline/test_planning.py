"""plan: what deploying would change, on a real namespace with files below a root of its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeBench, probe_of
from intop.config.catalogue import load_catalogue
from intop.domain.cluster import HostAddress, LabSpec, native_arch, other_arch
from intop.domain.plan import HostPlan
from intop.errors import LabError, ResultMissingError, UnreachableError, UsageError
from intop.hosts.host import Host
from intop.lab import cluster as lab
from intop.pipeline.context import Context
from intop.pipeline.planning import host_plan, plan
from intop.resources import shipped
from namespace_host import LONG, NamespaceHost, namespace_host
from samples import DEPLOYMENT, VERDICT

CATALOGUE = {p.key: p for p in load_catalogue(shipped("configs") / "parameters.toml").parameters}
RMEM, SOMAXCONN = (change.key for change in DEPLOYMENT.changes)
NATIVE = replace(DEPLOYMENT, arch=native_arch())


@pytest.fixture
def host(tmp_path: Path) -> Iterator[NamespaceHost]:
    with namespace_host(tmp_path) as made:
        yield made


def planned(host: NamespaceHost, **changes: Any) -> HostPlan:
    parameters = {key: CATALOGUE[key] for key in DEPLOYMENT.values}
    return host_plan(host, replace(NATIVE, **changes), parameters)


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
    assert 0 == host.run(f"echo 64 > /proc/sys/{SOMAXCONN.replace('.', '/')}").exit_code
    values = host.values()
    found = planned(host)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert values == host.values()
    rmem, somaxconn = found.keys
    assert ("changes", values[RMEM]) == (rmem.outcome, rmem.now)
    assert ("is so", "64") == (somaxconn.outcome, somaxconn.now)
    (late,) = rmem.rivals
    assert ("at boot", f"{root}/etc/sysctl.d/99-zzz.conf:2") == (late.wins, late.setting.place)
    # TuneD reads the files again after its profile, so they win, and ours over them.
    (early,) = somaxconn.rivals
    assert ("never", f"{root}/etc/sysctl.d/10-web.conf:1") == (early.wins, early.setting.place)
    assert (f"{root}/etc/sysctl.d/99-zz-intop.conf", 1, ()) == (
        found.file,
        found.conflicts,
        found.notes,
    )


def test_what_else_is_to_be_known_of_a_host_is_noted(host: NamespaceHost) -> None:
    assert 0 == host.begin("one", LONG, SOMAXCONN).exit_code
    machine, session = planned(host, arch=other_arch()).notes
    assert f"and the gain was measured on {other_arch()}: measure there" in machine
    assert "an intop session holds it" in session
    assert 0 == host.script("end", "one").exit_code


def test_a_key_that_a_host_does_not_have_is_impossible(host: NamespaceHost) -> None:
    key = "net.core.netdev_max_backlog"
    changes = (replace(DEPLOYMENT.changes[0], key=key), replace(DEPLOYMENT.changes[0], key="a.b"))
    deployment = replace(NATIVE, changes=changes)
    known, unknown = host_plan(host, deployment, {key: CATALOGUE[key]}).keys
    assert ("impossible", None) == (known.outcome, known.now)
    assert "belongs to the whole machine" in known.obstacle
    assert ("impossible", "this kernel doesn't have it") == (unknown.outcome, unknown.obstacle)


# A study ------------------------------------------------------------------------------------------


def refuse(address: HostAddress) -> Host:
    raise UnreachableError(address.name, "the network is gone")


@pytest.fixture
def context(bench: FakeBench, monkeypatch: pytest.MonkeyPatch) -> Context:
    def not_up(name: str) -> None:
        raise LabError(f"lab {name} is not up")

    monkeypatch.setattr(lab, "cluster", not_up)
    return replace(bench.task.context, connect=refuse)


def judged(bench: FakeBench, verdict: Any = VERDICT) -> None:
    values = {RMEM: "4096 131072 6291456", SOMAXCONN: "4096"}
    bench.task.store.put(bench.task.subject, probe_of(values))
    bench.task.store.put(bench.task.subject, verdict)


def test_without_a_verdict_the_next_step_is_named(context: Context) -> None:
    with pytest.raises(ResultMissingError, match="x86: no verdict yet: intop tune --arch x86"):
        plan(context)


def test_what_has_no_gain_keeps_the_defaults(bench: FakeBench, context: Context) -> None:
    judged(bench, replace(VERDICT, ratio_low=0.9))
    assert {"x86": None} == plan(context)
    both = replace(context, archs=("x86", "arm"))
    assert {"x86": None} == plan(both)
    assert "left out: arm: no verdict yet" in bench.told.getvalue()


def test_a_host_that_cannot_be_asked_has_its_error_in_its_place(
    bench: FakeBench, context: Context
) -> None:
    judged(bench)
    clusters = {"x86": (LabSpec(name="gone"),)}
    found = plan(replace(context, study=replace(context.study, clusters=clusters)))["x86"]
    assert found is not None
    assert [("lab gone", "lab gone is not up")] == [(a.name, a.error) for a in found.hosts]
    named = HostAddress(name="far", role="load-balancer", hostname="far")
    found = plan(context, hosts=[named])["x86"]
    assert found is not None
    assert [("far", "far: the network is gone")] == [(a.name, a.error) for a in found.hosts]
    assert {RMEM, SOMAXCONN} == set(found.deployment.values)


def test_a_host_gets_what_one_architecture_has(bench: FakeBench, context: Context) -> None:
    judged(bench)
    subject = replace(bench.task.subject, arch="arm")
    bench.task.store.put(subject, probe_of({RMEM: "4096 131072 6291456", SOMAXCONN: "4096"}))
    bench.task.store.put(subject, VERDICT)
    named = HostAddress(name="far", role="load-balancer", hostname="far")
    with pytest.raises(UsageError, match=r"x86 and arm have a gain.*say with --arch"):
        plan(replace(context, archs=("x86", "arm")), hosts=[named])
