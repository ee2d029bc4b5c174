"""Both sides at other rates, from trials and from what a user types."""

from dataclasses import replace

import pytest

from intop.domain.rate_sweep import at_rate, times_of
from intop.domain.stats import RatioInterval
from samples import AT_ONCE, TOO_MUCH, trial


@pytest.mark.parametrize(
    ("text", "times"), [("1", (1.0,)), ("0.5,1,1.5", (0.5, 1.0, 1.5)), ("2, 0.1", (0.1, 2.0))]
)
def test_multiples_are_typed_as_a_list(text: str, times: tuple[float, ...]) -> None:
    assert times == times_of(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no list of numbers"),
        ("1;2", "is no list of numbers"),
        ("0.5,0.50", "has a rate twice"),
        ("0.05", "is not in 0.1 to 10 times"),
        ("11", "is not in 0.1 to 10 times"),
        ("nan", "is not in 0.1 to 10 times"),
        ("inf", "is not in 0.1 to 10 times"),
        ("1,2,3,4,5,6,7,8,9", "9 rates are more than 8"),
    ],
)
def test_what_is_no_list_of_multiples_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        times_of(text)


def test_a_rate_says_what_both_sides_did_and_where_they_failed() -> None:
    default = [trial(p99_us=1000), trial(p99_us=1000), trial(status="failed")]
    late = replace(trial(p99_us=500, status="overloaded"), achieved_rps=80.0)
    tuned = [trial(p99_us=500), late, trial(status="failed")]
    found = at_rate(50.0, 0.5, (default, tuned), (default[:2], tuned[:2]), level=0.9)
    assert (50.0, 0.5, 2, 100) == (
        found.rate_rps,
        found.times,
        found.pairs,
        found.fewest_requests,
    )
    assert RatioInterval(2, 2, 2) == RatioInterval(*map(round, vars(found.ratio).values()))
    assert (1.0, 100.0, 3, 0, 1) == (
        found.default.p99_ms,
        found.default.achieved_rps,
        found.default.trials,
        found.default.overloaded,
        found.default.failed,
    )
    assert (0.5, 90.0, 1, 1) == (
        pytest.approx(found.tuned.p99_ms),
        found.tuned.achieved_rps,
        found.tuned.overloaded,
        found.tuned.failed,
    )
    assert "gain" == found.outcome


def test_a_side_that_always_fails_has_no_latency_and_no_ratio() -> None:
    failed = [trial(status="failed")] * 2
    found = at_rate(9.0, 3.0, (failed, failed), ([], []), level=0.95)
    assert (None, None, None, "not measured") == (
        found.ratio,
        found.default.p99_ms,
        found.fewest_requests,
        found.outcome,
    )
    alone = at_rate(9.0, 3.0, ([trial()] * 2, failed), ([], []), level=0.95)
    assert "worse" == alone.outcome


def test_an_outcome_is_that_of_p99_unless_it_fails_more_often() -> None:
    assert "gain" == AT_ONCE.outcome
    assert "worse" == TOO_MUCH.outcome
    broken = replace(TOO_MUCH, ratio=RatioInterval(2.0, 1.5, 2.5))
    assert "worse" == broken.outcome
    both = replace(broken, default=replace(broken.default, failed=1))
    assert "gain" == both.outcome
    unclear = RatioInterval(1.0, 0.5, 2.0)
    assert "no significant gain" == replace(AT_ONCE, ratio=unclear).outcome
