"""Numbers of the user's own: by commands, and by what answers as Prometheus does."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from intop.deploy.canary import own_metrics
from intop.deploy.canary.own_metrics import asking, check, check_hosts
from intop.domain.canary import OwnMetric
from intop.errors import CommandError, UsageError
from kit.local_host import LocalHost
from kit.namespace_host import wait_until


def number(metric: OwnMetric, seconds: float = 60) -> float:
    return asking(LocalHost(), {"orders": metric})(seconds, 1764280000)["orders"]


def by(command: str) -> OwnMetric:
    return OwnMetric(better="lower", command=command)


def test_a_command_prints_a_number_and_knows_the_blocks_seconds() -> None:
    assert number(by("echo 2.5e3")) == 2500
    assert number(by("expr $INTOP_BLOCK_SECONDS \\* 2"), 12.4) == 24
    assert number(by('echo "it\'s" | wc -c')) == 5


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo no such table >&2; exit 3", r"exit code 3 .*no such table"),
        ("echo many", "'many' is no number above 0"),
        ("echo 0", "'0' is no number above 0"),
        ("echo -1", "'-1' is no number above 0"),
        ("echo nan", "'nan' is no number above 0"),
        ("true", "'' is no number above 0"),
    ],
)
def test_a_command_without_a_number_is_named(command: str, message: str) -> None:
    with pytest.raises(CommandError, match=rf"^lb: \[canary\.metrics\.orders\]: .*{message}"):
        number(by(command))
    with pytest.raises(UsageError, match=r"^my\.toml: lb: .*then run: intop canary$"):
        check(LocalHost(), {"orders": by(command)}, "my.toml", 60)


def test_the_host_ends_a_command_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_metrics, "LIMIT_S", 0.5)
    with pytest.raises(CommandError, match="exit code 124"):
        number(by(f"echo $$ > {tmp_path}/pid; sleep 600 & echo $! >> {tmp_path}/pid; wait"))
    for pid in (tmp_path / "pid").read_text().split():
        state = Path(f"/proc/{pid}/stat")
        wait_until(lambda state=state: not alive(state), "its end")  # type: ignore[misc]


def alive(state: Path) -> bool:
    """Whether a process runs; one that nobody waits for does not."""
    try:
        return state.read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_a_query_about_all_hosts_is_refused_for_several() -> None:
    all_hosts = OwnMetric(better="lower", prometheus="http://p:9090", query="sum(up)")
    each = OwnMetric(better="lower", prometheus="http://p:9090", query='up{host="$host"}')
    check_hosts({"a": all_hosts, "b": by("true")}, "my.toml", 1)
    check_hosts({"a": each, "b": by("true")}, "my.toml", 2)
    with pytest.raises(UsageError, match=r"my\.toml: \[canary\.metrics\.a\] query: 2 hosts"):
        check_hosts({"a": all_hosts}, "my.toml", 2)


@contextmanager
def prometheus(*answers: tuple[int, object]) -> Iterator[tuple[str, list[str]]]:
    """The URL of a server with these answers, and the queries that it was asked."""
    queries: list[str] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            assert parts.path == "/prom/api/v1/query"
            asked = parse_qs(parts.query)
            assert asked["time"] == ["1764280000.000"]
            queries.extend(asked["query"])
            status, body = left.pop(0)
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/prom", queries
        finally:
            server.shutdown()
            thread.join()


def vector(*values: str) -> object:
    series = [{"metric": {}, "value": [1764280000.1, value]} for value in values]
    return {"status": "success", "data": {"resultType": "vector", "result": series}}


def test_prometheus_is_asked_for_one_number() -> None:
    scalar = {"status": "success", "data": {"resultType": "scalar", "result": [1.5, "4"]}}
    with prometheus((200, vector("0.25")), (200, scalar)) as (url, queries):
        metric = OwnMetric(better="lower", prometheus=f"{url}/", query='rate(x{h="$host"}[$block])')
        assert number(metric, 59.7) == 0.25
        assert number(metric) == 4
    assert queries == ['rate(x{h="lb"}[60s])'] * 2


def test_prometheus_is_asked_before_commands(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with prometheus() as (url, _):
        pass
    metrics = {
        "first": by(f"touch {done}; echo 1"),
        "second": OwnMetric(better="lower", prometheus=url, query="x"),
    }
    with pytest.raises(CommandError, match=r"\[canary\.metrics\.second\]"):
        asking(LocalHost(), metrics)(60, 1764280000)
    assert not done.exists()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, {"status": "error", "error": "parse error: no closing"}, "parse error: no closing"),
        (502, "bad gateway", "HTTP Error 502"),
        (200, vector(), "selects 0 series in place of 1"),
        (200, vector("1", "2"), "selects 2 series in place of 1"),
        (200, vector("NaN"), "'NaN' is no number above 0"),
        (200, {"data": {"resultType": "matrix", "result": []}}, "neither a scalar nor an instant"),
        (200, "<html>", "Expecting value"),
        (200, "[]", "no object of JSON"),
    ],
)
def test_another_answer_is_named(status: int, body: object, message: str) -> None:
    with prometheus((status, body)) as (url, _):
        metric = OwnMetric(better="lower", prometheus=url, query="x")
        with pytest.raises(CommandError, match=rf"\[canary\.metrics\.orders\]: .*{message}"):
            number(metric)


def test_a_server_that_does_not_speak_http_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(CommandError, match=r"^127\.0\.0\.1:\d+: .*SSH-2\.0-x"):
            number(OwnMetric(better="lower", prometheus=url, query="x"))
        thread.join()


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:9x"])
def test_a_url_that_is_none_is_named(url: str) -> None:
    with pytest.raises(CommandError, match=r"\[canary\.metrics\.orders\]: "):
        number(OwnMetric(better="lower", prometheus=url, query="x"))


def test_a_server_that_is_away_is_named() -> None:
    with prometheus() as (url, _):
        pass
    metric = OwnMetric(better="lower", prometheus=url, query="x")
    with pytest.raises(CommandError, match=r"^127\.0\.0\.1:\d+: .*can't be reached"):
        number(metric)
