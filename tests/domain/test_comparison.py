from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from builders import trials as samples
from builders.results import VERDICT
from builders.trials import CONDITIONS, trial
from intop.domain.comparison import (
    EXPECTED_DIFFERENCES,
    LOAD,
    MUST_BE_EQUAL,
    WARNED_DIFFERENCES,
    Comparison,
    Contrast,
    Side,
)
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.parameter import Component, Parameter
from intop.domain.probing import Probed
from intop.domain.ranking import Ranking
from intop.domain.space import Space
from intop.domain.stats import Interval, geometric_interval, unpaired_ratio
from intop.domain.trial import Conditions, Trial
from intop.domain.verdict import Verdict
from intop.report.compare import compared, side

ARM = replace(CONDITIONS, arch="arm", machine="aarch64", cpu="Neoverse")
TUNED = Configuration({"net.core.somaxconn": "64"})
NOTHING = Probed(Space((), ()), {})


def trials(conditions: Conditions, *default_us: int) -> list[Trial]:
    made = [trial(DEFAULT, us, conditions=conditions) for us in default_us]
    return [*made, trial(TUNED, 300, conditions=conditions)]


def made_side(conditions: Conditions = CONDITIONS, **changes: Any) -> Side:
    values: dict[str, Any] = {"level": 0.95}
    return side(conditions.arch, trials(conditions, 500, 2000), **(values | changes))


def both(
    one: Side, other: Side, *offers: Probed, chosen_by: Sequence[str] = ("arch",)
) -> Comparison:
    here, there = offers or (NOTHING, NOTHING)
    return compared("slt", (one, other), (here, there), level=0.95, chosen_by=chosen_by)


def against(conditions: Conditions, *chosen_by: str) -> Comparison:
    return both(made_side(), made_side(conditions), chosen_by=chosen_by or ("arch",))


def verdict(values: Mapping[str, str] = TUNED.values) -> Verdict:
    return replace(VERDICT, configuration=Configuration(values), origin="candidate 1", pairs=2)


def ranking(chosen: int = 99, /, **means: float) -> Ranking:
    importances = (samples.importance(k, m) for k, m in means.items())
    return samples.ranking(*importances, chosen=tuple(means)[:chosen])


def offer(defaults: Mapping[str, str], **refused: str) -> Probed:
    parameters = tuple(
        Parameter(
            key=key,
            kind="integer",
            unit="",
            scope="namespace",
            risk="low",
            mechanism="",
            document="",
            components=(Component(name="", low=0, high=9),),
        )
        for key in defaults
    )
    return Probed(Space(parameters, (), defaults), refused)


# Sides --------------------------------------------------------------------------------------------


def test_before_a_verdict_a_side_is_all_trials_of_the_default() -> None:
    result = made_side()
    assert pytest.approx(result.default.trials_ms) == (0.5, 2.0)
    assert geometric_interval(result.default.trials_ms, level=0.95) == result.default.mean_ms
    assert pytest.approx(result.default.mean_ms.value) == 1.0
    assert (result.tuned, result.verdict, result.trials) == (None, None, 3)
    assert (result.conditions, result.errors, result.convergences) == (CONDITIONS, (), ())


def test_with_a_verdict_a_side_is_what_that_rests_on() -> None:
    result = made_side(verdict=verdict(), judged=([10.0, 40.0], [1.0, 4.0]))
    message = result.default
    assert (message.trials_ms, pytest.approx(message.mean_ms.value)) == ((10.0, 40.0), 20.0)
    assert result.tuned is not None
    assert (result.tuned.trials_ms, pytest.approx(result.tuned.mean_ms.value)) == ((1.0, 4.0), 2.0)


@pytest.mark.parametrize("default_us", [(), (500,)])
def test_a_side_needs_two_trials_of_the_default(default_us: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"{len(default_us)} usable trials of the default"):
        side("x86", trials(CONDITIONS, *default_us), level=0.95)


@pytest.mark.parametrize(
    ("emulation", "emulated"), [("", False), ("KVM", False), ("TCG on x86_64", True)]
)
def test_a_virtual_machine_of_the_hardwares_own_speed_is_not_emulated(
    emulation: str, emulated: bool
) -> None:
    assert emulated == made_side(replace(CONDITIONS, emulation=emulation)).emulated


