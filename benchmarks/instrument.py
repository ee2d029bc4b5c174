"""What the instrument costs: P99 with and without its time series, and the CPU of its readers.

Pairs of trials of the default on the lab, in random order within a pair: one with all points of the
time series, one with a reading before and after the load only. It ends with exit code 1 where a
difference is called, or where a host's reader takes more than the limit of its host's time.
Prints Markdown.
"""

import argparse
import os
import random
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from benchmarks.campaign import short_buffer
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.stats import paired_ratio
from intop.domain.workload import Workload
from intop.hosts.host import Host
from intop.hosts.load.types import LoadTool
from intop.hosts.measure import POINTS, measure
from intop.hosts.metrics import TICKS_PER_S
from intop.hosts.rig import Rig, connected, load_tool, upload_scripts
from intop.hosts.settle import settle
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.lab import network
from intop.resources import shipped

LIMIT = 0.01
"""Of a host's time: what its reader may take."""
LEVEL = 0.95


def main() -> None:
    arguments = parsed()
    study = short_buffer()
    arch = native_arch()
    spec = replace(study.clusters[arch][0], name=f"i{os.getpid() % 10_000}")
    workload = replace(study.workloads[arguments.workload], duration_s=arguments.seconds)
    try:
        cluster = lab.up(spec)
        with connected(cluster, connect) as rig:
            tool = load_tool(rig, workload, study.load_tool)
            upload_scripts(rig, shipped("lua"), cluster.static_paths)
            p99_ms, shares = pairs(rig, tool, workload, arguments.pairs)
    finally:
        lab.down(spec.name)
    lines, is_within = table(p99_ms, shares, spec, workload)
    print("\n".join(lines))
    sys.exit(0 if is_within else 1)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="(20)")
    parser.add_argument("--seconds", type=int, default=5, help="that are counted (5)")
    parser.add_argument("--workload", choices=("slt", "dlt"), default="slt", help="(slt)")
    return parser.parse_args()


def pairs(
    rig: Rig, tool: LoadTool, workload: Workload, count: int
) -> tuple[list[tuple[float, float]], dict[str, list[float]]]:
    """P99 of each pair in ms, without and with the series; and the share of its host's time that
    each reader took in the trials with it.
    """
    draw = random.Random(1)
    found: list[tuple[float, float]] = []
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for seed in range(count):
        p99_ms: dict[int, float] = {}
        for points in draw.sample((1, POINTS), 2):
            settle(rig, max_time_wait=20_000, limit_s=60)
            before, started = reader_cpu_s(rig), time.monotonic()
            result = measure(rig, tool, workload, seed=seed, points=points).result
            seconds = time.monotonic() - started
            p99_ms[points] = result.histogram.percentile_ms(99)
            if points > 1:
                for name, cpu_s in reader_cpu_s(rig).items():
                    spent_s = cpu_s - before.get(name, 0.0)
                    shares[name].append(spent_s / seconds / (os.cpu_count() or 1))
        found.append((p99_ms[1], p99_ms[POINTS]))
    return found, dict(shares)


def reader_cpu_s(rig: Rig) -> dict[str, float]:
    """CPU seconds of each host's reader and of the processes that it waited for, so far."""
    return {host.address.name: cpu_s(host) for host in rig.hosts}


def cpu_s(host: Host) -> float:
    """Of the readers of one host's network namespace: the lab's hosts share their processes."""
    inode = (network.NAMESPACE_FOLDER / f"intop-{host.address.name}").stat().st_ino
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                "mapfile -d" in (folder / "cmdline").read_text()
                and inode == (folder / "ns" / "net").stat().st_ino
            ):
                words = (folder / "stat").read_text().rpartition(") ")[2].split()
                total += sum(map(int, words[11:15])) / TICKS_PER_S
        except OSError:
            continue  # it has ended
    return total


def table(
    p99_ms: list[tuple[float, float]],
    shares: dict[str, list[float]],
    spec: LabSpec,
    workload: Workload,
) -> tuple[list[str], bool]:
    """The result, and whether it is within all limits."""
    without, with_series = zip(*p99_ms, strict=True)
    interval = paired_ratio(with_series, without, level=LEVEL)
    is_same = interval.low <= 1 <= interval.high
    highest = max(map(fmean, shares.values()))
    lines = [
        f"{len(p99_ms)} pairs of {workload.name} trials of {workload.counted_s} s ({spec.kind}):",
        "",
        (
            f"P99 with {POINTS} points / without: {interval.ratio:.3f} ({LEVEL:.0%} interval "
            f"{interval.low:.3f} to {interval.high:.3f}): {'no ' if is_same else 'a '}difference."
        ),
        "",
        "| host | share of its processors' time, mean | highest trial |",
        "|---|---:|---:|",
        *(f"| {name} | {fmean(v):.2%} | {max(v):.2%} |" for name, v in shares.items()),
        "",
        f"Highest mean: {highest:.2%} ({'within' if highest < LIMIT else 'above'} {LIMIT:.0%}).",
    ]
    return lines, is_same and highest < LIMIT


if __name__ == "__main__":
    main()
