"""wrk2: its command line, what it can't send, and what it really printed (tests/data/load)."""

import re
from typing import Any

import pytest

from builders.loads import CAPTURED, SLT, WRK2, captured, edited, load, of
from intop.domain.histogram import Histogram, bucket_us
from intop.domain.workload import Clients
from intop.errors import LoadOutputError
from intop.hosts.load.tools import command, parse_output, planned_run_s
from intop.hosts.load.wrk2 import calibration_s, parse, why_not

MS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
ERRORS = "wrk2-slt-errors.txt"

# What it is asked ---------------------------------------------------------------------------------


def test_whole_seconds_and_requests_are_rounded() -> None:
    words = command(WRK2, load(duration_s=2.2, timeout_s=1.5, rate_rps=800.6), "/tmp/i").split()
    results = [words[words.index(key) + 1] for key in ("-d", "--timeout", "-R")]
    assert results == ["13", "2", "801"]


def test_a_limit_is_nothing_that_it_knows() -> None:
    limited = load(prune_above_ms=450, prune_count=46, warmup_s=3, expected_file="e.txt")
    assert command(WRK2, load(), "/tmp/i") == command(WRK2, limited, "/tmp/i")


def test_what_every_request_has_is_for_its_script() -> None:
    clients = Clients(method="POST", body_bytes=7, headers=("A: b",))
    line = command(WRK2, load(clients=clients), "/tmp/i")
    assert line.endswith(
        " -- --seed 7 --threads 2 --paths paths.txt --method POST --body-bytes 7"
        " --header 'A: b' && times"
    )


@pytest.mark.parametrize(
    ("connections", "threads", "expected"), [(64, 2, 10.16), (400, 2, 11), (400, 8, 10.25)]
)
def test_calibration_grows_with_the_connections_of_a_thread(
    connections: int, threads: int, expected: float
) -> None:
    assert calibration_s(connections, threads) == pytest.approx(expected)


def test_planned_run_covers_calibration_and_counted_seconds() -> None:
    assert (planned_run_s(WRK2, load()), planned_run_s(WRK2, load(connections=400))) == (14, 14)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"clients": Clients(method="POST", body_bytes=9, headers=("A: b",))}, ""),
        ({"clients": Clients(lifetimes="geometric")}, ""),
        ({"arrivals": "poisson"}, "poisson arrivals"),
        ({"arrivals": "recorded"}, "recorded arrivals"),
        ({"clients": Clients(requests_per_connection=1)}, "requests_per_connection"),
        (
            {"clients": Clients(method="HEAD")},
            "HEAD, since it waits for a body that no answer to HEAD has",
        ),
        ({"clients": Clients(think_ms=5)}, "think_ms"),
        ({"clients": Clients(read_kb_per_s=5)}, "read_kb_per_s"),
        ({"clients": Clients(source="127.0.0.2")}, "source"),
        ({"clients": Clients(tls_resume=True)}, "tls_resume"),
        ({"clients": Clients(http="2")}, "HTTP/2"),
        ({"connections": 33}, "33 connections on 2 threads: it would leave out the remainder"),
        ({"connections": 1}, "1 connections on 2 threads: it would leave out the remainder"),
        ({"rate_rps": 0.4, "connections": 2}, "0.4 requests/s: its rate is a whole number"),
        (
            {"rate_rps": 3},
            (
                "32 connections at 3 requests/s: they are idle for longer than timeout_s (10), "
                "which it counts as timeouts"
            ),
        ),
    ],
)
def test_what_it_cannot_send_is_said(changes: dict[str, Any], expected: str) -> None:
    assert why_not(load(**changes)) == expected


# What it printed ----------------------------------------------------------------------------------


def failed(name: str) -> int:
    """The failed requests of the counted part."""
    return sum(captured(name)[1].errors.values())


def answered(name: str) -> Histogram:
    """The histogram without the failed requests, which stand at the timeout."""
    _, result = captured(name)
    counts = dict(result.histogram.pairs())
    if failed(name):
        counts[bucket_us(1_000_000 * round(CAPTURED[name][1].timeout_s))] -= failed(name)
    return Histogram.from_pairs((value, count) for value, count in counts.items() if count)


