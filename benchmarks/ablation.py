"""How well `intop explain` finds the changes that matter: simulated, and on the lab.

Without --lab it simulates the search for the smallest set, without any host: log P99 is normal
about what the configuration has, and slower in some rounds than in others. One, two or three of 14
changes are needed, the third with a twin that does the same. The search knows nothing before
(promised by *nobody*), or an order of the changes: by their true effects on log P99 with an error
(sd 0.3) on each (*models*), or any (*wrong models*). Prints a table in Markdown: how often a change
without effect was kept, how often the set found keeps less than 90 % of the true gain, how much it
keeps, how often the whole winner would be deployed, since the judgement did not see the set keep
enough, and how many trials that took.

    python -m benchmarks.ablation --runs 200

With --lab it explains a winner on replicas of the lab (slt, the machine's own architecture):
the best configuration of benchmarks/data/slt-collect.csv.gz, with keys added that can't matter
there (DUMMIES of benchmarks/datasets.py). Each of --repeats is a campaign of its own, and goes on
where it was interrupted, in --store. The exit code is 1 where a planted key was kept, or the set
has more than five keys or less than 90 % of the gain.

    python -m benchmarks.ablation --lab --repeats 3
"""

import argparse
import csv
import gzip
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.campaign import context_of, judged, short_buffer
from benchmarks.datasets import DUMMIES, PARAMETERS
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import Configuration
from intop.domain.explanation import KEPT, WANTED_KEYS, Explanation
from intop.domain.stats import geometric_mean
from intop.domain.verdict import Verdict
from intop.lab import cluster as lab
from intop.report.document.text import show
from intop.report.explain import explanation as text
from intop.report.explain import smallest
from intop.report.figures.files import write_figures
from intop.stages.explain.ablation import Ablation, ablate
from intop.stages.explain.outcome import kept
from intop.stages.explain.rounds import Changes, kept_share
from intop.stages.explain.stage import explain
from intop.store import opened
from intop.version import __version__

KEYS = 14
TWINS = ("c", "d")
LEVEL = 0.95
ROUNDS, PAIRS = 4, 16
ROUND_SD = 0.1
"""Of log P99 of whole rounds: what all arms of a round have in common."""

NEEDED = {
    "large effects": {"a": 1.0, "b": 0.8, "twins": 0.7},
    "as on the lab": {"a": 0.9, "b": 0.6, "twins": 0.5},
    "small effects": {"a": 0.6, "b": 0.4, "twins": 0.3},
    "two of the lab's": {"a": 0.9, "b": 0.6, "twins": 0.0},
    "one of the lab's": {"a": 0.9, "b": 0.0, "twins": 0.0},
}
"""By how much log P99 falls with each of them."""

MODELS = {"nobody": None, "models": 0.3, "wrong models": math.inf}
"""The error (sd) of what models promise of each change; None: they promise nothing."""

TABLE = Path(__file__).with_name("data") / "slt-collect.csv.gz"
VALUES = {"net.ipv4.tcp_keepalive_intvl": "30", "net.ipv4.tcp_retries2": "8"}


def main() -> None:
    arguments = parsed()
    if arguments.lab:
        sys.exit(on_lab(arguments))
    print(HEADING)
    for name, effects in NEEDED.items():
        for sd in (0.15, 0.3):
            for models, error_sd in MODELS.items():
                began = time.monotonic()
                runs = [simulated(effects, sd, seed, error_sd) for seed in range(arguments.runs)]
                print(row(name, sd, models, runs), flush=True)
                print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200, help="simulated, of each row (200)")
    parser.add_argument("--lab", action="store_true", help="measure on the lab")
    parser.add_argument("--repeats", type=int, default=1, help="campaigns on the lab (1)")
    parser.add_argument("--replicas", type=int, default=2, help="of the lab (2)")
    parser.add_argument("--pairs", type=int, help="of the judgement on the lab (as in its study)")
    parser.add_argument("--store", type=Path, default=Path("ablation.db"), help="(ablation.db)")
    parser.add_argument(
        "--max-foreign-cores", type=float, default=0.4, help="more beside other work (0.4)"
    )
    parser.add_argument("--figures", type=Path, help="a folder for the last campaign's figures")
    return parser.parse_args()


# Simulated ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One search: what it found, the true share of the gain, if that was enough, and its price."""

    found: Ablation
    kept: float
    is_enough: bool
    trials: int

    @property
    def irrelevant(self) -> bool:
        return bool(set(self.found.minimal) - {"a", "b", *TWINS})


def simulated(
    effects: dict[str, float], sd: float, seed: int, error_sd: float | None = None
) -> Run:
    """The search and the judgement, with log P99 made up, and what models promise (MODELS)."""
    rng = np.random.default_rng(seed)
    names = [chr(ord("a") + n) for n in range(KEYS)]
    nothing: Changes = frozenset()
    whole: Changes = frozenset(names)

    def truth(changes: Changes) -> float:
        twins = effects["twins"] * (not changes.isdisjoint(TWINS))
        return -twins - sum(effects[name] for name in ("a", "b") if name in changes)

    def measured(sets: tuple[Changes, ...], rounds: int) -> list[dict[Changes, float]]:
        common = rng.normal(0, ROUND_SD, rounds)
        return [{s: truth(s) + shift + rng.normal(0, sd) for s in sets} for shift in common]

    promised: list[str] = []
    if error_sd is not None:
        errors = np.random.default_rng([seed, 1]).normal(0, 1, KEYS)
        known = [0.0 if error_sd == math.inf else -truth(frozenset(n)) / error_sd for n in names]
        promised = [names[n] for n in np.argsort(-(np.array(known) + errors))]
    found, trials = searched(names, measured, promised)
    minimal: Changes = frozenset(found.minimal)
    judged = measured((nothing, whole, minimal), PAIRS)
    default, full, smaller = ([math.exp(r[s]) for r in judged] for s in (nothing, whole, minimal))
    share = kept(default, full, smaller, level=LEVEL)
    return Run(
        found=found,
        kept=kept_share(-truth(whole), truth(minimal) - truth(whole)),
        is_enough=replace(share, was_seen=found.keeps_gain).is_enough,
        trials=trials + 3 * PAIRS,
    )


