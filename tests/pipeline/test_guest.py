"""The pipeline on a load balancer of the other architecture, killed in the middle of it."""

import json
import os
import re
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from intop.domain.cluster import MACHINES, native_arch
from intop.hosts.host import output
from intop.hosts.ssh import connect
from intop.lab import cluster as lab

Wait = Callable[[Callable[[], bool], str], None]
Traces = Callable[[str], list[str]]

OTHER = "x86" if native_arch() == "arm" else "arm"
CATALOGUE = Path(__file__).parents[2] / "configs/parameters.toml"
FEW = ("net.core.somaxconn", "net.core.netdev_max_backlog", "net.ipv4.tcp_congestion_control")
FEW += ("net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_notsent_lowat", "vm.swappiness")

STUDY = """
[study]
name = "guest"
store = "small.db"
catalogue = "few.toml"

[cluster.{arch}]
lab = "{lab}"
kind = "vm"
link = {{ rate_mbit = 100 }}

[workload.slt]
rate_rps = 100
connections = 16
threads = 2
duration_s = 1
warmup_s = 0
"""


def few_parameters() -> str:
    """A catalogue of its own with entries of the shipped one: a trial is short then."""
    head, *entries = re.split(r"(?m)^(?=\[\[)", CATALOGUE.read_text())
    chosen = [e for e in entries if any(f'key = "{key}"\n' in e for key in FEW)]
    parameters = [e for e in chosen if e.startswith("[[parameter]]")]
    assert len(parameters) == len(FEW)
    return head + "".join(parameters)


@pytest.fixture
def guest_study(tmp_path: Path, study_class: Any) -> Iterator[Any]:
    name = f"t-g{os.getpid() % 10_000}"
    (tmp_path / "intop.toml").write_text(STUDY.format(arch=OTHER, lab=name))
    (tmp_path / "few.toml").write_text(few_parameters())
    try:
        yield study_class(tmp_path, (name,))
    finally:
        lab.down(name)


def conditions(folder: Path) -> list[dict[str, Any]]:
    connection = sqlite3.connect(folder / "small.db", timeout=10)
    try:
        rows = connection.execute("SELECT conditions FROM trial").fetchall()
    finally:
        connection.close()
    return [json.loads(text) for (text,) in rows]


def test_trials_on_the_other_architecture_survive_its_power_failing(
    guest_study: Any, wait_for: Wait, traces: Traces
) -> None:
    study = guest_study
    (name,) = study.labs
    _, said = study.run("lab", "up", "--arch", OTHER)
    by = f"TCG on {os.uname().machine}"
    assert f"a virtual machine by {by}" in said

    (diagnosis,) = study.json("doctor", "--arch", OTHER)
    assert diagnosis["problems"] == []
    assert diagnosis["emulation"] == by
    assert sorted(diagnosis["offered"]) == sorted(FEW)  # the machine-scoped ones, too

    collect = ("collect", "--arch", OTHER, "--samples", "8", "--workload", "slt")
    process = study.start(*collect)
    wait_for(lambda: len(study.trials("collect")) >= 3, "three trials")
    os.kill(int(Path(f"/run/intop/lab/{name}/host-lb/qemu.pid").read_text()), signal.SIGKILL)
    _, said = process.communicate(timeout=60)  # the kernel itself would hope for 15 minutes
    assert process.returncode == 1
    assert f"{name}-lb: the SSH connection" in said
    before = len(study.trials("collect"))
    out, _ = study.run("lab", "status")
    assert "lb: the guest does not run any more" in out

    study.run("lab", "up", "--arch", OTHER)
    # What was once chosen stays in the kernel's list of what all may choose: no other condition.
    balancer = connect(lab.cluster(name).load_balancer)
    for choice in ("htcp", "cubic"):
        output(balancer, f"sysctl -w net.ipv4.tcp_congestion_control={choice}")
    assert "htcp" in output(balancer, "sysctl -n net.ipv4.tcp_allowed_congestion_control")
    balancer.close()
    study.run(*collect)
    found = study.trials("collect")
    assert len({position for position, _, _ in found}) == 10
    assert before <= len(found) <= 12  # at most the trial that was lost is there twice
    assert {one["machine"] for one in conditions(study.folder)} <= set(MACHINES[OTHER])
    assert {one["emulation"] for one in conditions(study.folder)} == {by}

    study.run("lab", "down")
    assert traces(name) == []