# Contrasts ----------------------------------------------------------------------------------------


def test_the_second_side_is_held_against_the_first() -> None:
    x86 = made_side(verdict=verdict(), judged=([10.0, 40.0], [1.0, 4.0]))
    arm = made_side(ARM, verdict=verdict(), judged=([30.0, 120.0], [0.5, 2.0]))
    result = both(x86, arm)
    default = (result.default.ratio.value, result.default.difference_ms.value)
    assert pytest.approx(default) == (3.0, 40.0)
    assert unpaired_ratio((30.0, 120.0), (10.0, 40.0), level=0.95) == result.default.ratio
    assert result.tuned is not None
    tuned = (result.tuned.ratio.value, result.tuned.difference_ms.value)
    assert pytest.approx(tuned) == (0.5, -1.0)


def test_verdicts_against_different_defaults_are_incomparable() -> None:
    judged = ([10.0, 40.0], [1.0, 4.0])
    x86 = made_side(verdict=verdict(), judged=judged)
    arm = made_side(ARM, verdict=replace(verdict(), against="web"), judged=judged)
    assert both(x86, arm).differences == ("default: the host's own against web",)
    assert both(x86, x86).differences == ()


def test_what_is_tuned_on_one_side_only_has_no_contrast() -> None:
    x86 = made_side(verdict=verdict(), judged=([10.0, 40.0], [1.0, 4.0]))
    assert both(x86, made_side(ARM)).tuned is None
    arm = made_side(ARM, verdict=verdict(), judged=([1, 2], [1, 2]))
    assert both(made_side(), arm).tuned is None


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(1.1, 1.3, "higher"), (0.7, 0.9, "lower"), (0.9, 1.1, "not separated"),
     (1.0, 1.2, "not separated"), (0.8, 1.0, "not separated")],
)  # fmt: skip
def test_sides_are_separated_where_the_ratios_interval_does_not_hold_1(
    low: float, high: float, outcome: str
) -> None:
    ratio = Interval((low + high) / 2, low, high)
    assert outcome == Contrast(difference_ms=Interval(0, -1, 1), ratio=ratio).outcome


# Conditions ---------------------------------------------------------------------------------------


def test_every_condition_is_expected_to_differ_warned_about_or_must_be_equal() -> None:
    sorts = (*EXPECTED_DIFFERENCES, *WARNED_DIFFERENCES, *MUST_BE_EQUAL)
    assert sorted(f.name for f in fields(Conditions)) == sorted(sorts)
    assert {"rate_rps", "script", "link", "load_tool", "timeout_s"} < set(MUST_BE_EQUAL)


def test_architectures_may_differ_in_what_is_compared() -> None:
    result = against(ARM)
    assert (result.differences, result.warnings) == ((), ())


def another(name: str, value: object) -> object:
    """Another value of a condition."""
    if name == "judged_by":
        return "P90"
    return value + 1 if isinstance(value, (int, float)) else f"{value}x"


@pytest.mark.parametrize("name", MUST_BE_EQUAL)
def test_what_makes_the_sides_incomparable_has_both_values(name: str) -> None:
    value = getattr(ARM, name)
    other = another(name, value)
    result = against(replace(ARM, **{name: other}))
    message = f"{name}: {value or 'none'} against {other}"
    assert ((message,), ()) == (result.differences, result.warnings)


@pytest.mark.parametrize("name", WARNED_DIFFERENCES)
def test_what_should_be_alike_is_warned_about_with_both_values(name: str) -> None:
    result = against(replace(ARM, **{name: "other"}))
    before = getattr(ARM, name) or "none"
    assert (result.differences, result.warnings) == ((), (f"{name}: {before} against other",))


def test_two_sides_on_one_kind_of_machine_are_warned_about_once() -> None:
    assert against(replace(ARM, machine="x86_64")).warnings == ("machine: both are x86_64",)


def test_what_sides_are_chosen_by_may_differ_and_all_else_is_named() -> None:
    other = replace(CONDITIONS, kernel="6.1", nginx="nginx/1.26", cpu="Xeon")
    result = against(other, "kernel")
    assert result.differences == ()
    assert {line.partition(":")[0] for line in result.warnings} == {"cpu", "nginx"}
    assert len(against(other, "campaign").warnings) == 3


