"""What a second replica saves: screen and collect on one lab, and on two at once.

Prints a table in Markdown; progress is on stderr. The campaigns of one and of two replicas take
turns, so that a machine that grows slower hits both alike. With two of them, the comparison that
they agree is part of the time.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.campaign import begun, short_buffer
from intop.config.study import Study
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.collection import Collected
from intop.domain.stats import MeanInterval, geometric_interval
from intop.lab import cluster as lab
from intop.run.context import Task
from intop.run.replicas import replicas_in_use
from intop.stages.collect import collect
from intop.stages.screen import screen
from intop.store import opened


@dataclass(frozen=True)
class Campaign:
    """One screen and collect: how long it took, and the default's P99 (ms) in it."""

    replicas: int
    seconds: float
    trials: int
    default: MeanInterval


def main() -> None:
    arguments = parsed()
    whole = short_buffer()
    arch = native_arch()
    (workload,) = (w for name, w in whole.workloads.items() if name == arguments.workload)
    specs = [
        LabSpec(name=f"r{n}-{os.getpid() % 10_000}", arch=arch, link=whole.clusters[arch][0].link)
        for n in (1, 2)
    ]
    made: list[Campaign] = []
    print("| replicas | s | trials | default's P99 (ms) |\n|---:|---:|---:|---|")
    try:
        for spec in specs:
            lab.up(spec)
        for turn in range(arguments.turns):
            for count in (1, 2) if turn % 2 == 0 else (2, 1):
                study = replace(
                    whole,
                    seed=turn + 1,
                    clusters={arch: tuple(specs[:count])},
                    workloads={workload.name: workload},
                )
                made.append(measured(study, arguments))
                print(row(made[-1]), flush=True)
    finally:
        for spec in specs:
            lab.down(spec.name)
    seconds = {n: sum(c.seconds for c in made if c.replicas == n) for n in (1, 2)}
    if seconds[2]:
        print(f"\nWith two replicas: {seconds[1] / seconds[2]:.2f} times faster.")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=["slt", "dlt"], default="slt", help="(slt)")
    parser.add_argument("--turns", type=int, default=1, help="with one and with two replicas (1)")
    parser.add_argument("--screen", type=int, help="configurations to screen (as the lab's study)")
    parser.add_argument("--collect", type=int, help="and to collect (as the lab's study)")
    return parser.parse_args()


def measured(study: Study, arguments: argparse.Namespace) -> Campaign:
    with task_of(study) as task:
        started = time.monotonic()
        screen(task, arguments.screen)
        found: Collected = collect(task, arguments.collect)
        seconds = time.monotonic() - started
        default = [t.p99_ms for t in found.trials if t.configuration.is_default and t.usable]
        return Campaign(
            replicas=replicas_in_use(task),
            seconds=seconds,
            trials=len(task.store.trials(task.subject)),
            default=geometric_interval(default, level=0.95),
        )


@contextmanager
def task_of(study: Study) -> Iterator[Task]:
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(str(Path(folder) / "replicas.db")) as store,
    ):
        task = begun(store, study)
        yield task


def row(made: Campaign) -> str:
    default = f"{made.default.mean:.1f} ({made.default.low:.1f} to {made.default.high:.1f})"
    return f"| {made.replicas} | {made.seconds:.1f} | {made.trials} | {default} |"


if __name__ == "__main__":
    main()
