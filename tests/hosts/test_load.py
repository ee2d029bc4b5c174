import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from commands import ran
from intop.domain.histogram import Histogram, bucket_us
from intop.errors import LoadOutputError
from intop.hosts.load import (
    FIND_TOOL,
    Load,
    LoadResult,
    LoadTool,
    Script,
    calibration_s,
    command,
    identify,
    parse_found,
    parse_output,
    planned_run_s,
    script_fingerprint,
    threads_of,
)

ROOT = Path(__file__).parents[2]
LUA = ROOT / "lua"
DATA = ROOT / "tests" / "data" / "load"

WRK = LoadTool(name="wrk", path="/usr/bin/wrk", version="debian/4.1.0-3+b2")
WRK2 = LoadTool(name="wrk2", path="/opt/wrk2/wrk", version="4.0.0")


def load(**changes: Any) -> Load:
    values: dict[str, Any] = {"script": "slt", "url": "http://10.0.0.1:80", "rate_rps": 1500}
    values |= {"connections": 32, "threads": 2, "duration_s": 3, "seed": 7}
    return Load(**(values | changes))


# Which tool ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("captured", "expected"),
    [
        ("wrk-version.txt", LoadTool(name="wrk", path="/bin/w", version="debian/4.1.0-3+b2")),
        ("wrk2-version.txt", LoadTool(name="wrk2", path="/bin/w", version="4.0.0")),
    ],
)
def test_identify_by_the_rate_option_not_by_the_name(captured: str, expected: LoadTool) -> None:
    assert expected == identify("/bin/w", (DATA / captured).read_text())


def test_identify_refuses_another_program() -> None:
    with pytest.raises(LoadOutputError, match=r"/bin/ls is neither wrk2 nor wrk; it printed:\nhm"):
        identify("/bin/ls", "hm\n")


def test_parse_found_prefers_wrk2() -> None:
    assert LoadTool(name="wrk2", path="/opt/wrk2/bin/wrk2", version="4.0.0") == parse_found(
        (DATA / "found-both.txt").read_text()
    )


def test_parse_found_nothing() -> None:
    assert None is parse_found("")


@pytest.mark.parametrize(
    ("wrk2_prints", "wrk_prints", "expected"),
    [
        ("wrk2-version.txt", "wrk-version.txt", ("wrk2", "wrk2")),
        (None, "wrk-version.txt", ("wrk", "wrk")),
        (None, "wrk2-version.txt", ("wrk2", "wrk")),
        (None, None, None),
    ],
)
def test_find_tool_in_a_shell(
    tmp_path: Path,
    wrk2_prints: str | None,
    wrk_prints: str | None,
    expected: tuple[str, str] | None,
) -> None:
    for name, captured in (("wrk2", wrk2_prints), ("wrk", wrk_prints)):
        body = f"cat {DATA / captured}; exit 1" if captured else "echo cannot run; exit 126"
        executable(tmp_path / name, body)
    path = f"{tmp_path}:/usr/bin:/bin"
    tool = parse_found(ran("sh", "-c", FIND_TOOL, env={"PATH": path}, check=True).stdout)
    assert expected == (tool and (tool.name, tool.path.removeprefix(f"{tmp_path}/")))


def executable(file: Path, body: str) -> str:
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return str(file)


# Command ------------------------------------------------------------------------------------------


WRK_RUNS = "/usr/bin/wrk -t 32 -c 32 -d 3 --timeout 10 -s"
WRK2_RUNS = "/opt/wrk2/wrk -t 2 -c 32 -d 14 --timeout 10 -R 1500 -s"


@pytest.mark.parametrize(
    ("tool", "script", "run", "arguments"),
    [
        (WRK, "slt", WRK_RUNS, "--threads 32 --paths paths.txt --pace --rate 1500"),
        (WRK2, "slt", WRK2_RUNS, "--threads 2 --paths paths.txt"),
        (WRK2, "dlt", WRK2_RUNS, "--threads 2 --path /dynamic"),
    ],
)
def test_command(tool: LoadTool, script: Script, run: str, arguments: str) -> None:
    scripts = f"cd /tmp/i && cat {script}.lua intop.lua >/dev/null"
    run = f"{run} {script}.lua http://10.0.0.1:80 -- --seed 7 {arguments}"
    assert f"{scripts} && {run} && times" == command(tool, load(script=script), "/tmp/i")


def test_wrk_has_a_thread_for_each_connection_and_not_more_than_the_scripts_can_count() -> None:
    assert (1024, 2) == tuple(threads_of(tool, load(connections=1024)) for tool in (WRK, WRK2))
    assert 2 == threads_of(WRK2, load(connections=2000))
    with pytest.raises(LoadOutputError, match="up to 1024 connections, not on 2000"):
        command(WRK, load(connections=2000), "/tmp/i")


