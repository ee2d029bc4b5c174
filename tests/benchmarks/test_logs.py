"""Made-up logs have the traffic that they are said to have, and what benchmarks hold against it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import learned, log_reading, logs, planted_logs
from benchmarks.harness import ask
from benchmarks.learned import Held, missed_of, moved, number_from_a_ten, weights_distance
from benchmarks.logs import Log, learned_study
from benchmarks.planted_logs import Plan, constant, is_right
from benchmarks.recorded_lateness import Lateness, RecordedLateness
from intop.config.study import Study
from intop.domain.recording import MOST_WINDOWS, Slots, windows
from intop.domain.stats import Interval
from intop.domain.workload import ALIKE
from intop.lab.texts import LOG_FORMAT
from intop.traffic.log_format import format_of
from intop.traffic.profile import Profile, profile_of

HEAD = '[study]\nname = "a"\nstore = "a.db"\n[cluster.native]\nlab = "a"\n'


def profile(log: Log) -> Profile:
    parse = format_of(log.line_format).parse
    return profile_of(("a.log:1", parse(line)) for line in log.lines)


def study(folder: Path, log: Log) -> Study:
    return learned_study(folder, log, HEAD)


def test_the_shapes_are_read_whole_and_are_as_bursty_as_they_are_said() -> None:
    nasa, epa, own = (profile(make(300)) for make in (logs.nasa, logs.epa, logs.json_nginx))
    assert [p.unreadable for p in (nasa, epa, own)] == [0, 0, 0]
    assert nasa.dispersion(1) is None
    assert nasa.rate_rps == pytest.approx(20, rel=0.1)
    tenth, second = epa.dispersion(1), epa.dispersion(10)
    assert tenth is not None
    assert second is not None
    assert second > 3 > tenth > 1.3
    assert epa.rate_rps == pytest.approx(logs.EPA_RPS, rel=0.05)
    assert profile(logs.epa(60, visits=50)).rate_rps == pytest.approx(10 * logs.EPA_RPS, rel=0.05)
    assert own.requests_per_connection == pytest.approx(6, rel=0.15)


def test_both_planted_logs_have_the_same_rate_and_other_connections() -> None:
    kept, short = profile(logs.idle(120)), profile(logs.bursts(120))
    assert kept.rate_rps == pytest.approx(100, rel=0.03)
    assert short.rate_rps == pytest.approx(100, rel=0.1)
    assert short.requests_per_connection == 1
    assert (kept.requests_per_connection or 0) > 50
    assert kept.median_idle_s == pytest.approx(0.7, abs=0.02)
    # A burst is within 15 ms, so in one or two tenths of a second.
    assert logs.BURST // 2 <= (short.peak_tenth or 0) <= 2 * logs.BURST


def test_the_learned_load_of_bursts_has_connections_for_a_burst(tmp_path: Path) -> None:
    workload = study(tmp_path, logs.bursts(60)).workloads[logs.NAME]
    assert workload.connections >= logs.BURST
    (clients,) = workload.clients
    assert clients.requests_per_connection == 1
    hand = constant(workload)
    assert (hand.arrivals, hand.clients, hand.rate_rps) == ("constant", (ALIKE,), workload.rate_rps)


def test_weights_are_held_against_the_log(tmp_path: Path) -> None:
    log = logs.epa(120)
    workload = study(tmp_path, log).workloads[logs.NAME]
    path = tmp_path / "access.log"
    assert weights_distance(path, log, workload) < 0.01
    even = replace(workload, paths=tuple(dict.fromkeys(workload.paths)))
    assert weights_distance(path, log, even) > 0.1


def test_a_replay_begins_at_a_ten_and_its_log_where_the_first_slot_was_due(tmp_path: Path) -> None:
    workload = study(tmp_path, logs.epa(60)).workloads[logs.NAME]
    assert workload.recording is not None
    load = replace(workload, duration_s=60, rate_rps=workload.recording.rate_rps)
    number = number_from_a_ten(load)
    lengths = workload.recording.seconds, 60
    (begin,) = windows(*lengths, MOST_WINDOWS, seed=learned.SEED, number=number)
    assert begin % 10 < 0.1
    about = '10.0.0.2 - - [27/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "-"'
    text = f"{about} 1795000000.500 3 1 0.004\nno line\n{about} 1795000001.750 3 2 0.004\n"
    assert format_of(LOG_FORMAT).parse(text.splitlines()[0]) is not None
    slots = Slots(np.array([250_000, 1_500_000]), np.array([0, 0]))
    first, second = moved(text, slots).splitlines()
    assert first == f'{logs.START + 0.25:.3f} 3 1 "GET /a HTTP/1.1" 200 5 0.004'
    assert second.startswith(f"{logs.START + 1.5:.3f} ")


def test_what_a_learned_load_misses_is_named() -> None:
    good = Held({"index of dispersion over 1 s": (4.0, 4.7)}, 0.01, 0.01, 0.02, None)
    assert list(missed_of(good)) == []
    bad = Held(
        {
            "index of dispersion over 1 s": (4.0, 4.9),
            "index of dispersion over 10 s": (4.0, None),
            learned.CONNECTION: (6.0, 5.3),
            "rate": (20.0, 40.0),
        },
        *(0.03, 0.03, 0.02, None),
    )
    assert list(missed_of(bad)) == [
        "index of dispersion over 1 s",
        "index of dispersion over 10 s",
        learned.CONNECTION,
        "weights",
        "the replay's mix",
    ]


def plan(*keys: str, is_gain: bool = True) -> Plan:
    return Plan(dict.fromkeys(keys, "1"), Interval(1.5, 1.2, 1.8), is_gain)


IDLE, BACKLOG = "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_max_syn_backlog"


def test_a_plan_is_right_with_its_logs_own_key_and_a_gain() -> None:
    assert is_right("idle learned 1", plan(IDLE, "net.core.somaxconn"))
    assert not is_right("idle learned 1", plan(IDLE, is_gain=False))
    assert not is_right("idle learned 1", plan(BACKLOG))
    assert is_right("bursts constant 1", plan(BACKLOG))


def test_constant_loads_that_find_both_break_the_claim(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(constant_bursts: Plan) -> str | int | None:
        def measure(_: object, cell: tuple[str, str, int]) -> Plan:
            if cell[:2] == ("bursts", "constant"):
                return constant_bursts
            return plan(IDLE if cell[0] == "idle" else BACKLOG)

        monkeypatch.setattr(planted_logs.PlantedLogs, "measure", measure)
        results = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        words = [f"--results={results}", f"--store={tmp_path}"]
        return ask("planted-logs", planted_logs.PlantedLogs, words)

    assert answer(plan(IDLE)) is None
    assert "| bursts constant 1 | 1.50 (1.20 to 1.80) |" in capsys.readouterr().out
    assert answer(plan(BACKLOG)) == "not as it should be: the constant rate finds both, seed 1"


def test_lateness_is_compared_with_the_slowest_constant_round() -> None:
    question = RecordedLateness.__new__(RecordedLateness)
    constant_runs = {
        f"constant {n}": Lateness(100, 0.02, p99, 1) for n, p99 in ((1, 0.1), (2, 0.3))
    }
    fine = {f"recorded {n}": Lateness(100, 0.02, 0.25, 9) for n in (1, 2)}
    assert question.missed(constant_runs | fine) == []
    late = {name: replace(run, p99_ms=0.31) for name, run in fine.items()}
    assert len(question.missed(constant_runs | late)) == 1


def test_a_reading_has_its_time_and_its_own_memory(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    log_reading.write_log(path, 2000)
    read = profile(Log("combined", path.read_text().splitlines()))
    assert (read.counted, read.unreadable) == (2000, 0)
    assert len(read.paths) > 500
    script = "import time; a = bytearray(60_000_000); time.sleep(0.2)"
    cost = log_reading.cost_of(("python3", "-c", script), tmp_path)
    assert cost.seconds > 0.2
    assert 60 < cost.peak_mb < 110
