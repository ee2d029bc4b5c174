"""The pipeline on a load balancer of the other architecture that fails in the middle of it."""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from intop.domain.cluster import MACHINES, other_arch
from intop.hosts.host import output
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.lab import processes

Wait = Callable[[Callable[[], bool], str], None]
Traces = Callable[[str], list[str]]

OTHER = other_arch()
FEW = ("net.core.somaxconn", "net.core.netdev_max_backlog", "net.ipv4.tcp_congestion_control")
FEW += ("net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_notsent_lowat", "vm.swappiness")

STUDY = """
[study]
name = "guest"
store = "small.db"
load_tool = "engine"
parameters = {few}

[cluster.other]
lab = "{lab}"
kind = "vm"
link = {{ rate_mbit = 100 }}

[workload.slt]
rate_rps = 100
connections = 16
threads = 2
duration_s = 1
warmup_s = 0
paths = ["/index.html", "/img/photo-1.jpg"]

[budget]
max_foreign_cores = 1000    # the machine that runs the tests may have other work
max_lag = 1
"""


@pytest.fixture
def guest_study(tmp_path: Path, study_class: Any) -> Iterator[Any]:
    name = f"t-g{os.getpid() % 10_000}"
    (tmp_path / "intop.toml").write_text(STUDY.format(few=list(FEW), lab=name))
    try:
        yield study_class(tmp_path, (name,))
    finally:
        lab.down(name)


def stored(folder: Path, what: str) -> list[str]:
    """One column of all trials, in order of measurement."""
    connection = sqlite3.connect(folder / "small.db", timeout=10)
    try:
        return [text for (text,) in connection.execute(f"SELECT {what} FROM trial ORDER BY id")]
    finally:
        connection.close()


def lost(folder: Path) -> list[str]:
    """The status of each trial whose connection broke."""
    result = zip(stored(folder, "status"), stored(folder, "detail"), strict=True)
    return [status for status, detail in result if "SSH" in detail]


def values(name: str) -> str:
    """What the load balancer's keys are now."""
    balancer = connect(lab.cluster(name).load_balancer)
    try:
        return output(balancer, f"sysctl {' '.join(FEW)}")
    finally:
        balancer.close()


def load_runs(name: str) -> bool:
    """Whether a load generator sends just now."""
    listed = ["ip", "netns", "pids", f"intop-{name}-lg"]
    pids = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
    return "luajit" in {processes.command_name(int(pid)) for pid in pids}


def killed(name: str) -> None:
    os.kill(qemu_pid(name), signal.SIGKILL)


def powered_off(name: str) -> None:
    _triggered(name, "o")


def rebooted(name: str) -> None:
    _triggered(name, "b")


def _triggered(name: str, letter: str) -> None:
    """Have the guest's kernel do it at once, without a word to anybody."""
    balancer = connect(lab.cluster(name).load_balancer)
    try:
        output(balancer, f"(sleep 0.2; echo {letter} > /proc/sysrq-trigger) > /dev/null 2>&1 &")
    finally:
        balancer.close()


def qemu_pid(name: str) -> int:
    return int(Path(f"/run/intop/lab/{name}/host-lb/qemu.pid").read_text())


FAULTS = (killed, powered_off, rebooted)


@pytest.mark.long
def test_trials_on_the_other_architecture_survive_its_power_failing(
    guest_study: Any, wait_for: Wait, traces: Traces
) -> None:
    study = guest_study
    (name,) = study.labs
    _, printed = study.run("lab", "up", "--arch", OTHER)
    by = f"TCG on {os.uname().machine}"
    assert f"a virtual machine by {by}" in printed
    fresh = values(name)

    (diagnosis,) = study.json("doctor", "--arch", OTHER)
    assert diagnosis["problems"] == []
    assert diagnosis["emulation"] == by
    assert sorted(diagnosis["offered"]) == sorted(FEW)  # the machine-scoped ones, too

    collect = ("collect", "--arch", OTHER, "--samples", "8", "--workload", "slt")
    for fault in FAULTS:
        pid = qemu_pid(name)
        earlier = len(study.trials("collect"))
        process = study.start(*collect)

        def in_the_middle(earlier: int = earlier) -> bool:
            # A trial of this command's own: it asks LuaJIT for its version before the first.
            return len(study.trials("collect")) > earlier and load_runs(name)

        wait_for(in_the_middle, f"trials to be {fault.__name__} in")
        before = study.trials("collect")
        fault(name)
        _, printed = process.communicate(timeout=90)  # the kernel itself would hope for 15 minutes
        assert process.returncode == 1
        assert f"{name}-lb: the SSH connection" in printed
        assert "What was measured is stored. Look at it with intop doctor; then the same" in printed
        assert "Traceback" not in printed
        assert not Path(f"/proc/{pid}").exists()

        assert study.trials("collect")[: len(before)] == before
        assert set(lost(study.folder)) <= {"disturbed"}
        out, _ = study.run("lab", "status")
        assert "lb: the guest does not run any more" in out
        _, printed = study.run("doctor", "--arch", OTHER, expected=(1,))
        assert f"lab {name} is damaged: start it again with intop lab up" in printed
        study.run("lab", "up", "--arch", OTHER)
        assert values(name) == fresh
    # A trial may have ended by the time of the fault, and the next one waits for quiet.
    assert lost(study.folder)

    # What was once chosen stays in the kernel's list of what all may choose: no other condition.
    balancer = connect(lab.cluster(name).load_balancer)
    for choice in ("htcp", "cubic"):
        output(balancer, f"sysctl -w net.ipv4.tcp_congestion_control={choice}")
    assert "htcp" in output(balancer, "sysctl -n net.ipv4.tcp_allowed_congestion_control")
    balancer.close()
    study.run(*collect)
    result = study.trials("collect")
    details = stored(study.folder, "detail")
    last = {trial[0]: detail for trial, detail in zip(result, details, strict=True)}
    assert len(last) == 10  # 8 configurations, and the default before and after them
    assert not any("SSH" in detail for detail in last.values())  # what was lost is made again
    assert values(name) == fresh
    conditions = [json.loads(text) for text in stored(study.folder, "conditions")]
    assert {one["machine"] for one in conditions} <= set(MACHINES[OTHER])
    assert {one["emulation"] for one in conditions} == {by}

    study.run("lab", "down")
    assert traces(name) == []


@pytest.mark.long
def test_tune_starts_a_guest_again_that_has_died(guest_study: Any, wait_for: Wait) -> None:
    """As by a panic of its kernel, which takes the emulator with it."""
    study, (name,) = guest_study, guest_study.labs
    path = study.folder / "intop.toml"
    text = path.read_text().replace("rate_rps = 100", "rate_rps = 20")
    path.write_text(text.replace("connections = 16", "connections = 64") + TINY)
    study.run("lab", "up", "--arch", OTHER)
    process = study.start("tune", "--arch", OTHER)
    wait_for(lambda: len(study.trials("screen")) >= 3, "the first trials")
    killed(name)
    _, printed = process.communicate(timeout=900)
    assert process.returncode in (0, 3), printed
    assert "intop connects again" in printed
    assert f"lab {name}: lb: the guest does not run any more" in printed
    assert lost(study.folder)


TINY = """screen_trials = 8
keep = 4
collect_trials = 8
refine_trials = 2
tuning_trials = 1
folds = 2
repeats = 1
population = 40
generations = 10
finalists = 2
pick_rounds = 1
trim_rounds = 0
judge_pairs = 3
explain_rounds = 0
"""
