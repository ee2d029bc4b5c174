"""The load engine on the other architecture: an emulated guest sends to a native nginx.

The guest is the load balancer of a lab, which has a kernel of its own, and its LuaJIT; a backend
of that lab is what it sends to. Emulation makes latencies longer, and must not make them wrong.

A run is correct where every request is answered, and there are as many as were due: exactly with
constant arrivals, within four standard deviations of a Poisson count with the others.
Exit code 1 where a run isn't. Prints Markdown; progress is on stderr.
"""

import argparse
import math
import os
import sys

from benchmarks.rate import cpu_us
from intop.domain.cluster import MACHINES, LabSpec, other_arch
from intop.domain.workload import Arrivals
from intop.hosts.host import Host, output
from intop.hosts.load.tools import FIND_TOOL, command, parse_found, parse_output
from intop.hosts.load.types import Load, LoadResult, LoadTool
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.resources import shipped

FOLDER = "/run/intop/load"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=1000, help="requests/s (default: 1000)")
    parser.add_argument("--seconds", type=int, default=5, help="counted seconds of a run")
    parser.add_argument("--runs", type=int, default=2, help="of each kind of arrivals")
    arguments = parser.parse_args()
    arch = other_arch()
    spec = LabSpec(name=f"b{os.getpid() % 10_000}", arch=arch, kind="vm", machines=MACHINES[arch])
    missed = 0
    try:
        cluster = lab.up(spec, lambda line: print(line, file=sys.stderr))
        guest = connect(cluster.load_balancer)
        try:
            tool = ready(guest)
            print(f"{output(guest, 'uname -srm').strip()}, {tool.name} {tool.version}\n")
            print(
                "| arrivals | requests | failed | rate, 1/s | P50, ms | P99, ms | lag, ms |", end=""
            )
            print(" CPU a request, µs | correct |\n|---|---:|---:|---:|---:|---:|---:|---:|---|")
            for seed in range(1, arguments.runs + 1):
                for arrivals in ("constant", "poisson"):
                    load = Load(
                        script="slt",
                        url=f"http://{cluster.backends[0].hostname}",
                        rate_rps=arguments.rate,
                        connections=64,
                        threads=1,
                        duration_s=arguments.seconds,
                        warmup_s=2,
                        seed=seed,
                        arrivals=arrivals,
                    )
                    result = sent(guest, tool, load)
                    correct = is_correct(result, load)
                    missed += not correct
                    print(row(arrivals, result, correct), flush=True)
        finally:
            guest.close()
    finally:
        lab.down(spec.name)
    if missed:
        sys.exit(f"{missed} runs are not correct")


def ready(guest: Host) -> LoadTool:
    """The guest's own engine, with its scripts in place."""
    scripts = {path.name: path.read_text() for path in shipped("lua").glob("*.lua")}
    guest.put(FOLDER, scripts | {"paths.txt": "/index.html\n"})
    return next(tool for tool in parse_found(output(guest, FIND_TOOL)) if tool.name == "engine")


def sent(guest: Host, tool: LoadTool, load: Load) -> LoadResult:
    done = guest.run(command(tool, load, FOLDER), timeout_s=10 * load.duration_s + 60)
    return parse_output(done.stdout, tool, load)


def is_correct(result: LoadResult, load: Load) -> bool:
    due = load.rate_rps * load.duration_s
    spread = 0 if load.arrivals == "constant" else 4 * math.sqrt(due)
    return abs(result.requests - due) <= spread and not any(result.errors.values())


def row(arrivals: Arrivals, result: LoadResult, correct: bool) -> str:
    p50, p99 = (result.histogram.percentile_ms(percent) for percent in (50, 99))
    cells = [
        arrivals,
        result.requests,
        sum(result.errors.values()),
        f"{result.achieved_rps:.1f}",
        f"{p50:.2f}",
        f"{p99:.2f}",
        "" if result.lag_ms is None else f"{result.lag_ms:.2f}",
        f"{cpu_us(result):.0f}",
        "yes" if correct else "**no**",
    ]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
