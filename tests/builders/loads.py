"""Loads, the tools that send them, and what these really printed (tests/data/load)."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from intop.hosts.load.tools import parse_output
from intop.hosts.load.types import Load, LoadResult, LoadTool

LUA = Path(__file__).parents[2] / "lua"
DATA = Path(__file__).parents[1] / "data" / "load"

ENGINE = LoadTool(name="engine", path="/usr/bin/luajit", version="LuaJIT 2.1.0-beta3")
WRK2 = LoadTool(name="wrk2", path="/opt/wrk2/wrk", version="4.0.0")


def load(**changes: Any) -> Load:
    """1,500 requests/s of static files on 32 connections for 3 s."""
    values: dict[str, Any] = {"script": "slt", "url": "http://10.0.0.1:80", "rate_rps": 1500}
    values |= {"connections": 32, "threads": 2, "duration_s": 3, "seed": 7}
    return Load(**(values | changes))


SLT = load(url="http://127.0.0.1:18080")
DLT = replace(SLT, script="dlt")
CAPTURED = {
    "engine-slt.txt": (ENGINE, SLT),
    "engine-dlt.txt": (ENGINE, DLT),
    "engine-dlt-stall.txt": (ENGINE, replace(DLT, duration_s=4)),
    "engine-slt-errors.txt": (ENGINE, replace(SLT, rate_rps=400, duration_s=4, timeout_s=1)),
    "wrk2-slt.txt": (WRK2, SLT),
    "wrk2-dlt.txt": (WRK2, DLT),
    "wrk2-dlt-stall.txt": (WRK2, replace(DLT, duration_s=4)),
    "wrk2-slt-errors.txt": (WRK2, replace(SLT, rate_rps=400, duration_s=4, timeout_s=1)),
}
"""What printed an output, and the load that it was asked for.

In `stall` the server was stopped once, for 400 ms. In `errors` it was stopped for longer than the
timeout, and some of its paths were missing.
"""


def of(tool: str) -> list[str]:
    """The captured outputs of a tool."""
    return [name for name in sorted(CAPTURED) if name.startswith(f"{tool}-")]


def captured(name: str) -> tuple[str, LoadResult]:
    """A captured output, and what it was read as."""
    tool, its_load = CAPTURED[name]
    text = (DATA / name).read_text()
    return text, parse_output(text, tool, its_load)


def edited(name: str, change: Callable[[dict[str, Any]], object]) -> str:
    """A captured output with its JSON changed."""
    text = (DATA / name).read_text()
    line = json_of(text)
    data = json.loads(line)
    change(data)
    return text.replace(line, json.dumps(data))


def json_of(text: str) -> str:
    """The one line of an output that is JSON."""
    (line,) = [line for line in text.splitlines() if line.startswith("{")]
    return line


def executable(file: Path, body: str) -> str:
    """A shell script, and its path."""
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return str(file)
