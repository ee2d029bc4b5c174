"""Measuring, on hosts that answer from captured output."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.loads import ENGINE, WRK2, captured, edited
from builders.trials import cluster
from intop.domain.cluster import HostAddress
from intop.domain.histogram import Histogram
from intop.domain.recording import Slots
from intop.domain.workload import Clients, Workload
from intop.errors import CommandError, LoadKilledError, LoadOutputError
from intop.hosts.host import Completed
from intop.hosts.load.types import LoadTool
from intop.hosts.measure import START_IN_S, measure
from intop.hosts.rig import Rig, load_directory
from kit.local_host import LocalHost, Told

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
BEFORE = (HOSTS / "counters-x86-namespace.txt").read_text()
AFTER = (HOSTS / "counters-x86-namespace-later.txt").read_text()
OF_ENGINE, OF_WRK2 = (captured(f"{tool}-slt.txt")[0] for tool in ("engine", "wrk2"))
READING = "a reading of counters"
WORKLOAD = Workload(
    name="slt",
    kind="slt",
    rate_rps=1500,
    connections=32,
    threads=2,
    duration_s=3,
    warmup_s=1,
    timeout_s=10,
)


class Actor(LocalHost):
    """A host that plays a part: answers by what a command contains, and keeps a log for all."""

    def __init__(self, address: HostAddress, log: list[tuple[str, str]]) -> None:
        self.address = address
        self._log = log
        self.answers: dict[str, Callable[[], Completed]] = {}
        self.counters = [BEFORE, AFTER]
        self.asked: list[str] = []
        self.files: dict[str, str] = {}

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        self._log.append((self.address.name, command))
        for part, answer in self.answers.items():
            if part in command:
                return answer()
        return said("")

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        self.files |= {f"{directory}/{name}": text for name, text in files.items()}

    def converse(self, command: str) -> Told:
        return Told(self.address.name, self._counters, self.asked)

    def _counters(self) -> str:
        self._log.append((self.address.name, READING))
        return self.counters.pop(0)


def said(text: str, exit_code: int = 0, stderr: str = "") -> Completed:
    return Completed(exit_code, text, stderr)


class Stage:
    """A cluster of actors: one in each role, and further load generators by their names."""

    def __init__(
        self, load_output: str = OF_ENGINE, programs: tuple[str, ...] = (), more: str = ""
    ) -> None:
        self.log: list[tuple[str, str]] = []
        others = tuple(
            HostAddress(name=name, role="load-generator", hostname=name) for name in more.split()
        )
        self.cluster = cluster(
            url="http://127.0.0.1:18080", programs=programs, more_generators=others
        )
        self.hosts = {a.name: Actor(a, self.log) for a in self.cluster.hosts}
        for generator in self.cluster.load_generators:
            self.says(generator.name, said(load_output))
        for host in self.hosts.values():
            host.answers["date"] = lambda: said(f"{time.time()}\n")
        self.rig = Rig(self.cluster, tuple(self.hosts.values()))

    def says(self, name: str, answer: Completed) -> None:
        """What the load tool of a host says."""
        self.hosts[name].answers["slt.lua"] = lambda: answer

    def loads(self, name: str = "lg") -> list[str]:
        return [command for host, command in self.log if host == name and "slt.lua" in command]


# Measuring ----------------------------------------------------------------------------------------


def test_a_measurement_has_the_load_and_every_hosts_metrics() -> None:
    stage = Stage()
    result = measure(stage.rig, ENGINE, WORKLOAD, seed=7)
    assert result.result.requests == 4500
    assert set(result.metrics) == {"lg", "lb", "b1"}
    assert pytest.approx(result.metrics["lb"].cpu) == 1 - 165 / 205


def test_what_the_generator_says_of_itself_is_in_its_metrics() -> None:
    text = edited("engine-slt.txt", lambda d: d.update(lags=[[2500, 9]], clock_step_us=-70_000))
    result = measure(Stage(text).rig, ENGINE, WORKLOAD, seed=7).metrics
    assert (result["lg"].lag_ms, result["lg"].clock_step_s) == (
        pytest.approx(2.5, rel=0.001),
        -0.07,
    )
    assert {result[n].lag_ms for n in ("lb", "b1")} == {None}
    assert {result[n].clock_step_s for n in ("lb", "b1")} == {None}


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
    result = measure(stage.rig, ENGINE, WORKLOAD, seed=7).metrics
    assert (result["lg"].foreign_cpu, result["lg"].foreign_program) == (0.0, "")
    assert (result["lb"].foreign_cpu, result["lb"].foreign_program) == (pytest.approx(0.2), "a hog")
    assert program == result["b1"].foreign_program
    assert result["b1"].foreign_cpu == pytest.approx(backend)


def busy(data: dict[str, Any]) -> None:
    data.update(cpu_us=1_500_000, run_us=4_000_000)


@pytest.mark.parametrize(
    ("text", "tool", "expected"),
    [
        (edited("engine-slt.txt", busy), ENGINE, 1.5 / 4),
        # Two threads, and a run of 14 s.
        (f"{OF_WRK2}0m0.00s 0m0.00s\n0m1.00s 0m0.50s\n", WRK2, 1.5 / 5.1),
    ],
    ids=["a processor for each thread", "no more than the host has"],
)
def test_the_load_tools_cpu_is_a_share_of_what_its_threads_could_use(
    text: str, tool: LoadTool, expected: float
) -> None:
    stage = Stage(text)
    # 510 ticks more: 5.1 s of processors.
    stage.hosts["lg"].counters = [BEFORE, BEFORE.replace("cpu  129667", "cpu  130177")]
    result = measure(stage.rig, tool, WORKLOAD, seed=7).metrics
    assert result["lg"].load_cpu == pytest.approx(expected, rel=1e-3)
    assert {result[name].load_cpu for name in ("lb", "b1")} == {None}


def test_in_a_labs_guest_no_processes_are_listed() -> None:
    """There are only its own, and an emulated host pays for each of them."""
    stage = Stage(programs=("intop-app",))
    stage.rig = Rig(replace(stage.cluster, emulation="TCG on x86_64"), stage.rig.hosts)
    result = measure(stage.rig, ENGINE, WORKLOAD, seed=7).metrics
    assert [command for name, command in stage.log if name == "lb"] == [READING] * 2
    # Neither are there samples in between.
    assert stage.hosts["lb"].asked == ["- 0 400000", "- 0 0"]
    assert stage.hosts["lg"].asked == ["ps 9 400000", "ps 0 0"]
    assert {n: m.foreign_cpu for n, m in result.items()} == {"lg": 0.0, "lb": None, "b1": 0.0}


def test_where_the_shell_says_no_times_the_load_tools_share_is_not_known() -> None:
    result = measure(Stage(OF_WRK2).rig, WRK2, WORKLOAD, seed=7).metrics
    assert result["lg"].load_cpu is None


@pytest.mark.parametrize(("tool", "text"), [(ENGINE, OF_ENGINE), (WRK2, OF_WRK2)])
def test_counters_are_read_around_the_one_load(tool: LoadTool, text: str) -> None:
    """The engine warms up on the connections that it measures with, and wrk2 calibrates."""
    stage = Stage(text)
    measure(stage.rig, tool, WORKLOAD, seed=7)
    (load,) = stage.loads()
    assert ("--warmup 1 " in load) == (tool is ENGINE)
    assert "--seed 7" in load
    commands = [command for name, command in stage.log if name == "lg"]
    assert [READING, load, READING] == commands


def test_a_load_is_pruned_where_that_is_asked_for() -> None:
    for limit_ms, expected in ((None, False), (450, True)):
        stage = Stage()
        measure(stage.rig, ENGINE, WORKLOAD, seed=7, prune_above_ms=limit_ms)
        (load,) = stage.loads()
        assert expected == ("--late-ms 450.000 --late-count 45 " in load)


def test_answers_are_checked_where_it_is_known_what_they_have_to_be() -> None:
    for expected, is_checked in (({}, False), ({"": "expected-0.txt"}, True)):
        stage = Stage()
        measure(stage.rig, ENGINE, WORKLOAD, seed=7, expected=expected)
        assert is_checked == ("--expect expected-0.txt " in stage.loads()[0])


def test_the_load_tools_share_of_a_stopped_load_is_that_of_the_time_it_ran() -> None:
    def stopped(data: dict[str, Any]) -> None:
        data.update(stopped=True, counted_us=500_000, run_us=1_500_000, cpu_us=300_000)

    stage = Stage(edited("engine-slt.txt", stopped))
    result = measure(stage.rig, ENGINE, WORKLOAD, seed=7, prune_above_ms=450)
    assert result.result.stopped_after_s == 0.5
    assert result.metrics["lg"].load_cpu == pytest.approx(0.3 / 1.5)


@pytest.mark.parametrize(
    ("tool", "text", "expected"), [(ENGINE, OF_ENGINE, "67"), (WRK2, OF_WRK2, "75")]
)
def test_the_load_ends_by_itself_when_nobody_listens_any_more(
    tool: LoadTool, text: str, expected: str
) -> None:
    stage = Stage(text)
    measure(stage.rig, tool, WORKLOAD, seed=7)
    (load,) = stage.loads()
    assert load.startswith(f"timeout {expected} sh -c ")


def test_a_load_runs_on_the_processors_of_its_generator() -> None:
    stage = Stage()
    generator = stage.hosts["lg"]
    generator.address = replace(generator.address, load_cpus="2-3,5")
    measure(stage.rig, ENGINE, WORKLOAD, seed=7)
    (load,) = stage.loads()
    assert load.startswith("timeout 67 taskset -c 2-3,5 sh -c ")


def test_a_load_tool_that_fails_is_told_of_with_the_host() -> None:
    stage = Stage()
    stage.says("lg", said("", 1, "unable to connect: refused\n"))
    with pytest.raises(CommandError, match=r"^lg: engine ended with 1: unable to connect: refused"):
        measure(stage.rig, ENGINE, WORKLOAD, seed=7)


def test_a_load_that_was_killed_is_no_failure_of_its_own() -> None:
    stage = Stage()
    stage.says("lg", said("", 137, "Killed\n"))
    with pytest.raises(LoadKilledError, match=r"^lg: engine was ended by signal 9 while it sent"):
        measure(stage.rig, ENGINE, WORKLOAD, seed=7)


def test_a_load_that_could_not_begin_in_time_is_no_failure_of_a_configuration() -> None:
    stage = Stage()
    stage.says("lg", said("", 1, "engine.lua: --start-at has passed by 12 ms\n"))
    with pytest.raises(LoadKilledError, match=r"^lg: engine began too late to send the load: eng"):
        measure(stage.rig, ENGINE, WORKLOAD, seed=7)


def test_output_that_is_not_our_scripts_is_told_of() -> None:
    with pytest.raises(LoadOutputError, match="expected one line of JSON, found 0"):
        measure(Stage("Running 3s test\n").rig, ENGINE, WORKLOAD, seed=7)


def test_counters_that_cannot_be_read_are_told_of_with_the_host() -> None:
    stage = Stage()
    stage.hosts["b1"].counters = ["nothing", "nothing"]
    with pytest.raises(CommandError, match=r"^b1: its counters can't be read"):
        measure(stage.rig, ENGINE, WORKLOAD, seed=7)


# Several streams ----------------------------------------------------------------------------------

CLASSES = (
    Clients(name="people", share=0.75),
    Clients(name="bots", share=0.25, requests_per_connection=1),
)


def option(load: str, name: str) -> str:
    """The value of an option of the engine."""
    words = load.split()
    return words[words.index(f"--{name}") + 1]


def test_generators_and_classes_share_a_load_that_begins_at_once() -> None:
    stage = Stage(more="lg2")
    ahead_s = 500.0
    stage.hosts["lg2"].answers["date"] = lambda: said(f"{time.time() + ahead_s}\n")
    before = time.time()
    result = measure(stage.rig, ENGINE, replace(WORKLOAD, clients=CLASSES), seed=7)

    sent = {name: sorted(stage.loads(name), key=lambda one: option(one, "stream"))
            for name in ("lg", "lg2")}  # fmt: skip
    assert {name: [option(load, "stream") for load in loads] for name, loads in sent.items()} == {
        "lg": ["0", "2"],
        "lg2": ["1", "3"],
    }
    for loads in sent.values():
        assert [option(load, "rate") for load in loads] == ["562.500000", "187.500000"]
        assert [option(load, "connections") for load in loads] == ["12", "4"]
        assert [option(load, "streams") for load in loads] == ["4", "4"]
    # Each by its own clock.
    (here,), (there,) = ({float(option(load, "start-at")) for load in sent[n]} for n in sent)
    assert before + START_IN_S <= here <= time.time() + START_IN_S + 0.1
    assert ahead_s == pytest.approx(there - here, abs=0.1)

    assert result.result.requests == 4 * 4500
    assert (
        Histogram.merge(*[captured("engine-slt.txt")[1].histogram] * 4) == result.result.histogram
    )
    assert set(result.metrics) == {"lg", "lb", "lg2", "b1"}


def test_each_generator_gets_the_slots_of_its_own_streams() -> None:
    stage = Stage(more="lg2")
    slots = Slots(np.arange(0, 4_000_000, 50_000), np.arange(80) % 3)
    workload = replace(WORKLOAD, arrivals="recorded", clients=CLASSES)
    measure(stage.rig, ENGINE, workload, seed=7, slots=slots)
    lines: list[str] = []
    for name in ("lg", "lg2"):
        host = stage.hosts[name]
        asked = {f"{load_directory(host)}/{option(load, 'slots')}" for load in stage.loads(name)}
        assert asked == host.files.keys()
        assert len(asked) == 2
        lines += [line for text in host.files.values() for line in text.splitlines()]
    assert sorted(lines) == sorted(slots.text().splitlines())


def test_a_stream_without_any_slot_has_an_empty_file() -> None:
    stage = Stage(more="lg2")
    slots = Slots(np.array([0]), np.array([0]))
    measure(stage.rig, ENGINE, replace(WORKLOAD, arrivals="recorded"), seed=7, slots=slots)
    texts = [text for name in ("lg", "lg2") for text in stage.hosts[name].files.values()]
    assert sorted(texts) == ["", "0 1\n"]


def test_each_generator_has_metrics_of_its_own_streams() -> None:
    stage = Stage(more="lg2")
    for name, lag_us in (("lg", 100), ("lg2", 700)):
        text = edited(
            "engine-slt.txt",
            lambda d, lag_us=lag_us: d.update(
                lags=[[lag_us, 9]], cpu_us=lag_us * 1000, run_us=4_000_000
            ),
        )
        stage.says(name, said(text))
        stage.hosts[name].counters = [BEFORE, BEFORE.replace("cpu  129667", "cpu  135667")]
    result = measure(stage.rig, ENGINE, replace(WORKLOAD, clients=CLASSES), seed=7)
    # Two streams on each: two threads, 4 s long.
    assert [result.metrics[name].lag_ms for name in ("lg", "lg2")] == [0.1, 0.7]
    assert [pytest.approx(cpu / 4) for cpu in (0.1, 0.7)] == [
        result.metrics[name].load_cpu for name in ("lg", "lg2")
    ]
    assert result.result.lag_ms == 0.7
    # What each of them sent: their clients may be behind links of their own.
    expected = captured("engine-slt.txt")[1].histogram.percentile_ms(99)
    assert [result.metrics[n].p99_ms for n in ("lg", "lg2", "lb")] == [expected, expected, None]
    assert result.result.cpu_s == pytest.approx(2 * 0.1 + 2 * 0.7)
    assert {result.metrics[name].load_cpu for name in ("lb", "b1")} == {None}


def test_one_stream_begins_without_a_question_for_the_clock() -> None:
    stage = Stage()
    measure(stage.rig, ENGINE, WORKLOAD, seed=7)
    assert "--start-at" not in stage.loads()[0]
    assert not [command for _, command in stage.log if "date" in command]


def test_wrk2_can_not_be_told_when_to_begin() -> None:
    stage = Stage(OF_WRK2, more="lg2")
    result = measure(stage.rig, WRK2, WORKLOAD, seed=7)
    assert [len(stage.loads(name)) for name in ("lg", "lg2")] == [1, 1]
    assert not [command for _, command in stage.log if "date" in command]
    assert 2 * captured("wrk2-slt.txt")[1].requests == result.result.requests


def test_the_generator_that_fails_is_named() -> None:
    stage = Stage(more="lg2")
    stage.says("lg2", said("", 1, "out of memory\n"))
    with pytest.raises(CommandError, match=r"^lg2: engine ended with 1: out of memory"):
        measure(stage.rig, ENGINE, WORKLOAD, seed=7)
