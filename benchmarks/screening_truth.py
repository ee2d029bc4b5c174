"""Does a screening choose the keys that act? Held against the truth tables of benchmarks/truth.

    python -m benchmarks screening-truth static-wan --replicas 4
    python -m benchmarks screening-truth static-wan --seeds 3 --start 11

SCENARIO is a file of configs/scenarios without its suffix, whose truth is measured.
Each seed is a campaign of its own, in which the product's screening (`intop screen`) measures at
most TRIALS trials of SECONDS s and chooses parameters. What counts, said before any run:

true      a key with an arm that acts (its interval excludes 1, either way) in the table's test
unknown   a key with an arm that stood out and was not tested for want of time; it counts nowhere
false     any other key

The claim: each true key is chosen in nine of ten seeds, and of all that is chosen in all seeds at
most a tenth is false. The seeds 101 to 103 of earlier code are measured. Today's has 111 to 120 on
static-wan, fixed on 29 November 2026.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import truth_table
from benchmarks.campaign import labs_up
from benchmarks.harness import UnusableError
from benchmarks.truth import Cell, OfScenarios
from intop.campaign.screen import stage
from intop.domain.ranking import Screening
from intop.run.prospect import designed

TRIALS, SECONDS = 100, 2
FOUND, FALSE = 0.9, 0.1


@dataclass(frozen=True)
class Truth:
    """What a table says of a cell: keys that act, with the strongest arm's ratio, and others."""

    acting: Mapping[str, float]
    unknown: frozenset[str]


def truth_of(rows: Sequence[Mapping[str, str]]) -> Truth:
    """By the rows of a table."""
    acting: dict[str, float] = {}
    for row in rows:
        if row["part"] == "test" and row["state"] in ("gain", "worse"):
            ratio, before = float(row["ratio"]), acting.get(row["key"], 1.0)
            acting[row["key"]] = max(ratio, before, key=lambda r: max(r, 1 / r))
    unknown = {row["key"] for row in rows if row["state"] == "not followed"}
    return Truth(acting, frozenset(unknown - acting.keys()))


def most_configurations(every: int, replicas: int) -> int:
    """So many can be screened with TRIALS trials, sentinels included."""
    return max(n for n in range(1, TRIALS + 1) if designed(n, every, replicas) <= TRIALS)


def screened(cell: Cell, seed: int, replicas: int) -> Screening:
    """What one seed's screening comes to."""
    (workload,) = cell.study.workloads.values()
    budget = cell.study.budget
    count = most_configurations(budget.sentinel_every, replicas)
    study = replace(
        cell.study,
        seed=seed,
        workloads={workload.name: replace(workload, duration_s=SECONDS)},
        budget=replace(budget, screen_trials=count, screen_stable=0),
    )
    task = replace(cell, study=study).task(f"screening-{seed}")
    screening = stage.screen(task).screening
    assert screening is not None
    return screening


def detectable(found: Sequence[Screening]) -> str:
    """What effects the screenings would have found, in words."""
    sizes = [one.detectable for one in found]
    told = ", ".join("none" if size is None else f"{size:.3g}" for size in sizes)
    return f"Effects that would have been found with {found[0].power:.0%}, times: {told}."


def table(name: str, truth: Truth, chosen: Sequence[Sequence[str]]) -> Iterator[str]:
    """How often each key was chosen, and what that comes to."""
    counted = Counter(key for one in chosen for key in one)
    false = {k: n for k, n in counted.items() if k not in truth.acting and k not in truth.unknown}
    yield f"{name}, {len(chosen)} seeds"
    yield ""
    yield "| key | strongest arm | chosen in |"
    yield "|---|---:|---:|"
    for key, ratio in sorted(truth.acting.items(), key=lambda one: -max(one[1], 1 / one[1])):
        yield f"| `{key}` | {ratio:.2f} | {counted[key]} of {len(chosen)} |"
    for key, count in sorted(false.items()):
        yield f"| `{key}` | false | {count} of {len(chosen)} |"
    found = [key for key in truth.acting if counted[key] >= FOUND * len(chosen)]
    total = sum(n for key, n in counted.items() if key not in truth.unknown)
    share = sum(false.values()) / total if total else 0.0
    is_met = len(found) == len(truth.acting) and share <= FALSE
    yield ""
    yield (
        f"True keys chosen in {FOUND:.0%} of seeds: {len(found)} of {len(truth.acting)}. False: "
        f"{sum(false.values())} of {total} chosen ({share:.0%}). The claim is "
        f"{'met' if is_met else 'not met'}."
    )
    yield ""


class ScreeningTruth(OfScenarios[list[Screening]]):
    """Does a screening choose the keys that act?"""

    seeds = 10
    first_seed = 101

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        super().options(parser)
        add = parser.add_argument
        add("--truth", type=Path, default=Path("benchmarks/truth"), help="a folder")

    def cells(self) -> dict[str, Cell]:
        found = super().cells()
        for name, cell in found.items():
            if not (path := self._truth(name)).is_file():
                command = f"python -m benchmarks truth {cell.scenario}"
                raise UnusableError(f"{path} is not there: {command}")
        return found

    def measure(self, cell: Cell) -> list[Screening]:
        given = self.given
        with labs_up(cell.study):
            return [screened(cell, s, given.replicas) for s in self.seed_range()]

    def table(self, results: Mapping[str, list[Screening]]) -> Iterator[str]:
        for name, found in results.items():
            chosen = [one.keys("chosen") for one in found]
            yield from table(name, truth_of(truth_table.read(self._truth(name))), chosen)
            yield detectable(found)

    def _truth(self, name: str) -> Path:
        path: Path = self.given.truth / f"{name}.csv.gz"
        return path
