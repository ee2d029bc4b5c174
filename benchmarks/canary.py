"""How often is a canary wrong, and how many pairs does it take? Simulated, with drift.

    python -m benchmarks canary

A block's logarithm of P99 is a level, a day (a sine of 0.5 over 48 blocks), an autoregressive part
(0.8 of the block before, sd 0.15) and noise (Student's t with 3 degrees of freedom, sd 0.1). The
other quantities that a canary judges (four of the log, and delivery time) have parts of their own,
correlated by 0.7 with it. The two blocks of a pair come in random order, and the canary's is
changed by a true ratio. Each canary is judged after every pair by `outcome` of
`intop.deploy.canary.verdict`, which splits the error rate, up to 60 pairs.

Terms, said before any run: 1,000 canaries a cell, seed 1. Wanted: without an effect at most 5 %
call a gain or a harm (margin and limits 1.0, so that any certain difference is one); of true gains
and harms of 1.2 and 1.5 times at least 95 % are called rightly. Beside them: the pairs of a fixed
horizon, which is Student's t with as many pairs as give it a power of 95 % on the same bed.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Question, positive
from intop.deploy.canary.verdict import Measured, outcome
from intop.domain.canary import DELIVERY, LOGGED, P99
from intop.domain.stats import geometric_interval

Numbers = NDArray[np.float64]
QUANTITIES = (*LOGGED, DELIVERY)
"""The quantities that a canary judges where the host shows TCP_INFO."""
JUDGE = QUANTITIES.index(P99)

PAIRS = 60
DAY_BLOCKS, DAY = 48, 0.5
STAYS, WALK_SD = 0.8, 0.15
NOISE_SD, FREEDOM = 0.1, 3
COMMON = 0.7
LEVEL = 0.95
WRONG_AT_MOST, RIGHT_AT_LEAST = 0.05, 0.95
RATIOS = {
    "nothing": 1.0,
    "gain 1.2": 1 / 1.2,
    "gain 1.5": 1 / 1.5,
    "harm 1.2": 1.2,
    "harm 1.5": 1.5,
}


@dataclass(frozen=True)
class Called:
    """The outcomes of the canaries of a cell."""

    gain: float
    """The share that calls a gain."""
    harm: float
    pairs: float
    """The median of the pairs until it is called."""
    fixed: int
    """The pairs of a fixed horizon; 0 where none of up to PAIRS has the power."""


class Canaries(Question[str, Called]):
    """Simulated canaries by their true ratio."""

    result = Called
    is_parallel = True
    fixed = ("runs",)

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--runs", type=positive, default=1000)

    def cells(self) -> Mapping[str, str]:
        return {name: name for name in RATIOS}

    def measure(self, cell: str) -> Called:
        rng = np.random.default_rng([1, list(RATIOS).index(cell)])
        runs = [differences(RATIOS[cell], rng) for _ in range(self.given.runs)]
        called = [judged(run) for run in runs]
        ends = [pairs for word, pairs in called if word]
        return Called(
            gain=sum(word == "gain" for word, _ in called) / len(called),
            harm=sum(word == "harm" for word, _ in called) / len(called),
            pairs=median(ends) if ends else math.nan,
            fixed=0 if cell == "nothing" else fixed_horizon([run[JUDGE] for run in runs]),
        )

    def table(self, results: Mapping[str, Called]) -> Iterator[str]:
        yield "| true ratio | gain | harm | pairs until called | pairs of a fixed horizon |"
        yield "|---|---:|---:|---:|---:|"
        for name, r in results.items():
            fixed = str(r.fixed) if r.fixed else "-"
            yield f"| {name} | {r.gain:.1%} | {r.harm:.1%} | {r.pairs:.0f} | {fixed} |"

    def missed(self, results: Mapping[str, Called]) -> list[str]:
        return [
            name
            for name, r in results.items()
            if (name == "nothing" and r.gain + r.harm > WRONG_AT_MOST)
            or (name.startswith("gain") and r.gain < RIGHT_AT_LEAST)
            or (name.startswith("harm") and r.harm < RIGHT_AT_LEAST)
        ]


def differences(ratio: float, rng: np.random.Generator) -> Numbers:
    """Return log(canary / default), a row for each quantity and a column for each pair."""
    blocks = 2 * PAIRS
    level = DAY * np.sin(2 * np.pi * (np.arange(blocks) + rng.uniform(0, DAY_BLOCKS)) / DAY_BLOCKS)
    walk = 0.0
    for n in range(blocks):
        walk = STAYS * walk + rng.normal(0, WALK_SD)
        level[n] += walk
    scale = NOISE_SD / math.sqrt(FREEDOM / (FREEDOM - 2))
    shared = rng.standard_t(FREEDOM, blocks) * scale
    own = rng.standard_t(FREEDOM, (len(QUANTITIES), blocks)) * scale
    noise = math.sqrt(COMMON) * shared + math.sqrt(1 - COMMON) * own
    first, second = (level + noise)[:, 0::2], (level + noise)[:, 1::2]
    signs = rng.choice((-1.0, 1.0), PAIRS)
    return np.asarray(signs * (second - first) + math.log(ratio))


def judged(run: Numbers) -> tuple[str, int]:
    """Return the outcome after the first pair that shows one, and its number; "" for none."""
    for pairs in range(1, PAIRS + 1):
        called = outcome(measured(run[:, :pairs]), judged_by=P99, margin=1.0, level=LEVEL)
        if called in ("gain", "harm"):
            return called, pairs
    return "", PAIRS


def measured(run: Numbers) -> list[Measured]:
    """Return the quantities of a canary with these differences, the default's numbers being 1."""
    return [
        Measured(quantity=name, periods=[[(1.0, ratio)] for ratio in np.exp(row)], limit=1.0)
        for name, row in zip(QUANTITIES, run, strict=True)
    ]


def fixed_horizon(runs: Sequence[Numbers]) -> int:
    """Return the pairs with which Student's interval is on the true side often enough; 0: none."""
    sign = 1 if np.mean(runs) > 0 else -1
    for pairs in range(2, PAIRS + 1):
        shown = 0
        for run in runs:
            interval = geometric_interval(np.exp(sign * run[:pairs]).tolist(), level=LEVEL)
            shown += interval.low > 1
        if shown >= RIGHT_AT_LEAST * len(runs):
            return pairs
    return 0
