from dataclasses import replace
from typing import Any

import pytest

from builders.full_campaign import explanation
from builders.results import BROKEN_CPU, VERDICT
from builders.trials import CONDITIONS
from intop.domain.configuration import Configuration
from intop.domain.explanation import Contribution, Explanation
from intop.domain.multi_arm import Contest, Contestant
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.report.advice import Change, Tally
from intop.report.evidence import Case, Source, direction, effect
from intop.report.gathered_advice import advice

GOOD, BAD, UNCLEAR = (
    Interval(2, 1.5, 3),
    Interval(0.5, 0.4, 0.6),
    Interval(1, 0.9, 2),
)
ONE, OTHER = "net.core.somaxconn", "net.ipv4.tcp_sack"
WINNER = Configuration({ONE: "64", OTHER: "0"})
GAIN = replace(VERDICT, configuration=WINNER)


def tally(**changes: int) -> Tally:
    return Tally(**{"helped": 0, "hurt": 0, "not_shown": 0, "not_measured": 0, **changes})


def case(campaign: int = 1, **changes: Any) -> Case:
    source = Source(
        store="",
        study="lab",
        campaign=campaign,
        started_at="2026-01-01T00:00:00+00:00",
        arch="x86",
        workload="slt",
    )
    result = Case(
        source=source,
        conditions=CONDITIONS,
        verdict=GAIN,
        defaults={ONE: "4096", OTHER: "1"},
    )
    return replace(result, **changes)


def explained(*contributions: Contribution, smallest: Verdict = VERDICT) -> Explanation:
    return replace(explanation(GAIN), contributions=contributions, verdict=smallest)


def contribution(key: str = ONE, **changes: Any) -> Contribution:
    return replace(Contribution(keys=(key,), before=("4096",), after=("64",)), **changes)


def changes(*cases: Case) -> dict[str, Change]:
    return {one.name: one for one in advice(cases).changes}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("1", "0", "lowered"),
        ("4096", "65536", "raised"),
        ("0.5", "-1", "lowered"),
        ("4096 16384 4194304", "4096 16384 8388608", "raised"),
        ("4096 16384 4194304", "8192 16384 65536", "changed"),
        ("cubic", "bbr", "set to bbr"),
        ("on", "off", "set to off"),
        ("", "5", "changed"),
        ("5", "5", "changed"),
    ],
)
def test_a_change_has_a_direction(before: str, after: str, expected: str) -> None:
    assert direction(before, after) == expected


def test_an_interval_above_1_helps_and_one_that_holds_it_shows_nothing() -> None:
    message = ["helped", "hurt", "not shown", "not measured"]
    assert message == [effect(ratio) for ratio in (GOOD, BAD, UNCLEAR, None)]


def test_a_winners_changes_are_counted_with_what_was_measured_of_each() -> None:
    helps = contribution(alone=GOOD, left_out=UNCLEAR, missed=GOOD)
    only_beside = contribution(OTHER, before=("1",), after=("0",), alone=UNCLEAR, left_out=GOOD)
    result = changes(case(explanation=explained(helps, only_beside)))
    one, other = result[f"{ONE} lowered"], result[f"{OTHER} lowered"]
    assert (one.winners, one.gains) == (1, 1)
    assert (tally(helped=1), tally(helped=1)) == (one.by_itself, one.beside_others)
    assert (tally(not_shown=1), tally(helped=1)) == (other.by_itself, other.beside_others)


def test_without_an_explanation_a_winner_says_nothing_of_its_single_keys() -> None:
    worse = replace(GAIN, ratio=0.5, ratio_low=0.4, ratio_high=0.6)
    result = changes(case(1), case(2, verdict=worse))
    assert set(result) == {f"{ONE} lowered", f"{OTHER} lowered"}
    one = result[f"{ONE} lowered"]
    assert (one.winners, one.gains) == (2, 1)
    both = tally(not_measured=2)
    assert (both, both) == (one.by_itself, one.beside_others)
    assert (advice([case()]).intervals, advice([case()]).called, 0.0) == (0, 0, 0.0)


def test_a_gain_that_breaks_a_guardrail_is_none() -> None:
    costly = replace(GAIN, guardrails=(BROKEN_CPU,))
    assert changes(case(verdict=costly))[f"{ONE} lowered"].gains == 0


def test_what_equals_the_default_was_not_changed() -> None:
    assert set(changes(case(defaults={ONE: "64", OTHER: "1"}))) == {f"{OTHER} lowered"}


def test_a_verdict_of_a_single_change_is_that_changes_own() -> None:
    single = replace(GAIN, configuration=Configuration({ONE: "64"}))
    one = changes(case(verdict=single))[f"{ONE} lowered"]
    assert tally(helped=1) == one.by_itself
    assert Interval(3.1, 2.2, 4.4) == one.evidence[0].judged


