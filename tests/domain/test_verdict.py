"""What P99 and the guardrails come to together."""

from dataclasses import replace
from typing import Any

import pytest

from builders.results import BROKEN_CPU, COSTLY, CPU, DOUBTED, P50, SIDES, UNCLEAR_CPU, VERDICT
from intop.domain.stats import Interval
from intop.domain.verdict import PairwiseLatency, outcome_of

SLOW_P50 = replace(P50, effect=1.5, low=1.4, high=1.6)
LOSS = {"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.6}
NOTHING = {"ratio": 1.1, "ratio_low": 0.9, "ratio_high": 1.3}


@pytest.mark.parametrize(
    ("changes", "outcome", "is_gain", "is_clear"),
    [
        ({}, "gain", True, True),
        ({"guardrails": (P50, CPU)}, "gain", True, True),
        ({"guardrails": (P50, UNCLEAR_CPU)}, "gain, but", True, False),
        ({"guardrails": (UNCLEAR_CPU, SLOW_P50)}, "no gain: it costs", False, True),
        ({"guardrails": (BROKEN_CPU,), "failures": 1}, "worse", False, True),
        ({"guardrails": (BROKEN_CPU,), **LOSS}, "worse", False, True),
        ({"guardrails": (BROKEN_CPU,), **NOTHING}, "no significant gain", False, False),
        ({"guardrails": (CPU,), **NOTHING}, "undecided", False, False),
        ({**NOTHING, "ratio_high": 1.2}, "undecided", False, False),
        ({**NOTHING, "ratio_low": 1.0}, "undecided", False, False),
        ({**NOTHING, "ratio_high": 1.19}, "no significant gain", False, False),
    ],
)
def test_guardrails_only_take_from_a_gain(
    changes: dict[str, Any], outcome: str, is_gain: bool, is_clear: bool
) -> None:
    result = replace(VERDICT, **changes)
    assert (outcome, is_gain, is_clear) == (result.outcome, result.is_gain, result.is_clear)


def test_what_is_broken_and_what_is_unclear_are_named() -> None:
    result = replace(VERDICT, guardrails=(SLOW_P50, BROKEN_CPU))
    assert result.broken == (SLOW_P50, BROKEN_CPU)
    assert result.short == "no gain: it costs P50 and CPU"
    assert result.costs == (
        "P50 is higher by 50 % (40 to 60; accepted: 10); "
        "CPU is higher by 12 points (9 to 15; accepted: 5)"
    )
    assert (DOUBTED.short, DOUBTED.costs) == ("gain, but CPU is unclear", "")
    unclear = replace(P50, high=1.3)
    assert (
        replace(VERDICT, guardrails=(unclear, UNCLEAR_CPU)).short
        == "gain, but P50 and CPU are unclear"
    )
    assert DOUBTED.doubts == "CPU may be higher by up to 8 points"
    assert (COSTLY.short, COSTLY.latency_outcome) == ("no gain: it costs CPU", "gain")


@pytest.mark.parametrize(
    ("ratio", "outcome"),
    [
        (Interval(1.004, 1.001, 1.007), "no significant gain"),
        (Interval(0.996, 0.993, 0.999), "no significant gain"),
        (Interval(1.006, 1.001, 1.011), "gain"),
        (Interval(0.99, 0.98, 0.999), "worse"),
        (Interval(1.2, 0.9, 1.5), "no significant gain"),
    ],
)
def test_a_difference_that_nobody_would_see_is_none(ratio: Interval, outcome: str) -> None:
    assert outcome_of(ratio, 0) == outcome
    assert outcome_of(ratio, 1) == "worse"


def test_what_is_not_told_has_its_reason() -> None:
    assert SIDES.untold == {}
    few = {
        **SIDES.latencies_ms,
        "P99": PairwiseLatency(default=None, tuned=100.0),
        "P99.9": PairwiseLatency(default=None, tuned=None),
    }
    assert replace(SIDES, latencies_ms=few).untold == {
        "P99": "takes 1,000 requests of a side",
        "P99.9": "takes 10,000 requests of a side",
    }
