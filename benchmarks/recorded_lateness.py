"""Is the generator later for recorded arrivals than for constant ones?

    python -m benchmarks recorded-lateness

A log of independent requests at 2,000/s is learned and recorded by the product. A lab's load
generator sends its slots, and a constant rate of as many, in turn. Lateness is how much later than
due the engine takes up a request; its own histogram has it, for the counted seconds.

Terms, said before any run: five rounds of 8 s. The claim is that the median P99 of the recorded
runs is at most the highest P99 of the constant ones. P50 and the maximum are shown.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.harness import Question, UnusableError, positive
from benchmarks.logs import NAME, learned_study, steady
from intop.config.recording import words_of
from intop.domain.cluster import LabSpec
from intop.domain.recording import Slots, trial_slots
from intop.domain.workload import Workload
from intop.hosts.load.output import histogram, json_line
from intop.hosts.load.streams import streams
from intop.hosts.load.tools import command
from intop.hosts.rig import connected, load_directory, load_tool, upload_load
from intop.hosts.settle import settle
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.lab.content import static_paths
from intop.resources import shipped

LOG_S = 60
RECORDED, CONSTANT = "recorded", "constant"


@dataclass(frozen=True)
class Lateness:
    """The lateness of a run's slots (ms)."""

    requests: int
    p50_ms: float
    p99_ms: float
    highest_ms: float


class RecordedLateness(Question[tuple[str, int], Lateness]):
    """Is the generator later for recorded arrivals?"""

    seeds = 5
    result = Lateness
    fixed = ("rate", "seconds", "connections")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--rate", type=positive, default=2000, help="requests/s (2000)")
        add("--seconds", type=positive, default=8, help="counted seconds of a run (8)")
        add("--connections", type=positive, default=64, help="(64)")

    def cells(self) -> dict[str, tuple[str, int]]:
        kinds = (RECORDED, CONSTANT)
        return {f"{kind} {seed}": (kind, seed) for seed in self.seed_range() for kind in kinds}

    @contextmanager
    def bed(self) -> Iterator[None]:
        given = self.given
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lab_name = f"r{os.getpid() % 10_000}"
            head = (
                f'[study]\nname = "lateness"\nstore = "{folder}/lateness.db"\n'
                f'[cluster.native]\nlab = "{lab_name}"\n'
            )
            study = learned_study(folder, steady(static_paths(), given.rate, LOG_S), head)
            ((spec,),) = study.clusters.values()
            assert isinstance(spec, LabSpec)
            self.recorded = replace(
                study.workloads[NAME],
                rate_rps=float(given.rate),
                connections=given.connections,
                duration_s=given.seconds,
                warmup_s=1,
            )
            try:
                with connected(lab.up(spec), connect) as self.rig:
                    self.tool = load_tool(self.rig, self.recorded, "engine")
                    scripts = sorted(shipped("lua").glob("*.lua"))
                    upload_load(self.rig, scripts, self.recorded.paths)
                    yield
            finally:
                lab.down(spec.name)

    def measure(self, cell: tuple[str, int]) -> Lateness:
        kind, seed = cell
        settle(self.rig, max_time_wait=20_000, limit_s=60)
        load, recording = self.recorded, self.recorded.recording
        assert recording is not None
        if kind == CONSTANT:
            return self._lateness(replace(load, arrivals="constant", recording=None), seed, None)
        slots = trial_slots(words_of(recording), recording, load, seed=1, number=seed)
        return self._lateness(load, seed, slots)

    def _lateness(self, load: Workload, seed: int, slots: Slots | None) -> Lateness:
        ((_, own),) = streams(load, self.rig.cluster, seed=seed, slots=slots)
        generator = self.rig.load_generator
        folder = load_directory(generator)
        if slots is not None:
            generator.put(folder, {own.slots_file: own.slots})
        done = generator.run(
            command(self.tool, own, folder), timeout_s=load.counted_s + load.warmup_s + 60
        )
        if done.exit_code:
            raise UnusableError(done.message)
        lags = histogram(json_line(done.stdout).get("lags"), "lags")
        p50_ms, p99_ms, highest_ms = (lags.percentile_ms(q) for q in (50, 99, 100))
        return Lateness(lags.total, p50_ms, p99_ms, highest_ms)

    def progress(self, name: str, result: Lateness) -> str:
        return row(name, result)

    def table(self, results: Mapping[str, Lateness]) -> Iterator[str]:
        yield "| arrivals, round | slots | P50 ms | P99 ms | highest ms |"
        yield "|---|---:|---:|---:|---:|"
        yield from (row(name, result) for name, result in results.items())
        for kind in (RECORDED, CONSTANT):
            own = [result for name, result in results.items() if name.startswith(kind)]
            numbers = (
                median(r.requests for r in own),
                *(median(getattr(r, q) for r in own) for q in ("p50_ms", "p99_ms", "highest_ms")),
            )
            yield row(f"{kind}, median", Lateness(*numbers))

    def missed(self, results: Mapping[str, Lateness]) -> list[str]:
        by_kind = {
            kind: [r.p99_ms for name, r in results.items() if name.startswith(kind)]
            for kind in (RECORDED, CONSTANT)
        }
        p99_ms, limit_ms = median(by_kind[RECORDED]), max(by_kind[CONSTANT])
        wrong = f"P99 of recorded slots {p99_ms:.3f} ms, of constant ones up to {limit_ms:.3f} ms"
        return [wrong] if p99_ms > limit_ms else []


def row(name: str, result: Lateness) -> str:
    """Return a row of the table."""
    times = f"{result.p50_ms:.3f} | {result.p99_ms:.3f} | {result.highest_ms:.3f}"
    return f"| {name} | {result.requests:.0f} | {times} |"
