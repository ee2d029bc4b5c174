"""What an access log of the load balancer costs, and whether its workers' processors matter.

The default on a lab, once for each mode of `access_log` (off; memory: buffered and on a tmpfs;
disk: each line at once) with each number of nginx's workers, the workers free or tied
(`server_cpus`). All cells are measured once a round, in a random order of the round's own (seeded
by the round's number), in labs that are up side by side; the load of a round is the same for all.
Small files (1 KB), so that lines are many: `--rate` requests/s.

Terms, fixed before it is measured:

- P99 of a cell is the geometric mean over its rounds, with Student's interval of log P99 at 95 %.
- The cost of a mode is P99 / P99 with the log off, of the same workers, as a mean of log ratios
  over the rounds (paired). Student's interval has 1 - 0.05 / cells compared (Bonferroni), so that
  all of them hold together at 95 %. A mode costs something where its interval is above 1.
- The between-run spread of a cell is the standard deviation of log P99 over its rounds. Free and
  tied workers, with all else equal, differ in it where Fisher's F interval of the ratio of their
  variances excludes 1 (95 %, each for itself; it takes the logarithms as normal).

Trials are in `--store`, a file of JSON lines; the same command goes on where it was stopped. Prints
Markdown. Needs root, and ten minutes with the defaults.
"""

import argparse
import json
import math
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean, stdev, variance

from intop.domain.cluster import AccessLog, Balancing, LabSpec, native_arch
from intop.domain.stats import bonferroni, geometric_interval, paired_ratio
from intop.domain.workload import Workload
from intop.hosts.measure import measure
from intop.hosts.rig import Rig, connected, load_tool, upload_scripts
from intop.hosts.settle import settle
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.resources import shipped

LEVEL = 0.95
MODES: tuple[AccessLog, ...] = ("off", "memory", "disk")
PATH = "/size/1k.jpg"


@dataclass(frozen=True, order=True)
class Cell:
    """What is measured: a mode of the log, so many workers, and whether they are tied."""

    mode: AccessLog
    workers: int
    tied: bool

    @property
    def name(self) -> str:
        """Such as: disk, 2 workers, tied."""
        plural = "s" if self.workers > 1 else ""
        return f"{self.mode}, {self.workers} worker{plural}, {'tied' if self.tied else 'free'}"


Found = Mapping[Cell, Mapping[int, tuple[float, float]]]
"""By cell and round: P99 in ms, and the load balancer's CPU (0 to 1)."""


def main() -> None:
    arguments = parsed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # labs are taken down all the same
    cells = [
        Cell(mode, workers, tied)
        for mode, workers, tied in product(MODES, arguments.workers, (False, True))
    ]
    found = stored(arguments.store)
    due = [
        (number, cell)
        for number in range(arguments.rounds)
        for cell in random.Random(number).sample(cells, len(cells))
        if number not in found[cell]
    ]
    if due:
        workload = Workload(
            name="log",
            kind="slt",
            rate_rps=arguments.rate,
            connections=64,
            threads=1,
            duration_s=arguments.seconds,
            warmup_s=1,
            timeout_s=10,
            paths=(PATH,),
        )
        with rigs(cells, arguments.cpus) as ready, arguments.store.open("a") as store:
            for number, cell in due:
                p99_ms, cpu = trial(ready[cell], workload, number)
                line = [cell.mode, cell.workers, cell.tied, number, p99_ms, cpu]
                print(json.dumps(line), file=store, flush=True)
                print(
                    f"{number + 1}/{arguments.rounds} {cell.name}: {p99_ms:.2f} ms", file=sys.stderr
                )
        found = stored(arguments.store)
    print("\n".join(tables({cell: found[cell] for cell in cells})))


@contextmanager
def rigs(cells: Sequence[Cell], cpus: str) -> Iterator[dict[Cell, Rig]]:
    """A lab for each cell, connected, with the load's files; all are taken down at the end."""
    made: dict[Cell, Rig] = {}
    with ExitStack() as stack:
        for number, cell in enumerate(cells):
            spec = LabSpec(
                name=f"log{os.getpid() % 1000}-{number}",
                arch=native_arch(),
                balancing=Balancing(
                    workers=cell.workers,
                    access_log=cell.mode,
                    server_cpus=cpus if cell.tied else "",
                ),
            )
            stack.callback(lab.down, spec.name)
            rig = stack.enter_context(connected(lab.up(spec), connect))
            upload_scripts(rig, shipped("lua"), (PATH,))
            made[cell] = rig
        yield made


