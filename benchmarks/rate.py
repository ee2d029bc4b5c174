"""What our side of the load can carry: an unshaped lab at 10,000 requests/s of static files.

Prints the rate asked for and reached, the latency, how late the generator itself was, and its CPU
time a request, for each of a few runs. Nothing is judged here: on two shared cores this is close to
saturation, so look at several runs.
"""

import argparse
import math
import os

from intop.domain.cluster import LabSpec, native_arch
from intop.domain.workload import Workload
from intop.hosts.load.types import LoadResult
from intop.hosts.measure import measure
from intop.hosts.rig import connected, load_tool, upload_load
from intop.hosts.settle import settle
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.resources import shipped


def cpu_us(result: LoadResult) -> float:
    """The generator's CPU time (µs) for each request of the whole run, not a number if unknown."""
    sent = result.requests * result.run_s / result.duration_s
    return math.nan if result.cpu_s is None else 1e6 * result.cpu_s / sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=10_000, help="requests/s (default: 10000)")
    parser.add_argument("--seconds", type=int, default=8, help="counted seconds of a run")
    parser.add_argument("--connections", type=int, default=64, help="(default: 64)")
    parser.add_argument("--tool", choices=["auto", "engine", "wrk2"], default="auto")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    spec = LabSpec(name=f"b{os.getpid() % 10_000}", arch=native_arch())
    workload = Workload(
        name="slt",
        kind="slt",
        rate_rps=arguments.rate,
        connections=arguments.connections,
        threads=2,
        duration_s=arguments.seconds,
        warmup_s=1,
        timeout_s=10,
    )
    try:
        with connected(lab.up(spec), connect) as rig:
            tool = load_tool(rig, workload, arguments.tool)
            upload_load(rig, sorted(shipped("lua").glob("*.lua")), rig.cluster.static_paths)
            print(f"{tool.name} {tool.version}, unshaped lab, {arguments.seconds} s each")
            print("asked/s  reached/s   share  P50 ms  P99 ms  errors  lag ms  CPU us/request")
            for run in range(arguments.runs):
                settle(rig, max_time_wait=20_000, limit_s=60)
                result = measure(rig, tool, workload, seed=run).result
                print(
                    f"{arguments.rate:7.0f} {result.achieved_rps:10.0f}  "
                    f"{result.achieved_rps / arguments.rate:6.1%} "
                    f"{result.histogram.percentile_ms(50):7.1f} "
                    f"{result.histogram.percentile_ms(99):7.1f} {sum(result.errors.values()):7d} "
                    f"{result.lag_ms or math.nan:7.2f} {cpu_us(result):7.1f}"
                )
    finally:
        lab.down(spec.name)


if __name__ == "__main__":
    main()
