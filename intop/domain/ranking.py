"""Rankings of parameters by a screening, and how far two of them agree."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import correlation
from typing import ClassVar, Literal

from intop.domain.drift import Drift

SHARP = 1.3
"""Effects that a screening has to be able to find before it may end early."""

FEWEST = 3
"""Parameters that a rank correlation needs: of two it is 1 or -1, whatever they are."""

State = Literal["chosen", "open", "frozen"]
"""The verdict of a screening on a parameter: it acts, it is open, it does not matter."""


@dataclass(frozen=True, kw_only=True)
class Importance:
    """The share of log latency that one parameter explains, by the models of a screening."""

    key: str
    mean: float
    """Its share of what the splits of a model explain. Shares add up to 1 with the probes'."""
    sd: float
    permutation: float
    """The error that ranks it: how much worse a model predicts unseen configurations when this
    parameter's values are shuffled among them. It is the mean growth of the squared error, as a
    share of the variance of log latency."""
    permutation_sd: float
    """The standard deviation of that over the models."""
    above: float
    """The share of the sets of probes all of which it beats."""
    passes: bool
    """Whether the screening takes it for more than noise."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of one parameter on the latency, from its best value to its worst."""

    key: str
    ratio: float
    """The factor by which the latency changes by the shape that fits best."""
    high: float | None
    """The upper limit of the ratio, None where there is none."""
    p_value: float
    """The p-value of the test that it does nothing."""
    probability: float
    """The probability that it acts, at most."""
    state: State


@dataclass(frozen=True, kw_only=True)
class Screening:
    """The parameters that a screening found to act, and how sure it is of that."""

    effects: tuple[Effect, ...]
    """Effects by parameter, the surest first."""
    configurations: int
    responses: tuple[str, ...]
    """The names of what was looked at, such as P99."""
    discovery_rate: float
    """The share of the chosen parameters that is expected to do nothing, at most."""
    matters: float
    """Frozen is what changes the latency by less than so many times."""
    level: float
    """The confidence with which each parameter is frozen."""
    power: float
    detectable: float | None
    """An effect of so many times would have been found with the probability `power`."""
    hinted: tuple[str, ...] = ()
    """Parameters that were expected to act, and held to a lower bar than all others."""

    @property
    def is_sharp(self) -> bool:
        """Whether it would have found what matters."""
        return self.detectable is not None and self.detectable <= SHARP

    @property
    def sharp_configurations(self) -> int | None:
        """Return how many configurations would find effects of SHARP times.

        None where these do, or find no effect however strong. An estimate's error falls with the
        square root of their number.
        """
        if self.detectable is None or self.is_sharp:
            return None
        return math.ceil(self.configurations * (math.log(self.detectable) / math.log(SHARP)) ** 2)

    def keys(self, *states: State) -> tuple[str, ...]:
        """Return the parameters in these states, the surest first."""
        return tuple(e.key for e in self.effects if e.state in states)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Parameters by importance, and what the screening says of them."""

    importances: tuple[Importance, ...]
    """The most important first."""
    chosen: tuple[str, ...]
    """The parameters that act: the SRP (workload slt) or DRP (workload dlt)."""
    trials: int
    probe_level: float
    """The noise threshold that a permutation importance has to be above to pass."""
    error_rate: float
    """The probability that any parameter passes where none has an effect, at most."""
    keep: int
    """Parameters that are varied at once, at most."""
    drift: Drift | None = None
    """The drift of the default, None as long as the screening is under way."""
    saved: int = 0
    """Planned trials that were not measured, since the choice had become stable."""
    screening: Screening | None = None
    """None where the choice was made by rank, and all others were frozen."""

    @property
    def passing(self) -> tuple[str, ...]:
        """The parameters that are more than noise, the most important first."""
        return tuple(i.key for i in self.importances if i.passes)

    @property
    def space(self) -> tuple[str, ...]:
        """The parameters that stay in the space: the chosen ones, then the open ones."""
        return self.chosen if self.screening is None else self.screening.keys("chosen", "open")

    @property
    def priors(self) -> dict[str, float]:
        """The probability that each open parameter acts."""
        effects = self.screening.effects if self.screening else ()
        return {e.key: e.probability for e in effects if e.state == "open"}


@dataclass(frozen=True, kw_only=True)
class RankPair:
    """One parameter's place in both rankings, among those that both have; 1 is the highest."""

    key: str
    rank_first: int
    rank_second: int
    passes_first: bool
    """Whether it is above the noise threshold in the first ranking."""
    passes_second: bool


