"""HTTP/2: reading heads, and the engine against a crooked server."""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from builders.loads import LUA
from intop.hosts.load.engine import DRAIN_S
from kit.commands import ran
from kit.crooked_http2 import (
    ACK,
    BODY,
    DATA,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    CrookedHttp2,
    crooked_http2,
)
from kit.engine import http2_load as load
from kit.engine import run

# Heads --------------------------------------------------------------------------------------------

READS_HEADS = """
local http = dofile(LUA .. "http.lua")
local http2 = assert(loadfile(LUA .. "http2.lua"))(http, error)
for line in io.lines() do
   local bytes = line:gsub("..", function(digits) return string.char(tonumber(digits, 16)) end)
   local status, length = http2.read_head(require("ffi").cast("const uint8_t *", bytes), 0, #bytes)
   print(status and status .. " " .. length or "no head")
end
"""


def huffman(digits: str) -> bytes:
    """A number as a string by HPACK's Huffman code (RFC 7541, appendix B)."""
    bits = "".join(f"{int(d):05b}" if d < "3" else f"{int(d) + 22:06b}" for d in digits)
    bits += "1" * (-len(bits) % 8)
    code = int(bits, 2).to_bytes(len(bits) // 8)
    return bytes([128 + len(code)]) + code


# Of the heads that nginx 1.22 sent: its name, and a date by Huffman's code.
DATE = "7689aa6355e580ae212e1f6196d07abe94132a693f75040138a019b8cb9704e298b46f"
FILE = (
    f"2088{DATE}5f87497ca589d34d1f5c01366c96d07abe94132a693f75040138a019b8c82e01953168df"
    "00832a47378afe5c8c0cc6cb31ace7f3008919085ad2b583aa62a3848fd24a8f"
)
HEADS = {
    # What nginx sent: a file, a missing one, a status without an entry of the static table.
    FILE: "200 6",
    f"208d{DATE}5f87497ca589d34d1f5c03313533": "404 153",
    f"204803343138{DATE}5f87497ca58ae819aa5c0131": "418 1",
    # The statuses of the static table, and 302 by Huffman's code as in RFC 7541, C.6.1.
    **{f"{128 + n:x}": f"{status} -1"
       for n, status in enumerate((200, 204, 206, 304, 400, 404, 500), 8)},
    "48826402": "302 -1",
    **{"08" + huffman(str(status)).hex(): f"{status} -1" for status in range(100, 1000)},
    **{"885c" + huffman(digits).hex(): f"200 {int(digits)}"
       for digits in ("0", "9", "00", "35", "0123456789", "9876543210", "1" * 13)},
    # Names as strings: `:status`, and by Huffman's code.
    "00073a73746174757303343034": "404 -1",
    "0085b8848d36a303343034": "404 -1",
    # Never indexed, and integers of two bytes: entry 33 with a value of 130 bytes.
    "18033530331f127f03" + "61" * 130: "503 -1",
    # Nothing of this is looked at, be it by Huffman's code or not.
    "0001610162": "0 -1",
    "408aeb10649cb4a5491234568501020304ff": "0 -1",
    "": "0 -1",
}  # fmt: skip
BROKEN = [
    *("80", "be", "7f000161", "3fe11f"),  # no entry, two of a table, and one that grows
    *("0803613030", "0800", "4881ff", "4882ffff", "488264ff", "5c0161"),  # no numbers
    *("ffffffffffffff7f", "7fffffffffffffff01"),  # integers that are too large
    *(FILE[:-2], FILE[:150], "ff", "08", "0803", "080334", "48", "4003", "40036131"),  # cut
]


def heads_read(tmp_path: Path, heads: Iterable[str]) -> list[str]:
    script = tmp_path / "heads.lua"
    script.write_text(f"LUA = '{LUA}/'\n{READS_HEADS}")
    output = ran("luajit", script, input="".join(f"{head}\n" for head in heads), timeout=20)
    assert (output.stderr, output.returncode) == ("", 0)
    return output.stdout.splitlines()


def test_status_and_length_of_a_head_are_read(tmp_path: Path) -> None:
    assert [*HEADS.values()] == heads_read(tmp_path, HEADS)


def test_a_broken_head_is_none(tmp_path: Path) -> None:
    assert ["no head"] * len(BROKEN) == heads_read(tmp_path, BROKEN)


# Odd servers --------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[CrookedHttp2]:
    with crooked_http2() as started:
        yield started


def test_recorded_requests_have_their_paths(server: CrookedHttp2, directory: Path) -> None:
    names = ["/ok", "/parts", "/padded"]
    (directory / "paths.txt").write_text("".join(f"{name}\n" for name in names))
    numbers = [3, 1, 1, 2, 3, 2]
    slots = "".join(f"{n * 50_000} {number}\n" for n, number in enumerate(numbers))
    its_load = load(server.url, script="slt", arrivals="recorded", slots=slots)
    (directory / its_load.slots_file).write_text(slots)
    result = run(its_load, directory)
    assert (result.requests, result.errors) == (6, {})
    assert [one.path for one in server.asked] == [names[number - 1] for number in numbers]


def test_a_connection_begins_as_it_has_to(server: CrookedHttp2, directory: Path) -> None:
    result = run(load(server.url, "/pings"), directory)
    assert (result.requests, result.errors, server.connections) == (50, {}, 2)
    # No table, no pushes, a window of 2 GiB for each stream, and so much for the connection.
    first = bytes.fromhex("000100000000 000200000000 00047fffffff")
    assert [(0, 0, first)] * 2 == [one for one in server.of(SETTINGS) if one[2]]
    assert [one for one in server.of(SETTINGS) if not one[2]] == [(ACK, 0, b"")] * 2
    assert [(0, 0, (2**31 - 1 - 65535).to_bytes(4))] * 2 == server.of(WINDOW_UPDATE)
    pings = {(ACK, 0, f"{one.stream:08}".encode()) for one in server.asked}
    assert pings == set(server.of(PING))


@pytest.mark.parametrize(
    "path",
    [
        *("/ok", "/parts", "/empty-end", "/padded", "/continued", "/early-hints", "/trailer"),
        *("/huffman", "/unknown", "/no-body"),
    ],
)
def test_every_kind_of_answer_is_understood(
    path: str, server: CrookedHttp2, directory: Path
) -> None:
    (directory / "paths.txt").write_text(f"{path}\n")
    body = b"" if path == "/no-body" else BODY
    (directory / "expected").write_text(f"{path} {len(body)} {zlib.crc32(body)}\n")
    its_load = load(server.url, script="slt", expected_file="expected")
    result = run(its_load, directory)
    assert (result.requests, result.errors, server.connections) == (50, {}, 2)
    assert result.histogram.percentile_ms(99) < 900


def test_an_answer_may_be_cut_anywhere(server: CrookedHttp2, directory: Path) -> None:
    (directory / "paths.txt").write_text("/bytewise\n")
    (directory / "expected").write_text(f"/bytewise 3 {zlib.crc32(b'abc')}\n")
    its_load = load(server.url, script="slt", expected_file="expected", each=1)
    result = run(its_load, directory)
    assert (result.requests, result.errors) == (50, {})


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/error", "status"),
        ("/hangs", "timeout"),
        ("/half-hangs", "timeout"),
        ("/resets", "reset"),
        ("/refuses", "reset"),
        ("/leaves-at-once", "closed"),
        *((path, "malformed") for path in ("/cut", "/no-head", "/no-status", "/a-table")),
        *((path, "malformed") for path in ("/too-long", "/pushes", "/between")),
    ],
)
def test_what_failed_counts_as_the_timeout_at_least(
    path: str, kind: str, server: CrookedHttp2, directory: Path
) -> None:
    # Where a time-out is not what is looked for, a busy machine must not make one.
    timeout_s = 0.6 if kind == "timeout" else 10
    result = run(load(server.url, path, each=25, timeout_s=timeout_s), directory)
    assert (50, {kind: 50}) == (result.requests, result.errors)
    assert 1000 * timeout_s <= result.histogram.percentile_ms(1)
    assert result.achieved_rps == 0


