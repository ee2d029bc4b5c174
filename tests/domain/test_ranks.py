from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders import trials as samples
from intop.domain.ranking import Ranking, RankPair, Screening, is_stable, rank_agreement

NAMES = ("x86 slt", "x86 dlt")


def ranking(passing: int = 0, chosen: int = 2, /, **weights: float) -> Ranking:
    """Parameters in this order, of which the first pass."""
    importances = (
        samples.importance(k, w, passes=n < passing) for n, (k, w) in enumerate(weights.items())
    )
    return samples.ranking(*importances, chosen=tuple(weights)[:chosen])


# Agreement ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (ranking(a=0.5, b=0.3, c=0.2), ranking(a=0.6, b=0.3, c=0.1), (1, 1)),
        (ranking(a=0.5, b=0.3, c=0.2), ranking(c=0.6, b=0.3, a=0.1), (-1, -1)),
        (ranking(a=0.5, b=0.3, c=0.2), ranking(b=0.6, a=0.3, c=0.1), (0.5, 1 / 3)),
        (ranking(a=0.5, b=0.3, c=0.2, x=0), ranking(y=0, a=0.6, b=0.3, c=0.1), (1, 1)),
        (ranking(a=0.5, b=0.3), ranking(a=0.6, b=0.3), (None, None)),
        (ranking(a=0.5, b=0.3, c=0.2), ranking(a=0.3, b=0.3, c=0.3), (None, None)),
    ],
)
def test_rankings_agree_by_rank_over_what_both_have(
    one: Ranking, other: Ranking, expected: tuple[float | None, float | None]
) -> None:
    result = rank_agreement(NAMES, one, other)
    assert expected == pytest.approx((result.spearman, result.kendall))


def test_places_are_counted_among_what_both_have_and_the_strongest_anywhere_is_first() -> None:
    one = ranking(2, x=0.4, a=0.3, b=0.2, c=0.1)
    other = ranking(1, 1, c=0.5, b=0.3, y=0.2, a=0.1)
    result = rank_agreement(NAMES, one, other)
    assert (result.first, result.second, result.common) == ("x86 slt", "x86 dlt", ("a", "b", "c"))
    assert [fields(pair) for pair in result.ranks] == [
        ("a", 1, 3, True, False),
        ("c", 3, 1, False, True),
        ("b", 2, 2, False, False),
    ]


def fields(pair: RankPair) -> tuple[object, ...]:
    return pair.key, pair.rank_first, pair.rank_second, pair.passes_first, pair.passes_second


def test_what_both_have_chosen() -> None:
    result = rank_agreement(NAMES, ranking(0, 3, a=3, b=2, c=1), ranking(c=3, a=2, b=1))
    assert (result.chosen_first, result.chosen_second) == (("a", "b", "c"), ("c", "a"))
    assert result.chosen_by_both == ("a", "c")


# Stability ----------------------------------------------------------------------------------------

NOTHING = samples.screening(still="abc")
AB, BA = samples.screening("ab", "c"), samples.screening("ba", frozen="c")
ABC = samples.screening("abc")
BLUNT, BLIND = replace(AB, detectable=1.5), replace(AB, detectable=None)


@pytest.mark.parametrize(
    ("screenings", "looks", "expected"),
    [
        ([AB, AB], 2, True),
        ([AB, AB], 3, False),
        ([ABC, AB, AB], 2, True),
        ([ABC, AB, AB], 3, False),
        ([AB, BA], 2, True),
        ([NOTHING, NOTHING], 2, False),
        ([BLUNT, AB], 2, False),
        ([BLIND, BLIND], 2, False),
        ([], 1, False),
    ],
    ids=["same", "too few", "lately", "not yet", "order", "noise", "blunt", "blind", "none"],
)
def test_stable_is_what_found_the_same_and_would_have_found_what_matters(
    screenings: Sequence[Screening], looks: int, expected: bool
) -> None:
    assert is_stable(screenings, looks) == expected
