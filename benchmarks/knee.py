"""Whether `intop sweep` finds a planted knee: the rate of answers that the lab's link can carry.

For each link rate a lab of its own, whose clients have one large file over a link of that rate. A
link that counts every byte of a frame carries

    link rate / (8 x (answer + 66 x frames))   answers a second,

for an answer of `size` bytes and its head in frames of 1,448 (54 or, with time stamps, 66 bytes of
headers with Ethernet's). The product's sweep measures the host's own values at RATES, which are the
same for all links and don't know of it. A knee is found where it is within TOLERANCE of that. In a
closed loop over CONNECTIONS the highest rate that is reached is held against the same.

Prints Markdown, and ends with exit code 1 where one is missed. Needs root.
"""

import argparse
import math
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.campaign import begun, labs_up, short_buffer
from intop.config.study import Study
from intop.domain.cluster import LabSpec, Link, native_arch
from intop.lab.content import static_files
from intop.stages.sweep import Request, sweep
from intop.store import opened

FILE = "js/chart.js"
LINKS_MBIT = (10.0, 20.0, 40.0)
RATES = "8,12,16,20,25,32,40,50,64,80,100"
CONNECTIONS = "1,2,4,8,16"
ROUNDS, SECONDS = 3, 5
TOLERANCE = 0.05
DELAY_MS, BUFFER_KB = 5.0, 200
SEGMENT, HEADERS = 1448, 66
HEAD = 280
"""Bytes of the head of nginx's answer to a static file."""


@dataclass(frozen=True)
class Row:
    """One sweep: what was planted and found, in answers a second; None is not found."""

    link_mbit: float
    loop: str
    planted: float
    found: float | None
    interval: str = "-"

    @property
    def off(self) -> float | None:
        """The share by which it is off."""
        return None if self.found is None else self.found / self.planted - 1

    @property
    def is_within(self) -> bool:
        """Whether it was found."""
        return self.off is not None and abs(self.off) <= TOLERANCE


def planted_rps(link_mbit: float, size: int) -> float:
    """How many answers of `size` bytes a link carries in a second."""
    answer = size + HEAD
    frames = math.ceil(answer / SEGMENT)
    return link_mbit * 1e6 / 8 / (answer + HEADERS * frames)


def study_of(link_mbit: float) -> Study:
    """One file over one link."""
    arch = native_arch()
    base = short_buffer()
    link = Link(rate_mbit=link_mbit, limit_kb=BUFFER_KB, delay_ms=DELAY_MS)
    spec = LabSpec(name=f"kn{os.getpid() % 10_000}", arch=arch, link=link)
    workload = replace(
        base.workloads["slt"],
        rate_rps=20.0,
        connections=32,
        duration_s=SECONDS,
        warmup_s=1,
        paths=(f"/{FILE}",),
    )
    return replace(base, clusters={arch: (spec,)}, workloads={"slt": workload})


def rows(link_mbit: float, store: Path) -> Iterator[Row]:
    """Both loops over one link."""
    study = study_of(link_mbit)
    planted = planted_rps(link_mbit, len(static_files()[FILE]))
    with labs_up(study), opened(str(store)) as kept:
        task = begun(kept, study)
        (knee,) = sweep(task, Request(points=RATES, rounds=ROUNDS)).knees
        if knee.value is None:
            yield Row(link_mbit, "open", planted, None)
        else:
            told = f"{knee.value.low:.2f} to {knee.value.high:.2f}"
            yield Row(link_mbit, "open", planted, knee.value.mean, told)
        closed = Request(axis="connections", loop="closed", points=CONNECTIONS, rounds=ROUNDS)
        reached = [one.arms[0].achieved_rps or 0.0 for one in sweep(task, closed).points]
        yield Row(link_mbit, "closed", planted, max(reached))


def line(row: Row) -> str:
    """A row of the table."""
    found = "-" if row.found is None else f"{row.found:.2f}"
    off = "-" if row.off is None else f"{100 * row.off:+.1f} %"
    cells = (f"{row.link_mbit:g}", row.loop, f"{row.planted:.2f}", found, row.interval, off)
    return f"| {' | '.join(cells)} | {'yes' if row.is_within else '**no**'} |"


def main() -> None:
    arguments = parsed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the lab is taken down all the same
    print("| link, Mbit/s | loop | planted, answers/s | found | 95 % | off | within 5 % |")
    print("|---:|---|---:|---:|---|---:|---|", flush=True)
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for link_mbit in arguments.links:
            for row in rows(link_mbit, Path(folder) / f"{link_mbit:g}.db"):
                print(line(row), flush=True)
                missed |= not row.is_within
    sys.exit(1 if missed else 0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--links", type=float, nargs="+", default=LINKS_MBIT, help="in Mbit/s")
    return parser.parse_args()


if __name__ == "__main__":
    main()
