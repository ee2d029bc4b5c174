"""HTTP/2: the engine against a real nginx."""

import os
import signal
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from intop.domain.workload import Clients
from intop.hosts.fetch import parse_fetched
from kit.commands import ran
from kit.crooked_server import CrookedServer, crooked_server
from kit.engine import finished, run, started
from kit.engine import http2_load as load
from kit.local_nginx import free_ports, local_nginx

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
    with local_nginx(home, servers(home, ports, uploads.url), ports[0]) as pid:
        yield Nginx(*ports, log=home / "access.log", pid=pid)


def servers(home: Path, ports: list[int], uploads: str) -> str:
    h2, h2_tls, plain, plain_tls, few = (f"listen 127.0.0.1:{port}" for port in ports)
    return f"""
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
    assert result.achieved_rps == pytest.approx(40, abs=8)  # answers of the last 200 ms are late
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