def test_the_smallest_sets_verdict_counts_where_it_has_one_change_and_before_the_explanation() -> (
    None
):
    worse = replace(VERDICT, ratio=0.5, ratio_low=0.4, ratio_high=0.6)
    kept, dropped = contribution(alone=GOOD), contribution(OTHER, alone=GOOD, dropped="why")
    result = changes(case(explanation=explained(kept, dropped, smallest=worse)))
    assert [tally(hurt=1), tally(helped=1)] == [
        result[f"{key} lowered"].by_itself for key in (ONE, OTHER)
    ]
    both = explained(kept, replace(dropped, dropped=""), smallest=worse)
    assert tally(helped=1) == changes(case(explanation=both))[f"{ONE} lowered"].by_itself


def test_what_a_set_of_one_change_lacks_without_it_is_not_beside_others() -> None:
    kept = contribution(alone=UNCLEAR, left_out=GOOD, missed=GOOD)
    dropped = contribution(OTHER, dropped="why")
    (one,) = changes(case(explanation=explained(kept, dropped)))[f"{ONE} lowered"].evidence
    assert (one.beside_others, one.missed) == (GOOD, None)
    (one,) = changes(case(explanation=explained(kept)))[f"{ONE} lowered"].evidence
    assert one.beside_others is None
    assert Interval(3.1, 2.2, 4.4) == one.by_itself


def test_beside_a_baseline_only_an_explanation_says_what_was_changed() -> None:
    verdict = replace(GAIN, against="web")
    assert changes(case(verdict=verdict)) == {}
    result = explained(contribution(alone=GOOD), contribution(OTHER))
    (one,) = changes(case(verdict=verdict, explanation=result))[f"{ONE} lowered"].evidence
    assert one.verdict == "gain, against web"


def test_keys_that_only_go_together_are_one_change() -> None:
    both = contribution(keys=(ONE, OTHER), before=("4096", "1"), after=("64", "0"), alone=GOOD)
    unlike = replace(both, after=("8192", "0"))
    assert {
        *changes(case(explanation=explained(both))),
        *changes(case(explanation=explained(unlike))),
    } == {f"{ONE} + {OTHER} lowered", f"{ONE} + {OTHER} raised + lowered"}


def contest(*contestants: Contestant, reference: str = "default") -> Contest:
    return Contest(
        contestants=contestants, reference=reference, rounds=5, level=0.95, ratio_level=0.99
    )


def contestant(name: str, values: dict[str, str], **changes: Any) -> Contestant:
    result = Contestant(
        name=name,
        title=f"about {name}",
        configuration=Configuration(values),
        keys=9,
        already=8,
        left_out={},
        ratio=BAD,
    )
    return replace(result, **changes)


def test_a_contest_is_told_by_sets_and_one_of_a_single_key_by_key() -> None:
    reference = contestant("default", {}, is_reference=True, ratio=None)
    several = contestant("web", {ONE: "64", OTHER: "0"})
    single = contestant("small", {OTHER: "0"})
    same = contestant("twin", {OTHER: "0"}, same_as="small", ratio=None)
    result = advice([case(verdict=None, contests=(contest(reference, several, single, same),))])
    assert [(one.name, one.outcome, one.keys) for one in result.sets] == [
        ("web", "worse", 2),
        ("small", "worse", 1),
    ]
    (change,) = result.changes
    assert (f"{OTHER} lowered", 0, tally(hurt=1)) == (change.name, change.winners, change.by_itself)
    assert (result.intervals, result.called, result.by_chance) == (1, 1, pytest.approx(0.01))
    assert result.verdicts == ()
    other = advice([case(verdict=None, contests=(contest(single, reference="web"),))])
    assert other.changes == ()


def test_situations_are_told_apart_by_load_link_and_machine_and_not_by_fingerprints() -> None:
    changed = replace(CONDITIONS, kernel="6.1")
    same = replace(CONDITIONS, nginx_conf="other", script="other", duration_s=99)
    result = advice([case(1), case(2, conditions=changed), case(3, conditions=same)])
    assert [(one.number, one.campaigns) for one in result.situations] == [(1, 2), (2, 1)]
    assert same == result.situations[0].conditions
    assert [one.situation for one in result.verdicts] == [1, 2, 1]
    counts = {one.situation: one.winners for one in result.changes_in(result.situations[0])}
    assert counts == {1: 2}


def test_how_many_intervals_would_be_called_by_chance() -> None:
    three = contribution(alone=GOOD, left_out=UNCLEAR, missed=BAD)
    found_so = explained(three, contribution(OTHER, alone=UNCLEAR))
    result = advice([case(n, explanation=found_so) for n in (1, 2)])
    assert (result.intervals, result.called) == (8, 4)
    assert pytest.approx(result.by_chance) == 0.4


def test_what_most_campaigns_found_to_help_comes_first() -> None:
    helps, hurts = contribution(alone=GOOD), contribution(OTHER, alone=BAD)
    nothing = contribution("a", alone=UNCLEAR)
    result = advice([case(explanation=explained(nothing, hurts, helps))])
    assert [one.keys[0] for one in result.changes] == [ONE, OTHER, "a"]
