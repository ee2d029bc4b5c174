"""The lab's own tables for the models: screening, one parameter at a time, SDS and DDS.

On two replicas of the lab, for slt and dlt (`--workload`), in this order:

screen      configurations that fill the space of all of PARAMETERS, once each
collect     configurations of the parameters that the screening chose, `--replicates` times each
alone       slt only: the default with one parameter changed, by rounds; this is what a screening
            has to find, measured without any model
alone-best  the same about the best configuration that was collected: about the default, parameters
            that only act together change nothing

All of it is kept in `--store`, and goes on where it was interrupted. Ends by writing one CSV a
workload and part into `--out`, a row for each usable trial: `configuration` (which rows are
replicates), the varied numbers or names, `p99_ms`. Those in benchmarks/data/ were made by it on
2026-11-21, in an hour: slt's screening in two halves, of which only the first was there when
parameters were chosen for collect; dlt's has 240 configurations. What models make of them:

    intop train --data benchmarks/data/slt-collect.csv.gz --target p99_ms --ignore configuration \\
        --ignore arm
    python -m benchmarks.screening benchmarks/data
"""

import argparse
import csv
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from gzip import GzipFile
from io import TextIOWrapper
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.campaign import context_of, measured, short_buffer
from intop.domain.baseline import HOST
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.ranking import Ranking
from intop.domain.replicates import by_configuration
from intop.domain.rounds import Arms
from intop.domain.space import Column, Space
from intop.domain.trial import PlannedTrial, Trial
from intop.lab import cluster as lab
from intop.learn.design import latin_hypercube
from intop.run.context import Task
from intop.run.replicas import replicas_in_use
from intop.run.rounds import blocks
from intop.run.testbed import Testbed
from intop.stages.collected import required_space
from intop.stages.screen import screen
from intop.stages.sentinels import with_sentinels
from intop.store import opened

DUMMIES = (
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_retries2",
)
"""Written and read back as any other, and without a part in requests that take seconds at most:
two of them are waits of minutes and more, the others count what comes after such waits."""

PARAMETERS = (
    *DUMMIES,
    "net.core.somaxconn",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_comp_sack_delay_ns",
    "net.ipv4.tcp_comp_sack_nr",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_min_rtt_wlen",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_thin_linear_timeouts",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
)
CHOSEN = 12
BASE = "base"
"""The arm in which nothing is changed, where that is not the default."""
LEVELS = (0.0, 0.5, 1.0)
"""Of a number, as places in its range on its own scale."""


def main() -> None:
    arguments = parsed()
    arguments.out.mkdir(parents=True, exist_ok=True)
    whole = short_buffer()
    arch = native_arch()
    specs = tuple(
        LabSpec(name=f"sds-{n}", arch=arch, link=whole.clusters[arch][0].link) for n in (1, 2)
    )
    study = replace(
        whole,
        name="datasets",
        clusters={arch: specs},
        wanted=PARAMETERS,
        workloads={name: whole.workloads[name] for name in arguments.workload},
        # A trial that is given up early has no P99 but a bound of it, and a rank is no use here.
        budget=replace(
            whole.budget, keep=CHOSEN, sentinel_every=16, prune_factor=0.0, max_failures=50
        ),
    )
    try:
        for spec in specs:
            lab.up(spec)
        with opened(str(arguments.store)) as store:
            for task in context_of(store, study).subjects():
                parts = parts_of(task, arguments)
                for part, trials in parts.items():
                    path = arguments.out / f"{task.workload.name}-{part}.csv.gz"
                    write(path, required_space(task), trials)
                    print(f"{path}: {sum(t.usable for t in trials)} trials")
    finally:
        for spec in specs:
            lab.down(spec.name)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", nargs="+", choices=["slt", "dlt"], default=["slt", "dlt"])
    parser.add_argument("--screen", type=int, default=480, help="configurations to screen (480)")
    parser.add_argument("--rounds", type=int, default=4, help="with one parameter changed (4)")
    parser.add_argument("--collect", type=int, default=200, help="configurations (200)")
    parser.add_argument("--replicates", type=int, default=3, help="trials of each of them (3)")
    parser.add_argument("--store", type=Path, default=Path("datasets.db"), help="(datasets.db)")
    parser.add_argument("--out", type=Path, default=Path("datasets"), help="a folder (datasets)")
    return parser.parse_args()