def test_wrk_is_told_how_many_late_requests_are_too_many() -> None:
    limited = load(prune_above_ms=450.1234)
    words = shlex.split(command(WRK, limited, "/tmp/i"))
    # 1 % of 1,500 a second in 3.1 s is 46.5.
    expected = ["--late-ms", "450.123", "--late-count", "46"]
    assert expected == words[words.index("--late-ms") : -2]
    assert command(WRK2, load(), "/tmp/i") == command(WRK2, limited, "/tmp/i")


def test_whole_seconds_and_requests_are_rounded() -> None:
    words = command(WRK, load(duration_s=2.2, timeout_s=1.5, rate_rps=800.6), "/tmp/i").split()
    found = [words[words.index(key) + 1] for key in ("-d", "--timeout", "--rate")]
    assert ["3", "2", "801"] == found


@pytest.mark.parametrize(
    ("tool", "connections", "expected"), [(WRK, 64, 0), (WRK2, 64, 10.16), (WRK2, 400, 11)]
)
def test_calibration_grows_with_the_connections_of_a_thread(
    tool: LoadTool, connections: int, expected: float
) -> None:
    assert pytest.approx(expected) == calibration_s(tool, load(connections=connections))


def test_planned_run_covers_calibration_and_counted_seconds() -> None:
    assert (3, 14) == (planned_run_s(WRK, load()), planned_run_s(WRK2, load()))
    assert 14 == planned_run_s(WRK2, load(connections=400))


@pytest.mark.parametrize(("counted", "errors"), [(1000, 60), (250, 15), (0, 0)])
def test_errors_of_the_calibration_do_not_count(counted: int, errors: int) -> None:
    result = LoadResult(
        requests=counted,
        duration_s=2.0,
        run_requests=1000,
        run_duration_s=12.0,
        bytes=0,
        errors={"status": 60},
        histogram=Histogram.from_pairs([]),
        achieved_rps=0.0,
    )
    assert {"status": errors} == result.counted_errors


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://192.0.2.1", "http://192.0.2.1:80"),
        ("https://lb.example", "https://lb.example:443"),
        ("http://[2001:db8::1]", "http://[2001:db8::1]:80"),
        ("http://lb.example:8080", "http://lb.example:8080"),
    ],
)
def test_the_port_is_always_said(url: str, said: str) -> None:
    """Where there is no /etc/services, wrk can't find the port of http."""
    assert said in shlex.split(command(WRK, load(url=url), "/d"))


def test_command_is_quoted(tmp_path: Path) -> None:
    directory = tmp_path / "a b'c;$(d)"
    shutil.copytree(LUA, directory)
    tool = replace(WRK, path=executable(tmp_path / "my wrk", "pwd; printf '%s\\n' \"$@\""))
    hostile = load(script="dlt", url="http://h:8/?a=1&b=$(c) `d`", dynamic_path="/x;y 'z' & $HOME")
    output = ran("sh", "-c", command(tool, hostile, str(directory)))
    assert ("", str(directory)) == (output.stderr, output.stdout.splitlines()[0])
    assert {hostile.url, hostile.dynamic_path} <= set(output.stdout.splitlines())


