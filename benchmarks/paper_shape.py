"""The study of the paper on the lab: its shape, its stages and its numbers, with shorter trials.

    python -m benchmarks.paper_shape --workload slt --rate 1000 --seconds 1 --replicas 4

configs/paper.toml with embedded labs in place of its hosts (each has a load generator, a load
balancer and three backends, too), at a rate that the machine carries. 512 connections, all
parameters, the number of trials and all that models are given are the file's own. Prints, as
Markdown, what each stage took and measured, the most memory that this process and its children
had, and the size of the store. An interrupted run goes on; its table then has the times of the last
part only. Needs root.
"""

import argparse
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from benchmarks.campaign import context_of, labs_up
from intop.config.study import Study, load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.report.verdict import sentence
from intop.resources import shipped
from intop.run.context import Task
from intop.stages.tune import Tuned, tune
from intop.store import opened

NAME = "paper-{}"


@dataclass
class Stages:
    """When each stage began, in seconds of the monotonic clock."""

    began: list[tuple[str, float]]

    def begins(self, _: Task, name: str) -> None:
        """As `tune` says it."""
        self.began.append((name, time.monotonic()))

    def took(self) -> dict[str, float]:
        """Seconds by stage, up to now."""
        ends = [*(at for _, at in self.began[1:]), time.monotonic()]
        return {name: end - at for (name, at), end in zip(self.began, ends, strict=True)}


def on_the_lab(arguments: argparse.Namespace) -> Study:
    """The paper's study on labs of this machine."""
    paper = load_study(shipped("configs") / "paper.toml")
    workload = replace(
        paper.workloads[arguments.workload],
        rate_rps=arguments.rate,
        duration_s=arguments.seconds,
        threads=2,
    )
    labs = [LabSpec(name=NAME.format(n), arch=native_arch()) for n in range(arguments.replicas)]
    return replace(
        paper,
        name="paper-shape",
        clusters={native_arch(): tuple(labs)},
        workloads={workload.name: workload},
    )


def table(found: Tuned, stages: Stages, trials: dict[str, int], store: Path) -> Iterator[str]:
    """What it took, as Markdown."""
    yield "| stage | trials | time |"
    yield "|---|---:|---:|"
    for name, seconds in stages.took().items():
        yield f"| {name} | {trials.get(name, 0) or '-'} | {seconds:.0f} s |"
    yield ""
    memory = (getrusage(who).ru_maxrss / 1024 for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
    yield "Most memory: {:.0f} MiB here, {:.0f} MiB in the largest child. ".format(*memory) + (
        f"Store: {store.stat().st_size / 1e6:.1f} MB for {sum(trials.values())} trials."
    )
    yield f"Verdict: {sentence(found.verdict)}"


def main() -> None:
    arguments = parsed()
    # The labs are taken down all the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    study, stages = on_the_lab(arguments), Stages([])
    with opened(str(arguments.store)) as store, labs_up(study):
        context = context_of(store, study)
        (found,) = tune(context, lambda _: None, stages.begins)
        (task,) = context.subjects()
        trials = {name: len(task.trials(name)) for name in stages.took()}
        for line in table(found, stages, trials, arguments.store):
            print(line)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", choices=["slt", "dlt"], default="slt")
    parser.add_argument("--rate", type=float, default=1000.0, help="requests/s (1000)")
    parser.add_argument("--seconds", type=int, default=1, help="of load a trial (1)")
    parser.add_argument("--replicas", type=int, choices=range(1, 5), default=4, help="labs (4)")
    parser.add_argument("--store", type=Path, default=Path("build/paper-shape.db"))
    arguments = parser.parse_args()
    arguments.store.parent.mkdir(parents=True, exist_ok=True)
    return arguments


if __name__ == "__main__":
    main()
