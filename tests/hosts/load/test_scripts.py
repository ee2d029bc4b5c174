"""The Lua scripts: their shared parts under LuaJIT, and what they refuse."""

import json
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.loads import LUA, load
from intop.domain.histogram import Histogram, bucket_us
from intop.hosts.load import wrk2
from kit.commands import ran


def run_lua(tmp_path: Path, code: str) -> subprocess.CompletedProcess[str]:
    """What Lua code does beside the scripts. `intop` and `histograms` are their shared parts."""
    script = tmp_path / "check.lua"
    script.write_text(
        f"LUA = '{LUA}/'\n"
        "local intop, histograms = dofile(LUA .. 'intop.lua'), dofile(LUA .. 'histogram.lua')\n"
        + code
    )
    return ran("luajit", script, timeout=20)


def printed(tmp_path: Path, code: str) -> str:
    """What Lua code prints that ends well."""
    output = run_lua(tmp_path, code)
    assert (output.stderr, output.returncode) == ("", 0)
    return output.stdout


# Histograms ---------------------------------------------------------------------------------------

LARGEST_US = 2**31 - 1


def test_lua_buckets_are_those_of_the_histogram(tmp_path: Path) -> None:
    values = [0, 1, 2047, 2048, 4095, 4096, 4097, 65_535, 65_536, 999_999, 10_000_000]
    values += [1_800_000_000, LARGEST_US]
    lines = printed(
        tmp_path,
        f"for _, v in ipairs({{{','.join(map(str, values))}}}) do"
        " print(string.format('%.0f', histograms.bucket_top(histograms.bucket_of(v)))) end",
    )
    assert [bucket_us(value) for value in values] == [int(line) for line in lines.split()]


def test_lua_buckets_are_without_a_gap(tmp_path: Path) -> None:
    lines = printed(
        tmp_path,
        "local last = -1\n"
        "for v = 0, 70000 do\n"
        "   local bucket = histograms.bucket_of(v)\n"
        "   assert(bucket == last or bucket == last + 1)\n"
        "   assert(histograms.bucket_of(v + 0.999) == bucket)\n"
        "   assert(v <= histograms.bucket_top(bucket))\n"
        "   last = bucket\n"
        "end\n"
        f"assert(histograms.bucket_of(1e300) == histograms.bucket_of({LARGEST_US}))\n"
        "assert(histograms.bucket_of(-5) == 0)\n"
        "print(last)",
    )
    assert int(lines) == 6 * 1024 + 70_000 // 64


def test_latencies_are_counted_by_the_top_of_their_bucket(tmp_path: Path) -> None:
    values = [0, 0.4, 5, 5.9, 2049, 2048, 70_000, 3_600_000_000]
    code = f"""
    local found = histograms.new()
    for _, v in ipairs({{{",".join(map(str, values))}}}) do histograms.count(found, v) end
    local json = dofile(LUA .. 'json.lua')
    print(json.pairs(histograms.counts(found)))
    """
    expected = Counter(bucket_us(min(int(value), LARGEST_US)) for value in values)
    assert sorted(map(list, expected.items())) == json.loads(printed(tmp_path, code))


FAKE_WRK2_LATENCY = """
-- #values values in ascending order, as wrk2's latency object shows them
local function fake(values)
   local latency = newproxy(true)
   getmetatable(latency).__len = function() return #values end
   getmetatable(latency).__index = function(_, rank) return values[rank] end
   return latency
end
"""


def from_ranks(tmp_path: Path, values: list[int], queries: int) -> Histogram:
    table = ",".join(map(str, values))
    code = f"""{FAKE_WRK2_LATENCY}
    for value, count in pairs(intop.from_ranks(fake({{{table}}}), {queries})) do
       print(value .. ' ' .. count)
    end
    """
    lines = [line.split() for line in printed(tmp_path, code).splitlines()]
    return Histogram.from_pairs((int(value), int(count)) for value, count in lines)


@pytest.mark.parametrize(
    "values",
    [[], [5], [5, 5], [5, 9], list(range(1, 2000)), [40] * 900 + [1000] * 90 + [2000] * 10],
    ids=lambda values: f"{len(values)} values, {len(set(values))} distinct",
)
def test_histogram_from_ranks_is_exact(tmp_path: Path, values: list[int]) -> None:
    expected = Histogram.from_pairs(Counter(values).items())
    assert from_ranks(tmp_path, values, queries=50_000) == expected


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


# Requests -----------------------------------------------------------------------------------------

AS_WRK2 = """
wrk = { time_us = true, method = 'GET', headers = {} }
function wrk.format(_, path) return wrk.method .. ' ' .. path .. '\\n' end
"""
"""What wrk2 gives its scripts, as far as they use it."""
AS_WRK = AS_WRK2.replace("time_us", "time_ms")