@dataclass(frozen=True, kw_only=True)
class RankAgreement:
    """Two rankings, called `first` and `second`, over the parameters that both have."""

    ALSO_IN_JSON: ClassVar = ("chosen_by_both",)

    first: str
    second: str
    spearman: float | None
    """The correlation of the ranks of the importances. Like Kendall's, None where a side finds all
    of them equally important, or for fewer than three."""
    kendall: float | None
    """Kendall's tau-b."""
    common: tuple[str, ...]
    ranks: tuple[RankPair, ...]
    """The highest rank on either side first."""
    chosen_first: tuple[str, ...]
    chosen_second: tuple[str, ...]

    @property
    def chosen_by_both(self) -> tuple[str, ...]:
        """The parameters that both sides chose, in the first one's order."""
        return tuple(key for key in self.chosen_first if key in self.chosen_second)


def rank_agreement(names: tuple[str, str], first: Ranking, second: Ranking) -> RankAgreement:
    """Return the agreement of two rankings of these names."""
    weights = [{i.key: i.permutation for i in ranking.importances} for ranking in (first, second)]
    common = tuple(key for key in weights[0] if key in weights[1])
    spearman, kendall = _correlations(*([side[key] for key in common] for side in weights))
    places = [_places(ranking, common) for ranking in (first, second)]
    passes = [{i.key: i.passes for i in ranking.importances} for ranking in (first, second)]
    pairs = [
        RankPair(
            key=key,
            rank_first=places[0][key],
            rank_second=places[1][key],
            passes_first=passes[0][key],
            passes_second=passes[1][key],
        )
        for key in common
    ]
    return RankAgreement(
        first=names[0],
        second=names[1],
        spearman=spearman,
        kendall=kendall,
        common=common,
        ranks=tuple(sorted(pairs, key=_strongest_first)),
        chosen_first=first.chosen,
        chosen_second=second.chosen,
    )


def _correlations(
    first: Sequence[float], second: Sequence[float]
) -> tuple[float | None, float | None]:
    """Return Spearman's rank correlation and Kendall's tau-b.

    As scipy.stats computes them, whose import takes longer than all else of a report.
    """
    if len(first) < FEWEST or len(set(first)) == 1 or len(set(second)) == 1:
        return None, None
    spearman = correlation(_ranks(first), _ranks(second))
    pairs = [*zip(_orders(first), _orders(second), strict=True)]
    apart = sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs)
    return spearman, sum(a * b for a, b in pairs) / math.sqrt(apart)


def _ranks(values: Sequence[float]) -> list[float]:
    """Return ranks from 1 on. Equal values have the mean of their ranks."""
    ordered = sorted(values)
    return [(bisect_left(ordered, v) + bisect_right(ordered, v) + 1) / 2 for v in values]


def _orders(values: Sequence[float]) -> list[int]:
    """Return the order of each pair of values: 1, 0 where they are equal, or -1."""
    return [(a > b) - (a < b) for a, b in combinations(values, 2)]


def _places(ranking: Ranking, common: Sequence[str]) -> dict[str, int]:
    keys = [i.key for i in ranking.importances if i.key in common]
    return {key: place for place, key in enumerate(keys, start=1)}


def _strongest_first(pair: RankPair) -> tuple[int, int]:
    return min(pair.rank_first, pair.rank_second), pair.rank_first + pair.rank_second


def is_stable(screenings: Sequence[Screening], looks: int) -> bool:
    """Whether the last so many of successive screenings agree, and miss little.

    The same parameters are chosen, and what matters would have been found in each of them with
    their power. Where nothing is chosen, nothing is stable but noise.
    """
    last = screenings[-looks:]
    if len(last) < looks or not all(screening.keys("chosen") for screening in last):
        return False
    same = len({frozenset(screening.keys("chosen")) for screening in last}) == 1
    return same and all(screening.is_sharp for screening in last)
