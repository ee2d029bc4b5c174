"""Looks at the pairs: where they are, and that all of them together err no more than allowed."""

import math
import random
from collections.abc import Callable

import pytest

from intop.domain.stats import FIRST_LOOK, looks, paired_ratio

Noise = Callable[[random.Random], float]


def log_normal(rng: random.Random) -> float:
    return rng.gauss(0, 0.3)


def lumpy(rng: random.Random) -> float:
    """log P99: 15 ms, and 200 ms for each time-out that TCP waited for."""
    timeouts = rng.choices((0, 1, 2, 4), (0.3, 0.5, 0.15, 0.05))[0]
    return math.log(15 * math.exp(rng.gauss(0, 0.15)) + 200 * timeouts)


def judged(rng: random.Random, noise: Noise, gain: float, pairs: int) -> tuple[int, str]:
    """The pairs that a verdict with two looks takes, and what it comes to."""
    default = [gain * math.exp(noise(rng)) for _ in range(pairs)]
    tuned = [math.exp(noise(rng)) for _ in range(pairs)]
    for look in looks(pairs, 2, level=0.95):
        result = paired_ratio(default[: look.rounds], tuned[: look.rounds], level=look.level)
        if not result.low <= 1 <= result.high:
            return look.rounds, "gain" if result.low > 1 else "worse"
    return pairs, "none"


@pytest.mark.parametrize(
    ("rounds", "count", "expected"),
    [
        (10, 1, (10,)),
        (10, 2, (7, 10)),
        (9, 2, (9,)),
        (15, 2, (8, 15)),
        (20, 4, (7, 10, 15, 20)),
        (12, 6, (7, 8, 10, 12)),
        (6, 2, (6,)),
        (3, 2, (3,)),
        (2, 10, (2,)),
        (1, 1, (1,)),
    ],
)
def test_looks_are_at_equal_distances_but_none_is_too_early(
    rounds: int, count: int, expected: tuple[int, ...]
) -> None:
    result = tuple(look.rounds for look in looks(rounds, count, level=0.95))
    assert result == expected
    assert all(early >= FIRST_LOOK for early in result[:-1])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(("rounds", "count"), [(10, 1), (10, 2), (17, 5), (3, 2), (40, 10)])
def test_the_looks_share_the_error_rate_out(rounds: int, count: int, level: float) -> None:
    result = looks(rounds, count, level=level)
    assert 1 - level == pytest.approx(sum(1 - look.level for look in result))
    assert result[-1].level == min(look.level for look in result)


def test_two_looks_by_hand() -> None:
    # Half of the rounds: an eighth of the error rate.
    assert pytest.approx([x.level for x in looks(20, 2, level=0.95)]) == [0.99375, 0.95625]


def test_one_look_has_the_level_asked_for() -> None:
    assert pytest.approx(looks(10, 1, level=0.95)[0].level) == 0.95


@pytest.mark.parametrize("noise", [log_normal, lumpy])
@pytest.mark.parametrize("pairs", [10, 20])
def test_the_same_on_both_sides_is_called_a_difference_no_more_often_than_said(
    noise: Noise, pairs: int
) -> None:
    rng, verdicts = random.Random(11), 1200
    called = sum(judged(rng, noise, 1.0, pairs)[1] != "none" for _ in range(verdicts))
    # Binomial: the standard deviation of the share is 0.0063; three of them.
    assert called / verdicts <= 0.05 + 0.019


def test_a_clear_gain_takes_fewer_pairs_and_keeps_its_sign() -> None:
    rng, verdicts = random.Random(13), 300
    taken = {}
    for gain in (1.0, 1.5, 3.0, 10.0):
        result = [judged(rng, log_normal, gain, 10) for _ in range(verdicts)]
        taken[gain] = sum(pairs for pairs, _ in result) / verdicts
        if gain >= 3:
            assert {outcome for _, outcome in result} == {"gain"}
    assert 10 >= taken[1.0] > taken[1.5] > taken[3.0] > taken[10.0] >= 7
    assert taken[1.0] > 9.9
    assert taken[10.0] < 7.1