def test_dlt_numbers_depend_on_seed_and_thread_only(tmp_path: Path) -> None:
    code = f"""{AS_WRK2}
    local function numbers(seed, id)
       dofile(LUA .. 'dlt.lua')
       intop_thread_id = id
       init({{ '--seed', seed, '--threads', '2', '--path', '/d' }})
       return (request() .. request()):gsub('[^=]*=(%d+)[^=]*', '%1 '):gsub(' $', '')
    end
    print((numbers('7', 0))) print((numbers('7', 0)))
    print((numbers('7', 1))) print((numbers('8', 0)))
    """
    first, again, other_thread, other_seed = printed(tmp_path, code).splitlines()
    assert first == again
    assert len({first, other_thread, other_seed}) == 3
    # nine random digits, then the serial: thread 0 of 2 takes 2, 4, ..., thread 1 takes 3, 5, ...
    assert re.fullmatch(r"[1-9]\d{8}2 [1-9]\d{8}4", first)
    assert re.fullmatch(r"[1-9]\d{8}3 [1-9]\d{8}5", other_thread)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/d", r"GET /d\?r=\d{10}"),
        ("/d?a=1", r"GET /d\?a=1&r=\d{10}"),
        ("/%d.", r"GET /%d\.\?r=\d{10}"),
    ],
)
def test_dlt_adds_its_number_to_any_path(tmp_path: Path, path: str, expected: str) -> None:
    code = f"""{AS_WRK2}
    dofile(LUA .. 'dlt.lua')
    intop_thread_id = 0
    init({{ '--seed', '7', '--threads', '1', '--path', '{path}' }})
    io.write(request())
    """
    assert re.fullmatch(expected + "\n", printed(tmp_path, code))


def test_method_headers_and_body_are_those_of_every_request(tmp_path: Path) -> None:
    code = f"""{AS_WRK2}
    dofile(LUA .. 'dlt.lua')
    intop_thread_id = 0
    init({{ '--seed', '7', '--threads', '1', '--path', '/d', '--method', 'PUT',
            '--body-bytes', '5', '--header', 'A: b: c ', '--header', 'X-Y:z' }})
    print(request():sub(1, 3), wrk.body, wrk.headers['A'], wrk.headers['X-Y'])
    """
    assert printed(tmp_path, code).rstrip("\n").split("\t") == ["PUT", "xxxxx", "b: c", "z"]


def test_under_wrk2_the_result_is_the_line_that_is_read(tmp_path: Path) -> None:
    code = f"""{AS_WRK2} {FAKE_WRK2_LATENCY}
    dofile(LUA .. 'slt.lua')
    local ids = {{}}
    for _ = 1, 2 do setup({{ set = function(_, name, id) ids[#ids + 1] = name .. id end }}) end
    assert(table.concat(ids, ' ') == 'intop_thread_id0 intop_thread_id1')
    local errors = {{ connect = 1, read = 0, write = 0, timeout = 2, status = 0 }}
    local summary = {{ duration = 13080000, requests = 3, bytes = 4e9, errors = errors }}
    print('  Thread calibration: x\\n  Thread calibration: x')
    done(summary, fake({{ 900, 901, 5000 }}))
    """
    result = wrk2.parse(printed(tmp_path, code), load())
    answered = Histogram.from_pairs([(900, 1), (901, 1), (5000, 1)])
    assert answered.merge(Histogram.from_pairs([(10_000_000, 3)])) == result.histogram
    assert (result.errors, result.bytes) == ({"connect": 1, "timeout": 2}, 4_000_000_000)
    assert result.duration_s == pytest.approx(3)


@pytest.mark.parametrize(
    ("under", "number", "message"),
    [
        (AS_WRK, 0, "wrk can't hold a rate; use wrk2 or engine.lua"),
        (AS_WRK2, 2, "--threads is less than -t"),
    ],
)
def test_a_tool_that_would_send_something_else_is_ended(
    tmp_path: Path, under: str, number: int, message: str
) -> None:
    code = f"""{under}
    dofile(LUA .. 'dlt.lua')
    intop_thread_id = {number}
    init({{ '--seed', '7', '--threads', '2', '--path', '/d' }})
    """
    output = run_lua(tmp_path, code)
    assert (output.returncode, output.stdout, output.stderr) == (2, "", f"intop: {message}\n")


# Arguments, through the engine --------------------------------------------------------------------


@pytest.fixture
def scripts(directory: Path) -> Path:
    (directory / "paths.txt").write_text("/file0.html\n")
    return directory


