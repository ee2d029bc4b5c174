"""Every stage on the real thing: nginx, sshd, load and sysctls of a small embedded lab."""

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders.finished import finish_campaign
from builders.results import VERDICT
from intop.domain.configuration import Configuration
from intop.learn.families import FAMILIES

Make = Callable[..., Any]
Wait = Callable[[Callable[[], bool], str], None]
Traces = Callable[[str], list[str]]
Sysctls = Callable[[], dict[str, str]]

NAMESPACED = "sysctl -a 2>/dev/null | grep '^net' | grep -v -e '_ns_last' -e 'nf_conntrack_count'"


def fewest(study: Any) -> None:
    """The least that can be collected: 8 configurations, and the default before and after them."""
    path = study.folder / "intop.toml"
    text = path.read_text().replace("replicate_trials = 2", "replicate_trials = 0")
    path.write_text(text.replace("sentinel_every = 4", "sentinel_every = 8"))


def test_from_doctor_to_verdict(make_study: Make, machine_sysctls: Sysctls, traces: Traces) -> None:
    def machine_keys() -> dict[str, str]:
        """The machine's own, without the interfaces of labs: `traces` looks for those."""
        return {k: v for k, v in machine_sysctls().items() if ".intop-" not in k}

    machine = machine_keys()
    study = make_study("x86")
    path = study.folder / "intop.toml"
    # A winner of few changes, since `trim` measures each of them in each of its rounds.
    text = path.read_text().replace("keep = 6", "keep = 3")
    path.write_text(text.replace("trim_rounds = 0", "trim_rounds = 2"))
    before = study.balancer(NAMESPACED)

    (diagnosis,) = study.json("doctor")
    assert diagnosis["problems"] == []
    assert len(diagnosis["hosts"]) == 5
    assert len(diagnosis["offered"]) > 60
    assert all(key.startswith("net.") for key in diagnosis["offered"])
    assert "vm.swappiness" in diagnosis["refused"]

    # 3 when there is no gain: an honest end, too.
    slt = ("--workload", "slt")  # test_four_lines.py has both
    tuned = study.json("tune", *slt, expected=(0, 3))
    assert [t["workload"] for t in tuned] == ["slt"]
    for one in tuned:
        # Eight trials tell next to nothing, so hardly anything is chosen, and nothing is frozen.
        effects = one["ranking"]["screening"]["effects"]
        assert len(effects) > 60
        assert {effect["state"] for effect in effects} <= {"chosen", "open"}
        assert len(one["ranking"]["importances"]) > 60
        assert one["refined"]["ended"] == "budget"
        assert sum(one["refined"]["steps"][0]["reasons"].values()) == 2
        families = {error["family"] for error in one["training"]["errors"]}
        assert families == set(FAMILIES)
        assert {run["model"] for run in one["search"]["convergences"]} > {"CatBoost", "ensemble"}
        assert one["verdict"]["pairs"] == 3
        assert study.trials("trim") or len(one["verdict"]["configuration"]) == 1
        assert (
            one["verdict"]["ratio_low"] <= one["verdict"]["ratio"] <= one["verdict"]["ratio_high"]
        )
        assert one["verdict"]["outcome"] in (
            "gain",
            "gain, but",
            "no gain: it costs",
            "worse",
            "undecided",
            "no significant gain",
        )
        guardrails = {g["quantity"]: g for g in one["verdict"]["guardrails"]}
        assert guardrails.keys() == {"P50", "rate", "error share", "slow requests", "CPU", "memory"}
        assert all(g["low"] <= g["effect"] <= g["high"] for g in guardrails.values())
        # Three pairs of 300 requests.
        assert "P99.9" in one["verdict"]["sides"]["untold"]

    with sqlite3.connect(study.folder / "small.db") as store:
        ((conditions,),) = store.execute("select distinct conditions from trial where id < 3")
    assert json.loads(conditions)["generator"].endswith("load on CPUs 0-1")

    # Asked again, nothing is measured again, and without a word nothing is mixed.
    _, refusal = study.run("tune", *slt, expected=(2,))
    assert "--resume" in refusal
    assert "--new" in refusal
    count = len(study.trials("judge"))
    assert study.json("tune", *slt, "--resume", expected=(0, 3)) == tuned
    assert len(study.trials("judge")) == count

    result = study.json("verify", "--workload", "slt", expected=(0, 3))
    assert result["x86 slt"] == tuned[0]["verdict"]
    (half,) = study.json("sweep", "--workload", "slt", "--points", "0.5x")["x86 slt"]["points"]
    assert [(a["arm"], a["trials"]) for a in half["arms"]] == [("default", 3), ("tuned", 3)]
    assert half["arms"][0]["achieved_rps"] == pytest.approx(150, rel=0.1)
    closed = ("--over", "connections", "--closed", "--points", "4,16")
    points = study.json("sweep", "--workload", "slt", *closed)["x86 slt"]["points"]
    assert all(one["achieved_rps"] > 0 for point in points for one in point["arms"])
    files = ("--over", "file", "--points", "/img/icon-1.png,/js/app.js")
    small, large = study.json("sweep", "--workload", "slt", *files)["x86 slt"]["points"]
    size = [p["arms"][0]["received_mb_s"] / p["arms"][0]["achieved_rps"] for p in (small, large)]
    # 2 and 88 KB with heads of answers, of which a busy machine answers some after the load.
    assert 10 * size[0] < size[1]
    assert len(study.trials("sweep")) == 6 + 12 + 12

    assert study.balancer(NAMESPACED) == before
    study.run("lab", "down")
    assert traces(study.labs[0]) == []
    assert machine_keys() == machine


