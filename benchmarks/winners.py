"""Do winners of tune keep their gain on labs that they were not found on?

    python -m benchmarks winners                    40 winners over six scenarios
    python -m benchmarks winners --seeds 3 --minutes 100

A campaign of the product (`intop tune`) finds each winner on four labs of a scenario, with the
budget of `make run` and its trials of 2 s. Scenarios with fewer than 60 requests/s keep their own
duration. The labs are then taken down. New ones are brought up, and a verdict of a new campaign
compares the winner with the default there.

Terms, said before any run:

gain kept   The gain is 1 - 1 / ratio, the share of the default's P99 that is saved. A winner loses
            30 % of it where the new gain is below 0.7 times the verdict's.
acting      Each parameter that would be deployed is a gain in the scenario's truth table
            (benchmarks/truth).
The claim   no winner loses 30 % or more of its gain, and none has more than 5 parameters.

A campaign without a gain has no winner. It is counted, and nothing is deployed.
"""

import argparse
import csv
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from benchmarks.campaign import MAIN, begun, context_of, judged, labs_up, scenario
from benchmarks.harness import ROOT, Question, UnusableError
from benchmarks.truth import cells as cells_of
from intop.campaign.tune import tune
from intop.config.study import Study
from intop.domain.cluster import native_arch
from intop.domain.configuration import Configuration
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.run.opening import cluster_testbed
from intop.store import Store

TRUTH = ROOT / "benchmarks" / "truth"
SCENARIOS = ("static-wan", "downloads", "mixed-clients", "small-objects", "bursts", "uploads")
"""The native scenarios whose truth has a gain on P99 of a tenth or more."""
SEEDS = 7
WINNERS = 40
"""The first so many of all seeds and scenarios, seed by seed."""
LABS = 4
SHORT_S = 2
"""Duration of a trial of `make run` (s)."""
FEWEST_RPS = 60
KEPT = 0.7
MOST_PARAMETERS = 5


@dataclass(frozen=True)
class Winner:
    """A campaign's winner, and its worth on new labs. `again` is None without a gain."""

    values: dict[str, str]
    first: Interval
    again: Interval | None
    acting: int

    @property
    def share_kept(self) -> float | None:
        """Return the share of the gain that the new labs confirm."""
        if self.again is None:
            return None
        return (1 - 1 / self.again.value) / (1 - 1 / self.first.value)


def interval_of(verdict: Verdict) -> Interval:
    """Return the verdict's ratio of P99."""
    return Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)


def acting_keys(study: Study) -> set[str]:
    """Return the parameters whose test is a gain in the scenario's truth table."""
    (workload,) = study.workloads
    path = TRUTH / f"{study.name}-{native_arch()}-{workload}.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = csv.DictReader(file)
        return {row["key"] for row in rows if (row["part"], row["state"]) == ("test", "gain")}


class Winners(Question[tuple[str, int], Winner]):
    """Do winners keep their gain?"""

    seeds = SEEDS
    result = Winner
    has_store = True
    may_end_early = True

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "scenario", nargs="*", help=f"of {', '.join(SCENARIOS)}; all by default"
        )

    def cells(self) -> dict[str, tuple[str, int]]:
        names = self.given.scenario or SCENARIOS
        if unknown := set(names) - set(SCENARIOS):
            raise UnusableError(f"unknown: {', '.join(sorted(unknown))}")
        places = [(name, seed) for seed in self.seed_range() for name in names]
        return {f"{name} {seed}": (name, seed) for name, seed in places[:WINNERS]}

    def measure(self, cell: tuple[str, int]) -> Winner:
        name, seed = cell
        store = self.store(f"{name}-{seed}")
        study = study_of(name, seed, store)
        verdict = tuned(store, study)
        first = interval_of(verdict)
        values = dict(verdict.configuration.values)
        acting = len(acting_keys(study) & values.keys())
        again = deployed(store, study, values) if verdict.is_gain else None
        return Winner(values if verdict.is_gain else {}, first, again, acting)

    def progress(self, name: str, result: Winner) -> str:
        return row(name, result)

    def table(self, results: Mapping[str, Winner]) -> Iterator[str]:
        yield "| scenario, seed | its verdict | on new labs | gain kept | parameters | acting |"
        yield "|---|---:|---:|---:|---:|---:|"
        yield from (row(name, winner) for name, winner in results.items())

    def missed(self, results: Mapping[str, Winner]) -> list[str]:
        return [
            name
            for name, winner in results.items()
            if len(winner.values) > MOST_PARAMETERS
            or (winner.share_kept is not None and winner.share_kept < KEPT)
        ]


def study_of(name: str, seed: int, store: Store) -> Study:
    """Return the scenario on four labs, with the budget of `make run`."""
    (cell,) = cells_of(name, store, replicas=LABS)
    ((key, workload),) = cell.study.workloads.items()
    if workload.rate_rps >= FEWEST_RPS:
        workload = replace(workload, duration_s=SHORT_S)
    return replace(cell.study, seed=seed, workloads={key: workload}, budget=scenario(MAIN).budget)


def tuned(store: Store, study: Study) -> Verdict:
    """Return the verdict of a campaign, which goes on where it was interrupted."""
    campaign = store.latest(study.name)
    if campaign is None or campaign.finished_at is None:
        with labs_up(study):
            tune(context_of(store, study), lambda _: None)
    context = context_of(store, study)
    (task,) = context.subjects()
    verdict = store.get(task.subject, Verdict)
    if verdict is None:
        raise UnusableError(f"{study.name}: the campaign has no verdict")
    return verdict


def deployed(store: Store, study: Study, values: Mapping[str, str]) -> Interval:
    """Return the ratio of P99 that a new campaign measures on new labs."""
    again = replace(study, name=f"{study.name}-again")
    with labs_up(again):
        task = begun(store, again)
        with cluster_testbed(task):
            pass  # the host is probed, as a screening would have done
        return interval_of(judged(task, "winner", Configuration(dict(values))))


def row(name: str, winner: Winner) -> str:
    """Return a row of the table."""
    if winner.again is None:
        return f"| {name} | {winner.first} | - | - | - | - |"
    return (
        f"| {name} | {winner.first} | {winner.again} | {winner.share_kept:.2f} | "
        f"{len(winner.values)} | {winner.acting} |"
    )
