"""What our side of the load can carry: an unshaped lab at 10,000 requests/s of static files.

A cell is a run. The table has the rate asked for and reached, the latency, how late the generator
itself was, and its CPU time for a request. Nothing is claimed. Two shared cores are close to
saturation, so look at several runs.
"""

import argparse
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks.harness import Question
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.workload import Workload
from intop.hosts.load.types import LoadResult
from intop.hosts.measure import measure
from intop.hosts.rig import connected, load_tool, upload_load
from intop.hosts.settle import settle
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.resources import shipped


class Rate(Question[int, str]):
    """Which rate does the lab carry?"""

    seeds = 3
    first_seed = 0

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--rate", type=float, default=10_000, help="requests/s (10000)")
        add("--seconds", type=int, default=8, help="counted seconds of a run (8)")
        add("--connections", type=int, default=64, help="(64)")
        add("--tool", choices=["auto", "engine", "wrk2"], default="auto")

    def cells(self) -> dict[str, int]:
        return {f"run {seed}": seed for seed in self.seed_range()}

    @contextmanager
    def bed(self) -> Iterator[None]:
        given = self.given
        self.workload = Workload(
            name="slt",
            kind="slt",
            rate_rps=given.rate,
            connections=given.connections,
            threads=2,
            duration_s=given.seconds,
            warmup_s=1,
            timeout_s=10,
        )
        spec = LabSpec(name=f"b{os.getpid() % 10_000}", arch=native_arch())
        try:
            with connected(lab.up(spec), connect) as self.rig:
                self.tool = load_tool(self.rig, self.workload, given.tool)
                upload_load(
                    self.rig, sorted(shipped("lua").glob("*.lua")), self.rig.cluster.static_paths
                )
                yield
        finally:
            lab.down(spec.name)

    def measure(self, cell: int) -> str:
        settle(self.rig, max_time_wait=20_000, limit_s=60)
        result = measure(self.rig, self.tool, self.workload, seed=cell).result
        numbers = (
            self.tool.name,
            f"{self.given.rate:.0f}",
            f"{result.achieved_rps:.0f}",
            f"{result.achieved_rps / self.given.rate:.1%}",
            f"{result.histogram.percentile_ms(50):.1f}",
            f"{result.histogram.percentile_ms(99):.1f}",
            str(sum(result.errors.values())),
            f"{result.lag_ms or math.nan:.2f}",
            f"{cpu_us(result):.1f}",
        )
        return f"| {' | '.join(numbers)} |"

    def progress(self, name: str, result: str) -> str:
        return f"{name}: {result}"

    def table(self, results: Mapping[str, str]) -> Iterator[str]:
        yield "| tool | asked/s | reached/s | share | P50 ms | P99 ms | errors | lag ms | CPU us |"
        yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
        yield from results.values()


def cpu_us(result: LoadResult) -> float:
    """Return the generator's CPU time (µs) for each request of the run, NaN if unknown."""
    sent = result.requests * result.run_s / result.duration_s
    return math.nan if result.cpu_s is None else 1e6 * result.cpu_s / sent
