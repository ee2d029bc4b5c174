"""Measuring, on hosts that answer from captured output."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.cluster import HostAddress
from intop.domain.workload import Workload
from intop.errors import CommandError, LoadKilledError, LoadOutputError
from intop.hosts.host import Completed
from intop.hosts.load import LoadTool
from intop.hosts.measure import measure
from intop.hosts.metrics import COUNTERS, PROCESSES
from intop.hosts.rig import Rig
from samples import LocalHost, cluster

DATA = Path(__file__).parents[1] / "data"
BEFORE = (DATA / "hosts" / "counters-x86-namespace.txt").read_text()
AFTER = (DATA / "hosts" / "counters-x86-namespace-later.txt").read_text()
WRK = LoadTool(name="wrk", path="/usr/bin/wrk", version="4.1.0")
WRK2 = LoadTool(name="wrk2", path="/usr/bin/wrk2", version="4.0.0")
LOADS = {tool: (DATA / "load" / f"{tool}-slt.txt").read_text() for tool in ("wrk", "wrk2")}
WORKLOAD = Workload(
    name="slt", rate_rps=1500, connections=32, threads=2, duration_s=3, warmup_s=1, timeout_s=10
)


class Actor(LocalHost):
    """A host that plays a part: answers by what a command contains, and keeps a log for all."""

    def __init__(self, address: HostAddress, log: list[tuple[str, str]]) -> None:
        self.address = address
        self._log = log
        self.answers: dict[str, Callable[[], Completed]] = {}
        self.counters = [BEFORE, AFTER]

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        self._log.append((self.address.name, command))
        for part, answer in self.answers.items():
            if part in command:
                return answer()
        if command in (COUNTERS, PROCESSES):
            return said(self.counters.pop(0))
        return said("")


def said(text: str, exit_code: int = 0, stderr: str = "") -> Completed:
    return Completed(exit_code, text, stderr)


class Stage:
    """A cluster of three actors."""

    def __init__(self, load_output: str = LOADS["wrk"], programs: tuple[str, ...] = ()) -> None:
        self.log: list[tuple[str, str]] = []
        self.cluster = cluster(url="http://127.0.0.1:18080", programs=programs)
        self.hosts = {a.name: Actor(a, self.log) for a in self.cluster.hosts}
        self.hosts["lg"].answers["wrk"] = lambda: said(load_output)
        self.rig = Rig(self.cluster, tuple(self.hosts.values()))

    def loads(self) -> list[str]:
        return [command for name, command in self.log if name == "lg" and "wrk" in command]


# Measuring ----------------------------------------------------------------------------------------


def test_a_measurement_has_the_load_and_every_hosts_metrics() -> None:
    stage = Stage()
    found = measure(stage.rig, WRK, WORKLOAD, seed=7)
    assert 4646 == found.result.requests
    assert {"lg", "lb", "b1"} == set(found.metrics)
    assert 1 - 165 / 205 == pytest.approx(found.metrics["lb"].cpu)


HOG = "9 (a hog) R 1 1 1 0 -1 4194624 0 0 0 0 41 0 0 0 20 0 1 0 77 0\n"
APP = "8 (php-fpm) R 1 1 1 0 -1 4194624 0 0 0 0 82 0 0 0 20 0 1 0 66 0\n"
NGINX = "7 (nginx) R 1 1 1 0 -1 4194624 0 0 0 0 82 0 0 0 20 0 1 0 55 0\n"


@pytest.mark.parametrize(
    ("programs", "backend", "program"),
    [((), None, ""), (("php-fpm",), 0.2, "a hog"), (("node",), 0.6, "php-fpm")],
)
def test_what_other_programs_took_is_known_where_ours_are(
    programs: tuple[str, ...], backend: float | None, program: str
) -> None:
    """A backend has an application, and only who runs the cluster knows what it is called."""
    stage = Stage(programs=programs)
    head, _, clock = AFTER.rstrip().rpartition("\n")
    for name, processes in {"lg": "", "lb": NGINX + HOG, "b1": NGINX + APP + HOG}.items():
        stage.hosts[name].counters = [BEFORE, f"{head}\n{processes}{clock}\n"]
    found = measure(stage.rig, WRK, WORKLOAD, seed=7).metrics
    assert (0.0, "") == (found["lg"].foreign_cpu, found["lg"].foreign_program)
    assert (pytest.approx(0.2), "a hog") == (found["lb"].foreign_cpu, found["lb"].foreign_program)
    assert program == found["b1"].foreign_program
    assert pytest.approx(backend) == found["b1"].foreign_cpu


@pytest.mark.parametrize(
    ("threads", "expected"),
    [(1, 1.5 / 3.090841), (2, 1.5 / 5.1)],
    ids=["a processor for each thread", "no more than the host has"],
)
def test_the_load_tools_cpu_is_a_share_of_what_its_threads_could_use(
    threads: int, expected: float
) -> None:
    stage = Stage(LOADS["wrk"] + "0m0.00s 0m0.00s\n0m1.00s 0m0.50s\n")
    # 510 ticks more: 5.1 s of processors, and the load took 3.09 s.
    stage.hosts["lg"].counters = [BEFORE, BEFORE.replace("cpu  129667", "cpu  130177")]
    workload = replace(WORKLOAD, connections=threads, threads=threads)
    found = measure(stage.rig, WRK, workload, seed=7).metrics
    assert pytest.approx(expected, rel=1e-3) == found["lg"].load_cpu
    assert {None} == {found[name].load_cpu for name in ("lb", "b1")}


def test_in_a_labs_guest_no_processes_are_listed() -> None:
    """There are only its own, and an emulated host pays for each of them."""
    stage = Stage(programs=("intop-app",))
    stage.rig = Rig(replace(stage.cluster, emulation="TCG on x86_64"), stage.rig.hosts)
    found = measure(stage.rig, WRK, WORKLOAD, seed=7).metrics
    assert [COUNTERS] * 2 == [command for name, command in stage.log if name == "lb"]
    assert {"lg": 0.0, "lb": None, "b1": 0.0} == {n: m.foreign_cpu for n, m in found.items()}


def test_where_the_shell_says_no_times_the_load_tools_share_is_not_known() -> None:
    assert measure(Stage().rig, WRK, WORKLOAD, seed=7).metrics["lg"].load_cpu is None


def test_wrk_warms_up_with_another_seed_before_the_counters_are_read() -> None:
    stage = Stage()
    measure(stage.rig, WRK, WORKLOAD, seed=7)
    warm_up, counted = stage.loads()
    assert "-d 1 " in warm_up
    assert "--seed 8" in warm_up
    assert "-d 3 " in counted
    assert "--seed 7" in counted
    commands = [command for name, command in stage.log if name == "lg"]
    assert [warm_up, PROCESSES, counted, PROCESSES] == commands


def test_only_the_counted_load_is_pruned() -> None:
    stage = Stage()
    measure(stage.rig, WRK, WORKLOAD, seed=7, prune_above_ms=450)
    assert [False, True] == ["--late-ms 450.000" in load for load in stage.loads()]


def test_the_load_tools_share_of_a_stopped_load_is_that_of_the_time_it_ran() -> None:
    *lines, last = LOADS["wrk"].splitlines()
    stopped = json.dumps(json.loads(last) | {"stopped": True, "late": 50, "duration_us": 500_000})
    text = "\n".join([*lines, stopped, "0m0.00s 0m0.00s", "0m0.10s 0m0.05s", ""])
    workload = replace(WORKLOAD, connections=2, threads=2)
    found = measure(Stage(text).rig, WRK, workload, seed=7, prune_above_ms=450)
    assert 0.5 == found.result.stopped_after_s
    assert pytest.approx(0.15 / (2 * 0.5)) == found.metrics["lg"].load_cpu


def test_wrk2_needs_no_warm_up_since_it_calibrates() -> None:
    stage = Stage(LOADS["wrk2"])
    measure(stage.rig, WRK2, WORKLOAD, seed=7)
    assert 1 == len(stage.loads())


def test_the_load_ends_by_itself_when_nobody_listens_any_more() -> None:
    stage = Stage()
    measure(stage.rig, WRK, WORKLOAD, seed=7)
    assert ["timeout 61 sh -c", "timeout 63 sh -c"] == [c[:16] for c in stage.loads()]


def test_a_seed_of_any_size_is_one_that_the_scripts_take() -> None:
    stage = Stage()
    measure(stage.rig, WRK, WORKLOAD, seed=2**32 - 1)
    assert ["--seed 0", "--seed 4294967295"] == [
        c[c.index("--seed") :].rpartition(" --threads")[0] for c in stage.loads()
    ]


def test_a_load_tool_that_fails_is_told_of_with_the_host() -> None:
    stage = Stage()
    stage.hosts["lg"].answers["wrk"] = lambda: said("", 1, "unable to connect: refused\n")
    with pytest.raises(CommandError, match=r"^lg: wrk ended with 1: unable to connect: refused$"):
        measure(stage.rig, WRK, WORKLOAD, seed=7)


def test_a_load_that_was_killed_is_no_failure_of_its_own() -> None:
    stage = Stage()
    stage.hosts["lg"].answers["wrk"] = lambda: said("", 137, "Killed\n")
    with pytest.raises(LoadKilledError, match=r"^lg: wrk was ended by signal 9 while it sent"):
        measure(stage.rig, WRK, WORKLOAD, seed=7)


def test_output_that_is_not_our_scripts_is_told_of() -> None:
    with pytest.raises(LoadOutputError, match="expected one line of JSON, found 0"):
        measure(Stage("Running 3s test\n").rig, WRK, WORKLOAD, seed=7)


def test_counters_that_cannot_be_read_are_told_of_with_the_host() -> None:
    stage = Stage()
    stage.hosts["b1"].counters = ["nothing", "nothing"]
    with pytest.raises(CommandError, match=r"^b1: its counters can't be read"):
        measure(stage.rig, WRK, WORKLOAD, seed=7)