def parts_of(task: Task, arguments: argparse.Namespace) -> dict[str, list[Trial]]:
    """The trials of each part, measured now or before."""
    screen(task, arguments.screen)
    parts = {"screen": task.trials("screen")}

    def plan(ready: Testbed) -> list[PlannedTrial]:
        ranking = task.store.get(task.subject, Ranking)
        assert ranking is not None
        space = ready.probed.space.restricted(ranking.chosen)
        design = latin_hypercube(space, arguments.collect, seed=task.seed("collect"))
        rng = random.Random(task.seed("passes"))
        passes = [c for _ in range(arguments.replicates) for c in rng.sample(design, len(design))]
        return with_sentinels(
            passes, task.context.study.budget.sentinel_every, replicas_in_use(task)
        )

    parts["collect"] = measured(task, "collect", plan)
    if task.workload.name == "slt":
        best = min(by_configuration(parts["collect"]), key=lambda m: median(m.p99_ms))
        parts["alone"] = changed(task, "contest", DEFAULT, arguments.rounds)
        parts["alone-best"] = changed(task, "pick", best.configuration, arguments.rounds)
    return parts


def changed(task: Task, stage: str, base: Configuration, rounds: int) -> list[Trial]:
    """A configuration, and it with one parameter changed, in rounds."""
    arms = alone(required_space(task), base)
    plan = blocks(task, stage, arms, rounds)
    return measured(task, stage, plan, ends_by_failures=False)


def alone(
    space: Space,
    base: Configuration,
    levels: Callable[[Column], Sequence[float]] = lambda _: LEVELS,
) -> Arms:
    """The base, and it with one number or name changed; by `COLUMN: VALUE`.

    `levels` says at which places of its range a number is measured.
    """
    arms = {HOST if base.is_default else BASE: base}
    genes = space.genes(space.values([base]))
    (unchanged,) = space.configurations(space.decode(genes))
    for index, column in enumerate(space.columns):
        count = len(column.parameter.choices)
        places = levels(column) if column.component else [(n + 0.5) / count for n in range(count)]
        moved = np.repeat(genes, len(places), axis=0)
        moved[:, index] = places
        for whole in space.configurations(space.decode(moved)):
            # A repaired partner is part of it; a default outside of its range is not.
            other = {k: v for k, v in whole.values.items() if v != unchanged.values[k]}
            if other:
                name = f"{column.name}: {whole.values[column.parameter.key]}"
                arms[name] = Configuration({**base.values, **other})
    return arms


def write(path: Path, space: Space, trials: Sequence[Trial], *, tails: bool = False) -> None:
    """A row for each usable trial: its configuration, arm, values and P99, and maybe its tail."""
    targets = {"p99_ms": lambda t: t.p99_ms} | ({"tail_ms": lambda t: t.tail_ms} if tails else {})
    columns = [c for c in space.columns if varies(c.parameter.key, trials)]
    # Without a date in it, equal tables are equal files.
    with GzipFile(path, "wb", mtime=0) as packed, TextIOWrapper(packed, newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["configuration", "arm", *(c.name for c in columns), *targets])
        for trial in trials:
            if trial.usable:
                (numbers,) = space.values([trial.configuration])
                rows.writerow(
                    [
                        trial.configuration.digest,
                        trial.planned.arm,
                        *(
                            f"{v:.0f}" if c.component else c.parameter.choices[int(v)]
                            for c, v in zip(space.columns, numbers, strict=True)
                            if c in columns
                        ),
                        *(f"{of(trial):.3f}" for of in targets.values()),
                    ]
                )


def varies(key: str, trials: Sequence[Trial]) -> bool:
    """Whether any of the trials wrote it."""
    return any(key in t.configuration.values for t in trials)


if __name__ == "__main__":
    main()
