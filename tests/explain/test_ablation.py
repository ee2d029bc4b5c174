"""The search for the smallest set, on made-up trials."""

import math
import random
from itertools import cycle

import pytest

from benchmarks.ablation import NEEDED, TWINS, searched, simulated
from intop.campaign.verify.change_rounds import Changes, Rounds, kept_share
from intop.explain.ablation import PROMISED_ROUNDS, Ablation

NOTHING: Changes = frozenset()
NOISE = (0.01, -0.02, 0.03, -0.01, 0.02, -0.03, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_needed_changes_are_found_and_all_others_dropped(seed: int) -> None:
    run = simulated(NEEDED["large effects"], 0.3, seed)
    minimal = set(run.found.minimal)
    assert minimal - set(TWINS) == {"a", "b"}
    assert len(minimal & set(TWINS)) == 1
    assert len(run.found.dropped) == 14 - 3
    assert minimal.isdisjoint(run.found.dropped)
    assert run.kept == pytest.approx(1)
    assert run.found.minimal[0] == "a"
    assert len(run.found.interactions) == 3


@pytest.mark.parametrize("seed", [37, 54])
def test_what_was_dropped_to_noise_is_given_back(seed: int) -> None:
    run = simulated(NEEDED["as on the lab"], 0.3, seed)
    assert set(run.found.minimal) - set(TWINS) == {"a", "b"}
    assert run.kept == pytest.approx(1)
    assert len(run.found.dropped) == 14 - 3


def test_a_set_that_falls_short_says_so() -> None:
    """Of many small effects, each is lost in the noise."""
    names = list("abcdefgh")

    def found(seed: int) -> Ablation:
        rng = random.Random(seed)

        def measured(sets: tuple[Changes, ...], rounds: int) -> list[dict[Changes, float]]:
            return [{s: rng.gauss(-0.1 * len(s), 0.4) for s in sets} for _ in range(rounds)]

        return searched(names, measured)[0]

    short = [one for one in map(found, range(6)) if not one.keeps_gain]
    assert short
    assert all(len(one.minimal) < len(names) for one in short)
    assert simulated(NEEDED["large effects"], 0.3, 0).found.keeps_gain


def asked_and_found(
    promised: str, effects: dict[str, float]
) -> tuple[list[tuple[Changes, ...]], Ablation]:
    """Of a search among a to l whose trials have next to no noise."""
    noise = cycle(NOISE)
    asked: list[tuple[Changes, ...]] = []

    def measured(sets: tuple[Changes, ...], rounds: int) -> list[dict[Changes, float]]:
        asked.append(sets)
        return [
            {s: next(noise) - sum(effects.get(n, 0.0) for n in s) for s in sets}
            for _ in range(rounds)
        ]

    return asked, searched(list("abcdefghijkl"), measured, promised)[0]


def test_what_was_promised_rightly_is_found_without_a_look_at_each_change() -> None:
    asked, result = asked_and_found("kcabdefghijl", {"c": 1.0, "k": 0.7})
    whole = frozenset("abcdefghijkl")
    assert asked[0] == (NOTHING, whole, *map(frozenset, ("k", "kc", "kcab", "kcabdef")))
    assert result.minimal == ("c", "k")
    assert result.keeps_gain
    assert set(result.dropped.values()) == {
        "the 2 changes of which the models expect most keep the gain"
    }
    assert tuple("kcabdefghijl") == result.order
    assert not [s for sets in asked for s in sets if len(s) == 11], "none is left out of all"


def test_superfluous_ones_among_the_promised_are_dropped() -> None:
    _, result = asked_and_found("kcabdefghijl", {"c": 1.0})
    assert result.minimal == ("c",)
    assert result.dropped["k"] == "leaving it out does not measurably hurt"


@pytest.mark.parametrize("promised", ["abcdefghijkl", ""])
def test_where_the_promised_fall_short_all_changes_are_looked_at(promised: str) -> None:
    asked, result = asked_and_found(promised, {"j": 1.0, "k": 0.7})
    assert result.minimal == ("j", "k")
    assert result.keeps_gain
    assert {"the 3 strongest keep the gain"} <= set(result.dropped.values())
    assert frozenset("abcdefghijk") in asked[bool(promised)]
    assert result.order[:2] == ("j", "k")


def test_a_promised_set_that_was_only_lucky_is_given_up() -> None:
    """In the first rounds it seems to keep the gain, and in all later ones it doesn't."""
    rounds_made = 0

    def measured(sets: tuple[Changes, ...], rounds: int) -> list[dict[Changes, float]]:
        nonlocal rounds_made
        rounds_made += rounds
        lucky = rounds_made <= PROMISED_ROUNDS
        gains = {
            s: 1.5 if lucky and "a" in s else 1.0 * ("j" in s) + 0.5 * ("a" in s) for s in sets
        }
        return [{s: -gain + 0.01 * n for s, gain in gains.items()} for n in range(rounds)]

    result, _ = searched(list("abcdefghijkl"), measured, "abcdefghiklj")
    assert set(result.minimal) == {"a", "j"}
    assert set("bcdefghikl") == set(result.dropped)
    assert result.keeps_gain


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        # Elimination drops b and c of the three strongest.
        ({"a": 1.0}, {"b": 0.2, "c": 0.2}),
        # The three strongest seem to keep the gain, and the five strongest do.
        ({"a": 1.0, "b": 0.2, "c": 0.2}, {"d": 0.15, "e": 0.15}),
    ],
)
def test_where_a_set_clearly_falls_short_the_search_goes_back_to_a_larger_one(
    shown: dict[str, float], hidden: dict[str, float]
) -> None:
    """By bad luck, the hidden effects show only where the default and the winner meet."""
    whole = frozenset("abcdefghijkl")
    noise = cycle(NOISE)

    def measured(sets: tuple[Changes, ...], rounds: int) -> list[dict[Changes, float]]:
        effects = shown | (hidden if {NOTHING, whole} <= set(sets) else {})
        return [
            {s: next(noise) - sum(effects.get(n, 0.0) for n in s) for s in sets}
            for _ in range(rounds)
        ]

    result, _ = searched(sorted(whole), measured)
    assert shown.keys() | hidden.keys() == set(result.minimal)
    assert result.keeps_gain
    assert whole - set(result.minimal) == set(result.dropped)