def test_a_closed_connection_is_an_error(server: CrookedHttp2, directory: Path) -> None:
    result = run(load(server.url, "/closes", each=25), directory)
    assert sum(result.errors.values()) == 50
    assert {"read", "closed"} >= set(result.errors)


def test_a_wrong_content_is_an_error(server: CrookedHttp2, directory: Path) -> None:
    (directory / "paths.txt").write_text("/ok\n/parts\n")
    right = f"{len(BODY)} {zlib.crc32(BODY)}"
    (directory / "expected").write_text(f"/ok {right}1\n/parts {right}\n")
    result = run(load(server.url, script="slt", expected_file="expected"), directory)
    wrong = sum(one.path == "/ok" for one in server.asked)
    assert {"content": wrong} == result.errors
    assert 10 < wrong < 40


def test_a_timeout_gives_up_its_stream_and_keeps_the_connection(
    server: CrookedHttp2, directory: Path
) -> None:
    (directory / "paths.txt").write_text("/ok\n/hangs\n")
    result = run(load(server.url, script="slt", each=50, timeout_s=0.3), directory)
    hung = {one.stream for one in server.asked if one.path == "/hangs"}
    assert set(result.errors) == {"timeout"}
    assert 10 < result.errors["timeout"] < 40
    assert server.connections == 2
    assert hung >= {stream for _, stream, code in server.of(RST_STREAM) if code[3] == 8}
    assert result.errors["timeout"] == len(server.of(RST_STREAM))


