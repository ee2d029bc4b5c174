"""From a finished campaign to a deployed change and back, on a lab's real sysctls and files."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intop.config.study import load_study
from intop.domain.cluster import native_arch
from intop.domain.configuration import Configuration
from intop.domain.results import Verdict
from intop.hosts.ssh import connect
from intop.lab.cluster import cluster
from intop.pipeline.bench import bench
from intop.pipeline.campaigns import new
from intop.pipeline.context import Context, Task
from intop.report.progress import LineProgress
from intop.store import Subject, opened
from samples import VERDICT
from studies import RUN, Study

NAME = f"dep{RUN}"
RMEM, MODERATE = "net.ipv4.tcp_rmem", "net.ipv4.tcp_moderate_rcvbuf"
VALUES = {RMEM: "51491 51491 252930", MODERATE: "0"}
"""What a campaign on such a link has found: about five times lower P99."""

STUDY = f"""
[study]
name = "small"
store = "small.db"

[[cluster.native]]
lab = "{NAME}"
link = {{ rate_mbit = 75, burst_kb = 32, limit_kb = 100 }}

[workload.slt]
rate_rps = 150
connections = 64
threads = 2
duration_s = 1
warmup_s = 0

[budget]
max_foreign_cpu = 1    # the machine that runs the tests may have other work
max_steal = 0.99
max_load_cpu = 1
settle_limit_s = 5
"""


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    (tmp_path / "intop.toml").write_text(STUDY)
    made = Study(tmp_path, (NAME,))
    try:
        made.run("lab", "up")
        yield made
    finally:
        made.run("lab", "down")


def finish_campaign(study: Study, verdict: Verdict) -> None:
    """The host as it is probed, and a verdict, as tune leaves them."""
    loaded = load_study(study.folder / "intop.toml")
    loaded = replace(loaded, store=str(study.folder / "small.db"))
    with opened(loaded.store) as store:
        subject = Subject(
            campaign=store.latest("small") or new(store, loaded),
            arch=native_arch(),
            workload="slt",
        )
        context = Context(
            study=loaded,
            store=store,
            campaign=subject.campaign,
            connect=connect,
            progress=LineProgress(),
            archs=(subject.arch,),
            workloads=(loaded.workloads["slt"],),
        )
        with bench(Task(context=context, subject=subject, workload=loaded.workloads["slt"])):
            pass
        store.put(subject, verdict)


def values(study: Study) -> dict[str, str]:
    return {key: " ".join(study.balancer(f"sysctl -n {key}").split()) for key in VALUES}


def drifts(study: Study) -> dict[str, str]:
    (answer,) = json.loads(study.run("status", "--json", expected=(4,))[0])
    return {drift["where"]: drift["kind"] for drift in answer["said"]["drift"]}


def test_plan_apply_status_drift_and_rollback(study: Study) -> None:
    before = values(study)
    address = cluster(NAME).load_balancer
    folder = Path(address.config_root) / "etc/sysctl.d"
    ours = folder / "99-zz-intop.conf"
    verdict = replace(VERDICT, configuration=Configuration(VALUES))
    finish_campaign(study, verdict)

    (host,) = study.json("plan")[native_arch()]["hosts"]
    assert (address.name, "") == (host["name"], host["error"])
    keys = host["said"]["keys"]
    assert VALUES == {key["change"]["key"]: key["change"]["value"] for key in keys}
    assert before == {key["change"]["key"]: key["now"] for key in keys}
    assert (before, False) == (values(study), ours.exists())

    out, _ = study.run("apply", "--persist", "--dry-run")
    assert f"{address.name} (the canary): measure them against the default" in out
    assert f"write {ours}" in out
    assert (before, False) == (values(study), ours.exists())

    # So few rounds show no more than that it is no loss; what it gains is a campaign's business.
    rounds = ("--rounds", "2", "--accept-no-loss")
    (rollout,) = study.json("apply", "--persist", "--yes", *rounds)
    (host,) = rollout["hosts"]
    assert (address.name, "applied", str(ours)) == (host["host"], host["outcome"], host["file"])
    assert VALUES == values(study)
    text = ours.read_text()
    assert "small, campaign 1" in " ".join(text.split())
    assert all(f"\n{key} = {value}\n" in text for key, value in VALUES.items())
    assert not Path("/etc/sysctl.d/99-zz-intop.conf").exists()

    out, _ = study.run("status")
    assert f"{address.name}: {native_arch()} slt of study small, campaign 1, applied since" in out
    assert out.splitlines()[0].endswith("as applied")

    study.balancer(f"sysctl -qw {MODERATE}=1 {RMEM}='4096 8192 65536'")
    later = folder / "99-zzz-theirs.conf"
    later.write_text(f"{RMEM} = 1 2 3\n")
    assert {MODERATE: "lost", RMEM: "overridden"} == drifts(study)
    later.unlink()

    out, _ = study.run("rollback", "--dry-run")
    assert f"{ours} would be removed" in out
    assert f"left as somebody else has set them: {RMEM}" in out
    assert ours.exists()
    # What somebody else has set is theirs.
    out, _ = study.run("rollback", expected=(1,))
    assert f"{RMEM} was changed by somebody else" in out
    assert "4096 8192 65536" == values(study)[RMEM]
    assert not ours.exists()
    study.run("rollback", "--force", "--yes")
    assert before == values(study)
    out, _ = study.run("status")
    assert f"{address.name}: not held ({address.state_dir})" == out.splitlines()[0]