def searched(
    names: list[str],
    measured: Callable[[tuple[Changes, ...], int], list[dict[Changes, float]]],
    promised: Sequence[str] = (),
) -> tuple[Ablation, int]:
    """What a search finds, and the trials that it asks for."""
    search = ablate(names, rounds=ROUNDS, level=LEVEL, promised=promised)
    asked, trials = next(search), 0
    try:
        while True:
            trials += len(asked.sets) * asked.rounds
            asked = search.send(measured(asked.sets, asked.rounds))
    except StopIteration as end:
        return end.value, trials


HEADING = (
    "| effects | sd of a trial | promised by | a change without effect kept | gain lost "
    "| both twins kept | keys | kept, true | winner deployed | trials: median | 95 % |\n"
    "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def row(name: str, sd: float, models: str, runs: list[Run]) -> str:
    """One line of the table."""
    count = len(runs)
    trials = [run.trials for run in runs]
    cells = (
        name,
        f"{sd:g}",
        models,
        f"{sum(run.irrelevant for run in runs)} of {count}",
        f"{sum(run.kept < KEPT for run in runs)} of {count}",
        f"{sum(set(TWINS) <= set(run.found.minimal) for run in runs)} of {count}",
        f"{fmean(len(run.found.minimal) for run in runs):.2f}",
        f"{100 * fmean(run.kept for run in runs):.1f} %",
        f"{sum(not run.is_enough for run in runs)} of {count}",
        f"{np.median(trials):.0f}",
        f"{np.percentile(trials, 95):.0f}",
    )
    return f"| {' | '.join(cells)} |"


# On the lab ---------------------------------------------------------------------------------------


def winner() -> Configuration:
    """The best configuration of the lab's table, with the planted keys."""
    p99: dict[str, list[float]] = defaultdict(list)
    values: dict[str, dict[str, list[str]]] = {}
    with gzip.open(TABLE, "rt", newline="") as file:
        for line in csv.DictReader(file):
            digest = line.pop("configuration")
            p99[digest].append(float(line.pop("p99_ms")))
            line.pop("arm")
            known: dict[str, list[str]] = defaultdict(list)
            for column, value in line.items():
                known[column.partition("[")[0]].append(value)
            values[digest] = known
    best = min(p99, key=lambda digest: geometric_mean(p99[digest]))
    return Configuration({key: " ".join(v) for key, v in values[best].items()} | VALUES)


def on_lab(arguments: argparse.Namespace) -> int:
    """The exit code."""
    whole = short_buffer()
    arch = native_arch()
    specs = tuple(
        LabSpec(name=f"ablate-{n}", arch=arch, link=whole.clusters[arch][0].link)
        for n in range(1, arguments.replicas + 1)
    )
    missed = 0
    try:
        for spec in specs:
            lab.up(spec)
        for number in range(1, arguments.repeats + 1):
            study = replace(
                whole,
                name=f"ablation-{number}",
                seed=whole.seed + number - 1,
                clusters={arch: specs},
                wanted=PARAMETERS,
                workloads={"slt": whole.workloads["slt"]},
                budget=replace(
                    whole.budget,
                    max_foreign_cores=arguments.max_foreign_cores,
                    explain_pairs=arguments.pairs or whole.budget.explain_pairs,
                ),
            )
            with opened(str(arguments.store)) as store:
                (task,) = context_of(store, study).subjects()
                if store.get(task.subject, Verdict) is None:
                    judged(task, "the best of the table", winner())
                began = time.monotonic()
                found = explain(task)
                title = f"{task.title}, campaign {number} (intop {__version__})"
                show(text(title, found))
                if isinstance(found, Explanation):
                    print(f"{time.monotonic() - began:.0f} s, {summary(found)}", flush=True)
                    if arguments.figures:
                        arguments.figures.mkdir(parents=True, exist_ok=True)
                        write_figures(arguments.figures, "svg", {task.title: found})
                missed += not isinstance(found, Explanation) or not is_good(found)
    finally:
        for spec in specs:
            lab.down(spec.name)
    print(f"{arguments.repeats - missed} of {arguments.repeats} campaigns reached what was wanted")
    return int(missed > 0)


def is_good(found: Explanation) -> bool:
    """Whether the set is small, keeps the gain, and has none of the planted keys."""
    few = len(found.keys) <= WANTED_KEYS and found.kept.share >= KEPT
    return few and not set(found.keys) & set(DUMMIES)


def summary(found: Explanation) -> str:
    """In a line what was to be found out."""
    planted = sorted(set(found.keys) & set(DUMMIES))
    told = f"kept: {', '.join(planted)}" if planted else "all dropped"
    return f"{found.trials} trials; {smallest(found)}; keys that can't matter: {told}"


if __name__ == "__main__":
    main()