def test_a_connection_that_seems_dead_takes_no_more_requests(
    server: CrookedHttp2, directory: Path
) -> None:
    run(load(server.url, "/hangs", each=50, timeout_s=0.2), directory)
    assert server.connections > 3


def test_what_is_unanswered_at_the_end_is_pending(server: CrookedHttp2, directory: Path) -> None:
    result = run(load(server.url, "/hangs", each=10), directory)
    assert result.errors == {"pending": 50}
    # The last of them is due at the end of the half second, the first at its beginning.
    drain_ms = 1000 * DRAIN_S
    assert drain_ms <= result.histogram.percentile_ms(0)
    assert result.histogram.max_ms < drain_ms + 700
    assert len(server.asked) == 20


def test_a_run_that_is_certainly_too_late_is_stopped(server: CrookedHttp2, directory: Path) -> None:
    changes = {"duration_s": 20, "prune_above_ms": 100, "prune_count": 20}
    result = run(load(server.url, "/hangs", each=10, **changes), directory)
    assert result.stopped_after_s is not None
    assert result.stopped_after_s < 5


def test_the_server_says_how_many_it_takes_at_once(directory: Path) -> None:
    with crooked_http2(settings=bytes.fromhex("0003 00000002")) as server:
        result = run(load(server.url, "/slow", connections=1), directory)
    assert (result.requests, result.errors, server.most) == (50, {}, 2)
    assert len(server.asked) == 50


def test_a_request_that_was_refused_is_sent_again(server: CrookedHttp2, directory: Path) -> None:
    result = run(load(server.url, "/one-at-a-time", connections=1, rate_rps=50), directory)
    assert (result.requests, result.errors, server.most) == (25, {}, 1)
    assert len(server.asked) > 25


def test_what_a_leaving_server_did_not_look_at_is_sent_again(
    server: CrookedHttp2, directory: Path
) -> None:
    result = run(load(server.url, "/leaves-after-5", connections=1, rate_rps=200), directory)
    assert (result.requests, result.errors) == (100, {})
    assert pytest.approx(server.connections, abs=1) == 20
    assert len(server.asked) > 100
    assert len({one.path for one in server.asked}) == 100


@pytest.mark.parametrize("window", [65535, 1000, 200_000])
def test_bodies_go_out_as_the_server_takes_them(window: int, directory: Path) -> None:
    with crooked_http2(settings=b"\0\4" + window.to_bytes(4)) as server:
        its_load = load(server.url, "/takes-a-body", connections=1, rate_rps=20, method="POST",
                        body_bytes=150_000)  # fmt: skip
        result = run(its_load, directory)
    assert (result.requests, result.errors) == (10, {})
    assert [*server.bodies.values()] == [b"x" * 150_000] * 10
    assert max(len(payload) for _, _, payload in server.of(DATA)) <= 16384
    assert window > 65535 or not server.overruns


def test_a_body_that_is_not_wanted_is_not_sent(server: CrookedHttp2, directory: Path) -> None:
    changes = {"method": "POST", "body_bytes": 500_000, "rate_rps": 20}
    result = run(load(server.url, "/refuses-a-body", **changes), directory)
    assert result.errors == {"status": 10}
    assert len(server.of(RST_STREAM)) == 10
    assert sum(len(payload) for _, _, payload in server.of(DATA)) <= 2 * 65535


def test_slow_readers_take_their_time(server: CrookedHttp2, directory: Path) -> None:
    # 5 answers of 10 KB on each connection, at 40 KB/s.
    result = run(load(server.url, rate_rps=20, read_kb_per_s=40), directory)
    assert result.errors == {}
    assert 300 < result.histogram.max_ms < 1700
