"""How well `intop explain` finds the changes that matter: simulated, and on the lab.

`ablation` simulates the search for the smallest set, without any host: log P99 is normal about what
the configuration has, and slower in some rounds than in others. One, two or three of 14 changes are
needed, the third with a twin that does the same. The search knows nothing before (promised by
*nobody*), or an order of the changes: by their true effects on log P99 with an error (sd 0.3) on
each (*models*), or any (*wrong models*). The table says how often a change without effect was kept,
how often the set found keeps less than 90 % of the true gain, how much it keeps, how often the
whole winner would be deployed, since the judgement did not see the set keep enough, and how many
trials that took.

`ablation-lab` explains a winner on replicas of the lab (slt, the machine's own architecture): the
best configuration of benchmarks/data/slt-collect.csv.gz, with keys added that can't matter there
(DUMMIES of benchmarks/tables.py). Each seed is a campaign of its own. The claim fails where a
planted key was kept, or the set has more than five keys or less than 90 % of the gain.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from benchmarks.campaign import bbr_backends, context_of, judged, labs_up
from benchmarks.harness import Question
from benchmarks.tables import DUMMIES, PARAMETERS, read
from intop.campaign.verify.change_rounds import Changes, kept_share
from intop.config.study import Study
from intop.document.figures import write_figures
from intop.document.text import show
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import Configuration
from intop.domain.explanation import KEPT, WANTED_KEYS, Explanation
from intop.domain.stats import geometric_mean
from intop.domain.verdict import Verdict
from intop.explain.ablation import Ablation, ablate
from intop.explain.outcome import kept
from intop.explain.stage import explain
from intop.explain.view import explanation as text
from intop.explain.view import smallest
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


class Setting(NamedTuple):
    """A row of the simulated table."""

    effects: str
    sd: float
    promised_by: str


class Simulated(Question[Setting, str]):
    """How well does the search find the smallest set?"""

    seeds = 200
    first_seed = 0
    result = str
    fixed = ("seeds", "start")

    def cells(self) -> dict[str, Setting]:
        settings = [Setting(n, sd, by) for n in NEEDED for sd in (0.15, 0.3) for by in MODELS]
        return {f"{s.effects}, sd {s.sd:g}, {s.promised_by}": s for s in settings}

    def measure(self, cell: Setting) -> str:
        error_sd = MODELS[cell.promised_by]
        effects = NEEDED[cell.effects]
        runs = [simulated(effects, cell.sd, seed, error_sd) for seed in self.seed_range()]
        return row(*cell, runs)

    def table(self, results: Mapping[str, str]) -> list[str]:
        return [HEADING, *results.values()]


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
    for line in read(TABLE):
        digest = line.pop("configuration")
        p99[digest].append(float(line.pop("p99_ms")))
        line.pop("arm")
        known: dict[str, list[str]] = defaultdict(list)
        for column, value in line.items():
            known[column.partition("[")[0]].append(value)
        values[digest] = known
    best = min(p99, key=lambda digest: geometric_mean(p99[digest]))
    return Configuration({key: " ".join(v) for key, v in values[best].items()} | VALUES)


class OnLab(Question[int, Explanation | None]):
    """Does an explanation on the lab keep the gain with few keys, none of them planted?"""

    seeds = 1
    has_store = True

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--replicas", type=int, default=2, help="of the lab (2)")
        add("--pairs", type=int, help="of the judgement (as in the lab's study)")
        add("--max-foreign-cores", type=float, default=0.4, help="more beside other work (0.4)")
        add("--figures", type=Path, help="a folder for the last campaign's figures")

    @cached_property
    def study(self) -> Study:
        """The study of the first campaign."""
        whole, arch = bbr_backends(), native_arch()
        link = whole.clusters[arch][0].link
        names = [f"ablate-{n}" for n in range(1, self.given.replicas + 1)]
        budget = replace(
            whole.budget,
            max_foreign_cores=self.given.max_foreign_cores,
            explain_pairs=self.given.pairs or whole.budget.explain_pairs,
        )
        return replace(
            whole,
            clusters={arch: tuple(LabSpec(name=name, arch=arch, link=link) for name in names)},
            wanted=PARAMETERS,
            workloads={"slt": whole.workloads["slt"]},
            budget=budget,
        )

    def cells(self) -> dict[str, int]:
        return {f"campaign {number}": number for number in self.seed_range()}

    def bed(self) -> AbstractContextManager[None]:
        return labs_up(self.study)

    def measure(self, cell: int) -> Explanation | None:
        seed = self.study.seed + cell - 1
        study = replace(self.study, name=f"ablation-{cell}", seed=seed)
        store = self.store(study.name)
        (task,) = context_of(store, study).subjects()
        if store.get(task.subject, Verdict) is None:
            judged(task, "the best of the table", winner())
        found = explain(task)
        show(text(f"{task.title}, campaign {cell} (intop {__version__})", found))
        if not isinstance(found, Explanation):
            return None
        if self.given.figures:
            self.given.figures.mkdir(parents=True, exist_ok=True)
            write_figures(self.given.figures, "svg", {task.title: found})
        return found

    def table(self, results: Mapping[str, Explanation | None]) -> Iterator[str]:
        for name, found in results.items():
            yield f"{name}: {'no explanation' if found is None else summary(found)}"

    def missed(self, results: Mapping[str, Explanation | None]) -> list[str]:
        return [n for n, found in results.items() if found is None or not is_good(found)]


def is_good(found: Explanation) -> bool:
    """Whether the set is small, keeps the gain, and has none of the planted keys."""
    few = len(found.keys) <= WANTED_KEYS and found.kept.share >= KEPT
    return few and not set(found.keys) & set(DUMMIES)


def summary(found: Explanation) -> str:
    """In a line what was to be found out."""
    planted = sorted(set(found.keys) & set(DUMMIES))
    told = f"kept: {', '.join(planted)}" if planted else "all dropped"
    return f"{found.trials} trials; {smallest(found)}; keys that can't matter: {told}"
