from typing import Any

import pytest

from intop.domain.comparison import compared, side
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.histogram import Histogram
from intop.domain.results import Importance, Ranking
from intop.domain.trial import Conditions, PlannedTrial, Trial

X86: dict[str, Any] = {
    "arch": "x86",
    "machine": "x86_64",
    "kernel": "6.18.0",
    "cpu": "EPYC",
    "nginx": "nginx/1.22.1",
    "load_tool": "wrk 4.1.0",
    "workload": "slt",
    "script": "0123456789abcdef",
    "rate_rps": 100.0,
    "connections": 8,
    "threads": 2,
    "duration_s": 10,
    "timeout_s": 2,
    "link": "tbf",
}
ARM = X86 | {"arch": "arm", "machine": "aarch64", "cpu": "Neoverse"}
TUNED = Configuration({"net.core.somaxconn": "64"})


def trial(conditions: dict[str, Any], configuration: Configuration, p99_us: int) -> Trial:
    return Trial(
        planned=PlannedTrial(index=0, role="design", configuration=configuration),
        stage="collect",
        attempt=0,
        status="ok",
        detail="",
        conditions=Conditions(**conditions),
        started_at="2026-01-01T00:00:00+00:00",
        seconds=12.0,
        seed=1,
        tool_version="0.1.0",
        histogram=Histogram.from_pairs([(p99_us, 100)]),
        achieved_rps=100.0,
    )


def trials(conditions: dict[str, Any]) -> list[Trial]:
    p99s = [(DEFAULT, 500), (TUNED, 300), (DEFAULT, 2000), (TUNED, 200)]
    return [trial(conditions, configuration, p99) for configuration, p99 in p99s]


def ranking(**means: float) -> Ranking:
    importances = tuple(Importance(key=k, mean=m, sd=0.0) for k, m in means.items())
    return Ranking(importances=importances, chosen=tuple(means), trials=10)


def warnings(conditions: dict[str, Any]) -> tuple[str, ...]:
    one, other = (side(c["arch"], trials(c), None, None, None) for c in (X86, conditions))
    return compared("slt", one, other).warnings


def test_a_side_is_the_default_beside_the_best_of_the_others() -> None:
    found = side("x86", trials(X86), None, None, None)
    assert (4, 1.0, 0.2) == pytest.approx((found.trials, found.default_p99_ms, found.best_p99_ms))
    assert Conditions(**X86) == found.conditions


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([], "0 trials of the default, 0 of others"),
        ([trial(X86, TUNED, 5)], "0 trials of the default, 1 of others"),
        ([trial(X86, DEFAULT, 5)], "1 trials of the default, 0 of others"),
    ],
)
def test_a_side_needs_both(made: list[Trial], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        side("x86", made, None, None, None)


def test_architectures_may_differ_in_what_is_compared() -> None:
    assert () == warnings(ARM)


def test_what_should_be_alike_is_warned_about_with_both_values() -> None:
    other = ARM | {"kernel": "6.1.0", "rate_rps": 200.0}
    assert ("kernel: 6.18.0 against 6.1.0", "rate_rps: 100.0 against 200.0") == warnings(other)


def test_two_sides_on_one_kind_of_machine_are_warned_about_once() -> None:
    assert ("machine: both are x86_64",) == warnings(ARM | {"machine": "x86_64"})


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (ranking(a=0.5, b=0.3, c=0.2), ranking(a=0.6, b=0.3, c=0.1), 1.0),
        (ranking(a=0.5, b=0.3, c=0.2), ranking(c=0.6, b=0.3, a=0.1), -1.0),
        (ranking(a=0.5, b=0.3, c=0.2, x=0), ranking(y=0, a=0.6, b=0.3, c=0.1), 1.0),
        (ranking(a=0.5, b=0.3), ranking(a=0.6, b=0.3), None),
        (ranking(a=0.5, b=0.3, c=0.2), None, None),
        (None, ranking(a=0.5, b=0.3, c=0.2), None),
    ],
)
def test_rankings_agree_by_rank_over_what_both_have(
    one: Ranking | None, other: Ranking | None, expected: float | None
) -> None:
    left = side("x86", trials(X86), None, one, None)
    right = side("arm", trials(ARM), None, other, None)
    assert expected == pytest.approx(compared("slt", left, right).rank_agreement)
