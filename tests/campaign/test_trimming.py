"""The changes of a candidate that stay, by made-up rounds."""

import random
from collections.abc import Mapping, Sequence

from intop.campaign.verify.change_rounds import Changes, NextRounds, Round
from intop.campaign.verify.trimming import MOST_ARMS, NONE, Answers, Trimming, only_proven, trim

NAMES = [chr(ord("a") + n) for n in range(14)]
Asked = list[NextRounds]


def trimmed(
    names: Sequence[str],
    effects: Mapping[str, float],
    *,
    twins: str = "",
    sd: float = 0.0,
    p99_effects: Mapping[str, float] | None = None,
    spikes: Mapping[int, Changes] | None = None,
    failing: frozenset[Changes] = frozenset(),
    lucky: Mapping[int, tuple[str, float]] | None = None,
) -> tuple[Trimming, Asked]:
    """Return what stays of changes that lower the tail by so much, and what was asked for.

    Each of the twins lowers it by 0.6, and both together by no more. P99 has the same effects
    unless it is given others. In step n the set `spikes[n]` has one trial with three times its P99.
    Sets that fail are missing in all rounds. Up to the step of `lucky`, its change seems to lower
    the tail.
    """
    rng = random.Random(1)

    def latency(changes: Changes, lowers: Mapping[str, float]) -> float:
        lowered = sum(lowers.get(name, 0.0) for name in changes)
        return -lowered - 0.6 * bool(changes & set(twins)) + rng.gauss(0, sd)

    search = trim(names, 4)
    asked = [next(search)]
    try:
        while True:
            sets = [changes for changes in asked[-1].sets if changes not in failing]
            count = asked[-1].rounds
            chances = (by for last, by in (lucky or {}).items() if len(asked) <= last)
            seems = {**effects, **dict(chances)}
            tail: list[Round] = [{s: latency(s, seems) for s in sets} for _ in range(count)]
            lowers = effects if p99_effects is None else p99_effects
            p99 = [{s: latency(s, lowers) for s in sets} for _ in range(count)]
            if spikes and len(asked) in spikes:
                p99[0][spikes[len(asked)]] += 1.1
            asked.append(search.send(Answers(judged=p99, tail=tail)))
    except StopIteration as end:
        return end.value, asked


def test_the_smallest_first_changes_that_are_as_good_stay() -> None:
    result, asked = trimmed(NAMES, {"a": 0.6, "b": 0.4})
    assert result.kept == {"a", "b"}
    assert [len(changes) for changes in asked[0].sets] == [0, 1, 2, 3, 5, 8, 14]
    assert [each.rounds for each in asked] == [4, 4, 8]
    assert asked[2].sets == tuple(map(frozenset, ["ab", "b", "a"]))


def test_what_does_nothing_among_the_first_is_dropped_and_the_rest_is_measured_once_more() -> None:
    result, asked = trimmed(NAMES, {"a": 0.6, "e": 0.4})
    assert result.kept == {"a", "e"}
    assert asked[2].sets == tuple(map(frozenset, ["", "abcde", "ae", "e", "a"]))
    assert set(result.left_out) == {frozenset("a"), frozenset("e")}


def test_of_two_that_do_the_same_one_stays() -> None:
    """Neither is missed beside the other, so steps 2 and 3 keep both."""
    result, asked = trimmed(["c", "d", "a", "b"], {"a": 0.5}, twins="cd")
    assert asked[2].sets == (NONE, frozenset("acd"), frozenset("a"))
    assert asked[3].sets[0] == {"a", "c", "d"}
    assert result.kept == {"a", "d"}
    assert result.left_out.keys() == {frozenset("a"), frozenset("d")}


def test_a_change_has_to_show_at_last_that_it_acts() -> None:
    """Chance may help a change through the first steps."""
    lowers = {"a": 0.6, "b": 0.3}
    result, asked = trimmed(["a", "b", "c"], lowers, lucky={2: ("c", 0.2)})
    assert asked[2].sets[0] == {"a", "b", "c"}
    assert result.kept == {"a", "b"}


def test_a_candidate_of_which_nothing_acts_keeps_one_change() -> None:
    result, _ = trimmed(NAMES, {})
    assert len(result.kept) == 1


def test_of_many_changes_the_last_are_left_out_in_groups() -> None:
    effects = {"n": 0.6}
    result, asked = trimmed(NAMES, effects)
    assert "n" in result.kept
    assert len(asked[1].sets) == MOST_ARMS + 2
    assert len(result.kept) <= 2


def test_a_set_that_could_not_be_measured_is_not_chosen() -> None:
    result, _ = trimmed(NAMES, {"a": 0.6}, failing=frozenset({frozenset("a")}))
    assert "a" in result.kept
    assert len(result.kept) <= 2


def test_a_set_is_measured_once_in_a_round() -> None:
    result, asked = trimmed(NAMES[:2], {"a": 0.6})
    assert result.kept == {"a"}
    assert all(len(set(each.sets)) == len(each.sets) for each in asked)


def test_large_effects_stay_where_rounds_scatter() -> None:
    result, _ = trimmed(NAMES, {"a": 1.0, "b": 0.8, "c": 0.7}, sd=0.2)
    assert {"a", "b", "c"} <= result.kept
    assert len(result.kept) <= 5


def test_noise_alone_drops_nothing_that_makes_the_gain() -> None:
    """A spike makes the interval wide. It must not excuse the loss of the gain."""
    names = ["a", "b", "c", "d"]
    lowers = {"a": 0.4, "b": 0.3}
    first, _ = trimmed(names, lowers, sd=0.05)
    spiked, _ = trimmed(names, lowers, sd=0.05, spikes={2: frozenset("ab"), 3: frozenset("ab")})
    assert first.kept == spiked.kept == {"a", "b"}


def test_a_change_that_only_lowers_p99_stays_where_that_is_clear() -> None:
    result, _ = trimmed(NAMES[:3], {"a": 0.4}, p99_effects={"a": 0.4, "b": 0.5}, sd=0.02)
    assert result.kept == {"a", "b"}


def proven(names: str, lowers: Mapping[frozenset[str], float]) -> tuple[Changes, list[int]]:
    """Return what step 4 keeps, and how many sets it asked for in each turn.

    A set lowers the latency where it has one of the changes of an entry.
    """
    search = only_proven(frozenset(names), 8)
    asked = [next(search)]
    try:
        while True:
            latency = {
                s: -sum(by for any_of, by in lowers.items() if s & any_of) for s in asked[-1].sets
            }
            rounds = [latency] * asked[-1].rounds
            asked.append(search.send(Answers(judged=rounds, tail=rounds)))
    except StopIteration as end:
        return end.value[0], [len(each.sets) for each in asked]


def test_half_of_many_changes_that_do_nothing_go_at_once() -> None:
    kept, asked = proven("abcdefghij", {frozenset("j"): 0.5})
    assert kept == {"j"}
    assert sum(asked) < 40  # 63 if one went at a time


def test_two_that_do_the_same_do_not_go_together() -> None:
    """Both are in the half that goes first, and the larger set shows that one of them acts."""
    kept, _ = proven("abcdefghij", {frozenset("ab"): 0.5})
    assert len(kept) <= 2
    assert kept & set("ab")