@pytest.mark.long
def test_a_winner_beside_published_sets(make_study: Make) -> None:
    study = make_study("x86")
    winner = Configuration({"net.ipv4.tcp_fin_timeout": "41"})
    finish_campaign(study, replace(VERDICT, configuration=winner))
    names = ("ubuntu-18.04", "openeuler-25.09")
    contest = ("contest", *names, "--workload", "slt", "--rounds", "2")
    contestants = study.json(*contest)["x86 slt"]["contestants"]
    assert [c["name"] for c in contestants] == ["default", *names, "tuned"]
    assert {c["outcome"] for c in contestants} - {"reference"} <= {
        "gain",
        "worse",
        "no significant gain",
    }
    assert contestants[1]["left_out"]["net.ipv4.tcp_syncookies"].startswith("on the deny list")
    out, _ = study.run(*contest, "--default", names[0])
    assert f"P99 of {names[0]} / its own" in " ".join(out.split())
    assert len(study.trials("contest")) == 8


@pytest.mark.long
def test_collect_killed_twice_ends_with_the_same_trials(
    make_study: Make, wait_for: Wait, traces: Traces
) -> None:
    study = make_study("x86")
    collect = ("collect", "--workload", "slt", "--samples", "8")
    before = study.balancer(NAMESPACED)

    study.run(*collect)
    undisturbed = study.trials("collect")
    assert len(undisturbed) == 13
    (study.folder / "small.db").rename(study.folder / "undisturbed.db")

    for enough in (2, 5):
        process = study.start(*collect)
        wait_for(lambda n=enough: len(study.trials("collect")) >= n, f"{enough} trials")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert len(study.trials("collect")) < len(undisturbed)
        # The host gives itself back, although nobody is left to tell it.
        wait_for(lambda: study.balancer(NAMESPACED) == before, "the watchdog")
    study.run(*collect)
    resumed = study.trials("collect")
    assert [trial[:2] for trial in sorted(resumed)] == [trial[:2] for trial in sorted(undisturbed)]
    # Which are worth replicates, the measurements decide, and they are others now.
    assert sorted(resumed)[:11] == sorted(undisturbed)[:11]
    assert {configuration for _, _, configuration in resumed[11:]} <= {
        configuration for _, _, configuration in resumed[:11]
    }

    process = study.start("collect", "--workload", "dlt", "--samples", "8")
    wait_for(lambda: len(study.trials("collect")) > len(undisturbed), "a trial of dlt")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    study.run("lab", "down")
    assert traces(study.labs[0]) == []


@pytest.mark.parametrize(
    ("sign", "replicas"),
    [(signal.SIGTERM, 1), pytest.param(signal.SIGINT, 2, marks=pytest.mark.long)],
)
def test_stopped_by_a_signal_it_gives_the_hosts_back(
    make_study: Make, wait_for: Wait, sign: signal.Signals, replicas: int
) -> None:
    study = make_study("x86", replicas=replicas)
    before = [study.balancer(NAMESPACED, lab) for lab in range(replicas)]
    process = study.start("collect", "--workload", "slt")
    wait_for(lambda: len(study.trials("collect")) >= 2, "two trials")
    os.kill(process.pid, sign)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "goes on from here" in err
    assert [study.balancer(NAMESPACED, lab) for lab in range(replicas)] == before


@pytest.mark.long
def test_two_replicas_are_measured_on_at_once(make_study: Make) -> None:
    study = make_study("x86", replicas=2)
    result = study.json("collect", "--workload", "slt", "--samples", "10")["x86 slt"]
    names = [f"{lab}-lb" for lab in study.labs]
    assert [r["name"] for r in result["replicas"]["replicas"]] == names
    # Were they found to disagree, which noise may bring about, the first one does it all.
    assert {t["replica"] for t in result["trials"]} == set(result["replicas"]["in_use"])
    compared = study.trials("replicas")
    assert len(compared) == 6
    (diagnosis, other) = study.json("doctor")
    assert diagnosis["offered"] == other["offered"]


