"""Which parameters act: what is found, what is frozen, and what is told of the power."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from intop.domain.encoding import Matrix, Variable
from intop.domain.further import MATTERS
from intop.domain.ranking import Screening
from intop.learn import effects
from intop.learn.effects import DISCOVERY_RATE, screening
from intop.learn.samples import Vector
from intop.learn.shapes import Shapes, explained

NUMBERS, SWITCHES = 24, 12
VARIABLES = (
    *(Variable(name=f"n{n}", key=f"n{n}") for n in range(NUMBERS)),
    *(Variable(name=f"s{n}", key=f"s{n}", choices=("0", "1")) for n in range(SWITCHES)),
    Variable(name="c", key="c", choices=("a", "b", "c")),
    *(Variable(name=f"v[{part}]", key="v") for part in ("min", "max")),
    Variable(name="still", key="still"),
)
NAMES = [v.name for v in VARIABLES]


@pytest.fixture(autouse=True)
def _few_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for forty parameters, and quick."""
    monkeypatch.setattr(effects, "ORDERS", 1_500)
    monkeypatch.setattr(effects, "PLANTS", 10)


def drawn(count: int, rng: np.random.Generator) -> Matrix:
    values = rng.choice([0.0, 0.5, 1.0], (count, len(VARIABLES)))
    for column, variable in enumerate(VARIABLES):
        if variable.choices:
            values[:, column] = rng.integers(len(variable.choices), size=count)
    values[:, NAMES.index("still")] = 0.3
    return values


def of(values: Matrix, name: str) -> Vector:
    return np.asarray(values[:, NAMES.index(name)])


def six(values: Matrix) -> Vector:
    """A slope, a bow, two switches, a choice, and a part of a vector: 1.35 to 2 times."""
    return np.asarray(
        0.7 * of(values, "n0")
        + 1.2 * (of(values, "n1") - 0.5) ** 2
        + 0.4 * of(values, "s0")
        - 0.3 * of(values, "s1")
        + 0.4 * (of(values, "c") == 1)
        + 0.5 * of(values, "v[max]")
    )


SIX = {"n0", "n1", "s0", "s1", "c", "v"}


def nothing(values: Matrix) -> Vector:
    return np.zeros(len(values))


def screened(
    truth: Callable[[Matrix], Vector],
    *,
    count: int = 80,
    noise: float = 0.1,
    seed: int = 1,
    hinted: Sequence[str] = (),
) -> Screening:
    rng = np.random.default_rng(seed)
    values = drawn(count, rng)
    log = 4 + truth(values) + rng.normal(0, noise, count)
    return screening(VARIABLES, values, {"P99": log}, seed=seed, hinted=hinted)


def test_what_acts_is_chosen_and_what_does_not_is_frozen() -> None:
    result = screened(six)
    chosen = set(result.keys("chosen"))
    assert chosen >= SIX
    # A tenth of the discoveries may be false.
    assert len(chosen - SIX) <= 2
    assert len(result.keys("frozen")) > 25
    by_key = {e.key: e for e in result.effects}
    assert len(by_key) == len({v.key for v in VARIABLES})
    slope = by_key["n0"]
    assert math.exp(0.7) == pytest.approx(slope.ratio, rel=0.1)
    assert slope.high is not None
    assert slope.ratio < slope.high < 2.5
    assert slope.probability > 0.9
    assert all(
        e.high is not None and e.high < MATTERS for e in result.effects if e.state == "frozen"
    )
    assert (
        result.configurations,
        result.responses,
        result.discovery_rate,
    ) == (80, ("P99",), DISCOVERY_RATE)


def test_what_never_varied_is_never_frozen() -> None:
    (still,) = (e for e in screened(six).effects if e.key == "still")
    assert (still.state, still.high, still.p_value) == ("open", None, 1.0)


def test_where_nothing_matters_something_is_left_to_search() -> None:
    result = screened(nothing, count=120, noise=0.02)
    assert len(result.keys("chosen", "open")) == effects.LEAST_LEFT
    limits = {e.key: e.high for e in result.effects if e.high is not None}
    assert max(limits.values()) < MATTERS
    frozen = result.keys("frozen")
    assert min(limits[k] for k in result.keys("open") if k in limits) >= max(
        limits[k] for k in frozen
    )


def test_few_configurations_freeze_nothing() -> None:
    few = screened(nothing, count=effects.FREEZES - 1, noise=0.01)
    assert not few.keys("frozen")
    assert screened(nothing, count=effects.FREEZES, noise=0.01).keys("frozen")


def test_where_noise_hides_it_nothing_that_acts_is_frozen() -> None:
    result = screened(six, noise=0.6)
    assert not SIX & set(result.keys("frozen"))
    assert result.detectable is None or result.detectable > 1.8
    assert not result.is_sharp


def test_where_nothing_acts_hardly_anything_is_chosen() -> None:
    wrong = [bool(screened(nothing, count=40, seed=seed).keys("chosen")) for seed in range(8)]
    assert sum(wrong) <= 2


def test_hints_don_t_make_more_errors_where_nothing_acts() -> None:
    wrong = [
        bool(screened(nothing, count=40, seed=seed, hinted=["s5", "n3"]).keys("chosen"))
        for seed in range(8)
    ]
    assert sum(wrong) <= 2