def test_command_runs_no_load_without_its_scripts(tmp_path: Path) -> None:
    shutil.copy(LUA / "slt.lua", tmp_path)
    tool = replace(WRK, path=executable(tmp_path / "wrk", "echo ran"))
    output = ran("sh", "-c", command(tool, load(), str(tmp_path)))
    assert (output.stdout, "intop.lua" in output.stderr) == ("", True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"script": "abc"}, "script 'abc' is neither slt nor dlt"),
        ({"url": "-x"}, "url '-x' would be read as an option"),
        ({"rate_rps": 0}, "rate_rps 0 is not a positive number"),
        ({"rate_rps": float("nan")}, "rate_rps nan is not a positive number"),
        ({"rate_rps": 0.4}, "rate_rps 0.4 is less than one request a second"),
        ({"duration_s": -1}, "duration_s -1 is not a positive number"),
        ({"timeout_s": 0}, "timeout_s 0 is not a positive number"),
        ({"threads": 0}, "threads 0 is not in 1..1024"),
        ({"connections": 33}, "connections 33 is not a multiple of threads 2"),
        ({"connections": 0}, "connections 0 is not a multiple of threads 2"),
        ({"prune_above_ms": 0}, "prune_above_ms 0 is not a positive number"),
        ({"seed": -1}, "seed -1 is not in 0..4294967295"),
        ({"rate_rps": 3}, "32 connections at 3 requests/s are idle for longer than timeout_s 10"),
    ],
)
def test_load_refuses_what_a_tool_would_do_differently(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        load(**changes)


# Output: what both tools really printed -----------------------------------------------------------

SLT = load(url="http://127.0.0.1:18080")
DLT = replace(SLT, script="dlt")
CAPTURED = {
    "wrk-slt.txt": (WRK, SLT),
    "wrk-dlt.txt": (WRK, DLT),
    "wrk-dlt-stall.txt": (WRK, replace(DLT, duration_s=4)),
    "wrk-slt-errors.txt": (WRK, replace(SLT, rate_rps=400, timeout_s=1)),
    "wrk2-slt.txt": (WRK2, SLT),
    "wrk2-dlt.txt": (WRK2, DLT),
    "wrk2-dlt-stall.txt": (WRK2, replace(DLT, duration_s=4)),
    "wrk2-slt-errors.txt": (WRK2, replace(SLT, rate_rps=400, duration_s=4, timeout_s=1)),
}
MS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


def captured(name: str) -> tuple[str, LoadResult]:
    tool, its_load = CAPTURED[name]
    text = (DATA / name).read_text()
    return text, parse_output(text, tool, its_load)


def without_errors(**found: int) -> dict[str, int]:
    return {"connect": 0, "read": 0, "write": 0, "timeout": 0, "status": 0} | found


@pytest.mark.parametrize("name", [name for name in sorted(CAPTURED) if "wrk2" in name])
def test_percentiles_are_those_that_wrk2_printed(name: str) -> None:
    text, result = captured(name)
    printed = re.findall(r"^ *([\d.]+)% +([\d.]+)(us|ms|s) *$", text, re.MULTILINE)
    assert len(printed) >= 4
    for q, number, unit in printed:
        # It rounds the rank in its own way, and prints two decimals.
        one_rank = 100 / result.histogram.total
        low = result.histogram.percentile_ms(max(0, float(q) - one_rank))
        high = result.histogram.percentile_ms(min(100, float(q) + one_rank))
        slack = 0.006 * MS[unit] + 0.001 * high
        assert low - slack <= float(number) * MS[unit] <= high + slack, q


@pytest.mark.parametrize("name", [name for name in sorted(CAPTURED) if "wrk2" in name])
def test_histogram_has_each_count_of_the_spectrum_that_wrk2_printed(name: str) -> None:
    text, result = captured(name)
    rows = re.findall(r"^ +([\d.]+) +[01]\.\d{6} +(\d+) +[\d.inf]+$", text, re.MULTILINE)
    assert len(rows) > 50
    expected = [(round(float(value) * 1000), int(count)) for value, count in rows]
    assert expected == [(value, count_up_to(result.histogram, value)) for value, _ in expected]
    total = re.search(r"Total count += +(\d+)", text)
    assert total is not None
    assert int(total[1]) == result.histogram.total == result.requests


def count_up_to(histogram: Histogram, value_us: int) -> int:
    return sum(count for value, count in histogram.pairs() if value <= value_us)


@pytest.mark.parametrize("name", sorted(CAPTURED))
def test_requests_and_seconds_of_the_whole_run_are_those_that_the_tool_printed(name: str) -> None:
    text, result = captured(name)
    printed = re.search(r"^ +(\d+) requests in ([\d.]+)s,", text, re.MULTILINE)
    assert printed is not None
    assert int(printed[1]) == result.run_requests
    assert pytest.approx(float(printed[2]), abs=0.006) == result.run_duration_s


@pytest.mark.parametrize("name", sorted(CAPTURED))
def test_achieved_rate_is_that_of_the_counted_seconds(name: str) -> None:
    tool, its_load = CAPTURED[name]
    _, result = captured(name)
    # Of wrk's threads, some end up to 0.1 s before the last one.
    assert pytest.approx(its_load.rate_rps, rel=0.015) == result.achieved_rps
    assert pytest.approx(result.achieved_rps) == result.requests / result.duration_s
    expected_s = planned_run_s(tool, its_load) - calibration_s(tool, its_load)
    assert pytest.approx(expected_s, abs=0.11) == result.duration_s


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("wrk-slt.txt", without_errors()),
        ("wrk2-dlt.txt", without_errors()),
        ("wrk-slt-errors.txt", without_errors(timeout=32, status=90)),
        ("wrk2-slt-errors.txt", without_errors(status=451)),
    ],
)
def test_errors_by_kind(name: str, expected: dict[str, int]) -> None:
    assert expected == captured(name)[1].errors


@pytest.mark.parametrize("name", ["wrk-dlt-stall.txt", "wrk2-dlt-stall.txt"])
def test_a_stall_of_400_ms_is_in_the_tail(name: str) -> None:
    histogram = captured(name)[1].histogram
    assert 300 < histogram.percentile_ms(99) < 400 < histogram.max_ms < 420


def test_what_took_longer_than_the_timeout_is_in_the_histogram() -> None:
    # A stall of 1.3 s with --timeout 1. wrk itself would have dropped these latencies.
    result = captured("wrk-slt-errors.txt")[1]
    assert 1 < result.errors["timeout"]
    assert 1250 < result.histogram.max_ms < 1400


