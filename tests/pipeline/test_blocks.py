"""Interleaved rounds."""

from fakes import FakeBench
from intop.domain.configuration import Configuration
from intop.pipeline.blocks import (
    blocks,
    latest_series,
    p99_by_round,
    paired,
    planned_rounds,
    planned_sides,
)
from intop.pipeline.measuring import measure_plan


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def test_every_round_has_every_side_in_an_order_of_its_own(bench: FakeBench) -> None:
    sides = {f"candidate {n}": c for n, c in enumerate(configurations(4))}
    made = blocks(bench.task, "pick", sides, 6)
    rounds = [made[start : start + 4] for start in range(0, 24, 4)]
    for number, one in enumerate(rounds, start=1):
        assert {f"{number}: {name}" for name in sides} == {p.label for p in one}
    assert 1 < len({tuple(p.configuration.digest for p in one) for one in rounds})


def test_a_further_series_has_places_rounds_and_orders_of_its_own(bench: FakeBench) -> None:
    sides = {f"side {n}": c for n, c in enumerate(configurations(5))}
    first = blocks(bench.task, "contest", sides, 4)
    second = blocks(bench.task, "contest", sides, 3, series=2, start=len(first))
    assert list(range(35)) == [p.index for p in first + second]
    assert {p.round for p in first}.isdisjoint(p.round for p in second)
    assert [p.side for p in first[:15]] != [p.side for p in second]
    assert (1, []) == latest_series([])
    assert (1, first) == latest_series(first)
    assert (2, second) == latest_series(first + second)
    assert (4, 3) == (planned_rounds(first), planned_rounds(second))
    assert sides == planned_sides(second)


def test_only_rounds_that_both_sides_have_are_pairs(bench: FakeBench) -> None:
    one, other = configurations(2)
    made = blocks(bench.task, "contest", {"one": one, "other": other}, 4)
    bench.p99_us = {one.digest: 1_000, other.digest: 2_000}
    lost = {("1", "one"), ("3", "other")}
    bench.statuses = ["failed" if (p.round, p.side) in lost else "ok" for p in made]
    found = p99_by_round(measure_plan(bench.task, "contest", lambda _: made))
    assert {"2", "3", "4"} == set(found["one"])
    assert {"1", "2", "4"} == set(found["other"])
    before, after = paired(found["other"], found["one"])
    assert (2, 2) == (len(before), len(after))
    assert all(b > a for b, a in zip(before, after, strict=True))