def trial(rig: Rig, workload: Workload, number: int) -> tuple[float, float]:
    """P99 in ms, and the load balancer's CPU."""
    settle(rig, max_time_wait=20_000, limit_s=90)
    found = measure(rig, load_tool(rig, workload, "engine"), workload, seed=number)
    balancer = found.metrics[rig.load_balancer.address.name]
    return found.result.histogram.percentile_ms(99), balancer.cpu


def stored(path: Path) -> dict[Cell, dict[int, tuple[float, float]]]:
    """The trials in a file, which may not be there."""
    found: dict[Cell, dict[int, tuple[float, float]]] = defaultdict(dict)
    if path.exists():
        for line in path.read_text().splitlines():
            mode, workers, tied, number, p99_ms, cpu = json.loads(line)
            found[Cell(mode, workers, tied)][number] = (p99_ms, cpu)
    return found


def tables(found: Found) -> list[str]:
    """A row for each cell, then the spreads of tied and free workers against each other."""
    lines = [
        "| log | workers | rounds | P99, ms (95 %) | P99 / off | sd of log P99 | CPU, % |",
        "|---|---|---:|---|---|---:|---:|",
    ]
    logged = [cell for cell in found if cell.mode != "off"]
    for cell, made in found.items():
        p99s = [p99_ms for p99_ms, _ in made.values()]
        mean = geometric_interval(p99s, level=LEVEL)
        cost = "1" if cell.mode == "off" else told(cost_of(found, cell, len(logged)))
        lines.append(
            f"| {cell.mode} | {cell.workers} {'tied' if cell.tied else 'free'} | {len(p99s)} | "
            f"{mean.mean:.2f} ({mean.low:.2f} to {mean.high:.2f}) | {cost} | "
            f"{stdev(map(math.log, p99s)):.3f} | "
            f"{100 * fmean(cpu for _, cpu in made.values()):.1f} |"
        )
    lines += ["", "| spread of free / tied workers | ratio (95 %) |", "|---|---|"]
    for cell in found:
        if not cell.tied:
            ratio = spread_ratio(found[cell], found[replace(cell, tied=True)])
            lines.append(f"| {cell.mode}, {cell.workers} | {told(ratio)} |")
    return lines


def cost_of(found: Found, cell: Cell, compared: int) -> tuple[float, float, float]:
    """P99 / P99 with the log off, over the rounds that both have, with its interval."""
    off = found[replace(cell, mode="off")]
    common = [number for number in found[cell] if number in off]
    sides = ([made[number][0] for number in common] for made in (found[cell], off))
    ratio = paired_ratio(*sides, level=bonferroni(LEVEL, compared))
    return ratio.ratio, ratio.low, ratio.high


def spread_ratio(
    free: Mapping[int, tuple[float, float]], tied: Mapping[int, tuple[float, float]]
) -> tuple[float, float, float]:
    """Standard deviation of log P99, free / tied, with Fisher's interval."""
    from scipy.stats import f

    logs = [[math.log(p99_ms) for p99_ms, _ in made.values()] for made in (free, tied)]
    freedom = [len(values) - 1 for values in logs]
    ratio = variance(logs[0]) / variance(logs[1])
    low, high = (ratio / f.ppf(q, *freedom) for q in ((1 + LEVEL) / 2, (1 - LEVEL) / 2))
    return math.sqrt(ratio), math.sqrt(low), math.sqrt(high)


def told(ratio: tuple[float, float, float]) -> str:
    """Such as: 1.20 (1.05 to 1.37)."""
    return "{:.2f} ({:.2f} to {:.2f})".format(*ratio)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, default=Path("log-modes.jsonl"))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="(1 2)")
    parser.add_argument(
        "--cpus", default="0-1", help="of tied workers, as taskset lists them (0-1)"
    )
    parser.add_argument("--rounds", type=int, default=10, help="(10)")
    parser.add_argument("--rate", type=float, default=1500, help="requests/s (1500)")
    parser.add_argument("--seconds", type=int, default=3, help="of a trial (3)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
