"""The engine from our side: its command line, and what it really printed (tests/data/load)."""

import re
import shlex
from typing import Any

import pytest

from builders.loads import CAPTURED, ENGINE, SLT, captured, edited, load, of
from intop.domain.workload import Clients
from intop.errors import LoadOutputError
from intop.hosts.load.engine import (
    DRAIN_S,
    ERROR_KINDS,
    PENDING,
    parse,
    planned_run_s,
    script_words,
    words,
)
from intop.hosts.load.tools import parse_output
from intop.resources import shipped

ERRORS = "engine-slt-errors.txt"

# What it is asked ---------------------------------------------------------------------------------


def asked(**changes: Any) -> dict[str, str]:
    """The options of its command line by name; flags have the value ""."""
    output = words(ENGINE, load(**changes))
    assert [ENGINE.path, "engine.lua"] == output[:2]
    results: dict[str, str] = {}
    name = ""
    for word in output[2 : output.index("--")]:
        if word.startswith("--"):
            name = word
            assert name not in results
            results[name] = ""
        else:
            assert results[name] == ""
            results[name] = word
    return results


PLAIN = asked()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"rate_rps": 100 / 3}, {"--rate": "33.333333"}),
        ({"duration_s": 2.25, "warmup_s": 1.5}, {"--duration": "2.25", "--warmup": "1.5"}),
        ({"duration_s": 3600}, {"--duration": "3600"}),
        ({"timeout_s": 0.25, "connections": 33}, {"--timeout": "0.25", "--connections": "33"}),
        ({"arrivals": "poisson"}, {"--arrivals": "poisson"}),
        ({"only_path": "/one.html"}, {}),  # that is for the script
        ({"stream": 2, "streams": 3}, {"--stream": "2", "--streams": "3"}),
        ({"start_at": 1795245568.331601}, {"--start-at": "1795245568.331601"}),
        ({"expected_file": "expected-0.txt"}, {"--expect": "expected-0.txt"}),
        (
            {"prune_above_ms": 450.1234, "prune_count": 46},
            {"--late-ms": "450.123", "--late-count": "46"},
        ),
        ({"prune_count": 46}, {}),
        ({"clients": Clients(requests_per_connection=2.5)}, {"--requests": "2.5"}),
        (
            {"clients": Clients(requests_per_connection=100, lifetimes="geometric")},
            {"--requests": "100", "--geometric": ""},
        ),
        ({"clients": Clients(think_ms=250)}, {"--think": "0.25"}),
        ({"clients": Clients(read_kb_per_s=100)}, {"--read": "102400"}),
        ({"clients": Clients(tls_resume=True)}, {"--resume": ""}),
        ({"clients": Clients(http="2")}, {"--http": "2", "--concurrent": "1"}),
        (
            {"clients": Clients(http="2", streams_per_connection=9)},
            {"--http": "2", "--concurrent": "9"},
        ),
        ({"clients": Clients(source="127.0.0.2")}, {"--source": "127.0.0.2"}),
        # These are for the streams, which have rates and connections of their own.
        ({"clients": Clients(name="bots", share=0.2, connections=9)}, {}),
    ],
)
def test_what_differs_from_the_plain_load_is_said(
    changes: dict[str, Any], expected: dict[str, str]
) -> None:
    assert asked(**changes) == PLAIN | expected


def test_recorded_arrivals_have_their_slots_in_place_of_a_rate() -> None:
    recorded = asked(arrivals="recorded", slots="0 1\n", stream=2, streams=3)
    assert PLAIN.keys() - {"--rate"} | {"--slots"} == recorded.keys()
    assert (recorded["--arrivals"], recorded["--slots"]) == ("recorded", "slots-2.txt")


def test_a_closed_loop_has_no_rate() -> None:
    closed = asked(arrivals="closed")
    assert PLAIN.keys() - {"--rate"} == closed.keys()
    assert closed["--arrivals"] == "closed"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "--paths paths.txt"),
        ({"only_path": "/one.html"}, "--paths paths.txt --only /one.html"),
        ({"script": "dlt"}, "--path /dynamic"),
        ({"script": "dlt", "dynamic_path": "/d?a=1"}, "--path '/d?a=1'"),
        ({"clients": Clients(method="POST")}, "--paths paths.txt --method POST"),
        ({"clients": Clients(body_bytes=100)}, "--paths paths.txt --body-bytes 100"),
        (
            {"clients": Clients(headers=("A: b", "C: d e"))},
            "--paths paths.txt --header 'A: b' --header 'C: d e'",
        ),
    ],
)
def test_what_every_request_has_is_for_its_script(changes: dict[str, Any], expected: str) -> None:
    its_load = load(**changes)
    output = words(ENGINE, its_load)
    assert (
        expected
        == shlex.join(script_words(its_load))
        == shlex.join(output[output.index("--") + 1 :])
    )


