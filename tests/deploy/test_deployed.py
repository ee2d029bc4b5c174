"""From a finished campaign to a deployed change and back, on a lab's real sysctls and files."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from builders.finished import STUDY, finish_campaign
from builders.results import VERDICT
from intop.domain.cluster import native_arch
from intop.domain.configuration import Configuration
from intop.lab.cluster import cluster
from kit.studies import RUN, Study

NAME = f"dep{RUN}"
RMEM, MODERATE = "net.ipv4.tcp_rmem", "net.ipv4.tcp_moderate_rcvbuf"
VALUES = {RMEM: "51491 51491 252930", MODERATE: "0"}
"""What a campaign on such a link has found: about five times lower P99."""

OTHER = f"dfp{RUN}"
CLUSTER = """
[[cluster.native]]
lab = "{name}"
link = {{ rate_mbit = 75, burst_kb = 32, limit_kb = 100 }}
"""


@contextmanager
def study_of(folder: Path, *labs: str) -> Iterator[Study]:
    clusters = "".join(CLUSTER.format(name=name) for name in labs)
    (folder / "intop.toml").write_text(STUDY.format(clusters=clusters))
    made = Study(folder, labs)
    try:
        made.run("lab", "up")
        yield made
    finally:
        made.run("lab", "down")


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with study_of(tmp_path, NAME) as made:
        yield made


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Study]:
    """Two replicas, and a campaign with a gain."""
    with study_of(tmp_path, NAME, OTHER) as made:
        finish_campaign(made, replace(VERDICT, configuration=Configuration(VALUES)))
        yield made


def values(study: Study, lab: int = 0) -> dict[str, str]:
    return {key: " ".join(study.balancer(f"sysctl -n {key}", lab).split()) for key in VALUES}


def all_of(study: Study) -> list[object]:
    """All that an apply could leave on the load balancers: values, and files with their times."""
    result: list[object] = [values(study, number) for number, _ in enumerate(study.labs)]
    for name in study.labs:
        address = cluster(name).load_balancer
        for folder in (address.state_dir, address.config_root):
            result += sorted((str(p), p.stat().st_mtime_ns) for p in Path(folder).rglob("*"))
    return result


def make_read_only(lab: str, folder: str) -> None:
    """Of a load balancer, as its sshd sees it, which has mounts of its own."""
    config = f"/run/intop/lab/{lab}/host-lb/sshd.conf"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if config in path.read_bytes().decode(errors="replace"):
                entered = ["nsenter", "--target", path.parent.name, "--mount", "--net"]
                mounts = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
                subprocess.run([*entered, "sh", "-c", mounts], check=True)
                return
    pytest.fail(f"nobody runs with {config}")


def drifts(study: Study) -> dict[str, str]:
    (answer,) = json.loads(study.run("status", "--json", expected=(4,))[0])
    return {drift["where"]: drift["kind"] for drift in answer["result"]["drift"]}


def test_plan_apply_status_drift_and_rollback(study: Study) -> None:
    before = values(study)
    address = cluster(NAME).load_balancer
    folder = Path(address.config_root) / "etc/sysctl.d"
    ours = folder / "99-zz-intop.conf"
    verdict = replace(VERDICT, configuration=Configuration(VALUES))
    finish_campaign(study, verdict)

    (host,) = study.json("plan")[native_arch()]["hosts"]
    assert (address.name, "") == (host["name"], host["error"])
    keys = host["result"]["keys"]
    assert {key["change"]["key"]: key["change"]["value"] for key in keys} == VALUES
    assert before == {key["change"]["key"]: key["now"] for key in keys}
    assert (before, False) == (values(study), ours.exists())

    out, _ = study.run("apply", "--persist", "--dry-run")
    assert out == study.run("plan", "--persist")[0]
    output = " ".join(out.split())
    assert "apply: measure them against its own values in up to 10 rounds" in output
    assert f"set 2 keys, write {ours}" in output
    assert (before, False) == (values(study), ours.exists())

    # So few rounds show no more than that it is no loss; what it gains is a campaign's business.
    rounds = ("--rounds", "2", "--accept-no-loss")
    (rollout,) = study.json("apply", "--yes", *rounds)
    (host,) = rollout["hosts"]
    assert (address.name, "applied", "") == (host["host"], host["outcome"], host["file"])
    assert (values(study), ours.exists()) == (VALUES, False)

    # Nothing is measured again for the file.
    measured = study.trials("apply")
    output = " ".join(study.run("apply", "--persist", "--dry-run")[0].split())
    assert f"apply: it has these values already; write {ours} for later boots" in output
    (rollout,) = study.json("apply", "--persist", "--yes")
    (host,) = rollout["hosts"]
    assert (address.name, "already", str(ours)) == (host["host"], host["outcome"], host["file"])
    assert (VALUES, measured) == (values(study), study.trials("apply"))
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
    assert drifts(study) == {MODERATE: "lost", RMEM: "overridden"}
    later.unlink()

    out, _ = study.run("rollback", "--dry-run")
    assert f"{ours} would be removed" in out
    assert f"left as somebody else has set them: {RMEM}" in out
    assert ours.exists()
    # What somebody else has set is theirs.
    out, _ = study.run("rollback", expected=(1,))
    assert f"{RMEM} was changed by somebody else" in out
    assert values(study)[RMEM] == "4096 8192 65536"
    assert not ours.exists()
    study.run("rollback", "--force", "--yes")
    assert before == values(study)
    out, _ = study.run("status")
    assert out.splitlines()[0] == f"{address.name}: not held ({address.state_dir})"


ROUNDS = ("--rounds", "2")
GO_ON = ("--yes", "--accept-no-loss")


def test_an_obstacle_on_one_host_keeps_apply_from_all_of_them(fleet: Study) -> None:
    one, other = (cluster(name).load_balancer.name for name in fleet.labs)
    fleet.run("plan", *ROUNDS, "--output", "plan.json")
    before = all_of(fleet)
    # All keys of the deployment, on the last host that apply would come to.
    make_read_only(OTHER, "/proc/sys/net/ipv4")

    _, err = fleet.run("apply", *ROUNDS, *GO_ON, expected=(1,))
    assert "nothing was touched on any host" in err
    for key in VALUES:
        assert f"{other}: {key} can't be set to {VALUES[key]}: can't be written" in err
    assert f"{one}: net." not in err
    assert before == all_of(fleet)

    out, _ = fleet.run("apply", *ROUNDS, "--dry-run", expected=(1,))
    assert f"IMPOSSIBLE  {RMEM}: can't be written" in out
    # So does a plan that was made before.
    _, err = fleet.run("apply", "plan.json", *GO_ON, expected=(1,))
    assert f"{other}: {RMEM}: what is in its way: nothing in the plan, can't be written" in err
    assert before == all_of(fleet)


@pytest.mark.long
def test_a_plan_whose_host_has_changed_is_refused(fleet: Study) -> None:
    one, other = (cluster(name).load_balancer.name for name in fleet.labs)
    out, err = fleet.run("plan", *ROUNDS, "--output", "plan.json")
    assert "carry it out: intop apply plan.json" in err
    assert f"{other}: 2 keys to change" in out

    fleet.balancer(f"sysctl -qw {MODERATE}=0", lab=1)
    before = all_of(fleet)
    for words in (GO_ON, ("--dry-run",)):
        _, err = fleet.run("apply", "plan.json", *words, expected=(1,))
        assert f"{other}: {MODERATE}: 1 in the plan, 0 now" in err
        assert f"{one}: net." not in err
        assert before == all_of(fleet)

    fleet.run("plan", *ROUNDS, "--output", "plan.json")
    assert before == all_of(fleet)
    (rollout,) = json.loads(fleet.run("apply", "plan.json", *GO_ON, "--json")[0])
    assert [(one, "applied"), (other, "applied")] == [
        (host["host"], host["outcome"]) for host in rollout["hosts"]
    ]
    assert [values(fleet, number) for number in (0, 1)] == [VALUES, VALUES]
    # The same file again, as after an interruption: what has it, is left alone.
    (rollout,) = json.loads(fleet.run("apply", "plan.json", "--json")[0])
    assert [host["outcome"] for host in rollout["hosts"]] == ["already", "already"]
    fleet.run("rollback")
    assert values(fleet, 1)[MODERATE] == "0"
