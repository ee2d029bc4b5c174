"""How faithful the engine is: the same load by it and by a real wrk2, side by side.

An nginx of its own (one process, on loopback) serves a small file to both tools in turn. At each
rate there are quiet runs, and runs in which nginx is stopped once, in the middle of what is
counted. With a stall of S ms in T s, S/T of the requests are due while it lasts, and wait for its
rest: their latencies are uniform from 0 to S, and S/2T of all exceed S/2.

wrk2 counts from the time a request was due, but sends at its next timer only. That floor is its
own: the difference of its two P50 of the quiet runs, counted from due and from sent time (-U).
One number for each rate, which is taken off all of wrk2's percentiles. The column "from sent"
is for judging only: in a quiet row it has what the tools have in common, in a stalled row it
shows what coordinated omission would hide.

The tools' runs are paired, one after the other; the difference is the median over the pairs, with
its 95 % interval from the order of the differences (from 6 runs on).

Prints two tables in Markdown; progress is on stderr. Needs nginx, LuaJIT and a wrk2 that you built.
"""

import argparse
import math
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from statistics import median

from scipy.stats import binom

from intop.domain.histogram import Histogram
from intop.errors import LoadOutputError
from intop.hosts.load.tools import command, identify, parse_output
from intop.hosts.load.types import PATHS_FILE, Load, LoadTool
from intop.hosts.load.wrk2 import calibration_s
from intop.resources import shipped

PERCENTILES = (50.0, 99.0, 99.9)
SHARE, LIMIT_MS = 0.05, 0.5
CONNECTIONS, THREADS = 32, 2

