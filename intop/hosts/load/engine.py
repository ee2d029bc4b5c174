"""The engine, `lua/engine.lua` under LuaJIT: its command line and its output."""

from collections.abc import Mapping
from typing import Any

from intop.domain.overload import PENDING
from intop.hosts.load.output import check_kind, counts, flag, histogram, json_line, whole
from intop.hosts.load.types import PATHS_FILE, Load, LoadResult, LoadTool

INTERPRETER = "luajit"
SCRIPT = "engine.lua"
SCHEMA = 2
"""The version of the JSON line; the engine and this module change it together."""

ERROR_KINDS = (
    *("refused", "reset", "unreachable", "ports", "connect", "tls", "write", "read"),
    *("closed", "malformed", "timeout", "status", "content"),
)
"""Reasons of failed requests; `ports`: none was left, `content`: another one was expected."""

DRAIN_S = 1.5
"""The longest wait for answers after the last slot; it ends as soon as all are there.

A dropped SYN is sent again after a second. Its answer takes two round trips more. engine.lua has
the number in its text, whose fingerprint goes with each trial, so trials of another wait don't mix.
"""


def sent_s(load: Load) -> float:
    """Return the seconds in which requests are sent."""
    return load.warmup_s + load.duration_s


def planned_run_s(load: Load) -> float:
    """Return the seconds of the whole run, at most."""
    return sent_s(load) + DRAIN_S


def words(tool: LoadTool, load: Load) -> list[str]:
    """Return the command line, to be run in the directory of the scripts."""
    clients = load.clients
    options: dict[str, object] = {
        "script": f"{load.script_name}.lua",
        "url": load.url,
        **_pace(load),
        "duration": f"{load.duration_s:g}",
        "warmup": f"{load.warmup_s:g}",
        "drain": f"{DRAIN_S:g}",
        "connections": load.connections,
        "timeout": f"{load.timeout_s:g}",
        "seed": load.seed,
        "stream": load.stream,
        "streams": load.streams,
        "arrivals": load.arrivals,
    }
    if load.start_at is not None:
        options["start-at"] = f"{load.start_at:.6f}"
    if load.expected_file:
        options["expect"] = load.expected_file
    if load.prune_above_ms is not None:
        options["late-ms"] = f"{load.prune_above_ms:.3f}"
        options["late-count"] = load.prune_count
    if clients.http == "2":
        options["http"] = clients.http
        options["concurrent"] = clients.streams_per_connection
    if clients.requests_per_connection is not None:
        options["requests"] = f"{clients.requests_per_connection:g}"
    if clients.think_ms:
        options["think"] = f"{clients.think_ms / 1000:g}"
    if clients.read_kb_per_s is not None:
        options["read"] = f"{clients.read_kb_per_s * 1024:g}"
    if clients.source:
        options["source"] = clients.source
    flags = ["--geometric"] if clients.lifetimes == "geometric" else []
    flags += ["--resume"] if clients.tls_resume else []
    listed = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [tool.path, SCRIPT, *listed, *flags, "--", *script_words(load)]


def _pace(load: Load) -> dict[str, object]:
    """Return the option that says when requests are due. A closed loop has none."""
    if load.arrivals == "recorded":
        return {"slots": load.slots_file}
    return {} if load.arrivals == "closed" else {"rate": f"{load.rate_rps:.6f}"}


def script_words(load: Load) -> list[str]:
    """Return the options of the request script, under either tool."""
    clients = load.clients
    options = ["--paths", PATHS_FILE] if load.script == "slt" else ["--path", load.dynamic_path]
    options += ["--only", load.only_path] if load.only_path else []
    options += ["--method", clients.method] if clients.method != "GET" else []
    options += ["--body-bytes", str(clients.body_bytes)] if clients.body_bytes else []
    for header in clients.headers:
        options += ["--header", header]
    return options


def parse(text: str, load: Load) -> LoadResult:
    """Return the result. Raises ValueError for a line that the engine doesn't print."""
    data = json_line(text)
    check_kind(data, SCHEMA, load.script_name)
    latencies = histogram(data.get("histogram"))
    lags = histogram(data.get("lags"), "lags")
    errors = counts(data.get("errors"), ERROR_KINDS) | {PENDING: whole(data, PENDING)}
    counted_s, run_s = whole(data, "counted_us") / 1e6, whole(data, "run_us") / 1e6
    due, on_time = whole(data, "due"), whole(data, "on_time")
    if load.arrivals == "recorded":
        # A trial may end in a burst, and its warm-up in a pause.
        on_time = whole(data, "answered")
    _check_sums(data, due, latencies.total, errors)
    if counted_s <= 0:
        raise ValueError("no time of the run was counted")
    return LoadResult(
        requests=due,
        duration_s=counted_s,
        run_s=run_s,
        bytes=whole(data, "bytes"),
        errors={kind: count for kind, count in errors.items() if count},
        histogram=latencies,
        achieved_rps=on_time / counted_s,
        offered_rps=0.0 if load.arrivals == "closed" else due / counted_s,
        cpu_s=whole(data, "cpu_us") / 1e6,
        stopped_after_s=counted_s if flag(data, "stopped") else None,
        lag_ms=lags.percentile_ms(99) if lags.total else 0.0,
        clock_step_s=whole(data, "clock_step_us", least=-(2**53)) / 1e6,
    )


def _check_sums(data: Mapping[str, Any], due: int, counted: int, errors: Mapping[str, int]) -> None:
    """Raise ValueError unless every request that was due has one place, and one only."""
    placed = whole(data, "answered") + sum(errors.values())
    if not due == placed == counted:
        raise ValueError(
            f"{due} requests were due, {placed} were answered, failed or pending, "
            f"and {counted} are in the histogram"
        )
