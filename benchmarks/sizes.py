"""A published table on the lab: the default, a blog's settings and ours, by the size of the file.

    python -m benchmarks.sizes

The blog on openEuler 25.09 (baseline `openeuler-25.09`) has 1 KB, 100 KB and 10 MB before and
after its tuning, in a closed loop. Here the product's `sweep --over file --closed` measures the
host's own values, the blog's kernel settings and the winner of the product's `tune` in interleaved
rounds, for files of five sizes. The winner is tuned in an open loop on files of up to 100 KB, and
so for none of the two large ones. The blog's settings of nginx are no part of the baseline.

The lab has no link here, as the blog has none: all hosts share this machine's processors. Prints
the campaign's verdict and the table, as Markdown. Needs root.
"""

import argparse
import os
import signal
from dataclasses import replace
from pathlib import Path

from benchmarks.campaign import context_of, labs_up, scenario
from intop.config.study import Study
from intop.domain.cluster import LabSpec, native_arch
from intop.lab.content import ONE_SIZE_KB
from intop.report.document.markdown import as_markdown
from intop.report.sweep import sweep as document
from intop.report.verdict import sentence
from intop.stages.sweep import Request, sweep
from intop.stages.tune import tune
from intop.store import opened

BLOG = "openeuler-25.09"
TUNED_FOR = ("size/1k.jpg", "size/10k.jpg", "size/100k.jpg")
RATE, CONNECTIONS = 400.0, 64
ROUNDS, SECONDS = 5, 5


def study_of() -> Study:
    """The budget of `make run` on a lab without a link."""
    arch = native_arch()
    base = scenario("lab")
    workload = replace(
        base.workloads["slt"],
        rate_rps=RATE,
        connections=CONNECTIONS,
        paths=tuple(f"/{path}" for path in TUNED_FOR),
    )
    spec = LabSpec(name=f"sz{os.getpid() % 10_000}", arch=arch)
    return replace(
        base, name="sizes", clusters={arch: (spec,)}, workloads={"slt": workload}, warm_start=False
    )


def main() -> None:
    arguments = parsed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the lab is taken down all the same
    study = study_of()
    with opened(str(arguments.store)) as store, labs_up(study):
        context = context_of(store, study)
        (found,) = tune(context, lambda _: None)
        print(f"{sentence(found.verdict)}\n", flush=True)
        (task,) = context.subjects()
        request = Request(
            axis="file",
            loop="closed",
            points=",".join(f"/{path}" for path in ONE_SIZE_KB),
            rounds=ROUNDS,
            seconds=SECONDS,
            names=(BLOG,),
        )
        print(as_markdown([document(task.title, sweep(task, request))]))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, default=Path("build/sizes.db"))
    arguments = parser.parse_args()
    arguments.store.parent.mkdir(parents=True, exist_ok=True)
    return arguments


if __name__ == "__main__":
    main()