class Listener:
    """Somebody who listens, and can tell whether anybody came."""

    def __init__(self, server: socket.socket) -> None:
        server.setblocking(False)
        self.port = int(server.getsockname()[1])
        self._server = server

    def was_called(self) -> bool:
        try:
            self._server.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def listener() -> Iterator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Listener(server)


GOOD = (
    "--script slt.lua --url URL --rate 100 --duration 0.1 --connections 4 --seed 7"
    " -- --paths paths.txt"
)
DYNAMIC = GOOD.replace("slt", "dlt").replace("--paths paths.txt", "--path /d")


def without(name: str) -> str:
    return re.sub(rf"--{name} \S+ ?", "", GOOD)


def edited(old: str, new: str, text: str = GOOD) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def recorded(slots: str) -> str:
    return edited("--rate 100", f"--arrivals recorded --slots {slots}")


def of_engine(*words: str) -> str:
    return edited(" -- ", f" {' '.join(words)} -- ")


WHOLE = "must be a whole number from 0 on, not"
SEED = "--seed must be a whole number from 0 to 2^32-1, not"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (without("url"), "missing argument --url"),
        (without("seed"), "missing argument --seed"),
        (without("script"), "missing argument --script"),
        (without("rate"), "missing argument --rate"),
        (without("duration"), "missing argument --duration"),
        (without("connections"), "missing argument --connections"),
        (without("paths"), "missing argument --paths"),
        (edited("--path /d", "", DYNAMIC), "missing argument --path"),
        (of_engine("--bogus", "1"), "unknown argument '--bogus'"),
        (of_engine("stray"), "unknown argument 'stray'"),
        (of_engine("--pace"), "unknown argument '--pace'"),
        (of_engine("--seed", "7"), "argument --seed given twice"),
        (of_engine("--resume", "--resume"), "argument --resume given twice"),
        (edited(" -- --paths paths.txt", " --timeout"), "argument --timeout needs a value"),
        (edited("--seed 7", "--seed x"), f"{SEED} 'x'"),
        (edited("--seed 7", "--seed -1"), f"{SEED} '-1'"),
        (edited("--seed 7", "--seed 1.5"), f"{SEED} '1.5'"),
        (edited("--seed 7", "--seed 4294967296"), f"{SEED} '4294967296'"),
        (edited("--seed 7", "--seed nan"), f"{SEED} 'nan'"),
        (edited("--rate 100", "--rate 0"), "--rate must be a positive number, not '0'"),
        (edited("--rate 100", "--rate -5"), "--rate must be a positive number, not '-5'"),
        (edited("--rate 100", "--rate nan"), "--rate must be a positive number, not 'nan'"),
        (edited("--rate 100", "--rate inf"), "--rate must be a positive number, not 'inf'"),
        (edited("--duration 0.1", "--duration 0"), "--duration must be a positive number, not '0'"),
        (of_engine("--warmup", "-1"), "--warmup must be a number from 0 on, not '-1'"),
        (of_engine("--drain", "x"), "--drain must be a number from 0 on, not 'x'"),
        (edited("--connections 4", "--connections 1.5"), f"--connections {WHOLE} '1.5'"),
        (edited("--connections 4", "--connections 0"), "--connections must be at least 1"),
        (of_engine("--stream", "2", "--streams", "2"), "--stream must be below --streams"),
        (of_engine("--stream", "1"), "--stream must be below --streams"),
        (of_engine("--streams", "1025"), "--threads must be at most 1024"),
        (of_engine("--late-ms", "5"), "missing argument --late-count"),
        (of_engine("--late-count", "5"), "missing argument --late-ms"),
        (of_engine("--late-ms", "0"), "--late-ms must be a positive number, not '0'"),
        (of_engine("--late-count", "0.5"), f"--late-count {WHOLE} '0.5'"),
        (
            of_engine("--arrivals", "bursts"),
            "--arrivals must be constant, poisson, recorded or closed",
        ),
        (of_engine("--arrivals", "closed"), "--rate: a closed loop has none"),
        (of_engine("--arrivals", "recorded"), "missing argument --slots"),
        (of_engine("--arrivals", "recorded", "--slots", "odd"), "--rate: recorded arrivals have"),
        (of_engine("--slots", "odd"), "--slots needs --arrivals recorded"),
        (recorded("none"), "--slots: none: No such file or directory"),
        (recorded("odd"), "--slots: not US PATH: '/fine'"),
        (recorded("backwards"), "--slots: line 2 is due before the one above"),
        (recorded("no-path"), "--slots: line 1: paths count from 1"),
        (of_engine("--http", "3"), "--http must be 1.1 or 2, not '3'"),
        (of_engine("--concurrent", "3"), "--concurrent needs --http 2"),
        (of_engine("--http", "2", "--concurrent", "0"), "--concurrent must be at least 1"),
        (of_engine("--requests", "0"), "--requests must be a positive number, not '0'"),
        (of_engine("--read", "0"), "--read must be a positive number, not '0'"),
        (of_engine("--think", "-1"), "--think must be a number from 0 on, not '-1'"),
        (of_engine("--start-at", "5"), "--start-at has passed by "),
        (of_engine("--expect", "none"), "--expect: none: No such file or directory"),
        (of_engine("--expect", "paths.txt"), "--expect: not PATH LENGTH CRC32: '/file0.html'"),
        (edited("URL", "ftp://127.0.0.1"), "--url must be http[s]://HOST[:PORT], not 'ftp://127"),
        (edited("URL", "http://127.0.0.1/a"), "--url must be http[s]://HOST[:PORT], not 'http://"),
        (edited("URL", "http://:80"), "--url: no host in 'http://:80'"),
        (edited("paths.txt", "none"), "--paths: none: No such file or directory"),
        (edited("paths.txt", "empty"), "--paths: no path in empty"),
        (edited("paths.txt", "odd"), "--paths: not a path: 'no slash'"),
        (f"{GOOD} --path /d", "unknown argument '--path'"),
        (f"{GOOD} --seed 7", "argument --seed given twice"),
        (f"{GOOD} --header bad", "--header must be 'Name: value', not 'bad'"),
        (f"{GOOD} --body-bytes 1.5", f"--body-bytes {WHOLE} '1.5'"),
        (f"{GOOD} --method", "argument --method needs a value"),
        (edited("--path /d", "--path d", DYNAMIC), "--path: not a path: 'd'"),
    ],
)
def test_wrong_arguments_give_one_line_and_no_load(
    arguments: str, message: str, listener: Listener, scripts: Path
) -> None:
    (scripts / "empty").write_text("\n")
    (scripts / "odd").write_text("/fine\nno slash\n")
    (scripts / "backwards").write_text("7 1\n6 1\n")
    (scripts / "no-path").write_text("7 0\n")
    words = arguments.replace("URL", f"http://127.0.0.1:{listener.port}").split()
    output = ran("luajit", "engine.lua", *words, cwd=scripts, timeout=20)
    assert (output.returncode, output.stdout, len(output.stderr.splitlines())) == (2, "", 1)
    assert output.stderr.startswith(f"intop: {message}")
    assert not listener.was_called()


