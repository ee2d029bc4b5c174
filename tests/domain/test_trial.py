import math
from dataclasses import fields, replace
from typing import Any

import pytest

from builders import trials as samples
from builders.trials import CONDITIONS
from intop.domain.histogram import Histogram, Statistic
from intop.domain.trial import Conditions, Status, Trial

# 1,000 requests: the 99th percentile is that of the slow 2 %.
LATENCIES = Histogram.from_pairs([(1000, 980), (50_000, 20)])
P99_MS = 50.015  # the top of the bucket that 50 ms fall into


def trial(tool: str = "engine LuaJIT 2.1.0", **changes: Any) -> Trial:
    conditions = replace(CONDITIONS, load_tool=tool)
    made = replace(samples.trial(conditions=conditions, index=3), histogram=LATENCIES)
    return replace(made, **changes)


def test_without_failures_p99_is_the_histograms() -> None:
    assert trial().judged_ms == P99_MS
    assert trial().percentile_ms(99) == P99_MS
    assert trial().percentile_ms(50) == 1.0


def with_failures(count: int) -> Histogram:
    """The same with failed requests, which stand at the timeout of 2 s."""
    return LATENCIES.merge(Histogram.from_pairs([(2_000_000, count)]))


@pytest.mark.parametrize("kind", ["refused", "read", "write", "timeout", "status", "pending"])
def test_failed_requests_count_once_where_the_histogram_has_them(kind: str) -> None:
    few = trial(errors={kind: 5}, histogram=with_failures(5))
    many = trial(errors={kind: 20}, histogram=with_failures(20))
    assert P99_MS == few.judged_ms == few.percentile_ms(99)
    assert 2000 <= many.judged_ms <= 2001
    assert many.judged_ms == many.percentile_ms(99)
    # What counts is where they are, and not a second time how many.
    assert trial(errors={kind: 20}).judged_ms == P99_MS


@pytest.mark.parametrize("tool", ["engine LuaJIT 2.1.0", "wrk2 4.0.0"])
def test_where_the_rate_was_missed_the_backlog_is_in_the_latencies(tool: str) -> None:
    one = trial(tool, status="overloaded", achieved_rps=50.0)
    assert P99_MS == one.judged_ms == one.percentile_ms(99)


@pytest.mark.parametrize(
    ("above_ms", "expected_ms"), [(450.0, 450.0), (P99_MS / 2, P99_MS), (None, P99_MS)]
)
def test_p99_of_a_pruned_trial_is_not_below_what_is_certain(
    above_ms: float | None, expected_ms: float
) -> None:
    pruned = trial(status="pruned", achieved_rps=80.0, pruned_above_ms=above_ms)
    assert expected_ms == pruned.judged_ms


@pytest.mark.parametrize(
    ("judged_by", "judged_ms", "guide_ms"),
    [
        ("P50", 1.0, 1.0),
        ("P90", 1.0, 1.0),
        ("P95", 10.0, 10.0),
        ("mean latency", 1.9, 1.9),
        ("P99", 10.0, 10.0),
        ("P99.9", 40.0, 10.0),
    ],
)
def test_a_study_says_what_a_trial_is_judged_by(
    judged_by: Statistic, judged_ms: float, guide_ms: float
) -> None:
    histogram = Histogram.from_pairs([(1000, 9000), (10_000, 985), (40_000, 15)])
    judged = trial(histogram=histogram, conditions=replace(CONDITIONS, judged_by=judged_by))
    assert judged.judged_ms == pytest.approx(judged_ms, rel=0.03)
    assert judged.guide_ms == pytest.approx(guide_ms, rel=0.03)
    # Its bound is certain of what is judged only.
    pruned = replace(judged, status="pruned", pruned_above_ms=100.0)
    assert pruned.judged_ms == 100.0
    assert pruned.statistic_ms("P75") == 1.0


def test_the_tail_is_the_slowest_tenth_of_all_requests() -> None:
    # 20 of 1,000 are slow, and failures take the whole timeout.
    slow, fast = math.log(50.015), math.log(1.0)
    assert trial().tail_ms == pytest.approx(math.exp((20 * slow + 80 * fast) / 100))
    failures = trial(errors={"timeout": 5, "status": 5}, histogram=with_failures(10)).tail_ms
    expected = math.exp((10 * math.log(2000.895) + 20 * slow + 71 * fast) / 101)
    assert failures == pytest.approx(expected)
    # What is certain of P99 says nothing of a tenth.
    assert trial().tail_ms == trial(status="pruned", pruned_above_ms=450.0).tail_ms


@pytest.mark.parametrize(
    ("status", "histogram", "expected"),
    [
        ("ok", LATENCIES, True),
        ("overloaded", LATENCIES, True),
        ("pruned", LATENCIES, True),
        ("disturbed", LATENCIES, False),
        ("failed", None, False),
        ("overloaded", None, False),
    ],
)
def test_usable_is_what_says_something_about_the_configuration(
    status: Status, histogram: Histogram | None, expected: bool
) -> None:
    assert trial(status=status, histogram=histogram).usable == expected


def test_a_failed_trial_has_no_latencies() -> None:
    failed = trial(status="failed", histogram=None)
    with pytest.raises(ValueError, match="trial 3 failed, it has no latencies"):
        _ = failed.judged_ms
    with pytest.raises(ValueError, match="trial 3 failed, it has no latencies"):
        _ = failed.tail_ms
    with pytest.raises(ValueError, match="trial 3 failed, it has no latencies"):
        failed.percentile_ms(50)


def test_differing_conditions_are_named_with_both_values() -> None:
    other = replace(CONDITIONS, kernel="6.1.0", rate_rps=200.0)
    kernel = f"kernel: {CONDITIONS.kernel} against 6.1.0"
    assert [kernel, "rate_rps: 100.0 against 200.0"] == CONDITIONS.differences(other)
    assert CONDITIONS.differences(replace(CONDITIONS)) == []


def test_trials_of_other_traffic_are_not_comparable() -> None:
    other = replace(CONDITIONS, traffic="poisson arrivals")
    assert CONDITIONS.differences(other) == ["traffic: none against poisson arrivals"]


@pytest.mark.parametrize(
    ("name", "then", "now"),
    [
        ("cpus", 2, 4),
        ("nginx_conf", "0a1b2c3d", "unknown"),
        ("generator", "Xeon, 2 CPUs, Linux 6.1", "Xeon, 4 CPUs, Linux 6.1"),
        ("backends", "3 x Xeon, 2 CPUs, Linux 6.1, nginx 1.22", "no nginx"),
    ],
)
def test_what_an_earlier_intop_did_not_record_is_no_difference(
    name: str, then: Any, now: Any
) -> None:
    here, there = (replace(CONDITIONS, **{name: value}) for value in (then, now))
    assert here.differences(there) == [f"{name}: {then} against {now}"]
    blank: Any = {f.name: f.default for f in fields(Conditions)}[name]
    unrecorded = replace(CONDITIONS, **{name: blank})
    assert [] == unrecorded.differences(here) == here.differences(unrecorded)


def test_of_the_differences_some_can_be_asked_for() -> None:
    there = replace(CONDITIONS, kernel="6.1.0", emulation="KVM")
    message = CONDITIONS.differences(there, ["emulation", "rate_rps"])
    assert message == ["emulation: none against KVM"]
    assert CONDITIONS.differences(there, []) == []
