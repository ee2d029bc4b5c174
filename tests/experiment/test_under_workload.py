"""What a configuration is worth under several workloads."""

from dataclasses import replace
from functools import partial

import pytest

from builders.results import ACROSS, BETTER, COSTLIER, DOUBTED, SLOWER, UNMEASURED, VERDICT
from builders.trials import trial
from intop.domain.across import UnderWorkload, about
from intop.domain.configuration import Configuration
from intop.domain.guardrails import Guardrails
from intop.domain.sides import judged as verdict_of
from intop.domain.trial import Trial
from intop.experiment.across.stage import under_workload

TUNED = Configuration({"net.core.somaxconn": "64"})


def side(arm: str, p99_us: int, rounds: int = 3, **changes: object) -> list[Trial]:
    """Trials of an arm, a round each."""
    configuration = TUNED if arm == "tuned" else Configuration({})
    made = [trial(configuration, p99_us + n, arm=arm, number=n) for n in range(1, rounds + 1)]
    return [replace(one, **changes) for one in made]  # type: ignore[arg-type]


def judged(default: list[Trial], tuned: list[Trial]) -> UnderWorkload:
    judge = partial(
        verdict_of,
        configuration=TUNED,
        origin="winner",
        against="",
        rounds=3,
        margins=Guardrails(),
        level=0.95,
        each_level=0.99,
    )
    return under_workload("cdn", [*default, *tuned], ("default", "tuned"), judge)


def test_pairs_are_those_that_both_sides_have() -> None:
    default, tuned = side("default", 1000), side("tuned", 500)
    result = judged(default, tuned[:2])
    assert result.verdict is not None
    assert (result.verdict.pairs, result.outcome) == (2, "gain")
    assert result.harms == ()
    alone = judged(default, tuned[:1])
    assert (alone.verdict, alone.outcome, alone.harms) == (None, "not measured", ())
    assert alone.problem.startswith("1 pairs could be measured")


def test_timeouts_are_those_of_the_pairs() -> None:
    slow = side("default", 1000, errors={"timeout": 4, "reset": 1})
    result = judged(slow, side("tuned", 500, errors={"timeout": 1})[:2])
    assert (result.timeouts.default, result.timeouts.tuned) == (8, 2)


@pytest.mark.parametrize(
    ("default", "tuned", "worse"), [(1, 1, False), (0, 1, True), (2, 1, False)]
)
def test_a_side_that_fails_more_often_is_worse(default: int, tuned: int, worse: bool) -> None:
    sides = [side("default", 1000, 6), side("tuned", 500, 6)]
    for made, count in zip(sides, (default, tuned), strict=True):
        made[:count] = [replace(t, status="failed", histogram=None) for t in made[:count]]
    assert worse == judged(*sides).is_worse


def test_it_is_a_gain_with_one_somewhere_and_nothing_worse_anywhere() -> None:
    assert (
        [one.workload for one in ACROSS.gains],
        [one.workload for one in ACROSS.worse],
        ACROSS.is_gain,
    ) == (["small"], ["api", "large", "tls"], False)
    assert replace(ACROSS, workloads=(BETTER,)).is_gain
    doubted = replace(BETTER, verdict=DOUBTED)
    assert replace(ACROSS, workloads=(doubted,)).is_gain
    nothing = replace(BETTER, verdict=replace(VERDICT, ratio_low=0.9))
    assert not replace(ACROSS, workloads=(nothing,)).is_gain


def test_harms_are_in_words() -> None:
    assert SLOWER.harms == ("P99 is 2.00 times higher (1.25 to 2.50)",)
    assert COSTLIER.harms == ("CPU is higher by 12 points (9 to 15; accepted: 5)",)
    assert (UNMEASURED.harms, UNMEASURED.outcome) == (("2 of 2 trials fail",), "worse")


def test_it_is_about_the_winner_of_a_verdict_or_nothing() -> None:
    assert about(ACROSS, VERDICT) == ACROSS
    assert about(ACROSS, replace(VERDICT, configuration=TUNED)) is None
    assert about(None, VERDICT) is None
    assert about(ACROSS, None) is None