NGINX = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log error;
events {{ worker_connections 1024; }}
http {{
{temp}    access_log off;
    sendfile on;
    keepalive_requests 100000000;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/files;
    }}
}}
"""


@dataclass(frozen=True)
class Run:
    """One run: its latencies, counted seconds, and how long (ms) nginx was really stopped.

    `sent_ms` are wrk2's `PERCENTILES` from the time of sending; the engine has none.
    """

    histogram: Histogram
    duration_s: float
    stalled_ms: float
    sent_ms: tuple[float, ...] = ()


def main() -> None:
    arguments = parsed()
    engine, wrk2 = found("engine", arguments.engine), found("wrk2", arguments.wrk2)
    if not shutil.which("nginx"):
        sys.exit("nginx is not installed: apt-get install nginx-light")
    rows: list[list[str]] = []
    stalls: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name, nginx(Path(name)) as (server, url):
        folder = Path(name)
        tools = (engine, replace(wrk2, path=str(told_both(wrk2, folder))))
        for rate in arguments.rates:
            load = load_of(url, rate, arguments.seconds)
            quiet = interleaved(tools, load, folder, server, arguments.runs, 0.0)
            floor = floor_ms(quiet[1])
            rows += compared(f"{rate}", *quiet, floor)
            if not arguments.stall_ms:
                continue
            stalled = interleaved(tools, load, folder, server, arguments.runs, arguments.stall_ms)
            rows += compared(f"{rate}, stalled", *stalled, floor)
            stalls += seen(f"{rate}", *stalled, arguments.stall_ms)
    print(table(("requests/s", "", *COMPARED), rows))
    if stalls:
        print(table(("requests/s", "", *SEEN), stalls))


COMPARED = (
    "engine (ms)",
    "wrk2 (ms)",
    "floor (ms)",
    "wrk2 less floor",
    "difference",
    "within 5 % or 0.5 ms",
    "theory (ms)",
    "wrk2 from sent (ms)",
)
SEEN = ("engine", "wrk2", "theory")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", default="luajit", help="LuaJIT's path (default: from PATH)")
    parser.add_argument("--wrk2", default="wrk2", help="its path (default: from PATH)")
    parser.add_argument("--rates", type=int, nargs="+", default=[1000, 4000, 8000])
    parser.add_argument("--runs", type=int, default=3, help="of each tool in each row (default: 3)")
    parser.add_argument("--seconds", type=int, default=5, help="counted in a run (default: 5)")
    parser.add_argument("--stall-ms", type=float, default=200.0, help="0: none (default: 200)")
    arguments = parser.parse_args()
    if min(arguments.rates) < 100:
        parser.error("argument --rates: less than 100 requests/s say nothing about P99")
    if arguments.runs < 1:
        parser.error("argument --runs: at least 1")
    if not 0 <= arguments.stall_ms <= 250 * arguments.seconds:
        parser.error("argument --stall-ms: from 0 up to a quarter of --seconds")
    return arguments


def found(name: str, path: str) -> LoadTool:
    """The tool at a path, or on PATH; ends with what is missing."""
    binary = shutil.which(path)
    if binary is None:
        build = "build it from github.com/giltene/wrk2"
        get = "apt-get install luajit" if name == "engine" else build
        sys.exit(f"{name} is not at {path!r}: {get}, and give it by --{name} PATH")
    said = subprocess.run([binary, "-v"], capture_output=True, text=True, check=False)
    tool = identify(binary, said.stdout + said.stderr)
    if tool is None or tool.name != name:
        what = "no load tool" if tool is None else f"that of {tool.name}"
        sys.exit(f"{binary} is {what}: give the one of {name} by --{name} PATH")
    return tool


def told_both(wrk2: LoadTool, folder: Path) -> Path:
    """wrk2 as it is, but with -U: it also prints latencies from the time of sending."""
    script = folder / "wrk2-both"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(wrk2.path)} -U "$@"\n')
    script.chmod(0o755)
    return script


@contextmanager
def nginx(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A running nginx of one process and its URL, with what the tools need in the folder."""
    (folder / "files").mkdir()
    (folder / "files/small.txt").write_text("x" * 1000)
    folder.chmod(0o755)  # nginx started by root gives root up
    for script in shipped("lua").glob("*.lua"):
        shutil.copy(script, folder)
    (folder / PATHS_FILE).write_text("/small.txt\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    temp = "".join(
        f"    {kind}_temp_path {folder}/temp-{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, temp=temp))
    words = ["nginx", "-e", str(folder / "nginx.log"), "-p", str(folder), "-c", str(config)]
    server = subprocess.Popen(words)
    try:
        wait_for(server, port)
        yield server, f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(SIGCONT)
        server.terminate()
        server.wait()


def wait_for(server: subprocess.Popen[bytes], port: int, limit_s: float = 10.0) -> None:
    """Until nginx listens; ends when it doesn't."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    sys.exit("nginx did not start; what it said is above")


def load_of(url: str, rate: int, seconds: int) -> Load:
    """A load of which both tools count as much: wrk2 runs whole seconds, and calibrates for some
    hundredths more than that.
    """
    load = Load(
        script="slt",
        url=url,
        rate_rps=rate,
        connections=CONNECTIONS,
        threads=THREADS,
        duration_s=seconds,
        seed=1,
    )
    beyond = calibration_s(CONNECTIONS, THREADS) % 1
    return replace(load, duration_s=seconds - beyond - 1e-6)


def interleaved(
    tools: Sequence[LoadTool],
    load: Load,
    folder: Path,
    server: subprocess.Popen[bytes],
    runs: int,
    stall_ms: float,
) -> list[list[Run]]:
    """The runs of each tool, by turns, so that what the machine does meets both alike."""
    done: list[list[Run]] = [[] for _ in tools]
    for seed in range(runs):
        for tool, of_tool in zip(tools, done, strict=True):
            of_tool.append(measured(tool, replace(load, seed=seed), folder, server, stall_ms))
            ranks = " ".join(f"{of_tool[-1].histogram.percentile_ms(q):.3f}" for q in PERCENTILES)
            stall = f"stall {of_tool[-1].stalled_ms:.0f} ms"
            print(f"{tool.name} {load.rate_rps:g}/s {stall}: {ranks}", file=sys.stderr, flush=True)
    return done


def measured(
    tool: LoadTool, load: Load, folder: Path, server: subprocess.Popen[bytes], stall_ms: float
) -> Run:
    """One run, with one stall in the middle of its counted part unless `stall_ms` is 0."""
    shell = command(tool, load, str(folder))
    uncounted_s = calibration_s(CONNECTIONS, THREADS) if tool.name == "wrk2" else load.warmup_s
    middle_s = uncounted_s + load.duration_s / 2
    started = time.monotonic()
    with subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE, text=True) as process:
        stalled_ms = stall(server, started + middle_s, stall_ms) if stall_ms else 0.0
        text, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{tool.name} ended with {process.returncode}: {shell}")
    try:
        result = parse_output(text, tool, load)
    except LoadOutputError as error:
        sys.exit(str(error))
    if result.errors:
        sys.exit(f"{tool.name} met errors, so nothing is compared: {dict(result.errors)}")
    sent = sent_ms(text) if tool.name == "wrk2" else ()
    return Run(result.histogram, result.duration_s, stalled_ms, sent)


def stall(server: subprocess.Popen[bytes], at: float, stall_ms: float) -> float:
    """Stop nginx at a time for so long; how long (ms) it really was."""
    time.sleep(max(0.0, at - time.monotonic()))
    stopped = time.monotonic()
    server.send_signal(SIGSTOP)
    try:
        time.sleep(stall_ms / 1000)
    finally:
        server.send_signal(SIGCONT)
    return (time.monotonic() - stopped) * 1000


_SPECTRUM = re.compile(r"^\s*([\d.]+)%\s+([\d.]+)(us|ms|s|m)\s*$", re.MULTILINE)
_UNIT_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def sent_ms(text: str) -> tuple[float, ...]:
    """wrk2's `PERCENTILES` (ms) from the time of sending, out of what it prints with -U."""
    _, _, uncorrected = text.partition("Uncorrected Latency")
    said = {
        float(q): float(value) * _UNIT_MS[unit] for q, value, unit in _SPECTRUM.findall(uncorrected)
    }
    if not said.keys() >= set(PERCENTILES):
        sys.exit("wrk2 printed no uncorrected latencies: does it know -U?")
    return tuple(said[q] for q in PERCENTILES)


def floor_ms(runs: Sequence[Run]) -> float:
    """What wrk2's timers add (ms): the median over quiet runs of P50 from due less from sent."""
    return median(run.histogram.percentile_ms(50) - run.sent_ms[0] for run in runs)


def compared(
    name: str, engine: Sequence[Run], wrk2: Sequence[Run], floor: float
) -> Iterator[list[str]]:
    """A row of the first table for each percentile."""
    for i, q in enumerate(PERCENTILES):
        ours, theirs = ([run.histogram.percentile_ms(q) for run in runs] for runs in (engine, wrk2))
        less = median(theirs) - floor
        differences = [a - (b - floor) for a, b in zip(ours, theirs, strict=True)]
        yield [
            name,
            f"P{q:g}",
            spread(ours, 2),
            spread(theirs, 2),
            f"{floor:.2f}",
            f"{less:.2f}",
            f"{median(differences):+.2f}{interval(differences)}",
            "yes" if within(less + median(differences), less) else "**no**",
            expected(q, engine),
            spread([run.sent_ms[i] for run in wrk2], 2),
        ]


def within(ours: float, theirs: float) -> bool:
    """Whether two latencies (ms) are as close as the contract asks."""
    return abs(ours - theirs) <= max(LIMIT_MS, SHARE * theirs)


def interval(differences: Sequence[float]) -> str:
    """The 95 % interval of their median, from the lowest of them and the highest that hold it: how
    many lie below the median is binomial. Empty for fewer than 6, which can't hold it so often.
    """
    out = int(binom.ppf(0.025, len(differences), 0.5))
    if out < 1:
        return ""
    ordered = sorted(differences)
    return f" ({ordered[out - 1]:+.2f} to {ordered[-out]:+.2f})"


def expected(q: float, runs: Sequence[Run]) -> str:
    """The percentile in theory, where it lies in the stall."""
    length_ms = median(run.stalled_ms for run in runs)
    beyond_ms = (100 - q) / 100 * median(run.duration_s for run in runs) * 1000
    return f"{length_ms - beyond_ms:.0f}" if length_ms > beyond_ms else ""


def seen(
    name: str, engine: Sequence[Run], wrk2: Sequence[Run], stall_ms: float
) -> Iterator[list[str]]:
    """Rows of the second table: shares of late requests and the highest latency."""

    def row(
        label: str, of: Callable[[Run], float], theory: Callable[[Run], float], digits: int
    ) -> list[str]:
        cells = [spread([of(run) for run in runs], digits) for runs in (engine, wrk2)]
        return [name, label, *cells, f"{median(theory(run) for run in engine):.{digits}f}"]

    for part in (0.1, 0.5, 0.9):
        late_ms = part * stall_ms
        yield row(
            f"share > {late_ms:g} ms (%)",
            lambda run, late_ms=late_ms: 100 * share_above(run.histogram, late_ms),
            lambda run, late_ms=late_ms: (run.stalled_ms - late_ms) / run.duration_s / 10,
            2,
        )
    yield row("max (ms)", lambda run: run.histogram.max_ms, lambda run: run.stalled_ms, 0)


def share_above(histogram: Histogram, late_ms: float) -> float:
    """The share of latencies above one (ms)."""
    below = bisect_right(histogram.values_us, late_ms * 1000)
    return math.fsum(histogram.counts[below:]) / histogram.total


def spread(values: Sequence[float], digits: int) -> str:
    """Their median, and from lowest to highest."""
    middle, low, high = (f"{v:.{digits}f}" for v in (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown, figures to the right."""
    lines = [heads, ["---", "---", *["---:"] * (len(heads) - 2)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    main()
