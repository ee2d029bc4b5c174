"""Interleaved rounds."""

from benchmarks.campaign import measured
from fakes import FakeTestbed
from intop.domain.configuration import Configuration
from intop.domain.rounds import latest_series, p99_by_round, paired, planned_arms, planned_rounds
from intop.run.rounds import blocks


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def test_every_round_has_every_arm_in_an_order_of_its_own(testbed: FakeTestbed) -> None:
    arms = {f"candidate {n}": c for n, c in enumerate(configurations(4))}
    made = blocks(testbed.task, "pick", arms, 6)
    rounds = [made[start : start + 4] for start in range(0, 24, 4)]
    for number, one in enumerate(rounds, start=1):
        assert {(name, (1, number)) for name in arms} == {(p.arm, p.block) for p in one}
    assert 1 < len({tuple(p.configuration.digest for p in one) for one in rounds})


def test_a_further_series_has_places_rounds_and_orders_of_its_own(testbed: FakeTestbed) -> None:
    arms = {f"arm {n}": c for n, c in enumerate(configurations(5))}
    first = blocks(testbed.task, "contest", arms, 4)
    second = blocks(testbed.task, "contest", arms, 3, series=2, start=len(first))
    assert list(range(35)) == [p.index for p in first + second]
    assert {p.block for p in first}.isdisjoint(p.block for p in second)
    assert [p.arm for p in first[:15]] != [p.arm for p in second]
    assert (1, []) == latest_series([])
    assert (1, first) == latest_series(first)
    assert (2, second) == latest_series(first + second)
    assert (4, 3) == (planned_rounds(first), planned_rounds(second))
    assert arms == planned_arms(second)


def test_only_rounds_that_both_arms_have_are_pairs(testbed: FakeTestbed) -> None:
    one, other = configurations(2)
    made = blocks(testbed.task, "contest", {"one": one, "other": other}, 4)
    testbed.p99_us = {one.digest: 1_000, other.digest: 2_000}
    lost = {(1, "one"), (3, "other")}
    testbed.statuses = ["failed" if (p.round, p.arm) in lost else "ok" for p in made]
    found = p99_by_round(measured(testbed.task, "contest", made))
    assert {(1, 2), (1, 3), (1, 4)} == set(found["one"])
    assert {(1, 1), (1, 2), (1, 4)} == set(found["other"])
    before, after = paired(found["other"], found["one"])
    assert (2, 2) == (len(before), len(after))
    assert all(b > a for b, a in zip(before, after, strict=True))
