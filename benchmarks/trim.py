"""Does trim keep the gain, and only what makes it? Simulated, by the product's own search.

    python -m benchmarks trim

A candidate has 14 changes, of which a few act. Each search is `trimming.trim`, which gets rounds
drawn from a bed:

- two       0.50 and 0.20 (logarithms of the slowest tenth, added)
- one       0.50 by a single change
- twins     0.50 by either of two changes, and no more by both
- pair      0.50 by two changes together, and nothing by one alone
- small     0.12 by a single change
- harm      0.50 by one change, and -0.20 (worse) by another
- nothing   no change acts

P99 is 1.7 times the tail's effect. Scatter is that of the lab's trials of 2 s with 120 requests
(main_run.md, run 1): a trial's tail 0.09, its P99 0.15, and one trial in ten has a P99 three times
as high. All sets of a round share 0.05. In the cells `right` the order begins with the changes that
act, in `mixed` they stand at places 2, 4 and 6.

Terms, said before any run: 500 searches a cell. A search keeps the gain where the true gain of its
set is at least 90 % of the candidate's best one. Wanted: 95 % of the searches in every cell but
`small`, with at most one change that does nothing on average.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from benchmarks.harness import Question, positive
from intop.campaign.verify.change_rounds import Changes, NextRounds, Round
from intop.campaign.verify.trimming import Answers, trim

CHANGES = 14
PLACES = {"right": (0, 1, 2), "mixed": (1, 3, 5)}
TAIL_SD, P99_SD, ROUND_SD = 0.09, 0.15, 0.05
SPIKES, SPIKE = 0.1, np.log(3.0)
P99_TIMES = 1.7
KEPT = 0.9
WANTED = 0.95


def _added(*effects: float) -> Callable[[tuple[bool, ...]], float]:
    return lambda has: sum(e for e, is_in in zip(effects, has, strict=False) if is_in)


BEDS: Mapping[str, Callable[[tuple[bool, ...]], float]] = {
    "two": _added(0.5, 0.2),
    "one": _added(0.5),
    "twins": lambda has: 0.5 if has[0] or has[1] else 0.0,
    "pair": lambda has: 0.5 if has[0] and has[1] else 0.0,
    "small": _added(0.12),
    "harm": _added(0.5, -0.2),
    "nothing": _added(),
}
"""The gain by which of the acting changes are there."""
MOST: Mapping[str, int] = {"two": 2, "one": 1, "twins": 1, "pair": 2, "small": 1, "harm": 1}
"""How many changes the best set needs."""
SEARCHES = 500


@dataclass(frozen=True)
class Searches:
    """The outcome of the searches of a cell."""

    kept: float
    """The share that keeps the gain."""
    changes: float
    idle: float
    """Changes beyond those that the best set needs."""
    trials: float


@dataclass(frozen=True)
class Cell:
    """A bed with an order."""

    bed: str
    order: str


class Trim(Question[Cell, Searches]):
    """Does trim keep the gain, and only what makes it?"""

    result = Searches
    is_parallel = True
    fixed = ("rounds", "seed")

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=positive, default=3, help="of each step (3)")
        parser.add_argument("--seed", type=int, default=1, help="(1)")

    def cells(self) -> dict[str, Cell]:
        return {f"{bed}, {order}": Cell(bed, order) for bed in BEDS for order in PLACES}

    def measure(self, cell: Cell) -> Searches:
        rng = np.random.default_rng([self.given.seed, *map(ord, cell.bed + cell.order)])
        places = PLACES[cell.order]
        gain = BEDS[cell.bed]
        best = max(gain((a, b, c)) for a in (0, 1) for b in (0, 1) for c in (0, 1))  # type: ignore[arg-type]
        outcomes = []
        for _ in range(SEARCHES):
            kept, trials = search(gain, places, self.given.rounds, rng)
            is_kept = gain(_acting(kept, places)) >= KEPT * best - 1e-9
            idle = max(0, len(kept) - MOST.get(cell.bed, 0))
            outcomes.append((is_kept, len(kept), idle, trials))
        return Searches(*(fmean(column) for column in zip(*outcomes, strict=True)))

    def table(self, results: Mapping[str, Searches]) -> Iterator[str]:
        yield "| bed, order | keeps the gain | changes | of these idle | trials |"
        yield "|---|---:|---:|---:|---:|"
        for name, r in results.items():
            yield f"| {name} | {r.kept:.1%} | {r.changes:.1f} | {r.idle:.2f} | {r.trials:.0f} |"

    def missed(self, results: Mapping[str, Searches]) -> list[str]:
        return [
            name
            for name, r in results.items()
            if not name.startswith("small") and (r.kept < WANTED or r.idle > 1)
        ]


def search(
    gain: Callable[[tuple[bool, ...]], float],
    places: tuple[int, ...],
    rounds: int,
    rng: np.random.Generator,
) -> tuple[Changes, int]:
    """Return the changes that a search keeps, and the trials that it took."""
    asking = trim([str(n) for n in range(CHANGES)], rounds)
    asked, trials = next(asking), 0
    while True:
        trials += asked.rounds * len(asked.sets)
        try:
            asked = asking.send(_answers(asked, gain, places, rng))
        except StopIteration as end:
            return end.value.kept, trials


def _answers(
    asked: NextRounds,
    gain: Callable[[tuple[bool, ...]], float],
    places: tuple[int, ...],
    rng: np.random.Generator,
) -> Answers:
    p99: list[Round] = []
    tail: list[Round] = []
    for _ in range(asked.rounds):
        common = rng.normal(0, ROUND_SD)
        tails, p99s = {}, {}
        for changes in asked.sets:
            true = gain(_acting(changes, places))
            spike = SPIKE if rng.random() < SPIKES else 0.0
            # A spike is two slow requests of the twelve slowest.
            tails[changes] = common - true + rng.normal(0, TAIL_SD) + spike / 6
            p99s[changes] = common - P99_TIMES * true + rng.normal(0, P99_SD) + spike
        tail.append(tails)
        p99.append(p99s)
    return Answers(judged=p99, tail=tail)


def _acting(changes: Changes, places: tuple[int, ...]) -> tuple[bool, ...]:
    return tuple(str(place) in changes for place in places)