def test_an_empty_text_is_no_argument(listener: Listener, scripts: Path) -> None:
    words = edited("paths.txt", "EMPTY").replace("URL", f"http://127.0.0.1:{listener.port}").split()
    words = ["" if word == "EMPTY" else word for word in words]
    output = ran("luajit", "engine.lua", *words, cwd=scripts, timeout=20)
    assert (output.returncode, output.stderr) == (2, "intop: --paths is empty\n")
    assert not listener.was_called()


def test_right_arguments_give_a_load(listener: Listener, scripts: Path) -> None:
    """Else the wrong ones may all be refused for something else."""
    words = GOOD.replace("URL", f"http://127.0.0.1:{listener.port}").split()
    output = ran("luajit", "engine.lua", *words, cwd=scripts, timeout=20)
    assert (output.stderr, output.returncode) == ("", 0)
    assert listener.was_called()


@pytest.mark.parametrize("script", ["slt", "dlt"])
@pytest.mark.parametrize("missing", ["intop.lua", "arguments.lua", "json.lua"])
def test_a_script_without_its_shared_part_runs_no_load(
    script: str, missing: str, tmp_path: Path
) -> None:
    """Under wrk2, which would go on with a request of its own after an error of the script."""
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    (tmp_path / missing).unlink()
    output = ran("luajit", f"{script}.lua", cwd=tmp_path, timeout=20)
    assert (output.returncode, output.stdout) == (2, "")
    assert re.match(rf"{script}\.lua: .*cannot open.*{missing}", output.stderr)


@pytest.mark.parametrize("missing", ["slt.lua", "intop.lua", "http.lua"])
def test_the_engine_without_one_of_its_files_runs_no_load(
    missing: str, listener: Listener, scripts: Path
) -> None:
    (scripts / missing).unlink()
    words = GOOD.replace("URL", f"http://127.0.0.1:{listener.port}").split()
    output = ran("luajit", "engine.lua", *words, cwd=scripts, timeout=20)
    assert output.returncode != 0
    assert output.stdout == ""
    assert f"cannot open {missing}" in output.stderr.replace("./", "")
    assert not listener.was_called()
