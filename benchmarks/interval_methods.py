"""Intervals of a ratio of P99: the narrowest of those that keep their level.

This asks no host: the trials are the default's in the recorded campaign, as in `far_tail`. A
comparison draws pairs of them with replacement, so the true ratio is 1. A gain of one side would
shift all intervals alike. Contestants, each at 95 %:

- *by round*: `paired_ratio` of the product, Student's t over the pairs' log ratios of P99;
- *pooled*: P99 of all requests of a side, with a bootstrap over pairs (2,000 draws, percentiles);
- *pooled, t*: the same estimate; its interval is Student's t with the bootstrap's standard error;
- *quantiles by round*: the mean of P98.5, P99 and P99.5 of a trial, then as *by round*.

Calibrated is what excludes 1 in at most CALLED of each bed. The claim is that *by round*
is calibrated, and the narrowest of those, by the mean width of the interval's logarithm.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.far_tail import LEVEL, defaults
from benchmarks.harness import Question, positive
from intop.domain.stats import paired_ratio, student_quantile
from intop.domain.trial import Trial

PAIRS = (5, 8, 16)
DRAWS = 2000
CALLED = 0.06
METHODS = ("by round", "pooled", "pooled, t", "quantiles by round")
ABOUT_P99 = (98.5, 99.0, 99.5)

Limits = tuple[float, float]
"""The logarithms of an interval's ends."""


@dataclass(frozen=True)
class Kept:
    """The share of one method's intervals that miss 1 on one bed, and their mean width."""

    missed: float
    width: float


class IntervalMethods(Question[tuple[str, int], dict[str, Kept]]):
    """Is the product's interval of a ratio of P99 the narrowest calibrated one?"""

    seeds = 1
    result = dict[str, Kept]
    fixed = ("comparisons",)

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--comparisons", type=positive, default=1000, help="of each bed (1000)")

    def cells(self) -> dict[str, tuple[str, int]]:
        return {
            f"{arch}, {pairs} pairs": (arch, pairs) for arch in ("x86", "arm") for pairs in PAIRS
        }

    @cached_property
    def trials(self) -> Mapping[str, Sequence[Trial]]:
        """The usable trials of the default, by architecture."""
        return defaults()

    def measure(self, cell: tuple[str, int]) -> dict[str, Kept]:
        arch, pairs = cell
        rng = np.random.default_rng(self.given.start)
        bed = Bed(self.trials[arch])
        limits: dict[str, list[Limits]] = {name: [] for name in METHODS}
        for _ in range(self.given.comparisons):
            sides = rng.integers(len(bed.counts), size=(2, pairs))
            for name, interval in bed.intervals(sides, rng).items():
                limits[name].append(interval)
        return {
            name: Kept(
                missed=float(np.mean([not low <= 0 <= high for low, high in each])),
                width=float(np.mean([high - low for low, high in each])),
            )
            for name, each in limits.items()
        }

    def table(self, results: Mapping[str, dict[str, Kept]]) -> Iterator[str]:
        yield f"| bed | {' | '.join(METHODS)} |"
        yield "|---|" + "---:|" * len(METHODS)
        for name, result in results.items():
            cells = [f"{100 * k.missed:.1f} %, {k.width:.2f}" for k in result.values()]
            yield f"| {name} | {' | '.join(cells)} |"

    def missed(self, results: Mapping[str, dict[str, Kept]]) -> list[str]:
        most = {name: max(r[name].missed for r in results.values()) for name in METHODS}
        width = {name: sum(r[name].width for r in results.values()) for name in METHODS}
        calibrated = [name for name in METHODS if most[name] <= CALLED]
        narrowest = min(calibrated, key=lambda name: width[name], default="none")
        return [] if narrowest == METHODS[0] else [f"the narrowest calibrated one is {narrowest}"]


class Bed:
    """Trials as counts of the same latencies.

    What is below P90 of every trial counts as one latency: no percentile of interest is there.
    """

    def __init__(self, trials: Sequence[Trial]) -> None:
        histograms = [t.histogram for t in trials if t.histogram is not None]
        floor_us = round(1000 * min(h.percentile_ms(90) for h in histograms))
        counts = [Counter[int]() for _ in histograms]
        for counted, histogram in zip(counts, histograms, strict=True):
            for value_us, count in histogram.pairs():
                counted[max(value_us, floor_us)] += count
        values = sorted({value for counted in counts for value in counted})
        self.values_ms = np.array(values) / 1000
        self.counts = np.array([[float(counted[value]) for value in values] for counted in counts])

    def log_percentile(self, counts: np.ndarray, percent: float) -> np.ndarray:
        """Return log P of each row of counts, of shape (n, latencies), as (n,)."""
        reached = counts.cumsum(axis=1) >= counts.sum(axis=1, keepdims=True) * percent / 100
        return np.log(self.values_ms[reached.argmax(axis=1)])

    def intervals(self, sides: np.ndarray, rng: np.random.Generator) -> dict[str, Limits]:
        """Return log intervals of default / other, of trials by index, of shape (2, pairs)."""
        pairs = sides.shape[1]
        default, other = (self.counts[side] for side in sides)
        weights = rng.multinomial(pairs, np.full(pairs, 1 / pairs), size=DRAWS).astype(float)
        drawn = self._pooled(weights, default) - self._pooled(weights, other)
        tails = 50 * (1 - LEVEL)
        low, high = np.percentile(drawn, [tails, 100 - tails])
        once = np.ones((1, pairs))
        middle = float((self._pooled(once, default) - self._pooled(once, other))[0])
        half = student_quantile(LEVEL, pairs - 1) * float(drawn.std(ddof=1))
        return {
            "by round": self._paired(default, other, (99.0,)),
            "pooled": (float(low), float(high)),
            "pooled, t": (middle - half, middle + half),
            "quantiles by round": self._paired(default, other, ABOUT_P99),
        }

    def _pooled(self, weights: np.ndarray, trials: np.ndarray) -> np.ndarray:
        return self.log_percentile(weights @ trials, 99)

    def _paired(self, default: np.ndarray, other: np.ndarray, percents: Sequence[float]) -> Limits:
        before, after = (
            np.exp(np.mean([self.log_percentile(each, p) for p in percents], axis=0))
            for each in (default, other)
        )
        ratio = paired_ratio(before, after, level=LEVEL)
        return math.log(ratio.low), math.log(ratio.high)
