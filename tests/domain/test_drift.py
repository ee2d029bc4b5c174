"""The slope of the sentinels."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pydantic import TypeAdapter

from builders.trials import trial
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.drift import Drift, drift
from intop.domain.drift import sentinels as trend_of
from intop.domain.trial import Status, Trial

BEGINNING = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
OTHER = Configuration({"a.b": "1"})


def sentinel(
    minutes: float, p99_us: float, configuration: Configuration = DEFAULT, status: Status = "ok"
) -> Trial:
    made = trial(configuration, round(p99_us), status=status)
    started = BEGINNING + timedelta(minutes=minutes)
    return replace(made, started_at=started.isoformat(timespec="seconds"))


def sentinels(p99_us: Sequence[float], every_min: float = 4) -> list[Trial]:
    return [sentinel(every_min * n, value) for n, value in enumerate(p99_us)]


def test_a_steady_rise_is_found_with_its_size() -> None:
    """Ten percent over half an hour, each of eleven within the rounding of a histogram."""
    result = drift(sentinels([1000 * 1.1 ** (n / 10) for n in range(11)], 3), level=0.95)
    assert (result.sentinels, result.hours, result.level) == (11, 0.5, 0.95)
    assert result.change is not None
    assert result.per_hour is not None
    assert result.change.value == pytest.approx(1.1, abs=2e-3)
    assert result.per_hour[0] == pytest.approx(2 * math.log(1.1), abs=4e-3)
    assert result.per_hour[1] < result.per_hour[0] < result.per_hour[2]
    assert result.change.low < result.change.value < result.change.high
    assert result.is_separated
    assert result.share is not None
    assert 0.99 < result.share <= 1


def test_a_fall_is_separated_from_zero_too() -> None:
    result = drift(sentinels([1000 * 0.8**n for n in range(6)]), level=0.95)
    assert result.change is not None
    assert result.change.high < 1
    assert result.is_separated


def test_the_slope_is_that_of_a_textbook() -> None:
    """Against numpy's least squares, and an interval by hand: t(3) is 3.182 at 95 %."""
    values = [1000, 1500, 1200, 1900, 1100]
    times = [0.1 * n for n in range(5)]
    result = drift(sentinels(values, 6), level=0.95)
    (slope, _), covariance = np.polyfit(times, np.log(values), 1, cov="unscaled")
    residuals = np.log(values) - np.polyval(np.polyfit(times, np.log(values), 1), times)
    half = 3.182446 * math.sqrt(covariance[0, 0] * float(residuals @ residuals) / 3)
    assert result.per_hour == pytest.approx((slope, slope - half, slope + half), abs=1e-5)
    assert result.share == pytest.approx(np.corrcoef(times, np.log(values))[0, 1] ** 2)
    assert not result.is_separated


