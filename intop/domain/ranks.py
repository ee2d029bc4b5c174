"""How far two rankings of parameters agree: of two workloads, or of two architectures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from intop.domain.ranking import Ranking, Screening

FEWEST = 3
"""Parameters that a rank correlation needs: of two it is 1 or -1, whatever they are."""


@dataclass(frozen=True, kw_only=True)
class RankPair:
    """One parameter's place in both rankings, among those that both have; 1 is the most important.

    `passes_one` and `passes_other` say whether it is above the probe level there.
    """

    key: str
    rank_one: int
    rank_other: int
    passes_one: bool
    passes_other: bool


@dataclass(frozen=True, kw_only=True)
class RankAgreement:
    """Two rankings, called `one` and `other`, over the parameters in `common`.

    `spearman` is the correlation of the ranks of the importances, `kendall` tau-b; None where a
    side finds all of them equally important, or for fewer than three. `ranks` begins with what is
    most important on either side. `chosen_one` and `chosen_other` are all that each side chose.
    """

    one: str
    other: str
    spearman: float | None
    kendall: float | None
    common: tuple[str, ...]
    ranks: tuple[RankPair, ...]
    chosen_one: tuple[str, ...]
    chosen_other: tuple[str, ...]

    @property
    def chosen_by_both(self) -> tuple[str, ...]:
        """In the first one's order."""
        return tuple(key for key in self.chosen_one if key in self.chosen_other)


def rank_agreement(names: tuple[str, str], one: Ranking, other: Ranking) -> RankAgreement:
    """The agreement of two rankings that are called so."""
    weights = [{i.key: i.permutation for i in ranking.importances} for ranking in (one, other)]
    common = tuple(key for key in weights[0] if key in weights[1])
    here, there = ([found[key] for key in common] for found in weights)
    spearman = kendall = None
    if len(common) >= FEWEST and len(set(here)) > 1 and len(set(there)) > 1:
        spearman, kendall = _spearman(here, there), _kendall(here, there)
    places = [_places(ranking, set(common)) for ranking in (one, other)]
    passes = [{i.key: i.passes for i in ranking.importances} for ranking in (one, other)]
    pairs = [
        RankPair(
            key=key,
            rank_one=places[0][key],
            rank_other=places[1][key],
            passes_one=passes[0][key],
            passes_other=passes[1][key],
        )
        for key in common
    ]
    return RankAgreement(
        one=names[0],
        other=names[1],
        spearman=spearman,
        kendall=kendall,
        common=common,
        ranks=tuple(sorted(pairs, key=_strongest_first)),
        chosen_one=one.chosen,
        chosen_other=other.chosen,
    )


def _spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, of which equal values share the mean.

    Neither this nor tau-b needs `scipy.stats`, which takes half a second to import.
    """
    import numpy as np

    ranks = []
    for values in (one, other):
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((counts.cumsum() - (counts - 1) / 2)[places])
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def _kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau-b: concordant pairs less discordant ones, among those that are not tied.

    M. G. Kendall, The treatment of ties in ranking problems, Biometrika 33 (1945), 239-251.
    """
    import numpy as np

    signs = [np.sign(np.subtract.outer(values, values)) for values in (one, other)]
    untied = [float((sign**2).sum()) for sign in signs]
    return float((signs[0] * signs[1]).sum()) / math.sqrt(untied[0] * untied[1])


def is_stable(screenings: Sequence[Screening], looks: int) -> bool:
    """Whether the last so many of successive screenings found the same, and miss little.

    The same parameters are chosen, and what matters would have been found in each of them with
    their power. Where nothing is chosen, nothing is stable but noise.
    """
    last = screenings[-looks:]
    if len(last) < looks or not all(one.keys("chosen") for one in last):
        return False
    same = len({frozenset(one.keys("chosen")) for one in last}) == 1
    return same and all(one.is_sharp for one in last)


def _places(ranking: Ranking, common: set[str]) -> dict[str, int]:
    keys = [i.key for i in ranking.importances if i.key in common]
    return {key: place for place, key in enumerate(keys, start=1)}


def _strongest_first(pair: RankPair) -> tuple[int, int]:
    return min(pair.rank_one, pair.rank_other), pair.rank_one + pair.rank_other
