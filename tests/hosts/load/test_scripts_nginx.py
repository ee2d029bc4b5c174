"""The Lua scripts: whole runs of them against a real nginx, by the engine and by wrk2."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builders.loads import load
from intop.hosts.load.tools import (
    FIND_TOOL,
    command,
    parse_output,
    parse_tools,
    planned_run_s,
    threads_of,
)
from intop.hosts.load.types import Load, LoadResult, LoadTool
from kit import studies
from kit.commands import ran
from kit.local_nginx import free_ports, local_nginx

PATHS = [f"/file{number}.html" for number in range(12)]
# wrk2 needs 12 s and is not packaged by Debian; LuaJIT is required on every machine that tests.
TOOLS = ["engine"] + (["wrk2"] if shutil.which("wrk2") else [])


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
    (port,) = free_ports(1)
    http = f"""
        log_format uri '$request_uri $status';
        access_log {home}/access.log uri;
        server {{
            listen 127.0.0.1:{port};
            root {home};
            location = /dynamic {{ return 200 "$arg_r"; }}
        }}
    """
    with local_nginx(home, http, port):
        yield Server(url=f"http://127.0.0.1:{port}", access_log=home / "access.log")


@pytest.fixture
def scripts(directory: Path) -> Path:
    (directory / "paths.txt").write_text("\n".join(PATHS) + "\n")
    return directory


def installed(name: str) -> LoadTool:
    """The tool of this machine. A missing one fails the test."""
    actual = parse_tools(ran("sh", "-c", FIND_TOOL, check=True).stdout)
    return next(tool for tool in actual if tool.name == name)


def run_load(tool: LoadTool, its_load: Load, directory: Path) -> LoadResult:
    limit_s = planned_run_s(tool, its_load) + 20
    output = ran("sh", "-c", command(tool, its_load, str(directory)), timeout=limit_s)
    assert (output.stderr, output.returncode) == ("", 0)
    return parse_output(output.stdout, tool, its_load)


def small_load(script: str, server: Server, **changes: Any) -> Load:
    changes = {"rate_rps": 400, "connections": 8, "duration_s": 2} | changes
    return load(script=script, url=server.url, **changes)


@pytest.mark.parametrize("name", TOOLS)
def test_slt_asks_for_all_paths_alike_at_the_rate(name: str, server: Server, scripts: Path) -> None:
    before = len(server.requested())
    result = run_load(installed(name), small_load("slt", server), scripts)
    assert result.errors == {}
    assert result.cpu_s is not None
    assert result.cpu_s > 0
    assert result.achieved_rps == pytest.approx(400, rel=0.2)
    requested = Counter(server.requested()[before:])
    assert set(PATHS) == set(requested)
    sent = 400 * result.run_s if name == "wrk2" else result.requests
    assert requested.total() == pytest.approx(sent, abs=12)
    mean = requested.total() / len(PATHS)
    assert 0.5 * mean < min(requested.values()) <= max(requested.values()) < 1.5 * mean


@pytest.mark.parametrize("name", TOOLS)
def test_dlt_never_asks_twice_for_a_url(name: str, server: Server, scripts: Path) -> None:
    """Streams that share a load have sequences of their own, as wrk2's threads do."""
    before = len(server.requested())
    tool, its_load = installed(name), small_load("dlt", server)
    loads = [its_load] if name == "wrk2" else [
        small_load("dlt", server, stream=stream, streams=2, seed=7 + stream) for stream in (0, 1)
    ]  # fmt: skip
    results = [run_load(tool, one, scripts) for one in loads]
    assert [{}] * len(loads) == [result.errors for result in results]
    assert all(result.achieved_rps == pytest.approx(400, rel=0.2) for result in results)
    measured = sum(result.requests for result in results)
    # nginx writes the line of a request after its answer.
    studies.wait_for(lambda: len(server.requested()) >= before + measured, "all lines of the log")
    requested = server.requested()[before:]
    assert measured <= len(requested) == len(set(requested))
    numbers = [re.fullmatch(r"/dynamic\?r=([1-9]\d{8})(\d+)", uri) for uri in requested]
    assert all(numbers)
    parts = threads_of(tool, its_load) * len(loads)
    assert parts == 2
    random_parts = [{actual[1] for actual in numbers if actual and int(actual[2]) % parts == part}
                    for part in range(parts)]  # fmt: skip
    assert all(len(part) > 200 / parts for part in random_parts)
    assert len(random_parts[0] & random_parts[1]) < 5
