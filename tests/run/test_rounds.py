"""Interleaved rounds."""

from random import Random

import pytest

from benchmarks.campaign import measured
from builders.testbeds import FakeTestbed
from intop.domain.configuration import Configuration
from intop.domain.rounds import (
    cell,
    compare,
    differences,
    in_rounds,
    judged_by_round,
    latest_series,
    paired,
    planned_arms,
    planned_rounds,
)
from intop.domain.trial import PlannedTrial
from intop.run.rounds import series_plan

ONE, OTHER = (Configuration({"net.core.somaxconn": count}) for count in ("1", "2"))


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def test_every_round_has_every_arm_in_an_order_of_its_own(testbed: FakeTestbed) -> None:
    arms = {f"candidate {n}": c for n, c in enumerate(configurations(4))}
    made = series_plan(testbed.task, "pick", arms, 6)
    rounds = [made[start : start + 4] for start in range(0, 24, 4)]
    for number, one in enumerate(rounds, start=1):
        assert {(name, (1, number)) for name in arms} == {(p.arm, p.series_round) for p in one}
    assert len({tuple(p.configuration.digest for p in one) for one in rounds}) > 1


def test_a_further_series_has_places_rounds_and_orders_of_its_own(testbed: FakeTestbed) -> None:
    arms = {f"arm {n}": c for n, c in enumerate(configurations(5))}
    first = series_plan(testbed.task, "contest", arms, 4)
    second = series_plan(testbed.task, "contest", arms, 3, series=2, start=len(first))
    assert list(range(35)) == [p.index for p in first + second]
    assert {p.series_round for p in first}.isdisjoint(p.series_round for p in second)
    assert [p.arm for p in first[:15]] != [p.arm for p in second]
    assert latest_series([]) == (1, [])
    assert (1, first) == latest_series(first)
    assert (2, second) == latest_series(first + second)
    assert (planned_rounds(first), planned_rounds(second)) == (4, 3)
    assert arms == planned_arms(second)


def test_only_rounds_that_both_arms_have_are_pairs(testbed: FakeTestbed) -> None:
    one, other = configurations(2)
    made = series_plan(testbed.task, "contest", {"one": one, "other": other}, 4)
    testbed.p99_us = {one.digest: 1_000, other.digest: 2_000}
    lost = {(1, "one"), (3, "other")}
    testbed.statuses = ["failed" if (p.round, p.arm) in lost else "ok" for p in made]
    result = judged_by_round(measured(testbed.task, "contest", made))
    assert set(result["one"]) == {(1, 2), (1, 3), (1, 4)}
    assert set(result["other"]) == {(1, 1), (1, 2), (1, 4)}
    before, after = paired(result["other"], result["one"])
    assert (len(before), len(after)) == (2, 2)
    assert all(b > a for b, a in zip(before, after, strict=True))


def test_pairs_of_several_arms_are_the_rounds_that_all_of_them_have() -> None:
    assert paired(
        {(1, 1): 1, (1, 2): 2, (1, 3): 3},
        {(1, 3): 30, (1, 1): 10},
        {(1, 1): 100, (1, 2): 200, (1, 3): 300},
    ) == ([1, 3], [10, 30], [100, 300])


def test_a_series_with_the_same_cells_and_rounds_is_the_same(testbed: FakeTestbed) -> None:
    one, other = configurations(2)
    cells = [cell("one", one, rate_rps=50.0), cell("one", one, rate_rps=60.0), cell("other", other)]
    planned = in_rounds(cells, 3, Random(1), series=2, start=7)
    assert differences(planned, cells[::-1], 3) == []
    assert differences(planned, cells, None) == []


@pytest.mark.parametrize(
    ("cells", "rounds", "lines"),
    [
        ([cell("one", ONE)], 3, ["entrants: one, other against one"]),
        ([cell("one", ONE), cell("other", ONE)], 3, ["other: its values are not those of then"]),
        (
            [cell("one", ONE, path="/"), cell("other", OTHER)],
            4,
            ["one: its values are not those of then", "rounds: 3 against 4"],
        ),
    ],
)
def test_another_series_says_how_it_differs(
    cells: list[PlannedTrial], rounds: int, lines: list[str]
) -> None:
    planned = in_rounds([cell("one", ONE), cell("other", OTHER)], 3, Random(1))
    assert lines == differences(planned, cells, rounds)


def test_arms_are_compared_with_a_reference_by_round(testbed: FakeTestbed) -> None:
    plan = series_plan(testbed.task, "contest", {"one": ONE, "other": OTHER}, 3)
    testbed.p99_us = {ONE.digest: 4_000, OTHER.digest: 2_000}
    testbed.statuses = ["failed" if (p.round, p.arm) == (1, "other") else "ok" for p in plan]
    trials = measured(testbed.task, "contest", plan)
    arms = compare(trials, ("one", "other", "none"), "one", level=0.95)
    assert (arms["one"].ratio, arms["one"].failures, arms["one"].problem) == (None, 0, "")
    other = arms["other"]
    assert (len(other.trials), other.failures, other.problem) == (3, 1, "because")
    assert other.ratio is not None
    assert other.judged_ms is not None
    assert pytest.approx((other.ratio.value, other.judged_ms.value), rel=0.01) == (2.0, 2.0)
    assert (arms["none"].ratio, arms["none"].judged_ms, arms["none"].trials) == (None, None, ())
