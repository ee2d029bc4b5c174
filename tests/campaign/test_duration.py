"""How long a trial has to be, against figures that can be worked out by hand or looked up."""

import math
from dataclasses import replace

import pytest

from builders.trials import CONDITIONS, trial
from intop.campaign.pilot.duration import (
    chosen,
    half_width,
    pairs_needed,
    stalled,
    tried_duration,
)
from intop.domain.pilot import TriedDuration, durations


def tried(duration_s: int, sd: float, *, overhead_s: float = 1, **changes: float) -> TriedDuration:
    """A duration whose trials scatter so; 10 pairs at one look resolve exp(sd)."""
    made = TriedDuration(
        duration_s=duration_s,
        requests=1000, trials=5, judged_ms=10.0, sd=sd, sd_low=sd / 2, sd_high=sd * 3,
        resolution=math.exp(sd), resolution_low=math.exp(sd / 2), resolution_high=math.exp(sd * 3),
        pairs_needed=10, seconds=duration_s + overhead_s,
    )  # fmt: skip
    return replace(made, **changes)


def test_the_shortest_has_a_thousand_requests_and_two_seconds_and_is_doubled() -> None:
    assert durations(150, 60) == (7, 14, 28, 56)
    assert durations(100, 79) == (10, 20, 40)
    assert durations(10_000, 7) == (2, 4)
    assert durations(500, 2) == (2,)


def test_a_rate_too_low_for_the_budget_is_named() -> None:
    with pytest.raises(ValueError, match=r"at 10 requests/s it takes 100 s .* pilot_max_s \(60\)"):
        durations(10, 60)


def test_the_half_width_is_students() -> None:
    # t(0.98, 5 degrees of freedom) from tables, since 1 of 5 % is kept for further pairs; one look,
    # since there are few pairs.
    assert half_width(0.1, 6, level=0.95, look_count=2) == pytest.approx(
        2.7565 * math.sqrt(2 / 6) * 0.1, rel=1e-4
    )
    # From ten pairs on, two looks share the error rate: the last one is wider than a single one.
    single = half_width(0.1, 10, level=0.95, look_count=1)
    assert single == pytest.approx(2.3984 * math.sqrt(2 / 10) * 0.1, rel=1e-4)
    assert half_width(0.1, 10, level=0.95, look_count=2) > single


def test_the_fewest_pairs_that_resolve_a_ratio() -> None:
    # log 1.25 is 2.231 sd; t(0.98) * sqrt(2 / n) is 2.464 for 4 pairs and 1.896 for 5.
    assert pairs_needed(0.1, 1.25, level=0.95, look_count=1) == 5
    assert pairs_needed(0.0, 1.25, level=0.95, look_count=1) == 3
    assert pairs_needed(100.0, 1.25, level=0.95, look_count=1) is None


def test_what_trials_of_one_duration_say() -> None:
    conditions = replace(CONDITIONS, duration_s=4, rate_rps=300.0)
    result = tried_duration(
        4,
        [trial(p99_us=us, conditions=conditions) for us in (500, 1000, 2000)],
        pairs=6,
        wanted=1.25,
        level=0.95,
        look_count=1,
    )
    assert (result.duration_s, result.requests, result.trials, result.seconds) == (4, 1200, 3, 12.0)
    assert (result.judged_ms, result.sd) == pytest.approx((1.0, math.log(2)))
    # chi² with two degrees of freedom at 0.975 and 0.025, from tables: 7.3778 and 0.0506.
    low, high = math.sqrt(2 / 7.3778), math.sqrt(2 / 0.050636)
    assert (
        result.sd_low / result.sd,
        result.sd_high / result.sd,
    ) == pytest.approx((low, high), rel=1e-4)
    factor = 2.7565 * math.sqrt(2 / 6)
    assert (
        math.log(result.resolution),
        math.log(result.resolution_low),
    ) == pytest.approx((factor * result.sd, factor * result.sd_low), rel=1e-4)


def test_the_difference_of_replicas_is_no_spread() -> None:
    made = [replace(trial(p99_us=us), replica=name) for us, name in ((1000, "a"), (2000, "b")) * 3]
    result = tried_duration(4, made, pairs=10, wanted=1.25, level=0.95, look_count=2)
    assert (result.trials, result.sd) == (6, pytest.approx(0))
    with pytest.raises(ValueError, match="only 2 of the trials"):
        tried_duration(4, made[:2], pairs=10, wanted=1.25, level=0.95, look_count=2)


def test_trials_that_all_say_the_same_resolve_anything() -> None:
    result = tried_duration(4, [trial()] * 3, pairs=10, wanted=1.25, level=0.95, look_count=2)
    assert (result.sd, result.sd_high, result.resolution, result.pairs_needed) == (0.0, 0.0, 1.0, 3)


def test_one_trial_has_no_spread() -> None:
    with pytest.raises(ValueError, match="only 1 of the trials of 4 s"):
        tried_duration(4, [trial()], pairs=10, wanted=1.25, level=0.95, look_count=2)


def test_a_wild_pair_has_an_interval_all_the_same() -> None:
    made = [trial(p99_us=1), trial(p99_us=2_000_000)]
    result = tried_duration(4, made, pairs=3, wanted=1.25, level=0.95, look_count=2)
    assert result.resolution < result.resolution_high < math.inf


def test_two_doublings_without_gain_are_enough() -> None:
    def spreads(*found: float) -> bool:
        return stalled([tried(2**n, sd) for n, sd in enumerate(found, start=1)])

    assert not spreads(0.3, 0.4)
    assert not spreads(0.3, 0.4, 0.2)
    assert not spreads(0.3, 0.2, 0.4)
    assert spreads(0.3, 0.4, 0.3)
    assert spreads(0.4, 0.2, 0.3, 0.3)


def test_the_shortest_that_resolves_what_is_wanted_is_chosen() -> None:
    rows = [tried(16, 0.1), tried(4, 0.3), tried(8, 0.2)]
    result = chosen(rows, shortest_s=4, wanted=1.25, pairs=10, level=0.95)
    assert (result.duration_s, result.reached, result.stalled) == (8, True, False)
    assert [one.duration_s for one in result.tried] == [4, 8, 16]
    assert result.chosen == rows[2]


def test_where_none_does_the_least_cost_for_what_it_tells_is_chosen() -> None:
    # (4 + 1) 0.5² = 1.25 against (8 + 1) 0.4² = 1.44: the shorter one, in more pairs.
    rows = [tried(4, 0.5), tried(8, 0.4)]
    result = chosen(rows, shortest_s=4, wanted=1.25, pairs=10, level=0.95)
    assert (result.duration_s, result.reached, result.stalled) == (4, False, False)
    # With 10 s of overhead it is 3.5 against 2.88, the other way round.
    rows = [tried(4, 0.5, overhead_s=10), tried(8, 0.4, overhead_s=10)]
    assert chosen(rows, shortest_s=4, wanted=1.25, pairs=10, level=0.95).duration_s == 8


def test_the_files_own_is_never_chosen_below_the_shortest() -> None:
    rows = [tried(2, 0.1), tried(7, 0.2)]
    result = chosen(rows, shortest_s=7, wanted=1.25, pairs=10, level=0.95, given_s=2)
    assert (result.duration_s, result.given_s) == (7, 2)
