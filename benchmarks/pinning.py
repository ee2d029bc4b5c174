"""How much trials scatter with the load tied to processors, and without.

Pairs of trials of the default on the lab, in random order within a pair: one with the load on
`--cpus` only, one on all processors. Prints the P99 of both, the spread of both (the standard
deviation of log P99), and the ratio of the spreads with an interval (Fisher's F of the variances,
which takes the logarithms as normal), as Markdown. Needs root.
"""

import argparse
import math
import os
import random
import signal
import sys
from dataclasses import replace
from statistics import variance

from benchmarks.campaign import scenario
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.stats import geometric_interval
from intop.domain.workload import Workload
from intop.hosts.load.types import LoadTool
from intop.hosts.measure import measure
from intop.hosts.rig import Rig, connected, load_tool, upload_scripts
from intop.hosts.settle import settle
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.resources import shipped

LEVEL = 0.95
FREE, TIED = "all processors", "tied"


def main() -> None:
    arguments = parsed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the lab is taken down all the same
    study = scenario(arguments.scenario)
    spec = study.clusters[native_arch()][0]
    if not isinstance(spec, LabSpec):
        sys.exit(f"{arguments.scenario} has no lab")
    spec = replace(spec, name=f"pi{os.getpid() % 10_000}")
    workload = next(iter(study.workloads.values()))
    try:
        free = lab.up(spec)
        tied = replace(free, load_generator=replace(free.load_generator, load_cpus=arguments.cpus))
        with connected(free, connect) as one, connected(tied, connect) as other:
            tool = load_tool(one, workload, study.load_tool)
            for rig in (one, other):
                upload_scripts(rig, shipped("lua"), workload.paths or free.static_paths)
            p99_ms = pairs({FREE: one, TIED: other}, tool, workload, arguments.pairs)
    finally:
        lab.down(spec.name)
    print("\n".join(table(p99_ms)))


def pairs(
    rigs: dict[str, Rig], tool: LoadTool, workload: Workload, count: int
) -> dict[str, list[float]]:
    """P99 (ms) of each side's trials, in order."""
    found: dict[str, list[float]] = {name: [] for name in rigs}
    rng = random.Random(count)
    for number in range(count):
        for name in rng.sample(list(rigs), len(rigs)):
            settle(rigs[name], max_time_wait=20_000, limit_s=90)
            result = measure(rigs[name], tool, workload, seed=number).result
            found[name].append(result.histogram.percentile_ms(99))
            print(f"{number + 1}/{count} {name}: {found[name][-1]:.1f} ms", file=sys.stderr)
    return found


def table(p99_ms: dict[str, list[float]]) -> list[str]:
    """A row for each side, and the ratio of their spreads."""
    from scipy.stats import f

    lines = ["| load on | trials | P99, ms (95 %) | sd of log P99 |", "|---|---:|---|---:|"]
    variances = {}
    for name, values in p99_ms.items():
        variances[name] = variance(map(math.log, values))
        mean = geometric_interval(values, level=LEVEL)
        lines.append(
            f"| {name} | {len(values)} | {mean.mean:.1f} ({mean.low:.1f} to {mean.high:.1f}) | "
            f"{math.sqrt(variances[name]):.3f} |"
        )
    freedom = [len(values) - 1 for values in p99_ms.values()]
    ratio = variances[FREE] / variances[TIED]
    low, high = (ratio / f.ppf(q, *freedom) for q in ((1 + LEVEL) / 2, (1 - LEVEL) / 2))
    told = "{:.2f} ({:.2f} to {:.2f})".format(*map(math.sqrt, (ratio, low, high)))
    return [*lines, "", f"Spread on all processors / tied: {told}."]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="static-wan", help="(static-wan)")
    parser.add_argument("--cpus", default="1", help="as taskset lists them (1)")
    parser.add_argument("--pairs", type=int, default=20, help="(20)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