def test_a_shortfall_that_may_be_noise_brings_nothing_back() -> None:
    runs = [simulated(NEEDED["one of the lab's"], 0.3, seed) for seed in range(40)]
    assert [run for run in runs if not run.found.keeps_gain], "some are measured to fall short"
    assert sum(run.irrelevant for run in runs) <= 2


def test_one_change_alone_stays() -> None:
    asked: list[set[Changes]] = []

    def measured(sets: tuple[Changes, ...], rounds: int) -> list[dict[Changes, float]]:
        asked.append(set(sets))
        return [{s: 1.0 - len(s) for s in sets} for _ in range(rounds)]

    result, _ = searched(["a"], measured)
    assert result.minimal == ("a",)
    assert all(sets <= {NOTHING, frozenset("a")} for sets in asked)


def test_changes_that_only_act_together_are_both_kept() -> None:
    noise = cycle(NOISE)

    def measured(sets: tuple[Changes, ...], rounds: int) -> list[dict[Changes, float]]:
        both = frozenset("be")
        return [{s: -2.0 * (both <= s) + next(noise) for s in sets} for _ in range(rounds)]

    result, _ = searched(list("abcdef"), measured)
    assert set(result.minimal) == {"b", "e"}
    (interaction,) = result.interactions.values()
    assert 1.8 < interaction.low < 2.2


def test_a_search_ends_where_nothing_can_be_measured() -> None:
    result, _ = searched(list("abcd"), lambda _, rounds: [{} for _ in range(rounds)])
    assert len(result.minimal) == 1


def test_a_contrast_is_over_the_rounds_that_have_all_of_its_sets() -> None:
    one, both = frozenset("a"), frozenset("ab")
    rounds = [{one: 2.0, both: 1.0}, {one: 5.0}, {one: 2.2, both: 1.0}, {both: 9.0}]
    result = Rounds(rounds).effects({"b": {one: 1, both: -1}}, 0.95)["b"]
    assert (result.rounds, result.mean) == (2, pytest.approx(1.1))
    # t with one degree of freedom, standard error 0.1
    assert (pytest.approx(1.1 - 12.706 * 0.1, abs=1e-3)) == result.low
    assert Rounds(rounds[:1]).effects({"b": {one: 1, both: -1}}, 0.95) == {}


def test_the_kept_share_counts_gains_as_ratio_less_one() -> None:
    assert kept_share(math.log(5), 0) == 1
    assert pytest.approx(kept_share(math.log(5), math.log(5 / 4))) == 0.75
    with pytest.raises(ValueError, match="no gain"):
        kept_share(0, 0)
