"""What it costs to look out for a load to prune, and what pruning one saves: the engine against a
small nginx on loopback.

`healthy` runs it with and without a limit in random order, pair by pair. `slow` runs servers that
can't keep up, to the end and stopped, and compares what P99 comes to.
"""

import argparse
import math
import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from intop.domain.configuration import DEFAULT
from intop.domain.stats import paired_ratio
from intop.domain.trial import Conditions, PlannedTrial, Trial
from intop.hosts.load.tools import FIND_TOOL, command, parse_found, parse_output
from intop.hosts.load.types import Load, LoadResult, LoadTool
from intop.resources import shipped

SLOW_RATE = 150
SLOW = {
    "half of the rate": "limit_req zone=half burst=100000;",
    "90 % of the rate": "limit_req zone=most burst=100000;",
    "0.6 s an answer": "limit_rate 10k;",
}
CONFIGURATION = """
user root; daemon off; worker_processes 1; pid {home}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    client_body_temp_path {home}/body; proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi; uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
    access_log off;
    keepalive_requests 1000000000;
    limit_req_zone $server_addr zone=half:1m rate={half}r/s;
    limit_req_zone $server_addr zone=most:1m rate={most}r/s;
    server {{
        listen 127.0.0.1:{port};
        root {home};
        location = /fast {{ try_files /small =404; }}
        {slow}
    }}
}}
"""


@contextmanager
def nginx(home: Path) -> Iterator[str]:
    """Its URL. `/fast` is a small file, `/0` and on are the slow ones."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "small").write_text("x" * 1000)
    (home / "large").write_text("x" * 16_000)  # the first second's 10 KB are sent at once
    slow = "\n".join(
        f"location = /{number} {{ {how} try_files /large =404; }}"
        for number, how in enumerate(SLOW.values())
    )
    text = CONFIGURATION.format(
        home=home, port=port, slow=slow, half=SLOW_RATE // 2, most=SLOW_RATE * 9 // 10
    )
    (home / "nginx.conf").write_text(text)
    process = subprocess.Popen(["nginx", "-p", home, "-e", "error.log", "-c", home / "nginx.conf"])
    try:
        time.sleep(1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=10)


def limited(load: Load, prune_above_ms: float | None) -> Load:
    """The load with a limit of P99, as a trial has it."""
    late = math.floor(0.01 * load.rate_rps * load.duration_s)
    return replace(load, prune_above_ms=prune_above_ms, prune_count=late)


def run(tool: LoadTool, load: Load) -> LoadResult:
    words = ["sh", "-c", command(tool, load, str(shipped("lua")))]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return parse_output(done.stdout, tool, load)


def p99_ms(tool: LoadTool, load: Load, result: LoadResult) -> float:
    """What a trial with this result is judged by."""
    nothing = dict.fromkeys(
        ("arch", "machine", "kernel", "cpu", "nginx", "script", "link", "paths"), ""
    )
    return Trial(
        planned=PlannedTrial(index=0, role="design", configuration=DEFAULT),
        stage="collect",
        attempt=0,
        status="overloaded",
        detail="",
        conditions=Conditions(
            **nothing,
            load_tool=f"{tool.name} {tool.version}",
            workload="dlt",
            rate_rps=load.rate_rps,
            connections=load.connections,
            threads=load.threads,
            duration_s=round(load.duration_s),
            timeout_s=round(load.timeout_s),
        ),
        started_at="",
        seconds=0,
        seed=0,
        tool_version="",
        replica="",
        histogram=result.histogram,
        achieved_rps=result.achieved_rps,
        pruned_above_ms=None if result.stopped_after_s is None else load.prune_above_ms,
    ).p99_ms


def healthy(tool: LoadTool, url: str, pairs: int, seconds: int) -> None:
    load = Load(
        script="dlt",
        url=url,
        rate_rps=4000,
        connections=64,
        threads=2,
        duration_s=seconds,
        seed=1,
        dynamic_path="/fast",
    )
    run(tool, replace(load, duration_s=2))
    sides: dict[str, list[LoadResult]] = {"without": [], "with": []}
    for number in range(pairs):
        for side in random.sample(list(sides), 2):
            one = limited(load, 450.0 if side == "with" else None)
            sides[side].append(run(tool, replace(one, seed=number)))
    print(f"4000 requests/s, {pairs} pairs of {seconds} s; without / with a limit, 95 % interval")
    told: dict[str, Callable[[LoadResult], float]] = {
        "P50 us": lambda r: 1000 * r.histogram.percentile_ms(50),
        "P99 us": lambda r: 1000 * r.histogram.percentile_ms(99),
        "its CPU us/request": lambda r: 1e6 * (r.cpu_s or 0) / r.requests,
        "requests/s": lambda r: r.achieved_rps,
    }
    for name, value in told.items():
        one, two = ([value(r) for r in sides[side]] for side in ("without", "with"))
        ratio = paired_ratio(one, two, level=0.95)
        print(
            f"{name:22} {median(one):9.1f} {median(two):9.1f}   "
            f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
        )
    stopped = sum(r.stopped_after_s is not None for r in sides["with"])
    print(f"stopped: {stopped} of {pairs}; the figures before the ratio are medians")


def slow(tool: LoadTool, url: str, runs: int, seconds: int) -> None:
    load = Load(
        script="dlt",
        url=url,
        rate_rps=SLOW_RATE,
        connections=64,
        threads=2,
        duration_s=seconds,
        seed=1,
    )
    print(f"\n{SLOW_RATE} requests/s, 64 connections, {seconds} s, limit 450 ms")
    print("server              stopped after   P99 of the stopped   P99 of the whole run")
    for number, name in enumerate(SLOW):
        for _ in range(runs):
            found = []
            for prune_above_ms in (450.0, None):
                its_load = replace(limited(load, prune_above_ms), dynamic_path=f"/{number}")
                result = run(tool, its_load)
                found.append((result, p99_ms(tool, its_load, result)))
                time.sleep(1.5)  # what was queued is worked off
            (stopped, estimate), (_, whole) = found
            after = stopped.stopped_after_s
            told = "not" if after is None else f"{after:.2f} s"
            print(f"{name:18} {told:>14} {estimate:17.0f} ms {whole:19.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="of healthy runs")
    parser.add_argument("--runs", type=int, default=2, help="of each slow server")
    parser.add_argument("--seconds", type=int, default=10, help="of a run of a slow server")
    arguments = parser.parse_args()
    listed = subprocess.run(["sh", "-c", FIND_TOOL], check=True, capture_output=True, text=True)
    tool = next((one for one in parse_found(listed.stdout) if one.name == "engine"), None)
    if tool is None:
        raise SystemExit("this needs the engine, which LuaJIT runs: apt-get install luajit")
    with tempfile.TemporaryDirectory() as folder, nginx(Path(folder)) as url:
        healthy(tool, url, arguments.pairs, 4)
        slow(tool, url, arguments.runs, arguments.seconds)


if __name__ == "__main__":
    main()
