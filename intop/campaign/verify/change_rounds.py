"""Rounds of an ablation: sets of changes that met, and the differences that they show."""

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias, TypeVar

from intop.domain.replicates import PRIOR_WEIGHT, RESOLUTION
from intop.domain.stats import Interval, ratio_of_logs, student_quantile

T = TypeVar("T")

Changes: TypeAlias = frozenset[str]
"""Changes by name. A name stands for a key, or for several that only go together."""

Round: TypeAlias = Mapping[Changes, float]
"""Log latency of the sets that met in one round, without those that could not be measured."""


@dataclass(frozen=True)
class NextRounds:
    """Sets that are to meet in a number of further rounds."""

    sets: tuple[Changes, ...]
    rounds: int


Asking: TypeAlias = Generator[NextRounds, Sequence[Round], T]
"""A part of the search: it yields what to measure, receives the rounds, and returns its result."""


@dataclass(frozen=True)
class Effect:
    """A difference of log latency."""

    mean: float
    error: float
    """The standard error."""
    low: float
    high: float
    rounds: int

    @property
    def ratio(self) -> Interval:
        """Return it as a ratio of latencies."""
        return ratio_of_logs(self.mean, self.low, self.high)


class Rounds:
    """The rounds so far, and the differences between sets that they show."""

    def __init__(self, rounds: Iterable[Round] = ()) -> None:
        self._rounds = list(rounds)

    def add(self, rounds: Iterable[Round]) -> None:
        """Add further rounds."""
        self._rounds.extend(rounds)

    def count(self, *sets: Changes) -> int:
        """Return how many rounds have all of these sets."""
        return sum(all(changes in r for changes in sets) for r in self._rounds)

    def effects(
        self, contrasts: Mapping[str, Mapping[Changes, int]], level: float
    ) -> dict[str, Effect]:
        """Return contrasts of log latency, weighted by set, over the rounds with all of its sets.

        Variances are drawn to that of all these contrasts together, as in domain/replicates.py:
        a few rounds have none of their own. Student's t has the degrees of freedom of both.
        Contrasts without a round are left out, and all of them where none has a second round.
        """
        values = {name: self._values(weights) for name, weights in contrasts.items()}
        values = {name: series for name, series in values.items() if series}
        squares = {
            name: math.fsum((v - fmean(series)) ** 2 for v in series)
            for name, series in values.items()
        }
        freedom = sum(len(series) - 1 for series in values.values())
        if not freedom:
            return {}
        pooled = max(sum(squares.values()) / freedom, RESOLUTION**2)
        effects: dict[str, Effect] = {}
        for name, series in values.items():
            own, mean = len(series) - 1, fmean(series)
            weight = min(PRIOR_WEIGHT, freedom - own)
            degrees = weight + own
            error = math.sqrt((weight * pooled + squares[name]) / degrees / len(series))
            error = max(error, RESOLUTION / math.sqrt(len(series)))
            half = student_quantile(level, degrees) * error
            effects[name] = Effect(mean, error, mean - half, mean + half, len(series))
        return effects

    def _values(self, weights: Mapping[Changes, int]) -> list[float]:
        return [
            sum(weight * r[changes] for changes, weight in weights.items())
            for r in self._rounds
            if all(changes in r for changes in weights)
        ]


def kept_share(gain: float, loss: float) -> float:
    """Return the share of a gain that is left after a loss, both log ratios of latency.

    Gains count as ratio less 1. Raises ValueError where there is no gain.
    """
    if gain <= 0:
        raise ValueError("there is no gain to keep")
    return math.expm1(gain - loss) / math.expm1(gain)


def without(whole: Changes, name: str) -> dict[Changes, int]:
    """Return the contrast of leaving a change out of a set."""
    return {whole - {name}: 1, whole: -1}