@pytest.mark.parametrize("name", [name for name in sorted(CAPTURED) if "wrk2" not in name])
def test_under_wrk_each_answer_has_one_latency(name: str) -> None:
    tool, its_load = CAPTURED[name]
    result = captured(name)[1]
    assert result.requests == result.histogram.total
    # The last answer of a thread may come when it ends.
    assert 0 <= result.run_requests - result.requests <= threads_of(tool, its_load)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("0m0.000000s 0m0.010000s\n0m2.310000s 1m1.250000s\n", 63.56),
        ("0m0.00s 0m0.01s\n0m2.31s 0m1.25s\n", 3.56),
        ("0m0,001s 0m0,010s\n2m2,312s 0m0,250s\n", 122.562),
        ("", None),
        ("0.00 0.01\n2.31 1.25\n", None),
    ],
)
def test_the_shell_says_what_cpu_time_the_load_took(said: str, expected: float | None) -> None:
    result = parse_output((DATA / "wrk-slt.txt").read_text() + said, WRK, SLT)
    assert pytest.approx(expected) == result.cpu_s


@pytest.mark.parametrize(
    ("said", "duration_us", "expected"),
    [
        ({"stopped": True, "late": 47}, 1_250_000, 1.25),
        ({"stopped": False, "late": 0}, 3_004_000, None),
        ({}, 3_004_000, None),
        # It was about to end anyway.
        ({"stopped": True, "late": 47}, 3_000_000, None),
    ],
)
def test_a_stopped_run_says_when(
    said: dict[str, Any], duration_us: int, expected: float | None
) -> None:
    text = edited("wrk-slt.txt", lambda data: data.update(said, duration_us=duration_us))
    result = parse_output(text, WRK, SLT)
    assert expected == result.stopped_after_s
    assert pytest.approx(result.requests / (duration_us / 1e6)) == result.achieved_rps


# Output: what is refused --------------------------------------------------------------------------


def edited(name: str, change: Callable[[dict[str, Any]], object]) -> str:
    """The captured output with its JSON changed."""
    *lines, last = (DATA / name).read_text().splitlines()
    data = json.loads(last)
    change(data)
    return "\n".join([*lines, json.dumps(data)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one line of JSON, found 0; last lines:\n(nothing was printed)"),
        ("unable to connect", "expected one line of JSON, found 0; last lines:\nunable to conn"),
        ("{}\n{}", "expected one line of JSON, found 2"),
        ("{}", "schema and script are (None, None), not (1, 'slt')"),
        ((DATA / "wrk-truncated.txt").read_text(), "the line of JSON is broken"),
        ((DATA / "wrk-dlt.txt").read_text(), "schema and script are (1, 'dlt'), not (1, 'slt')"),
        (edited("wrk-slt.txt", lambda data: data.update(schema=2)), "schema and script are (2, 's"),
        (edited("wrk-slt.txt", lambda data: data.pop("requests")), "requests is None, not a whole"),
        (edited("wrk-slt.txt", lambda data: data.update(stopped=1)), "stopped is 1, neither true"),
        (edited("wrk-slt.txt", lambda data: data.update(bytes=-1)), "bytes is -1, not a whole"),
        (edited("wrk-slt.txt", lambda data: data["errors"].pop("read")), "read is None, not a wh"),
        (edited("wrk-slt.txt", lambda data: data.pop("errors")), "errors is None, not an object"),
        (edited("wrk-slt.txt", lambda data: data.pop("histogram")), "histogram is None, not a li"),
        (edited("wrk-slt.txt", lambda data: data["histogram"].append([1])), "histogram has [1], n"),
        (edited("wrk-slt.txt", lambda data: data["histogram"].append([1, 0])), "(1, 0): not a lat"),
        (edited("wrk-slt.txt", lambda data: data.update(duration_us=0)), "the run took 0.000 s an"),
    ],
)
def test_unusable_output_says_what_was_found(text: str, message: str) -> None:
    with pytest.raises(LoadOutputError, match="^" + re.escape(f"/usr/bin/wrk: {message}")):
        parse_output(text, WRK, SLT)


def test_wrk2_must_have_calibrated_each_thread() -> None:
    text = (DATA / "wrk2-slt.txt").read_text().replace("Thread calibration", "", 1)
    with pytest.raises(LoadOutputError, match="wrk2 calibrated 1 of 2 threads"):
        parse_output(text, WRK2, SLT)


def test_a_run_without_any_answer_is_a_result() -> None:
    text = edited("wrk-slt.txt", lambda data: data.update(requests=0, histogram=[]))
    result = parse_output(text, WRK, SLT)
    assert (result.requests, result.achieved_rps, result.histogram.total) == (0, 0.0, 0)


def test_script_fingerprint_covers_the_script_and_the_shared_part(tmp_path: Path) -> None:
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    before = {script: script_fingerprint(LUA, script) for script in ("slt", "dlt")}
    assert before == {script: script_fingerprint(tmp_path, script) for script in before}
    assert re.fullmatch(r"[0-9a-f]{16}", before["slt"])
    with (tmp_path / "slt.lua").open("a") as file:
        file.write("-- changed\n")
    changed = script_fingerprint(tmp_path, "slt")
    with (tmp_path / "intop.lua").open("a") as file:
        file.write("-- changed\n")
    fingerprints = {*before.values(), changed, script_fingerprint(tmp_path, "slt")}
    assert len(fingerprints) == 4
    assert before["dlt"] != script_fingerprint(tmp_path, "dlt")