def test_a_run_takes_its_warm_up_its_duration_and_some_time_for_late_answers() -> None:
    assert planned_run_s(load(warmup_s=2)) == 3 + 2 + 1.5
    # The script's text goes with each trial, and other waits make other trials.
    assert f"intop's are {DRAIN_S:g}\n" in shipped("lua").joinpath("engine.lua").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"url": "-x"}, "url '-x' would be read as an option"),
        ({"rate_rps": 0}, "rate_rps 0 is not a positive number"),
        ({"rate_rps": float("nan")}, "rate_rps nan is not a positive number"),
        ({"duration_s": -1}, "duration_s -1 is not a positive number"),
        ({"timeout_s": 0}, "timeout_s 0 is not a positive number"),
        ({"threads": 0}, "threads 0 is not in 1..1024"),
        ({"threads": 1025}, "threads 1025 is not in 1..1024"),
        ({"connections": 0}, "connections 0 is less than 1"),
        ({"prune_above_ms": 0}, "prune_above_ms 0 is not a positive number"),
        ({"seed": -1}, "seed -1 is not in 0..4294967295"),
        ({"seed": 2**32}, "seed 4294967296 is not in 0..4294967295"),
        ({"stream": 1}, "stream 1 is not in 0..0"),
        ({"stream": -1}, "stream -1 is not in 0..0"),
    ],
)
def test_a_load_is_refused_that_a_tool_would_send_differently(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        load(**changes)


# What it printed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", of("engine"))
def test_every_request_that_was_due_has_one_place(name: str) -> None:
    _, its_load = CAPTURED[name]
    _, result = captured(name)
    # The last slot is the last one before the end.
    assert its_load.rate_rps * its_load.duration_s == result.requests == result.histogram.total
    assert result.uncounted == 0


@pytest.mark.parametrize("name", of("engine"))
def test_achieved_rate_is_that_of_the_counted_seconds(name: str) -> None:
    _, its_load = CAPTURED[name]
    _, result = captured(name)
    failed = sum(result.errors.values())
    answered_rps = (result.requests - failed) / its_load.duration_s
    assert result.achieved_rps == pytest.approx(answered_rps, rel=0.015)
    assert result.duration_s == pytest.approx(its_load.duration_s, abs=1e-6)
    assert its_load.duration_s <= result.run_s <= planned_run_s(its_load) + 0.1


@pytest.mark.parametrize("name", of("engine"))
def test_what_the_generator_says_of_itself(name: str) -> None:
    _, result = captured(name)
    assert result.cpu_s is not None
    assert 0 < result.cpu_s < result.run_s
    assert result.lag_ms is not None
    assert 0 < result.lag_ms < 5
    assert result.clock_step_s is not None
    assert abs(result.clock_step_s) < 0.05
    assert None is result.stopped_after_s


@pytest.mark.parametrize("name", ["engine-slt.txt", "engine-dlt.txt", "engine-dlt-stall.txt"])
def test_without_errors_there_are_none(name: str) -> None:
    assert captured(name)[1].errors == {}


def test_a_stall_of_400_ms_is_in_the_tail() -> None:
    histogram = captured("engine-dlt-stall.txt")[1].histogram
    assert 300 < histogram.percentile_ms(99) < 400 < histogram.max_ms < 420


def test_errors_by_kind_are_in_the_histogram_at_the_timeout_or_above() -> None:
    # Two of twelve paths were missing, and the server stood still for 1.3 s with a timeout of 1 s.
    _, result = captured(ERRORS)
    assert set(result.errors) == {"status", "timeout"}
    failed = sum(result.errors.values())
    late = sum(n for value, n in result.histogram.pairs() if value >= 1_000_000) - failed
    # It looks for timeouts every 0.1 s, and an answer that comes before that is one.
    assert 0 <= late <= 0.1 * 400
    share = result.errors["status"] / (result.requests - result.errors["timeout"])
    assert share == pytest.approx(2 / 12, abs=0.04)
    # Those that were due in the first 0.3 s of the stall waited for longer than the timeout.
    assert result.errors["timeout"] == pytest.approx(0.3 * 400, rel=0.35)


def test_a_run_without_any_answer_is_a_result() -> None:
    def change(data: dict[str, Any]) -> None:
        data.update(answered=0, on_time=0, histogram=[[10_000_000, data["due"]]])
        data["errors"].update(refused=data["due"])

    result = parse_output(edited("engine-slt.txt", change), ENGINE, SLT)
    assert (result.errors, result.achieved_rps) == ({"refused": 4500}, 0.0)
    assert result.histogram.percentile_ms(1) >= 10_000


def test_what_is_unanswered_at_the_end_is_counted_by_a_name_of_its_own() -> None:
    def change(data: dict[str, Any]) -> None:
        data.update(answered=data["answered"] - 7, pending=7)

    assert parse(edited("engine-slt.txt", change), SLT).errors == {PENDING: 7}


def test_answers_after_the_end_are_none_of_the_rate() -> None:
    text = edited("engine-slt.txt", lambda data: data.update(on_time=3000))
    result = parse(text, SLT)
    assert pytest.approx(result.achieved_rps) == 1000
    assert pytest.approx(result.offered_rps) == 1500


def test_a_stopped_run_says_after_how_many_counted_seconds() -> None:
    def change(data: dict[str, Any]) -> None:
        data.update(stopped=True, counted_us=1_250_000, run_us=2_250_000, on_time=500)

    result = parse(edited("engine-slt.txt", change), SLT)
    assert (result.stopped_after_s, result.duration_s, result.run_s) == (1.25, 1.25, 2.25)
    assert pytest.approx(result.achieved_rps) == 400


@pytest.mark.parametrize(
    ("lags", "expected"), [([[5, 99], [900, 1]], 0.005), ([[5, 98], [900, 2]], 0.9), ([], 0.0)]
)
def test_lag_is_the_99th_percentile(lags: list[list[int]], expected: float) -> None:
    assert parse(edited("engine-slt.txt", lambda d: d.update(lags=lags)), SLT).lag_ms == expected


@pytest.mark.parametrize("step_us", [-2_500_000, 0, 2_500_000])
def test_the_clock_may_have_been_set_either_way(step_us: int) -> None:
    text = edited("engine-slt.txt", lambda data: data.update(clock_step_us=step_us))
    assert step_us / 1e6 == parse(text, SLT).clock_step_s


# What is refused ----------------------------------------------------------------------------------


def message_of(text: str) -> str:
    with pytest.raises(LoadOutputError) as caught:
        parse_output(text, ENGINE, SLT)
    return str(caught.value)


@pytest.mark.parametrize(
    "key", ["due", "answered", "on_time", "pending", "bytes", "counted_us", "run_us", "cpu_us"]
)
@pytest.mark.parametrize("value", [None, -1, 1.5, "7", True])
def test_what_is_no_number_is_refused_by_name(key: str, value: Any) -> None:
    text = edited("engine-slt.txt", lambda data: data.update({key: value}))
    assert f"{ENGINE.path}: {key} is {value!r}, not a whole number" in message_of(text)


@pytest.mark.parametrize("kind", ERROR_KINDS)
def test_each_kind_of_error_has_to_be_said(kind: str) -> None:
    text = edited("engine-slt.txt", lambda data: data["errors"].pop(kind))
    assert f"{ENGINE.path}: {kind} is None, not a whole number" in message_of(text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 1}, "schema and script are (1, 'slt'), not (2, 'slt')"),
        ({"script": "dlt"}, "schema and script are (2, 'dlt'), not (2, 'slt')"),
        ({"histogram": None}, "histogram is None, not a list"),
        ({"histogram": [[1, 0]]}, "(1, 0): not a latency"),
        ({"lags": None}, "lags is None, not a list"),
        ({"lags": [[1]]}, "lags has [1], not a latency and a count"),
        ({"errors": None}, "errors is None, not an object"),
        ({"stopped": 1}, "stopped is 1, neither true nor false"),
        ({"clock_step_us": None}, "clock_step_us is None, not a whole number"),
        ({"counted_us": 0}, "no time of the run was counted"),
    ],
)
def test_unusable_output_says_what_was_found(changes: dict[str, Any], message: str) -> None:
    text = edited("engine-slt.txt", lambda data: data.update(changes))
    assert message_of(text).startswith(f"{ENGINE.path}: {message}")