def test_what_is_expected_to_act_is_held_to_a_lower_bar() -> None:
    def weak(values: Matrix) -> Vector:
        return np.asarray(0.075 * of(values, "s5"))

    result: dict[str, list[Screening]] = {
        name: [screened(weak, seed=seed, hinted=hinted) for seed in range(8)]
        for name, hinted in {"none": (), "right": ("s5",), "wrong": ("s4",)}.items()
    }
    times = {
        name: sum("s5" in one.keys("chosen") for one in several) for name, several in result.items()
    }
    assert times["wrong"] <= times["none"] < times["right"]
    # The test itself is the same.
    assert all(
        {e.key: e.p_value for e in a.effects} == {e.key: e.p_value for e in b.effects}
        for a, b in zip(result["none"], result["right"], strict=True)
    )
    assert {one.hinted for one in result["right"]} == {("s5",)}
    # What was expected is likelier.
    likely = {
        name: [e.probability for one in several for e in one.effects if e.key == "s5"]
        for name, several in result.items()
    }
    assert all(a < b for a, b in zip(likely["none"], likely["right"], strict=True))


def test_what_is_expected_to_act_is_not_frozen() -> None:
    (before,) = (e for e in screened(six).effects if e.key == "s6")
    (after,) = (e for e in screened(six, hinted=["s6"]).effects if e.key == "s6")
    assert (before.state, after.state) == ("frozen", "open")
    assert before.high == after.high


def test_where_half_are_expected_to_act_no_bar_is_lower() -> None:
    assert screened(six, hinted=NAMES) == screened(six)


def test_stalls_hide_nothing() -> None:
    def stalled(values: Matrix) -> Vector:
        at = np.random.default_rng(5).choice(len(values), 4, replace=False)
        log = six(values)
        log[at] += 3.0
        return log

    assert len(SIX & set(screened(stalled).keys("chosen"))) >= 5


def test_of_several_responses_the_clearest_tells() -> None:
    rng = np.random.default_rng(2)
    values = drawn(60, rng)
    log = six(values)
    noisy, clear = (4 + log + rng.normal(0, sd, 60) for sd in (0.8, 0.05))
    alone = screening(VARIABLES, values, {"P99": noisy}, seed=1)
    both = screening(VARIABLES, values, {"P99": noisy, "tail": clear}, seed=1)
    assert len(SIX & set(both.keys("chosen"))) > len(SIX & set(alone.keys("chosen")))
    # But none of them may say that it matters.
    assert not both.keys("frozen")


def test_effects_are_tested_on_either_side_of_the_dominant_parameter() -> None:
    """The benchmark screening-hidden shows what this is worth."""
    rng = np.random.default_rng(3)
    values = drawn(80, rng)
    log = 4 - 0.7 * of(values, "s0") + six(values) / 4 + rng.normal(0, 0.05, 80)
    shapes = Shapes.of(VARIABLES, values)
    apart = effects._Apart.of(shapes, [explained(shapes, log)])
    assert {shapes.keys[side.key] for side in apart} == {"s0"}
    assert [set(of(values, "s0")[side.rows]) for side in apart] == [{1.0}, {0.0}]
    measured = effects._Measured(shapes, (log,), apart)
    whole, *parts = measured.rests()
    assert np.count_nonzero(whole) == 80
    rows = [np.flatnonzero(part).tolist() for part in parts]
    assert rows == [side.rows.tolist() for side in apart]
    # The dominant one itself has no such test.
    assert len(measured.rests(without=apart[0].key)) == 1


def test_few_configurations_are_not_tested_apart() -> None:
    values = drawn(30, np.random.default_rng(3))
    shapes = Shapes.of(VARIABLES, values)
    assert effects._Apart.of(shapes, [explained(shapes, -of(values, "s0"))]) == ()
    assert effects._Apart.of(shapes, [explained(shapes, nothing(values))]) == ()


def test_effects_of_the_size_that_is_told_are_found() -> None:
    message = screened(six).detectable
    assert message is not None
    assert 1.05 < message < 1.5

    def one_more(values: Matrix) -> Vector:
        return np.asarray(six(values) + math.log(message) * of(values, "s5"))

    result = ["s5" in screened(one_more, seed=seed).keys("chosen") for seed in range(5)]
    assert sum(result) >= 3


def test_the_seed_decides() -> None:
    assert screened(six, count=30) == screened(six, count=30)


@pytest.mark.parametrize("level", [4.0, 4.5])
def test_a_constant_response_says_nothing(level: float) -> None:
    values = drawn(20, np.random.default_rng(1))
    result = screening(VARIABLES, values, {"P99": np.full(20, level)}, seed=1)
    assert result.keys("chosen") == ()


def test_says_what_it_can_not_use() -> None:
    values = drawn(8, np.random.default_rng(1))
    with pytest.raises(ValueError, match="7 configurations are too few to tell effects; at least"):
        screening(VARIABLES, values[:7], {"P99": np.zeros(7)}, seed=1)
    with pytest.raises(ValueError, match="need a response"):
        screening(VARIABLES, values, {}, seed=1)
