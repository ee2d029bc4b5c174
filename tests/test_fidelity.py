"""The benchmark that holds the engine against wrk2, as far as that goes without a wrk2."""

import sys
from pathlib import Path

import pytest

from benchmarks import fidelity
from benchmarks.fidelity import Run
from intop.domain.histogram import Histogram
from intop.hosts.load.tools import parse_output, planned_run_s
from intop.hosts.load.wrk2 import calibration_s
from loads import ENGINE, WRK2, edited

BOTH = """\
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%  930.00us
 99.000%    2.35ms
 99.900%    5.49ms
----------------------------------------------------------

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts))
 50.000%  180.00us
 75.000%  200.00us
 99.000%    1.25ms
 99.900%    1.05s
100.000%    1.00m

  Detailed Percentile spectrum:
       0.047     0.000000            1         1.00
"""


def run_of(*latencies_ms: float, sent_ms: tuple[float, ...] = (), stalled_ms: float = 0.0) -> Run:
    pairs = [(round(1000 * latency), 1) for latency in latencies_ms]
    return Run(Histogram.from_pairs(pairs), 5.0, stalled_ms, sent_ms)


def test_latencies_from_sent_time_are_not_those_from_due_time() -> None:
    assert fidelity.sent_ms(BOTH) == pytest.approx((0.18, 1.25, 1050.0))


def test_a_wrk2_that_prints_no_uncorrected_latencies_is_named() -> None:
    with pytest.raises(SystemExit, match="no uncorrected latencies"):
        fidelity.sent_ms(BOTH.partition("-----")[0])


def test_the_floor_is_the_median_difference_of_p50() -> None:
    runs = [run_of(due, sent_ms=(0.2, 1.0, 2.0)) for due in (0.9, 1.0, 1.7)]
    assert fidelity.floor_ms(runs) == pytest.approx(0.8)


def test_within_is_five_percent_or_half_a_millisecond() -> None:
    assert fidelity.within(0.1, 0.6)
    assert not fidelity.within(0.1, 0.7)
    assert fidelity.within(96, 100)
    assert not fidelity.within(94, 100)


def test_theory_is_a_uniform_latency_over_the_stall() -> None:
    # 5 s: P99 leaves out 50 ms and P99.9 5 ms of a stall of 200 ms; P50 lies before it.
    runs = [run_of(1.0, stalled_ms=200.0)]
    assert [fidelity.expected(q, runs) for q in (50.0, 99.0, 99.9)] == ["", "150", "195"]


def test_what_is_compared_is_less_the_floor() -> None:
    ours, theirs = run_of(1.2), run_of(3.0, sent_ms=(0.5, 0.6, 0.7))
    rows = list(fidelity.compared("8000", [ours], [theirs], 1.5))
    assert rows[0][4:7] == ["1.50", "1.50", "-0.30"]
    assert [row[7] for row in rows] == ["yes"] * 3
    assert [row[7] for row in fidelity.compared("8000", [ours], [theirs], 0.5)] == ["**no**"] * 3


def test_an_interval_of_the_median_needs_six_pairs() -> None:
    assert fidelity.interval([1, 2, 3, 4, 5]) == ""
    assert fidelity.interval([3, 1, 2, 6, 4, 5]) == " (+1.00 to +6.00)"
    assert fidelity.interval([*range(1, 10)]) == " (+2.00 to +8.00)"


def test_the_engine_sees_a_planted_stall_in_full(tmp_path: Path) -> None:
    # Lower bounds only: on a busy machine more is late, and never less.
    engine = fidelity.found("engine", "luajit")
    with fidelity.nginx(tmp_path) as (server, url):
        load = fidelity.load_of(url, 1000, 2)
        run = fidelity.measured(engine, load, tmp_path, server, 200.0)
    assert run.histogram.max_ms > 0.9 * run.stalled_ms
    for late_ms in (20, 100):
        due = (run.stalled_ms - late_ms) / 1000 / run.duration_s
        assert fidelity.share_above(run.histogram, late_ms) > 0.8 * due


def test_both_tools_count_as_many_seconds() -> None:
    load = fidelity.load_of("http://127.0.0.1:1", 1000, 5)
    by_wrk2 = planned_run_s(WRK2, load) - calibration_s(load.connections, load.threads)
    assert load.duration_s == pytest.approx(by_wrk2, abs=0.001)
    text = edited("wrk2-slt.txt", lambda data: data.update(duration_us=15_000_000))
    assert load.duration_s == pytest.approx(parse_output(text, WRK2, load).duration_s, abs=0.001)
    assert f"--duration {load.duration_s:g} " in fidelity.command(ENGINE, load, "/d")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--wrk2", "/nowhere/wrk2"], "wrk2 is not at '/nowhere/wrk2': build it"),
        (["--wrk2", "luajit"], "luajit is that of engine: give the one of wrk2 by --wrk2 PATH"),
        (["--wrk2", "true"], "true is no load tool: give the one of wrk2 by --wrk2 PATH"),
        (
            ["--engine", "/nowhere/luajit"],
            "engine is not at '/nowhere/luajit': apt-get install luaj",
        ),
        (
            ["--engine", "true"],
            "true is no load tool: give the one of engine by --engine PATH",
        ),
    ],
)
def test_a_missing_or_wrong_tool_is_named(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["fidelity.py", *words])
    with pytest.raises(SystemExit, match=message):
        fidelity.main()
