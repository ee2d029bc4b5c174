"""Whether three load generators that share a load measure what one measures.

On the embedded lab, in the scenario short-buffer with static files. A comparison is a few rounds;
in each of them the default is measured once by one generator and once by three, in random
order. They agree where the 95 % Student interval of the ratio of P99 holds 1. By chance alone one
comparison in twenty doesn't. The three run side by side in one namespace, each a process with a
connection and a folder of its own: what is compared is how a load is shared out and put together.

The claim: they agree in 38 of 40 comparisons. Exit code 1 where they don't.
"""

import argparse
import os
import random
import sys
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.campaign import short_buffer
from intop.domain.cluster import Cluster, LabSpec, native_arch
from intop.domain.stats import paired_ratio
from intop.hosts.measure import measure
from intop.hosts.rig import Rig, connected, load_tool, upload_scripts
from intop.hosts.settle import settle
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.resources import shipped

GENERATORS = 3
AGREE = 38 / 40
LEVEL = 0.95


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--comparisons", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=6, help="of a comparison (default: 6)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    study = short_buffer()
    (spec, *_) = study.clusters[native_arch()]
    assert isinstance(spec, LabSpec)
    spec = replace(spec, name=f"g{os.getpid() % 10_000}")
    workload = study.workloads["slt"]
    order = random.Random(arguments.seed)
    agreed = 0
    try:
        with ExitStack() as stack:
            cluster = lab.up(spec)
            rigs = [stack.enter_context(connected(c, connect)) for c in (cluster, shared(cluster))]
            tool = load_tool(rigs[0], workload, "engine")
            for rig in rigs:
                upload_scripts(rig, shipped("lua"), cluster.static_paths)

            def p99_ms(rig: Rig, seed: int) -> float:
                settle(rig, max_time_wait=20_000, limit_s=60)
                result = measure(rig, tool, workload, seed=seed).result
                return result.histogram.percentile_ms(99)

            print("| comparison | P99, one / three generators (95 % interval) | |")
            print("|---:|---|---|")
            for number in range(1, arguments.comparisons + 1):
                sides: tuple[list[float], list[float]] = ([], [])
                for turn in range(arguments.rounds):
                    seed = arguments.seed * 1_000_000 + number * 1000 + turn
                    for which in order.sample((0, 1), 2):
                        sides[which].append(p99_ms(rigs[which], seed))
                found = paired_ratio(*sides, level=LEVEL)
                holds = found.low <= 1 <= found.high
                agreed += holds
                said = f"{found.ratio:.2f} ({found.low:.2f} to {found.high:.2f})"
                print(f"| {number} | {said} | {'' if holds else '**differ**'} |", flush=True)
    finally:
        lab.down(spec.name)
    print(f"\n{agreed} of {arguments.comparisons} agree")
    sys.exit(0 if agreed >= AGREE * arguments.comparisons else 1)


def shared(cluster: Cluster) -> Cluster:
    """The same cluster with a load that several generators share."""
    first = cluster.load_generator
    others = (
        replace(first, name=f"{first.name}-{n}", state_dir=f"{first.state_dir}-{n}")
        for n in range(2, GENERATORS + 1)
    )
    return replace(cluster, more_generators=tuple(others))


if __name__ == "__main__":
    main()