@pytest.mark.parametrize("name", of("wrk2"))
def test_percentiles_are_those_that_it_printed(name: str) -> None:
    text, _ = captured(name)
    histogram = answered(name)
    printed = re.findall(r"^ *([\d.]+)% +([\d.]+)(us|ms|s) *$", text, re.MULTILINE)
    assert len(printed) >= 4
    for q, number, unit in printed:
        # It rounds the rank in its own way, and prints two decimals.
        one_rank = 100 / histogram.total
        low = histogram.percentile_ms(max(0, float(q) - one_rank))
        high = histogram.percentile_ms(min(100, float(q) + one_rank))
        slack = 0.006 * MS[unit] + 0.001 * high
        assert low - slack <= float(number) * MS[unit] <= high + slack, q


@pytest.mark.parametrize("name", of("wrk2"))
def test_histogram_has_each_count_of_the_spectrum_that_it_printed(name: str) -> None:
    text, result = captured(name)
    histogram = answered(name)
    rows = re.findall(r"^ +([\d.]+) +[01]\.\d{6} +(\d+) +[\d.inf]+$", text, re.MULTILINE)
    assert len(rows) > 50
    expected = [(round(float(value) * 1000), int(count)) for value, count in rows]
    assert [(value, count_up_to(histogram, value)) for value, _ in expected] == expected
    total = re.search(r"Total count += +(\d+)", text)
    assert total is not None
    assert int(total[1]) == histogram.total
    assert int(total[1]) + failed(name) == result.histogram.total == result.requests


def count_up_to(histogram: Histogram, value_us: int) -> int:
    return sum(count for value, count in histogram.pairs() if value <= value_us)


@pytest.mark.parametrize("name", of("wrk2"))
def test_seconds_of_the_whole_run_are_those_that_it_printed(name: str) -> None:
    text, result = captured(name)
    printed = re.search(r"^ +\d+ requests in ([\d.]+)s,", text, re.MULTILINE)
    assert printed is not None
    assert result.run_s == pytest.approx(float(printed[1]), abs=0.006)


@pytest.mark.parametrize("name", of("wrk2"))
def test_achieved_rate_is_that_of_the_counted_seconds(name: str) -> None:
    _, its_load = CAPTURED[name]
    _, result = captured(name)
    assert result.achieved_rps == pytest.approx(its_load.rate_rps, rel=0.015)
    assert round(its_load.rate_rps) == result.offered_rps
    assert answered(name).total / result.duration_s == pytest.approx(result.achieved_rps)
    uncounted_s = calibration_s(its_load.connections, its_load.threads)
    expected_s = planned_run_s(WRK2, its_load) - uncounted_s
    assert result.duration_s == pytest.approx(expected_s, abs=0.11)


def test_errors_of_the_calibration_do_not_count() -> None:
    assert captured("wrk2-dlt.txt")[1].errors == {}
    # 451 in 15 s, of which 10.08 don't count: 1,968 of 6,002 answers came after them.
    assert {"status": round(451 * 1968 / 6002)} == captured(ERRORS)[1].errors


@pytest.mark.parametrize(
    ("run_requests", "errors", "expected"),
    [
        (1968, {"status": 60}, {"status": 60}),
        (4 * 1968, {"status": 60, "timeout": 8}, {"status": 15, "timeout": 2}),
        (4 * 1968, {"read": 1}, {}),
    ],
)
def test_errors_are_taken_as_evenly_spread_over_the_run(
    run_requests: int, errors: dict[str, int], expected: dict[str, int]
) -> None:
    def change(data: dict[str, Any]) -> None:
        data.update(requests=run_requests)
        data["errors"].update({"status": 0} | errors)

    assert parse(edited(ERRORS, change), CAPTURED[ERRORS][1]).errors == expected


