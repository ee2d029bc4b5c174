"""Evidence and bounds that hold whenever one looks."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from intop.domain.anytime import THETAS, evidence, is_above, lower_bound, upper_bound

DIFFERENCES = some.lists(some.floats(-3, 3), min_size=1, max_size=12)


def now(differences: list[float]) -> float:
    """The evidence after the last pair."""
    return float(evidence(differences)[-1])


@given(DIFFERENCES)
def test_the_factor_of_a_pair_is_fair(differences: list[float]) -> None:
    """Over both orders of the last pair the mean of the evidence is that of the pairs before."""
    *before, last = differences
    both = (math.exp(now([*before, last])) + math.exp(now([*before, -last]))) / 2
    earlier = math.exp(now(before)) if before else 1.0
    assert both == pytest.approx(earlier, rel=1e-6)


@given(some.floats(-5, 5))
def test_it_is_never_below_de_la_penas(difference: float) -> None:
    his = math.fsum(math.exp(t * difference - (t * difference) ** 2 / 2) for t in THETAS)
    assert math.exp(now([difference])) >= his / len(THETAS) * (1 - 1e-9)


def drifting_pairs(rng: Random, count: int) -> list[float]:
    """Differences without an effect: a day, a walk and heavy tails, in a random order each."""
    level, differences = 0.0, []
    for n in range(count):
        level += rng.gauss(0, 0.1)
        first, second = (
            level + math.sin((2 * n + m) / 9) + rng.gauss(0, 0.1) / max(rng.random(), 0.05)
            for m in range(2)
        )
        differences.append((second - first) * rng.choice((-1, 1)))
    return differences


def test_it_is_seldom_wrong_however_often_one_looks() -> None:
    rng = Random(1)
    wrong = 0
    for _ in range(1000):
        differences = drifting_pairs(rng, 40)
        wrong += is_above(differences, 0, 0.05)
    assert wrong <= 60  # at most 5 % of them, and two standard errors more


def test_bounds_hold_the_truth_and_narrow() -> None:
    rng = Random(2)
    differences = [0.2 + rng.gauss(0, 0.1) for _ in range(60)]
    few, many = lower_bound(differences[:12], 0.025), lower_bound(differences, 0.025)
    assert few < many < 0.2 < upper_bound(differences, 0.025) < upper_bound(differences[:12], 0.025)
    assert upper_bound(differences, 0.025) - many < 0.15
    looks = evidence([d - many for d in differences])
    assert max(looks) == pytest.approx(math.log(40), abs=1e-3)
    assert lower_bound(differences, 0.001) < many


def test_too_few_pairs_show_nothing_however_large_their_difference() -> None:
    assert lower_bound([5.0] * 5, 0.025) == -math.inf  # 2^5 < 40
    assert lower_bound([5.0] * 9, 0.025) > 4
    assert upper_bound([-5.0] * 5, 0.025) == math.inf


def test_huge_differences_do_not_overflow() -> None:
    assert now([1e6] * 3) == pytest.approx(3 * math.log(2))
    assert now([-1e6] * 3) < -1e6


def test_what_was_shown_once_stays_shown() -> None:
    shown = [0.5] * 8
    assert is_above(shown, 0, 0.025)
    later = [*shown, -3.0, -3.0]
    assert now(later) < math.log(40)
    assert is_above(later, 0, 0.025)
    assert lower_bound(later, 0.025) >= lower_bound(shown, 0.025)
    assert not is_above([], 0, 0.025)