# Scripts: the shared part, with wrk as the Lua interpreter ----------------------------------------


def run_lua(tmp_path: Path, code: str) -> str:
    """What Lua code prints inside wrk, before any request. `intop` is the shared part."""
    script = tmp_path / "check.lua"
    # wrk only prints an error of the main chunk and goes on, hence the xpcall.
    script.write_text(
        f"local intop = dofile('{LUA}/intop.lua')\n"
        f"local ok, problem = xpcall(function()\n{code}\nend, debug.traceback)\n"
        "if not ok then io.stderr:write(problem) end\n"
        "os.exit(ok and 0 or 1)\n"
    )
    output = ran("wrk", "-d1", "-s", script, "http://127.0.0.1:9", timeout=20)
    assert (output.stderr, output.returncode) == ("", 0)
    return output.stdout


def test_lua_buckets_are_those_of_the_histogram(tmp_path: Path) -> None:
    values = [0, 1, 2047, 2048, 4095, 4096, 4097, 65_535, 65_536, 999_999, 10_000_000]
    values += [3_600_000_000, 2**36 - 1]
    printed = run_lua(
        tmp_path,
        f"for _, v in ipairs({{{','.join(map(str, values))}}}) do"
        " print(string.format('%.0f', intop.bucket_top(intop.bucket_of(v)))) end",
    )
    assert [bucket_us(value) for value in values] == [int(line) for line in printed.split()]


def test_lua_buckets_are_without_a_gap(tmp_path: Path) -> None:
    printed = run_lua(
        tmp_path,
        "local last = -1\n"
        "for v = 0, 70000 do\n"
        "   local bucket = intop.bucket_of(v)\n"
        "   assert(bucket == last or bucket == last + 1)\n"
        "   last = bucket\n"
        "end\n"
        "assert(intop.bucket_of(1e300) == intop.bucket_of(2 ^ 36 - 1))\n"
        "print(last)",
    )
    assert 6 * 1024 + 70_000 // 64 == int(printed)


PACED = """
local now = 5000
local function took(latency, behind) print('took', latency, behind) end
local starts = { [0] = 0 }
local function clock() return now end
local delay, sending = intop.pacer(1000, 2, 1, starts, clock, took)
local function at(time, call) now = time return call() end
"""
"""A pacer whose slots are 5001, 5003, 5005, ..., and its clock."""


def paced(tmp_path: Path, code: str) -> list[list[float]]:
    """The numbers of each line that code with a pacer prints."""
    lines = run_lua(tmp_path, PACED + code).replace("took", "").splitlines()
    return [[float(number) for number in line.split()] for line in lines]


def test_pacer_gives_each_thread_every_nth_slot_and_never_moves_slots(tmp_path: Path) -> None:
    code = "for _, t in ipairs({5000, 5000, 5000, 5010, 5010, 5010}) do print(at(t, delay)) end"
    assert [[1], [3], [5], [0], [0], [1]] == paced(tmp_path, code)


def test_all_threads_slots_count_from_one_start(tmp_path: Path) -> None:
    # The other one has 5000, 5002, 5004, ...; those before its connection was open are skipped.
    code = """
    local other = intop.pacer(1000, 2, 0, starts, clock, took)
    print(at(5000, delay)) print(at(5003.5, other)) print(at(5003.5, other)) print(starts[0])
    """
    assert [[1], [0.5], [2.5], [5000]] == paced(tmp_path, code)


def test_latencies_count_from_when_a_request_was_due_or_sent_if_that_was_earlier(
    tmp_path: Path,
) -> None:
    code = """
    at(5000, delay) at(5001, sending) at(5002.5, delay) -- in time
    at(5004, sending) at(5004.5, delay) -- 1 late: the slot was 5003
    at(5004.6, sending) at(5005.5, delay) -- 0.4 early: wrk's timers may be
    at(5017, sending) at(5018, delay) -- 10 late: so is all that waited behind it
    at(5018, sending) at(5018.5, delay)
    """
    expected = [[1.5, -0.5], [1.5, -0.5], [0.9, -1.5], [11, 9], [9.5, 7.5]]
    assert expected == [pytest.approx(line) for line in paced(tmp_path, code)]


def test_a_latency_goes_on_over_an_error(tmp_path: Path) -> None:
    # wrk sends again on a new connection, and asks for no delay.
    code = "at(5000, delay) at(5001, sending) at(5004, sending) at(5006, delay)"
    assert [[5, 3]] == paced(tmp_path, code)


def test_a_request_before_the_first_slot_has_no_latency(tmp_path: Path) -> None:
    # wrk asks one thread for a request to look at before it begins.
    assert [[1], [0.5, -1.5]] == paced(
        tmp_path, "at(4990, sending) print(at(5000, delay)) at(5001, sending) at(5001.5, delay)"
    )


