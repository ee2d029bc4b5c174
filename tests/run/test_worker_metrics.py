"""The server of a worker's metrics, with clients that say nothing, little, or too much."""

import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from intop.run import worker_metrics
from intop.run.worker_metrics import MOST, Handler, Server
from kit.studies import wait_for

LARGE = b"x" * 50_000_000
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"


def application(environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [LARGE if environ["PATH_INFO"] == "/large" else b"up 1\n"]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server("127.0.0.1", 0, application)
    made.start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> float:
    """A limit that a test can wait for."""
    monkeypatch.setattr(worker_metrics, "LIMIT_S", 1.0)
    monkeypatch.setattr(Handler, "timeout", 1.0)
    return 1.0


def connected(server: Server) -> socket.socket:
    host, port = server.server_address[:2]
    return socket.create_connection((str(host), int(port)), timeout=30)


def answer(server: Server) -> bytes:
    with connected(server) as client:
        client.sendall(REQUEST)
        return b"".join(iter(lambda: client.recv(65_536), b""))


def is_over(client: socket.socket) -> bool:
    client.settimeout(0.05)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def threads() -> int:
    return threading.active_count()


@pytest.mark.parametrize("output", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: a\r\n"], ids=repr)
def test_silent_clients_hold_few_threads_and_keep_nobody_away(
    server: Server, output: bytes
) -> None:
    before = threads()
    with ExitStack() as stack:
        for _ in range(5 * MOST):
            client = stack.enter_context(connected(server))
            client.sendall(output)
        assert answer(server)[-5:] == b"up 1\n"
        wait_for(lambda: threads() <= before + MOST, "too many threads")
    wait_for(lambda: threads() <= before, "threads are left")
    assert server._begun == {}


def test_a_silent_client_is_sent_away_when_its_time_is_over(
    server: Server, impatient: float
) -> None:
    before, begun = threads(), time.monotonic()
    with connected(server) as client:
        wait_for(lambda: is_over(client), "it is still connected")
        assert impatient / 2 < time.monotonic() - begun < 20 * impatient
        wait_for(lambda: threads() <= before, "its thread is left")


def test_a_client_that_says_a_byte_now_and_then_is_too(server: Server, impatient: float) -> None:
    before, begun = threads(), time.monotonic()
    with connected(server) as client:
        with suppress(OSError):
            while time.monotonic() - begun < 20 * impatient:
                client.sendall(b"G")
                time.sleep(impatient / 10)
        assert time.monotonic() - begun < 20 * impatient
        wait_for(lambda: threads() <= before, "its thread is left")


def test_a_client_that_does_not_read_is_too(server: Server, impatient: float) -> None:
    before = threads()
    with connected(server) as client:
        client.sendall(REQUEST.replace(b"metrics", b"large"))
        wait_for(lambda: threads() > before, "nobody serves it")
        wait_for(lambda: threads() <= before, "its thread is left")


def test_clients_that_go_away_say_nothing_on_stderr(
    server: Server, impatient: float, capfd: pytest.CaptureFixture[str]
) -> None:
    before = threads()
    for output in (b"", b"GET", REQUEST.replace(b"metrics", b"large"), b"\xff\n\n", b"x" * 70_000):
        with connected(server) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.sendall(output)
    with connected(server) as late:
        wait_for(lambda: is_over(late), "it is still connected")
    wait_for(lambda: threads() <= before, "threads are left")
    assert tuple(capfd.readouterr()) == ("", "")


def test_it_serves_on_ipv6_too() -> None:
    made = Server("::1", 0, application)
    made.start()
    try:
        assert made.address_family == socket.AF_INET6
        assert answer(made)[-5:] == b"up 1\n"
    finally:
        made.shutdown()
        made.server_close()
