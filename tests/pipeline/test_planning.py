"""plan: what deploying would change, on a real namespace with files below a root of its own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeBench, probe_of
from intop.config.catalogue import load_catalogue
from intop.domain.cluster import HostAddress, LabSpec, native_arch, other_arch
from intop.domain.configuration import Configuration
from intop.domain.explanation import Explanation, Kept
from intop.domain.plan import HostPlan
from intop.domain.stats import RatioInterval
from intop.errors import LabError, ResultMissingError, UnreachableError, UsageError
from intop.hosts.host import Host
from intop.lab import cluster as lab
from intop.pipeline.context import Context
from intop.pipeline.deploying import deployments
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


# Which set leaves the campaign --------------------------------------------------------------------


def explained(bench: FakeBench, **changes: Any) -> None:
    """A winner of two keys, of which one is the smallest set and keeps all of the gain."""
    judged(bench)
    ratio = RatioInterval(VERDICT.ratio, VERDICT.ratio_low, VERDICT.ratio_high)
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
    bench.task.store.put(bench.task.subject, replace(made, **changes))


def kept_of(share: float, smaller: float = 3.0, full: float = 3.0) -> Kept:
    ratios = [RatioInterval(r, r / 2, r * 2) for r in (full, smaller)]
    return Kept(share=share, low=0.5, high=1.3, full=ratios[0], smaller=ratios[1], rounds=16)


def leaving(context: Context, *, whole: bool = False) -> tuple[str, set[str], str]:
    found = deployments(context, whole=whole)["x86"]
    assert found is not None
    return found.origin, set(found.values), found.instead


def test_the_smallest_set_leaves_where_it_is_a_gain_and_keeps_enough(
    bench: FakeBench, context: Context
) -> None:
    explained(bench, kept=kept_of(0.9))
    assert ("smallest set", {SOMAXCONN}, "") == leaving(context)
    assert ("winner", {RMEM, SOMAXCONN}, "") == leaving(context, whole=True)


def test_a_set_that_keeps_less_than_was_asked_for_stays(bench: FakeBench, context: Context) -> None:
    explained(bench, kept=kept_of(0.899))
    why = "it keeps less than 90% of the gain"
    assert ("winner", {RMEM, SOMAXCONN}, why) == leaving(context)


def test_a_set_that_is_no_gain_by_itself_stays(bench: FakeBench, context: Context) -> None:
    explained(bench, verdict=replace(VERDICT, ratio_low=0.9))
    why = "by itself it is no gain (no significant gain)"
    assert ("winner", {RMEM, SOMAXCONN}, why) == leaving(context)


@pytest.mark.parametrize(("smaller", "origin"), [(1.5, "smallest set"), (0.8, "winner")])
def test_beside_a_winner_without_a_gain_the_better_one_leaves(
    bench: FakeBench, context: Context, smaller: float, origin: str
) -> None:
    """In these rounds the winner had none, so there is no share of it."""
    explained(bench, kept=kept_of(float("nan"), smaller=smaller, full=0.98))
    assert origin == leaving(context)[0]