def test_what_must_be_equal_may_differ_where_it_is_what_sides_are_chosen_by() -> None:
    other = replace(CONDITIONS, congestion_control="bbr", emulation="")
    before = replace(CONDITIONS, congestion_control="cubic")
    one, two = made_side(before), made_side(other)
    assert len(both(one, two, chosen_by=["kernel"]).differences) == 1
    assert both(one, two, chosen_by=["congestion_control"]).differences == ()


@pytest.mark.parametrize("name", LOAD)
def test_the_load_must_be_equal_also_where_sides_are_chosen_by_it(name: str) -> None:
    value = getattr(CONDITIONS, name)
    other = another(name, value)
    (message,) = against(replace(CONDITIONS, **{name: other}), name).differences
    assert message.startswith(f"{name}: ")


def test_a_side_is_called_by_what_was_typed() -> None:
    sides = [made_side(name=f"campaign:{n}", ranking=ranking(a=0.6, b=0.4)) for n in (1, 2)]
    result = both(*sides, chosen_by=["campaign"])
    assert (result.sides[0].arch, result.sides[0].name) == ("x86", "campaign:1")
    assert result.rank_agreement is not None
    assert (result.rank_agreement.first, result.rank_agreement.second) == (
        "campaign:1",
        "campaign:2",
    )


# Parameters ---------------------------------------------------------------------------------------


def test_rankings_are_held_against_each_other_where_both_are_screened() -> None:
    one, other = ranking(a=0.5, b=0.3, c=0.2), ranking(c=0.6, b=0.3, a=0.1)
    result = both(made_side(ranking=one), made_side(ARM, ranking=other)).rank_agreement
    assert result is not None
    assert (result.first, result.second, pytest.approx(result.spearman)) == ("x86", "arm", -1.0)
    assert both(made_side(ranking=one), made_side(ARM)).rank_agreement is None
    assert both(made_side(), made_side(ARM, ranking=other)).rank_agreement is None


def test_parameters_are_those_of_both_then_of_the_first_then_of_the_second() -> None:
    x86 = made_side(ranking=ranking(3, a=0.4, b=0.3, c=0.2, d=0.1))
    arm = made_side(ARM, ranking=ranking(2, d=0.6, b=0.3, c=0.1))
    here = offer(dict.fromkeys("abcd", "1"))
    there = offer(dict.fromkeys("bcd", "1"), a="this kernel doesn't have it")
    assert [
        (p.key, tuple(i and i.mean for i in p.importances), p.chosen, p.refused)
        for p in both(x86, arm, here, there).parameters
    ] == [
        ("b", (0.3, 0.3), (True, True), ("", "")),
        ("a", (0.4, None), (True, False), ("", "this kernel doesn't have it")),
        ("c", (0.2, 0.1), (True, False), ("", "")),
        ("d", (0.1, 0.6), (False, True), ("", "")),
    ]


def test_without_screening_no_parameter_is_chosen() -> None:
    assert both(made_side(), made_side(ARM)).parameters == ()


def test_tuned_values_stand_beside_the_defaults() -> None:
    judged = ([1.0, 2.0], [1.0, 2.0])
    x86 = made_side(verdict=verdict({"a": "5", "b": "1", "c": "7"}), judged=judged)
    arm = made_side(ARM, verdict=verdict({"a": "6", "d": "8"}), judged=judged)
    here = offer({"a": "1", "b": "1", "c": "1"})
    there = offer({"a": "2", "c": "1", "d": "1"})
    # b was judged at its default, so nothing is tuned there.
    assert [(v.key, v.defaults, v.tuned) for v in both(x86, arm, here, there).values] == [
        ("a", ("1", "2"), ("5", "6")),
        ("c", ("1", "1"), ("7", None)),
        ("d", (None, "1"), (None, "8")),
    ]
    assert [(v.key, v.tuned) for v in both(x86, made_side(ARM), here, there).values] == [
        ("a", ("5", None)),
        ("c", ("7", None)),
    ]
