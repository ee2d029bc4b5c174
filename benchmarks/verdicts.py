"""What verdicts are worth: many of them on a lab where the truth is known.

`aa` has the host's own values on both sides: every difference that a verdict calls is an error,
and at the 95 % level it may call one in twenty. `planted` has them on both sides, too, but the
link of one side is slower by a known share: how often the right sign is found, and how often the
interval holds the true ratio. That is not known from theory, so each verdict is held against the
pairs of all others together.

Each verdict is of a campaign of its own, as `intop verify` would measure it. Prints a table in
Markdown, line by line; progress is on stderr. No new verdict begins after --minutes.
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev
from typing import Any
from unittest.mock import patch

from intop.config.study import Study, load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import DEFAULT
from intop.domain.results import Verdict
from intop.domain.stats import geometric_mean
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.lab import network
from intop.lab.commands import run
from intop.pipeline import replicas
from intop.pipeline.bench import Bench, bench
from intop.pipeline.campaigns import new
from intop.pipeline.context import Context, Task
from intop.pipeline.verifying import judge
from intop.report.progress import LineProgress
from intop.resources import shipped
from intop.store import Store, opened

SIDE = "other side"


def main() -> None:
    arguments = parsed()
    study, spec = study_of(arguments)
    share = getattr(arguments, "share", 1.0)
    deadline = time.monotonic() + 60 * arguments.minutes
    found: list[Verdict] = []
    try:
        lab.up(spec)
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(str(Path(folder) / "verdicts.db")) as store,
            patch.object(replicas, "bench", slower_on_one_side(spec, share)),
        ):
            print("| verdict | pairs | ratio | 95 % interval | outcome |\n|---:|---:|---:|---|---|")
            while len(found) < arguments.verdicts and time.monotonic() < deadline:
                found.append(one_verdict(store, replace(study, seed=len(found) + 1)))
                print(row(len(found), found[-1]), flush=True)
    finally:
        lab.down(spec.name)
    if found:
        print("\n" + "\n".join(summary(found, share)))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    modes = parser.add_subparsers(dest="mode", required=True)
    same = modes.add_parser("aa", help="the same on both sides")
    planted = modes.add_parser("planted", help="one side's link is slower")
    planted.add_argument("--share", type=float, default=0.6, help="of the link's rate (0.6)")
    for mode, verdicts in ((same, 40), (planted, 20)):
        mode.add_argument("--verdicts", type=int, default=verdicts, help=f"({verdicts})")
        mode.add_argument("--pairs", type=int, default=10, help="at most, of each verdict (10)")
        mode.add_argument("--looks", type=int, default=2, help="at the pairs (2)")
        mode.add_argument("--seconds", type=int, default=2, help="of a trial (2)")
        mode.add_argument("--minutes", type=float, default=60, help="at most, and a verdict (60)")
    return parser.parse_args()


def study_of(arguments: argparse.Namespace) -> tuple[Study, LabSpec]:
    """The lab's own study, on a lab of our own, for static files."""
    study = load_study(shipped("configs") / "lab.toml")
    arch = native_arch()
    shape = study.clusters[arch][0]
    spec = LabSpec(name=f"v{os.getpid() % 10_000}", arch=arch, link=shape.link)
    workload = replace(study.workloads["slt"], duration_s=arguments.seconds)
    budget = replace(
        study.budget, judge_pairs=arguments.pairs, judge_looks=arguments.looks, level=0.95
    )
    study = replace(study, clusters={arch: (spec,)}, workloads={"slt": workload}, budget=budget)
    return study, spec


def one_verdict(store: Store, study: Study) -> Verdict:
    """A verdict on the host's own values against themselves."""
    context = Context(
        study=study,
        store=store,
        campaign=new(store, study),
        connect=connect,
        progress=LineProgress(),
        archs=tuple(study.clusters),
        workloads=tuple(study.workloads.values()),
    )
    (task,) = context.subjects()
    return judge(task, SIDE, DEFAULT)


@dataclass(frozen=True)
class Slowed:
    """A bench whose link is slower while one side's trials are measured."""

    bench: Bench
    spec: LabSpec
    share: float

    def trial(self, planned: Any, *rest: Any) -> Any:
        if planned.side != SIDE:
            return self.bench.trial(planned, *rest)
        reshape(self.spec, self.share)
        try:
            return self.bench.trial(planned, *rest)
        finally:
            reshape(self.spec, 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bench, name)


def slower_on_one_side(spec: LabSpec, share: float) -> Any:
    """What stands in for `bench`."""

    @contextmanager
    def opened_bench(task: Task, replica: int) -> Iterator[Any]:
        with bench(task, replica) as ready:
            yield ready if share == 1 else Slowed(ready, spec, share)

    return opened_bench


def reshape(spec: LabSpec, share: float) -> None:
    """Change the rate of the lab's link to a share of what it was made with."""
    (command,) = network.shaping(replace(spec.link, rate_mbit=share * spec.link.rate_mbit))
    program, *words = ["replace" if word == "add" else word for word in command]
    run([program, "-netns", network.namespace(spec.name, network.BALANCER), *words])


def row(number: int, verdict: Verdict) -> str:
    interval = f"{verdict.ratio_low:.2f} to {verdict.ratio_high:.2f}"
    return f"| {number} | {verdict.pairs} | {verdict.ratio:.3f} | {interval} | {verdict.outcome} |"


def summary(found: list[Verdict], share: float) -> list[str]:
    """What the verdicts come to together, as a second table."""
    ratios = [v.ratio for v in found]
    counts = {name: sum(v.outcome == name for v in found) for name in ("gain", "worse")}
    rows = [
        ("verdicts", f"{len(found)}"),
        ("pairs, mean", f"{sum(v.pairs for v in found) / len(found):.1f}"),
        ("ratio, geometric mean", f"{geometric_mean(ratios):.3f}"),
        ("ratio, lowest and highest", f"{min(ratios):.3f}, {max(ratios):.3f}"),
    ]
    if len(found) > 1:
        spread = stdev(map(math.log, ratios))
        rows.append(("ratio, standard deviation of its logarithm", f"{spread:.3f}"))
    rows += [(f"outcome {name}", f"{count}") for name, count in counts.items()]
    if share != 1 and len(found) > 1:
        held = sum(v.ratio_low <= others(found, n) <= v.ratio_high for n, v in enumerate(found))
        signed = sum((v.ratio < 1) == (share < 1) for v in found)
        rows += [
            ("right sign", f"{signed} of {len(found)}"),
            ("right sign, and significant", f"{counts['worse' if share < 1 else 'gain']}"),
            ("interval holds the ratio of all other pairs", f"{held} of {len(found)}"),
        ]
    return ["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows)]


def others(found: list[Verdict], left_out: int) -> float:
    """The geometric mean over the pairs of all verdicts but one.

    Weighted by pairs, it is right also where verdicts stopped early (Wald's identity).
    """
    rest = [v for n, v in enumerate(found) if n != left_out]
    return geometric_mean([v.ratio for v in rest for _ in range(v.pairs)])


if __name__ == "__main__":
    main()