@pytest.mark.long
def test_two_clusters_compared(make_study: Make) -> None:
    study = make_study("x86", "arm")
    fewest(study)
    slt = ("--workload", "slt")
    study.run("collect", "--arch", "x86", *slt)
    _, refusal = study.run("compare", "x86", "arm", *slt, expected=(1,))
    assert "arm slt: nothing to compare" in refusal
    assert "intop collect --arch arm --workload slt" in refusal

    study.run("collect", "--arch", "arm", *slt)
    result = study.json("compare", "x86", "arm", *slt)
    (comparison,) = result["comparisons"]
    assert [side["arch"] for side in comparison["sides"]] == ["x86", "arm"]
    for side in comparison["sides"]:
        mean = side["default"]["mean_ms"]
        assert 0 < mean["low"] < mean["value"] < mean["high"]
        assert side["tuned"] is None
    # Two labs of one machine: the architectures are in name only, and it says so.
    assert any("machine" in warning for warning in comparison["warnings"])
    assert comparison["differences"] == []
    # Nothing of dlt is measured, and the rest is compared all the same.
    out, _ = study.run("compare", "x86", "arm")
    assert "intop collect --workload dlt && intop compare x86 arm" in " ".join(out.split())


@pytest.mark.long
def test_other_conditions_are_not_mixed(make_study: Make) -> None:
    study = make_study("x86")
    fewest(study)
    study.run("collect", "--workload", "slt")
    path = study.folder / "intop.toml"
    path.write_text(path.read_text().replace("rate_rps = 300", "rate_rps = 200"))
    _, err = study.run("collect", "--workload", "slt", "--samples", "20", expected=(2,))
    assert "has 8 configurations already" in err
    _, err = study.run("screen", "--workload", "slt", expected=(1,))
    assert "rate_rps: 300.0 against 200.0" in err
    assert "--new" in err


@pytest.mark.long
def test_another_latency_can_be_the_objective(make_study: Make) -> None:
    study = make_study("x86")
    path = study.folder / "intop.toml"
    text = path.read_text()
    path.write_text(text.replace('name = "small"\n', 'name = "small"\nobjective = "p90"\n'))
    (tuned,) = study.json("tune", "--workload", "slt", expected=(0, 3))
    verdict = tuned["verdict"]
    assert (verdict["judged_by"], tuned["training"]["target"]) == ("P90", "P90")
    ratio = verdict["sides"]["latencies_ms"]["P90"]["ratio"]
    assert (ratio["value"], ratio["low"]) == (verdict["ratio"], verdict["ratio_low"])
    guarded = {g["quantity"] for g in verdict["guardrails"]}
    assert "P50" in guarded
    assert "P99" not in guarded  # a trial has 300 requests
    study.run("report", "--output", "report.html")
    assert "default P90 in ms" in (study.folder / "report.html").read_text()

    path.write_text(text)
    _, err = study.run("verify", "--more", "2", "--workload", "slt", expected=(1,))
    assert "trials are judged by P90, and the objective of intop.toml is P99" in err


@pytest.mark.long
def test_a_study_without_a_duration_has_a_pilot(make_study: Make) -> None:
    study = make_study("x86")
    path = study.folder / "intop.toml"
    text = path.read_text().replace("rate_rps = 300", "rate_rps = 600")
    text = text.replace("duration_s = 1\n", "", 1)
    path.write_text(f"{text}pilot_trials = 3\npilot_max_s = 3\n")

    _, err = study.run("collect", "--workload", "slt")
    assert "x86 slt: pilot: " in err
    # A thousand requests take 2 s, and there is no room for twice that.
    assert [trial[:2] for trial in study.trials("pilot")] == [(0, 0), (1, 0), (2, 0)]
    assert len(study.trials("collect")) == 13
    assert study.durations() == {2}
    result = study.json("pilot", "--workload", "slt")["x86 slt"]
    assert (result["duration_s"], [one["duration_s"] for one in result["tried"]]) == (2, [2])
    assert result["tried"][0]["seconds"] > 2
    out, _ = study.run("pilot", "--workload", "slt")
    assert "chosen" in out
    assert len(study.trials("pilot")) == 3

    # At 150 requests/s they take 7 s.
    out, err = study.run("pilot", "--workload", "dlt", expected=(2,))
    assert out == ""
    assert "more than pilot_max_s (3)" in err