def late_counts(tmp_path: Path, code: str, limit_count: int) -> list[str]:
    """What Lua code prints with two threads' counters, `one` and `two`, that share `cells`."""
    printed = run_lua(
        tmp_path,
        "local cells = {}\n"
        "for i = 0, 1024 do cells[i] = 0 end\n"
        "local options = { threads = 2, rate = 1000,"
        f" ['late-ms'] = 10, ['late-count'] = {limit_count} }}\n"
        "local function stop() print('stop') end\n"
        "local one = intop.late_counter(cells, options, 0, stop)\n"
        "local two = intop.late_counter(cells, options, 1, stop)\n"
        "local function show() print(cells[0], cells[1], cells[1024]) end\n" + code,
    )
    return printed.replace("\t", " ").splitlines()


def test_late_answers_and_slots_that_wait_count_and_none_counts_twice(tmp_path: Path) -> None:
    # Slots are 2 ms apart. One that is 15 behind has two after it that are 13 and 11 behind by now.
    code = """
    one(10, 9) show() -- in time, with nothing that is late by now
    one(12, 15) show() -- one is answered late, three wait
    one(16, 13.5) show() -- the first of them is answered
    one(14, 11.5) show()
    one(12, -3) show()
    one(9, 9) show() -- in time again
    """
    expected = ["0 0 0", "4 0 0", "4 0 0", "4 0 0", "4 0 0", "4 0 0"]
    assert expected == late_counts(tmp_path, code, 100)


def test_late_requests_of_all_threads_end_the_run_once_they_are_too_many(tmp_path: Path) -> None:
    code = "one(11, 0) two(11, 0) two(11, 0) show() two(11, 0) show() one(11, 0) show()"
    assert ["1 2 0", "stop", "1 3 1", "stop", "2 3 1"] == late_counts(tmp_path, code, 3)


FAKE_WRK2_LATENCY = """
-- #values values in ascending order, as wrk2's latency object shows them
local function fake(values)
   local latency = newproxy(true)
   getmetatable(latency).__len = function() return #values end
   getmetatable(latency).__index = function(_, rank) return values[rank] end
   return latency
end
local function show(counts)
   for value, count in pairs(counts) do print(value .. ' ' .. count) end
end
"""


def from_ranks(tmp_path: Path, values: list[int], queries: int) -> Histogram:
    table = ",".join(map(str, values))
    code = f"{FAKE_WRK2_LATENCY} show(intop.from_ranks(fake({{{table}}}), {queries}))"
    lines = [line.split() for line in run_lua(tmp_path, code).splitlines()]
    return Histogram.from_pairs((int(value), int(count)) for value, count in lines)


@pytest.mark.parametrize(
    "values",
    [[], [5], [5, 5], [5, 9], list(range(1, 2000)), [40] * 900 + [1000] * 90 + [2000] * 10],
    ids=lambda values: f"{len(values)} values, {len(set(values))} distinct",
)
def test_histogram_from_ranks_is_exact(tmp_path: Path, values: list[int]) -> None:
    expected = Histogram.from_pairs(Counter(values).items())
    assert expected == from_ranks(tmp_path, values, queries=50_000)


def test_histogram_from_few_ranks_keeps_total_and_percentiles_and_is_never_too_good(
    tmp_path: Path,
) -> None:
    values = list(range(1, 2001))
    exact = Histogram.from_pairs(Counter(values).items())
    coarse = from_ranks(tmp_path, values, queries=10)
    assert (exact.total, exact.max_ms) == (coarse.total, coarse.max_ms)
    for q in (50, 90, 99, 99.9):
        assert exact.percentile_ms(q) == coarse.percentile_ms(q)
    for q in range(1, 100):
        assert exact.percentile_ms(q) <= coarse.percentile_ms(q)


def test_dlt_numbers_depend_on_seed_and_thread_only(tmp_path: Path) -> None:
    code = f"""
    local function numbers(seed, id)
       dofile('{LUA}/dlt.lua')
       intop_thread_id = id
       wrk.time_us = true -- as under wrk2, which needs no pacing
       init({{ '--seed', seed, '--threads', '2', '--path', '/d' }})
       return (request() .. request()):gsub('[^=]*=(%d+)[^=]*', '%1 '):gsub(' $', '')
    end
    print((numbers('7', 0))) print((numbers('7', 0)))
    print((numbers('7', 1))) print((numbers('8', 0)))
    """
    first, again, other_thread, other_seed = run_lua(tmp_path, code).splitlines()
    assert first == again
    assert len({first, other_thread, other_seed}) == 3
    # nine random digits, then the serial: thread 0 of 2 takes 2, 4, ..., thread 1 takes 3, 5, ...
    assert re.fullmatch(r"[1-9]\d{8}2 [1-9]\d{8}4", first)
    assert re.fullmatch(r"[1-9]\d{8}3 [1-9]\d{8}5", other_thread)


# Scripts: under the real tools, against a real nginx ----------------------------------------------

