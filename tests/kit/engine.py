"""The load engine of this machine, run on a load in a process of its own."""

import subprocess
from pathlib import Path
from typing import Any

from intop.domain.histogram import Histogram
from intop.domain.workload import Clients
from intop.hosts.load.tools import FIND_TOOL, command, parse_output, parse_tools, planned_run_s
from intop.hosts.load.types import Load, LoadResult, LoadTool
from kit.commands import ran
from kit.crooked_server import CrookedServer


def engine() -> LoadTool:
    """The engine of this machine. A missing one fails the test."""
    actual = parse_tools(ran("sh", "-c", FIND_TOOL, check=True).stdout)
    return next(tool for tool in actual if tool.name == "engine")


def load(server: CrookedServer, path: str = "/ok", **changes: Any) -> Load:
    """200 requests/s for a second, to one path, with a number that makes each of them unique."""
    values: dict[str, Any] = {"script": "dlt", "url": server.url, "dynamic_path": path}
    values |= {"rate_rps": 200, "connections": 16, "threads": 2, "duration_s": 1, "seed": 7}
    return Load(**(values | changes))


def http2_load(url: str, path: str = "/ok", *, each: int = 10, **changes: Any) -> Load:
    """50 requests in half a second, on 2 connections that carry `each` of them at once."""
    behaviour = {key: changes.pop(key) for key in {*changes} & Clients.__dataclass_fields__.keys()
                 if key != "connections"}  # fmt: skip
    clients = Clients(http="2", streams_per_connection=each, **behaviour)
    values: dict[str, Any] = {"script": "dlt", "url": url, "dynamic_path": path}
    values |= {"rate_rps": 100, "connections": 2, "threads": 2, "duration_s": 0.5, "seed": 7}
    return Load(**(values | {"clients": clients} | changes))


def started(its_load: Load, directory: Path, *more: str) -> subprocess.Popen[str]:
    text = command(engine(), its_load, str(directory))
    words = ["sh", "-c", text.replace("engine.lua", " ".join(["engine.lua", *more]), 1)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str], its_load: Load) -> LoadResult:
    out, problem = process.communicate(timeout=planned_run_s(engine(), its_load) + 60)
    assert (problem, process.returncode) == ("", 0)
    return parse_output(out, engine(), its_load)


def run(its_load: Load, directory: Path, *more: str) -> LoadResult:
    return finished(started(its_load, directory, *more), its_load)


def share_above(histogram: Histogram, ms: float) -> float:
    return sum(n for value, n in histogram.pairs() if value > ms * 1000) / histogram.total
