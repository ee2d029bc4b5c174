"""HTTP/2: reading heads, and the engine against a crooked server and a real nginx."""

import os
import shutil
import signal
import socket
import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from builders.loads import LUA
from intop.domain.workload import Clients
from intop.hosts.fetch import parse_fetched
from intop.hosts.load.engine import DRAIN_S
from intop.hosts.load.tools import FIND_TOOL, command, parse_output, parse_tools, planned_run_s
from intop.hosts.load.types import Load, LoadResult, LoadTool
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
from kit.crooked_server import CrookedServer, crooked_server

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


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    return tmp_path


def engine() -> LoadTool:
    """The engine of this machine. A missing one fails the test."""
    results = parse_tools(ran("sh", "-c", FIND_TOOL, check=True).stdout)
    return next(tool for tool in results if tool.name == "engine")


def load(url: str, path: str = "/ok", *, each: int = 10, **changes: Any) -> Load:
    """50 requests in half a second, on 2 connections that carry `each` of them at once."""
    behaviour = {key: changes.pop(key) for key in {*changes} & Clients.__dataclass_fields__.keys()
                 if key != "connections"}  # fmt: skip
    clients = Clients(http="2", streams_per_connection=each, **behaviour)
    values: dict[str, Any] = {"script": "dlt", "url": url, "dynamic_path": path}
    values |= {"rate_rps": 100, "connections": 2, "threads": 2, "duration_s": 0.5, "seed": 7}
    return Load(**(values | {"clients": clients} | changes))


def started(its_load: Load, directory: Path) -> subprocess.Popen[str]:
    words = ["sh", "-c", command(engine(), its_load, str(directory))]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str], its_load: Load) -> LoadResult:
    """What was measured. That every request has one place is for `parse_output` to see."""
    out, problem = process.communicate(timeout=planned_run_s(engine(), its_load) + 60)
    assert (problem, process.returncode) == ("", 0)
    return parse_output(out, engine(), its_load)


def run(its_load: Load, directory: Path) -> LoadResult:
    return finished(started(its_load, directory), its_load)


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


# A real nginx -------------------------------------------------------------------------------------

PAGE = b"0123456789abcdef" * 2000
LARGE = os.urandom(3_000_000)