def more_due(data: dict[str, Any]) -> None:
    data["due"] += 1


def fewer_answered(data: dict[str, Any]) -> None:
    data["answered"] -= 1


def more_failed(data: dict[str, Any]) -> None:
    data["errors"]["reset"] += 1


def more_pending(data: dict[str, Any]) -> None:
    data["pending"] += 1


def fewer_in_the_histogram(data: dict[str, Any]) -> None:
    data["histogram"].pop()


@pytest.mark.parametrize(
    "change", [more_due, fewer_answered, more_failed, more_pending, fewer_in_the_histogram]
)
def test_a_request_without_a_place_or_with_two_is_refused(change: Any) -> None:
    output = message_of(edited("engine-slt.txt", change))
    numbers = r"\d+ requests were due, \d+ were answered, failed or pending, and \d+ are in the his"
    assert re.search(numbers, output)


def test_an_output_that_was_cut_off_is_refused() -> None:
    text, _ = captured("engine-slt.txt")
    assert "the line of JSON is broken" in message_of(text[: text.rindex("}") - 200])


def test_the_captured_outputs_are_as_large_as_they_have_to_be() -> None:
    """Else the tests above would show little."""
    assert len(of("engine")) == 4
    assert all(len(captured(name)[1].histogram.counts) > 50 for name in of("engine"))