def test_the_trend_is_the_line_and_its_interval_that_of_a_textbook() -> None:
    """At the middle only the mean is uncertain; t(3) is 3.182 at 95 %."""
    values = [1000, 1500, 1200, 1900, 1100]
    times = [0.1 * n for n in range(5)]
    result = trend_of(sentinels(values, 6), level=0.95)
    line = np.polyval(np.polyfit(times, np.log(values), 1), times)
    deviation = math.sqrt(float(np.sum((np.log(values) - line) ** 2)) / 3)
    first, middle, last = (result.trend[n] for n in (0, len(result.trend) // 2, -1))
    assert (first.hours, last.hours) == (0.0, pytest.approx(0.4))
    assert math.log(1000 * first.judged_ms.value) == pytest.approx(line[0], abs=1e-5)
    assert math.log(1000 * last.judged_ms.value) == pytest.approx(line[-1], abs=1e-5)
    half = math.log(middle.judged_ms.high / middle.judged_ms.value)
    assert half == pytest.approx(3.182446 * deviation / math.sqrt(5), rel=1e-4)
    edge = math.log(first.judged_ms.high / first.judged_ms.value)
    assert edge == pytest.approx(3.182446 * deviation * math.sqrt(1 / 5 + 0.04 / 0.1), rel=1e-4)
    assert drift(sentinels(values, 6), level=0.95) == result.drift


def test_sentinels_are_told_in_order_of_time() -> None:
    made = [sentinel(9, 1200), sentinel(0, 1000), sentinel(3, 900, OTHER)]
    result = trend_of(made, level=0.95)
    assert [(round(s.hours, 6), s.judged_ms) for s in result.sentinels] == [(0.0, 1.0), (0.15, 1.2)]
    assert result.trend == ()


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        noise = np.exp(rng.normal(0, 0.2, 8))
        result = drift(sentinels(list(1000 * np.exp(0.5 * np.arange(8) / 15) * noise)), level=0.9)
        assert result.per_hour is not None
        held += result.per_hour[1] <= 0.5 <= result.per_hour[2]
    assert 0.86 < held / 400 < 0.94


def test_only_the_defaults_usable_trials_count() -> None:
    wild = [
        sentinel(1, 2000, OTHER),
        sentinel(2, 2000, OTHER),
        sentinel(3, 1, status="failed"),
        sentinel(9, 1, status="disturbed"),
    ]
    steady = [sentinel(n, 1000) for n in range(0, 9, 2)]
    assert drift(steady, level=0.95) == drift(steady + wild, level=0.95)


@pytest.mark.parametrize("values", [[], [1000], [1000, 1100]])
def test_too_few_sentinels_have_no_slope(values: list[float]) -> None:
    result = drift(sentinels(values), level=0.95)
    assert (len(values), None, None, None) == (
        result.sentinels,
        result.change,
        result.per_hour,
        result.share,
    )
    assert not result.is_separated


def test_sentinels_of_one_moment_have_no_slope() -> None:
    assert drift(sentinels([1000, 1100, 900], 0), level=0.95).change is None


def test_sentinels_that_are_all_alike_have_no_spread_to_explain() -> None:
    result = drift(sentinels([1000, 1000, 1000, 1000]), level=0.95)
    assert (result.change and result.change.value, result.share) == (1.0, 0.0)
    assert not result.is_separated


def test_three_wild_sentinels_at_a_high_level_are_a_number_still() -> None:
    result = drift(sentinels([1, 2000, 2]), level=0.999)
    assert result.change is not None
    assert math.isfinite(result.change.high)


def test_it_is_stored_with_a_ranking() -> None:
    result = drift(sentinels([1000, 1500, 1200]), level=0.95)
    kept = json.dumps(TypeAdapter(Drift).dump_python(result))
    assert result == TypeAdapter(Drift).validate_json(kept)


def test_the_difference_of_two_replicas_is_no_drift() -> None:
    """The slower one is measured later, at its own steady pace."""
    scatter = (1.0, 1.01, 0.99, 1.0, 1.01, 0.99)
    one = [replace(s, replica="a") for s in sentinels([1000 * x for x in scatter])]
    two = [replace(s, replica="b") for s in sentinels([2000 * x for x in scatter])]
    later = [
        replace(s, started_at=(BEGINNING + timedelta(minutes=20 + 4 * n)).isoformat())
        for n, s in enumerate(two)
    ]
    result = drift(one + later, level=0.95)
    assert result.change is not None
    assert result.change.low < 1 < result.change.high
    assert 0.9 < result.change.value < 1.1


def test_two_replicas_drift_together() -> None:
    one, two = (
        [
            replace(s, replica=name)
            for s in sentinels([base * 1.1 ** (n / 10) for n in range(11)], 3)
        ]
        for name, base in (("a", 1000), ("b", 1500))
    )
    result = drift(one + two, level=0.95)
    assert result.change is not None
    assert result.change.value == pytest.approx(1.1, abs=2e-3)


def test_each_replica_takes_a_degree_of_freedom() -> None:
    made = [
        replace(s, replica=name) for s, name in zip(sentinels([10, 11, 12]), "abb", strict=True)
    ]
    result = drift(made, level=0.95)
    assert (result.sentinels, result.change) == (3, None)
