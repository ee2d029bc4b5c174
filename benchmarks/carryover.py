"""What a load leaves behind for the next trial: many short connections, then the default.

First come trials of the host's own values, as the lab's study has them. Each further trial of them
follows at once on short connections (one request each, `Connection: close`), with its settling, and
then another one without. Within the spread is a P99 inside the central 95 % prediction interval of
log P99 (Student's t) of the first trials: where nothing is carried over, 19 of 20 are.

Prints Markdown. Progress is on stderr.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from unittest.mock import patch

from scipy import stats

from benchmarks.campaign import begun, short_buffer
from intop.domain.cluster import native_arch
from intop.domain.configuration import DEFAULT
from intop.domain.stats import geometric_mean, unpaired_ratio
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.workload import Clients, Workload
from intop.hosts.host import output
from intop.hosts.load.streams import streams
from intop.hosts.load.tools import command, parse_output
from intop.hosts.load.types import PATHS_FILE
from intop.hosts.rig import Rig, load_directory, load_tool
from intop.hosts.settle import settle
from intop.lab import cluster as lab
from intop.resources import shipped
from intop.run import cluster_testbed
from intop.run.cluster_testbed import ClusterTestbed
from intop.store import opened

SHARE = 0.95
DRAINED_S = 65
"""TIME_WAIT lasts 60 s on Linux (TCP_TIMEWAIT_LEN)."""
WAITING = "grep -o 'tw [0-9]*' /proc/net/sockstat"
TITLES = (
    "| trial | connections/s before | TIME_WAIT before, after settling | settling (ms) | P99 (ms) "
)
TITLES += "| within |\n|---|---:|---:|---:|---:|---|"


@dataclass(frozen=True)
class Measured:
    """A trial, the rate of short connections before it, the most sockets in TIME_WAIT on any host
    before and after its settling, and what that took in s.
    """

    trial: Trial
    before_rps: float
    time_wait: tuple[int, int]
    settling_s: float

    def row(self, name: str, within: str) -> str:
        """Its line of the table."""
        rate = f"{self.before_rps:.0f}" if self.before_rps else ""
        waiting = "{}, {}".format(*self.time_wait)
        cells = [name, rate, waiting, f"{1000 * self.settling_s:.0f}", f"{self.trial.p99_ms:.1f}"]
        return f"| {' | '.join(cells)} | {within} |"


def main() -> None:
    arguments = parsed()
    with ready(arguments) as made:
        same = [measured(made, n) for n in range(arguments.same)]
        low, high = spread([m.trial.p99_ms for m in same])
        print(TITLES)
        for number, found in enumerate(same, start=1):
            print(found.row(f"same {number}", ""), flush=True)
        arms: dict[str, list[Measured]] = {"settled": [], "not settled": []}
        for number in range(1, arguments.rounds + 1):
            for name, found in arms.items():
                rate = short_connections(
                    made.rig, arguments.rate, arguments.seconds, arguments.path
                )
                found.append(measured(made, number, rate, settling=name == "settled"))
                within = "yes" if low <= found[-1].trial.p99_ms <= high else "no"
                print(found[-1].row(f"{name} {number}", within), flush=True)
                if arguments.drain:
                    time.sleep(DRAINED_S)
    print("\n" + "\n".join(summary(same, arms, (low, high))))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--same", type=int, default=12, help="trials first (12)")
    parser.add_argument("--rounds", type=int, default=3, help="with and without settling (3)")
    parser.add_argument("--rate", type=int, default=1500, help="short connections/s (1500)")
    parser.add_argument("--seconds", type=int, default=20, help="of them (20)")
    parser.add_argument(
        "--path", default="/img/icon-1.png", help="that they ask for (/img/icon-1.png, of 2 KB)"
    )
    parser.add_argument("--max-time-wait", type=int, help="as in [budget]; else its default")
    parser.add_argument(
        "--drain", action="store_true", help="let TIME_WAIT pass after each trial (65 s)"
    )
    arguments = parser.parse_args()
    if arguments.same < 2:
        parser.error("--same: a spread needs two trials or more")
    return arguments


@contextmanager
def ready(arguments: argparse.Namespace) -> Iterator[ClusterTestbed]:
    """The scenario short-buffer with static files, on a lab of our own."""
    study = short_buffer()
    arch = native_arch()
    spec = replace(study.clusters[arch][0], name=f"c{os.getpid() % 10_000}")
    budget = study.budget
    if arguments.max_time_wait is not None:
        budget = replace(budget, max_time_wait=arguments.max_time_wait)
    workloads = {"slt": study.workloads["slt"]}
    study = replace(study, clusters={arch: (spec,)}, workloads=workloads, budget=budget)
    try:
        lab.up(spec)
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(str(Path(folder) / "carryover.db")) as store,
        ):
            task = begun(store, study)
            with cluster_testbed.cluster_testbed(task) as made:
                yield made
    finally:
        lab.down(spec.name)


def measured(
    made: ClusterTestbed, number: int, rate: float = 0.0, *, settling: bool = True
) -> Measured:
    """A trial of the host's own values; without settling it begins as the hosts are."""
    counts: list[int] = []
    seconds = 0.0

    def watched(rig: Rig, **limits: Any) -> str:
        nonlocal seconds
        counts.append(waiting(rig))
        started = time.monotonic()
        unsettled = settle(rig, **limits) if settling else ""
        seconds = time.monotonic() - started
        counts.append(waiting(rig))
        return unsettled

    planned = PlannedTrial(index=number, role="baseline", configuration=DEFAULT)
    with patch.object(cluster_testbed, "settle", watched):
        trial = made.trial(planned, "collect", 0)
    if trial.histogram is None:
        sys.exit(f"the default can't be measured: {trial.detail}")
    if trial.detail:
        print(f"{trial.status}: {trial.detail}", file=sys.stderr, flush=True)
    return Measured(trial, rate, (counts[0], counts[1]), seconds)