def test_a_failed_request_counts_as_one_that_took_the_timeout() -> None:
    def change(data: dict[str, Any]) -> None:
        data.update(requests=1000, histogram=[[900, 1000]])
        data["errors"].update(status=20)

    result = parse(edited(ERRORS, change), CAPTURED[ERRORS][1])
    assert tuple(result.histogram.pairs()) == ((900, 1000), (1_000_447, 20))
    assert result.requests == 1020
    assert 1000 <= result.histogram.percentile_ms(99) <= 1001
    assert result.achieved_rps == pytest.approx(1000 / result.duration_s)


@pytest.mark.parametrize(("answers", "expected"), [(5880, 0), (5000, 880), (6000, 0)])
def test_what_was_due_and_is_in_no_number_is_told(answers: int, expected: int) -> None:
    # 3.92 s at 1,500 requests/s.
    text = edited(
        "wrk2-slt.txt",
        lambda data: data.update(
            duration_us=14_000_000, requests=answers, histogram=[[900, answers]]
        ),
    )
    assert parse(text, SLT).uncounted == expected


def test_a_stall_of_400_ms_is_in_the_tail() -> None:
    histogram = captured("wrk2-dlt-stall.txt")[1].histogram
    assert 300 < histogram.percentile_ms(99) < 400 < histogram.max_ms < 420


def test_it_can_not_say_how_late_it_was_itself() -> None:
    result = captured("wrk2-slt.txt")[1]
    assert (result.lag_ms, result.clock_step_s, result.stopped_after_s) == (None, None, None)


def test_a_run_without_any_answer_is_a_result() -> None:
    text = edited("wrk2-slt.txt", lambda data: data.update(requests=0, histogram=[]))
    result = parse_output(text, WRK2, SLT)
    assert (result.requests, result.achieved_rps, result.histogram.total) == (0, 0.0, 0)


def test_errors_without_any_answer_count_in_full() -> None:
    def change(data: dict[str, Any]) -> None:
        data.update(requests=0, histogram=[])
        data["errors"].update(connect=640)

    result = parse_output(edited("wrk2-slt.txt", change), WRK2, SLT)
    assert (result.errors, result.requests, result.achieved_rps) == ({"connect": 640}, 640, 0.0)
    assert result.histogram.percentile_ms(1) >= 10_000


# What is refused ----------------------------------------------------------------------------------


def test_each_thread_must_have_been_calibrated() -> None:
    text = captured("wrk2-slt.txt")[0].replace("Thread calibration", "", 1)
    with pytest.raises(LoadOutputError, match="wrk2 calibrated 1 of 2 threads"):
        parse_output(text, WRK2, SLT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"script": "dlt"}, "schema and script are (1, 'dlt'), not (1, 'slt')"),
        ({"schema": 2}, "schema and script are (2, 'slt'), not (1, 'slt')"),
        ({"requests": None}, "requests is None, not a whole number"),
        ({"bytes": -1}, "bytes is -1, not a whole number"),
        ({"errors": {"connect": 0}}, "read is None, not a whole number"),
        ({"errors": None}, "errors is None, not an object"),
        ({"histogram": None}, "histogram is None, not a list"),
        ({"histogram": [[1]]}, "histogram has [1], not a latency and a count"),
        ({"histogram": [[1, 0]]}, "(1, 0): not a latency"),
        ({"duration_us": 0}, "the run took 0.000 s and 10.080 s don't count"),
        ({"duration_us": 10_080_000}, "the run took 10.080 s and 10.080 s don't count"),
    ],
)
def test_unusable_output_says_what_was_found(changes: dict[str, Any], message: str) -> None:
    text = edited("wrk2-slt.txt", lambda data: data.update(changes))
    with pytest.raises(LoadOutputError, match="^" + re.escape(f"{WRK2.path}: {message}")):
        parse_output(text, WRK2, SLT)


def test_an_output_that_was_cut_off_is_refused() -> None:
    text, _ = captured("wrk2-slt.txt")
    with pytest.raises(LoadOutputError, match="the line of JSON is broken"):
        parse_output(text[: text.rindex("}") - 200], WRK2, SLT)
