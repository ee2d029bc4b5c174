"""The changes whose trials have slow requests, on made-up trials."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from builders.small_spaces import A, B, C, choice, number, space
from builders.trials import trial
from intop.campaign.verify.slow_changes import slow_changes
from intop.campaign.verify.winner import Winner
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.histogram import Histogram
from intop.domain.trial import Trial
from intop.domain.trimmed import SlowChange

SPACE = space(number(A, (0, 100)), number(B, (0, 100)), choice(C, "cubic", "reno", "bbr"))
CANDIDATE = Winner.of(SPACE, Configuration({A: "80", B: "80", C: "bbr"}), DEFAULT)
LIMIT_MS = 400.0
QUICK = Histogram.from_pairs([(2_000, 100)])
SLOW = Histogram.from_pairs([(2_000, 98), (1_000_000, 2)])


def measured(values: dict[str, str], *, is_slow: bool) -> Trial:
    return replace(trial(Configuration(values)), histogram=SLOW if is_slow else QUICK)


def varied() -> list[Trial]:
    """Trials with each value by chance, of which a third of those with a high A is slow."""
    rng = np.random.default_rng(5)
    trials: list[Trial] = []
    for n in range(80):
        a, b = rng.integers(0, 101, 2)
        values = {A: str(a), B: str(b), C: str(rng.choice(["cubic", "reno", "bbr"]))}
        trials.append(measured(values, is_slow=a >= 40 and n % 3 == 0))
    return trials


def keys(changes: Iterable[SlowChange]) -> list[str]:
    return [key for change in changes for key in change.keys]


def test_the_change_of_slow_trials_is_named_with_its_counts() -> None:
    trials = varied()
    (change,) = slow_changes(SPACE, CANDIDATE, trials, LIMIT_MS)
    assert change.keys == (A,)
    with_it = [t for t in trials if float(t.configuration.values[A]) >= 40]
    assert (change.trials, change.others) == (len(with_it), len(trials) - len(with_it))
    assert change.slow == sum(t.histogram == SLOW for t in with_it)
    assert change.slow_others == 0


def test_a_change_that_only_came_with_it_stays() -> None:
    values = {A: "80", B: "80", C: "bbr"}
    together = [measured(values, is_slow=n % 2 == 0) for n in range(20)]
    assert keys(slow_changes(SPACE, CANDIDATE, [*varied(), *together], LIMIT_MS)) == [A]


def test_two_changes_of_slow_trials_go_one_after_the_other() -> None:
    trials = [
        measured({A: a, B: b}, is_slow=a == "80" or (b == "80" and n % 2 == 0))
        for a in ("0", "80")
        for b in ("0", "80")
        for n in range(20)
    ]
    assert keys(slow_changes(SPACE, CANDIDATE, trials, LIMIT_MS)) == [A, B]


def test_a_few_slow_trials_and_none_say_nothing() -> None:
    rare = [replace(t, histogram=QUICK) for t in varied()]
    assert slow_changes(SPACE, CANDIDATE, rare, LIMIT_MS) == ()
    rare[3] = replace(rare[3], histogram=SLOW)
    assert slow_changes(SPACE, CANDIDATE, rare, LIMIT_MS) == ()
    assert slow_changes(SPACE, CANDIDATE, varied(), 2_000.0) == ()


def test_a_candidate_of_slow_changes_alone_keeps_them() -> None:
    alone = Winner.of(SPACE, Configuration({A: "80"}), DEFAULT)
    assert slow_changes(SPACE, alone, varied(), LIMIT_MS) == ()


@pytest.mark.parametrize("value", ["cubic", "reno"])
def test_a_choice_is_another_one_or_the_same(value: str) -> None:
    trials = [measured({C: c}, is_slow=c == "bbr") for c in ("bbr", value) for _ in range(10)]
    (change,) = slow_changes(SPACE, CANDIDATE, trials, LIMIT_MS)
    assert (change.keys, change.slow, change.trials, change.others) == ((C,), 10, 10, 10)


def test_a_lower_value_is_a_change_downwards() -> None:
    downwards = space(number(A, (0, 100)), number(B, (0, 100)), a="90", b="90")
    candidate = Winner.of(downwards, Configuration({A: "10", B: "10"}), DEFAULT)
    trials = [measured({A: a}, is_slow=a == "40") for a in ("40", "60") for _ in range(10)]
    assert keys(slow_changes(downwards, candidate, trials, LIMIT_MS)) == [A]