def waiting(rig: Rig) -> int:
    """The most sockets in TIME_WAIT that any host has."""
    return max(rig.on_all(lambda host: int(output(host, WAITING).split()[1])).values())


def short_connections(
    rig: Rig, rate_rps: int, seconds: int, path: str = "/img/icon-1.png"
) -> float:
    """Make a connection for each request; returns how many a second were reached.

    The link of the lab's study carries 75 Mbit/s: 1,500 a second where they ask for 2 KB, and
    some 600 where they ask for 14 KB (/index.html), which then fill it.
    """
    directory = f"{load_directory(rig.load_generator)}-short"
    scripts = {file.name: file.read_text() for file in shipped("lua").glob("*.lua")}
    rig.load_generator.put(directory, {**scripts, PATHS_FILE: f"{path}\n"})
    workload = Workload(
        name="slt",
        kind="slt",
        rate_rps=rate_rps,
        connections=64,
        threads=2,
        duration_s=seconds,
        warmup_s=0,
        timeout_s=10,
        clients=(Clients(requests_per_connection=1),),
    )
    tool = load_tool(rig, workload, "engine")
    ((_, load),) = streams(workload, rig.cluster, seed=1)
    text = output(rig.load_generator, command(tool, load, directory), timeout_s=seconds + 60)
    return parse_output(text, tool, load).achieved_rps


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The central prediction interval of one further value, by Student's t of the logarithms."""
    logs = [math.log(value) for value in values]
    quantile = float(stats.t.ppf((1 + SHARE) / 2, len(logs) - 1))
    half = quantile * stdev(logs) * math.sqrt(1 + 1 / len(logs))
    return math.exp(fmean(logs) - half), math.exp(fmean(logs) + half)


def summary(
    same: Sequence[Measured], arms: dict[str, list[Measured]], limits: tuple[float, float]
) -> list[str]:
    """What the trials come to together, as a second table."""
    low, high = limits
    first = [m.trial.p99_ms for m in same]
    rows = [
        (
            f"P99 of {len(first)} trials that follow on their like",
            f"{geometric_mean(first):.1f} ms",
        ),
        (f"{SHARE:.0%} prediction interval of one more", f"{low:.1f} to {high:.1f} ms"),
    ]
    for name, found in arms.items():
        values = [m.trial.p99_ms for m in found]
        within = sum(low <= value <= high for value in values)
        rows.append((f"{name}: within it", f"{within} of {len(values)}"))
        if len(values) > 1:
            ratio = unpaired_ratio(values, first, level=SHARE)
            interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
            rows.append(
                (f"{name}: P99 by that of the first (95 %)", f"{ratio.ratio:.2f} ({interval})")
            )
    took = [1000 * m.settling_s for found in (same, arms["settled"]) for m in found]
    rows.append(("settling, lowest and highest", f"{min(took):.0f} to {max(took):.0f} ms"))
    return ["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows)]


if __name__ == "__main__":
    main()