PATHS = [f"/file{number}.html" for number in range(12)]
# wrk2 needs 12 s and is not packaged by Debian; wrk is required on every machine that tests.
TOOLS = ["wrk"] + (["wrk2"] if shutil.which("wrk2") else [])


@dataclass(frozen=True)
class Server:
    """A local nginx: its URL without a path and its access log, one `URI status` a line."""

    url: str
    access_log: Path

    def requested(self) -> list[str]:
        """The URIs so far; the log is written at the end of each request."""
        return [line.split()[0] for line in self.access_log.read_text().splitlines()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("nginx")
    for path in PATHS:
        (home / path[1:]).write_text(path * 10)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "nginx.conf").write_text(nginx_configuration(home, port))
    process = subprocess.Popen(
        ["nginx", "-p", str(home), "-e", "error.log", "-c", str(home / "nginx.conf")]
    )
    try:
        wait_for(port)
        yield Server(url=f"http://127.0.0.1:{port}", access_log=home / "access.log")
    finally:
        process.terminate()
        process.wait(timeout=10)


def nginx_configuration(home: Path, port: int) -> str:
    user = "user root;" if os.geteuid() == 0 else ""  # pytest's directories are private
    temporary = " ".join(
        f"{kind}_temp_path {home}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
    {user} daemon off; worker_processes 1; pid {home}/nginx.pid;
    events {{ worker_connections 256; }}
    http {{
        {temporary}
        limit_req_zone $server_addr zone=slow:1m rate=50r/s;
        log_format uri '$request_uri $status';
        access_log {home}/access.log uri;
        server {{
            listen 127.0.0.1:{port};
            root {home};
            location = /dynamic {{ return 200 "$arg_r"; }}
            # Whoever asks for more than 50 a second has to wait ever longer.
            location = /slow {{ limit_req zone=slow burst=100000; try_files {PATHS[0]} =404; }}
        }}
    }}
    """


def wait_for(port: int, limit_s: float = 10) -> None:
    end = time.monotonic() + limit_s
    while not accepts(port):
        assert time.monotonic() < end, f"nginx does not listen on port {port}"
        time.sleep(0.05)


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    else:
        return True


def installed(name: str) -> LoadTool:
    """The tool on the PATH. A missing one fails the test: wrk must be there."""
    path = shutil.which(name)
    assert path is not None, f"{name} is not installed"
    output = ran(path, "-v")
    return identify(path, output.stdout + output.stderr)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "paths.txt").write_text("\n".join(PATHS) + "\n")
    return tmp_path


def run_load(tool: LoadTool, its_load: Load, directory: Path) -> LoadResult:
    limit_s = planned_run_s(tool, its_load) + 20
    output = ran("sh", "-c", command(tool, its_load, str(directory)), timeout=limit_s)
    assert (output.stderr, output.returncode) == ("", 0)
    return parse_output(output.stdout, tool, its_load)


def small_load(script: Script, server: Server) -> Load:
    return load(script=script, url=server.url, rate_rps=400, connections=8, duration_s=2)


@pytest.mark.parametrize("name", TOOLS)
def test_slt_asks_for_all_paths_alike_at_the_rate(name: str, server: Server, scripts: Path) -> None:
    before = len(server.requested())
    result = run_load(installed(name), small_load("slt", server), scripts)
    assert without_errors() == result.errors
    assert result.cpu_s is not None
    assert 0 < result.cpu_s
    assert pytest.approx(400, rel=0.2) == result.achieved_rps
    requested = Counter(server.requested()[before:])
    assert set(PATHS) == set(requested)
    assert result.run_requests <= requested.total() <= result.run_requests + 8
    mean = requested.total() / len(PATHS)
    assert 0.5 * mean < min(requested.values()) <= max(requested.values()) < 1.5 * mean


@pytest.mark.parametrize("name", TOOLS)
def test_dlt_never_asks_twice_for_a_url(name: str, server: Server, scripts: Path) -> None:
    before = len(server.requested())
    result = run_load(installed(name), small_load("dlt", server), scripts)
    assert without_errors() == result.errors
    assert pytest.approx(400, rel=0.2) == result.achieved_rps
    requested = server.requested()[before:]
    assert result.run_requests <= len(requested) == len(set(requested))
    numbers = [re.fullmatch(r"/dynamic\?r=([1-9]\d{8})(\d+)", uri) for uri in requested]
    assert all(numbers)
    threads = threads_of(installed(name), small_load("dlt", server))
    random_parts = [{found[1] for found in numbers if found and int(found[2]) % threads == thread}
                    for thread in range(threads)]  # fmt: skip
    assert all(len(part) > 200 / threads for part in random_parts)
    assert len(random_parts[0] & random_parts[1]) < 5


PRUNE_ABOVE_MS = 100.0


def slow_load(server: Server, **changes: Any) -> Load:
    """Eight times what the server carries."""
    its_load = replace(small_load("dlt", server), dynamic_path="/slow", duration_s=5)
    return replace(its_load, **changes)


def test_a_run_above_its_limit_is_stopped_and_has_what_it_measured_so_far(
    server: Server, scripts: Path
) -> None:
    its_load = slow_load(server, prune_above_ms=PRUNE_ABOVE_MS)
    began = time.monotonic()
    result = run_load(installed("wrk"), its_load, scripts)
    assert time.monotonic() - began < its_load.duration_s
    assert result.stopped_after_s == result.run_duration_s == result.duration_s
    assert PRUNE_ABOVE_MS / 1000 < result.stopped_after_s < its_load.duration_s
    assert 0 < result.requests == result.histogram.total <= result.run_requests
    assert pytest.approx(result.requests / result.stopped_after_s) == result.achieved_rps
    assert result.achieved_rps < 0.5 * its_load.rate_rps
    assert without_errors() == result.errors
    assert result.cpu_s is not None


def test_without_a_limit_such_a_run_takes_its_time(server: Server, scripts: Path) -> None:
    its_load = slow_load(server, duration_s=2)
    result = run_load(installed("wrk"), its_load, scripts)
    assert None is result.stopped_after_s
    assert its_load.duration_s <= result.run_duration_s


@pytest.mark.parametrize("name", TOOLS)
def test_a_healthy_run_is_not_stopped(name: str, server: Server, scripts: Path) -> None:
    # A stall of more than half the run would stop it: less is not asked of the tests' machine.
    its_load = replace(small_load("slt", server), prune_above_ms=1000.0)
    result = run_load(installed(name), its_load, scripts)
    assert None is result.stopped_after_s
    assert its_load.duration_s <= result.run_duration_s


GOOD = "--seed 7 --threads 2 --paths paths.txt --pace --rate 100"


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("slt", "", "missing argument --seed"),
        ("slt", "--seed 7", "missing argument --threads"),
        ("slt", "--seed 7 --threads 2 --pace --rate 100", "missing argument --paths"),
        ("slt", "--seed 7 --threads 2 --paths paths.txt --pace", "missing argument --rate"),
        ("slt", "--seed 7 --threads 2 --paths paths.txt", "wrk needs --pace and --rate to hold"),
        ("slt", GOOD + " --bogus 1", "unknown argument '--bogus'"),
        ("slt", GOOD + " stray", "unknown argument 'stray'"),
        ("slt", GOOD + " --path /d", "unknown argument '--path'"),
        ("slt", GOOD + " --seed 7", "argument --seed given twice"),
        ("slt", "--seed", "argument --seed needs a value"),
        ("slt", "--seed x", "--seed must be a whole number from 0 to 2^32-1, not 'x'"),
        ("slt", "--seed 4294967296", "--seed must be a whole number from 0 to 2^32-1"),
        ("slt", "--threads 1.5", "--threads must be a whole number up to 1024, not '1.5'"),
        ("slt", "--rate 0", "--rate must be a positive number, not '0'"),
        ("slt", GOOD + " --late-ms 5", "missing argument --late-count"),
        ("slt", GOOD + " --late-count 5", "missing argument --late-ms"),
        ("slt", GOOD + " --late-ms 0", "--late-ms must be a positive number, not '0'"),
        ("slt", GOOD + " --late-count 0.5", "--late-count must be a whole number from 0 on"),
        ("slt", GOOD.replace("--threads 2", "--threads 1"), "--threads is less than -t"),
        ("slt", GOOD.replace("paths.txt", "none"), "--paths: none: No such file or directory"),
        ("slt", GOOD.replace("paths.txt", "empty"), "--paths: no path in empty"),
        ("slt", GOOD.replace("paths.txt", "odd"), "--paths: not a path: 'no slash'"),
        ("dlt", "--seed 7 --threads 2 --path d --pace --rate 9", "--path: not a path: 'd'"),
    ],
)
def test_wrong_arguments_give_one_line_and_no_load(
    script: str, arguments: str, message: str, server: Server, scripts: Path
) -> None:
    (scripts / "empty").write_text("\n")
    (scripts / "odd").write_text("/fine\nno slash\n")
    before = server.requested()
    run = ["wrk", "-t2", "-c4", "-d1", "-s", f"{script}.lua", server.url, "--"]
    output = ran(*run, *arguments.split(), cwd=scripts)
    printed = output.stderr.splitlines()
    # --threads less than -t shows in the second thread only, when the first one may have begun.
    if "less than -t" not in message:
        assert before == server.requested()
    assert (output.returncode, len(printed)) == (2, 1)
    assert printed[0].startswith(f"intop.lua: {message}")


@pytest.mark.parametrize("script", ["slt", "dlt"])
def test_a_script_without_its_shared_part_runs_no_load(
    script: str, server: Server, scripts: Path
) -> None:
    (scripts / "intop.lua").unlink()
    before = server.requested()
    run = ["wrk", "-d1", "-s", f"{script}.lua", server.url, "--", *GOOD.split()]
    output = ran(*run, cwd=scripts)
    assert (2, before) == (output.returncode, server.requested())
    assert output.stderr.startswith(f"{script}.lua: cannot open")