@dataclass(frozen=True)
class Nginx:
    """Its ports, and the log: one `connection URI status protocol` a line."""

    h2: int
    h2_tls: int
    plain: int
    plain_tls: int
    few: int
    log: Path
    pid: int

    def url(self, name: str) -> str:
        """Such as of the port `h2_tls`, without a path."""
        return f"http{'s' if name.endswith('tls') else ''}://127.0.0.1:{getattr(self, name)}"

    def logged(self, path: str) -> list[list[str]]:
        """The lines of this path."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [line for line in lines if line[1].startswith(path)]


@pytest.fixture(scope="module")
def uploads() -> Iterator[CrookedServer]:
    with crooked_server() as started:
        yield started


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory, uploads: CrookedServer) -> Iterator[Nginx]:
    home = tmp_path_factory.mktemp("nginx")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-batch"]
    ran(
        *words, "-subj", "/CN=t", "-keyout", home / "key.pem", "-out", home / "cert.pem", check=True
    )
    (home / "page").write_bytes(PAGE)
    (home / "large").write_bytes(LARGE)
    ports = free_ports(5)
    (home / "nginx.conf").write_text(nginx_configuration(home, ports, uploads.url))
    process = subprocess.Popen(["nginx", "-p", home, "-e", "error.log", "-c", home / "nginx.conf"])
    try:
        wait_for(ports[0])
        yield Nginx(*ports, log=home / "access.log", pid=process.pid)
    finally:
        process.terminate()
        process.wait(timeout=10)


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def wait_for(port: int) -> None:
    end = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert time.monotonic() < end, f"nginx does not listen on port {port}"
            time.sleep(0.05)
        else:
            return


def nginx_configuration(home: Path, ports: list[int], uploads: str) -> str:
    user = "user root;" if os.geteuid() == 0 else ""  # pytest's directories are private
    temporary = " ".join(
        f"{kind}_temp_path {home}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    h2, h2_tls, plain, plain_tls, few = (f"listen 127.0.0.1:{port}" for port in ports)
    return f"""
    {user} daemon off; worker_processes 1; pid {home}/nginx.pid;
    events {{ worker_connections 512; }}
    http {{
        {temporary}
        ssl_certificate {home}/cert.pem; ssl_certificate_key {home}/key.pem;
        log_format lines '$connection $request_uri $status $server_protocol $http_x_test';
        access_log {home}/access.log lines;
        client_max_body_size 10m; keepalive_requests 100000; root {home};
        server {{
            {h2} http2; {h2_tls} ssl http2; {plain}; {plain_tls} ssl;
            location /dynamic {{ return 200 "$arg_r"; }}
            location /slow {{ proxy_pass {uploads}/ok; }}
            location /upload {{ proxy_pass {uploads}/ok; }}
            location /cut {{ proxy_pass {uploads}/cut; }}
        }}
        server {{ {few} http2; keepalive_requests 7; location / {{ return 200 "a"; }} }}
    }}
    """


@pytest.mark.parametrize("port", ["h2", "h2_tls"])
def test_nginx_is_asked_at_the_rate(port: str, nginx: Nginx, directory: Path) -> None:
    its_load = load(
        nginx.url(port),
        f"/dynamic/{port}",
        rate_rps=400,
        duration_s=1,
        headers=("X-Test: a", "B: c"),
    )
    result = run(its_load, directory)
    assert (result.requests, result.errors) == (400, {})
    assert result.achieved_rps == pytest.approx(400, rel=0.1)
    lines = nginx.logged(f"/dynamic/{port}")
    assert {tuple(line[2:]) for line in lines} == {("200", "HTTP/2.0", "a")}
    assert 400 == len({line[1] for line in lines}) == len(lines)
    # Connections take turns.
    assert pytest.approx([*Counter(line[0] for line in lines).values()], abs=30) == [200, 200]


def test_requests_share_a_connection(nginx: Nginx, directory: Path) -> None:
    """An answer takes 200 ms: 5 a second one after the other, and here are 50."""
    its_load = load(nginx.url("h2"), "/slow?ms=200", connections=1, rate_rps=50, each=30)
    result = run(replace(its_load, duration_s=1), directory)
    assert (result.requests, result.errors) == (50, {})
    assert len({line[0] for line in nginx.logged("/slow")}) == 1
    assert result.achieved_rps == pytest.approx(40, abs=8)  # those of the last 200 ms come late
    assert 200 <= result.histogram.percentile_ms(1) <= result.histogram.percentile_ms(50) < 300
    alone = run(replace(its_load, duration_s=1, clients=Clients(http="2")), directory)
    assert alone.achieved_rps < 10
    assert alone.errors["pending"] > 30


@pytest.mark.parametrize("port", ["h2", "h2_tls"])
def test_large_answers_are_whole(port: str, nginx: Nginx, directory: Path) -> None:
    (directory / "paths.txt").write_text("/large\n/page\n")
    (directory / "expected").write_text(
        f"/large {len(LARGE)} {zlib.crc32(LARGE)}\n/page {len(PAGE)} {zlib.crc32(PAGE)}\n"
    )
    its_load = load(nginx.url(port), script="slt", rate_rps=40, expected_file="expected")
    result = run(its_load, directory)
    assert (result.requests, result.errors) == (20, {})
    assert result.bytes > 5 * len(LARGE)


@pytest.mark.parametrize("port", ["h2", "h2_tls"])
def test_bodies_reach_the_server(
    port: str, nginx: Nginx, uploads: CrookedServer, directory: Path
) -> None:
    uploads.asked.clear()
    its_load = load(
        nginx.url(port), "/upload", rate_rps=20, method="POST", body_bytes=300_000, connections=1
    )
    result = run(its_load, directory)
    assert (result.requests, result.errors) == (10, {})
    assert [(one.method, one.body) for one in uploads.asked] == [("POST", b"x" * 300_000)] * 10


def test_an_answer_that_nginx_gets_in_part_is_an_error(nginx: Nginx, directory: Path) -> None:
    result = run(load(nginx.url("h2"), "/cut", rate_rps=40), directory)
    assert result.errors == {"reset": 20}


def test_a_reload_of_nginx_loses_no_request(nginx: Nginx, directory: Path) -> None:
    its_load = load(nginx.url("h2_tls"), "/dynamic/reload", rate_rps=500, duration_s=1.5)
    process = started(its_load, directory)
    while len(nginx.logged("/dynamic/reload")) < 100:
        time.sleep(0.02)
    os.kill(nginx.pid, signal.SIGHUP)
    result = finished(process, its_load)
    assert (result.requests, result.errors) == (750, {})
    assert len({line[0] for line in nginx.logged("/dynamic/reload")}) >= 3


def test_nginx_ends_connections_after_so_many_requests(nginx: Nginx, directory: Path) -> None:
    result = run(load(nginx.url("few"), "/few", rate_rps=600), directory)
    assert (result.requests, result.errors) == (300, {})
    carried = Counter(line[0] for line in nginx.logged("/few"))
    # But for the two connections that are open at the end.
    fewer = [count for count in carried.values() if count != 7]
    assert max(carried.values()) == 7
    assert len(fewer) <= 2


@pytest.mark.parametrize(("requests", "each"), [(1, 1), (5, 1), (5, 10)])
def test_a_connection_carries_so_many_requests(
    requests: int, each: int, nginx: Nginx, directory: Path
) -> None:
    path = f"/dynamic/carried-{requests}-{each}"
    clients = {"requests_per_connection": requests, "tls_resume": True}
    result = run(load(nginx.url("h2_tls"), path, each=each, **clients), directory)
    assert (result.requests, result.errors) == (50, {})
    carried = Counter(line[0] for line in nginx.logged(path))
    assert {requests} == {*carried.values()}


def test_a_warm_up_is_on_the_same_connections(nginx: Nginx, directory: Path) -> None:
    result = run(load(nginx.url("h2"), "/dynamic/warm", warmup_s=0.5), directory)
    assert (result.requests, result.errors) == (50, {})
    assert [*Counter(line[0] for line in nginx.logged("/dynamic/warm")).values()] == [50, 50]


def test_streams_rest_for_the_think_time(nginx: Nginx, directory: Path) -> None:
    # 4 streams that rest for 100 ms carry 40 requests a second.
    result = run(load(nginx.url("h2"), "/dynamic/think", each=2, think_ms=100), directory)
    assert 10 < result.achieved_rps * 0.5 <= 24


@pytest.mark.parametrize("port", ["plain", "plain_tls"])
def test_a_server_without_http2_is_one_clear_error(
    port: str, nginx: Nginx, directory: Path
) -> None:
    its_load = load(nginx.url(port))
    out, problem = started(its_load, directory).communicate(timeout=20)
    assert out == ""
    assert (
        f"intop: 127.0.0.1:{getattr(nginx, port)} doesn't offer HTTP/2. nginx does with "
        "`listen ... http2`, from 1.25.1 on with `http2 on`\n"
    ) == problem


@pytest.mark.parametrize("port", ["h2", "h2_tls", "plain", "plain_tls"])
def test_paths_are_fetched_over_http2(port: str, nginx: Nginx, directory: Path) -> None:
    words = ["--fetch", "--http", "2", "--url", nginx.url(port), "--seed", "1"]
    text = ran("luajit", "engine.lua", *words, "--paths", "/dev/stdin", cwd=directory,
               input="/page\n/none\n")  # fmt: skip
    assert (text.stderr, text.returncode) == ("", 0)
    page, none = parse_fetched(text.stdout, ("/page", "/none"))
    if port.startswith("plain"):
        assert {(one.problem, one.status) for one in (page, none)} == {("http2", 0)}
    else:
        assert ("", 200, zlib.crc32(PAGE)) == (page.problem, page.status, page.check)
        assert (none.problem, none.status) == ("status", 404)
