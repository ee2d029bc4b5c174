"""Lines through what was measured over time, where neighbours are alike."""

import random

import pytest

from intop.domain.slope import fitted, in_batches

LEVEL = 0.95


def test_a_line_has_its_slope_with_an_interval() -> None:
    points = [(float(t), 3.0 * t + (-1) ** t, "") for t in range(20)]
    line = fitted(points, LEVEL)
    assert line is not None
    assert pytest.approx(line.slope, abs=0.02) == 3.0
    assert 0 < line.half < 0.2
    height, half = line.at(9.5)
    assert pytest.approx(height) == 28.5
    assert half < line.at(0.0)[1]


def test_parts_may_have_heights_of_their_own() -> None:
    """A jump between two parts is no slope."""
    points = [(t / 10, t / 10, "a") for t in range(10)] + [
        (1 + t / 10, 99.0, "b") for t in range(5)
    ]
    steady = [(t, 50.0 if group == "a" else 7.0, group) for t, _, group in points]
    line = fitted(steady, LEVEL)
    assert line is not None
    assert (line.slope, line.half) == (0.0, 0.0)


@pytest.mark.parametrize("points", [[], [(0.0, 1.0, "")] * 2, [(1.0, 1.0, "")] * 5])
def test_too_few_points_have_no_line(points: list[tuple[float, float, str]]) -> None:
    assert fitted(points, LEVEL) is None


def test_batches_are_means_of_neighbours_of_one_group() -> None:
    points = [(float(t), float(t), "a") for t in range(7)] + [(float(t), 0.0, "b") for t in (8, 9)]
    assert (in_batches(points, 5)) == [
        (0.5, 0.5, "a"),
        (2.5, 2.5, "a"),
        (4.5, 4.5, "a"),
        (6.0, 6.0, "a"),
        (8.5, 0.0, "b"),
    ]
    # What is left over, shorter than half a batch, is no mean of as many.
    assert in_batches(points, 3) == [(1.0, 1.0, "a"), (4.0, 4.0, "a"), (8.5, 0.0, "b")]


def test_many_short_groups_have_two_batches_each() -> None:
    points = [(float(45 * n + t), float(t), str(n)) for n in range(24) for t in range(45)]
    result = in_batches(points)
    assert len(result) == 2 * 24
    line = fitted(result, LEVEL)
    assert line is not None
    assert pytest.approx(line.slope) == 1.0


def test_the_interval_holds_where_neighbours_are_alike() -> None:
    """Each value has 0.6 of the noise of the one before it. Without batches it holds too seldom."""
    rng = random.Random(1)
    held = {"batches": 0, "all": 0}
    runs = 400
    for _ in range(runs):
        value, points = 0.0, []
        for n in range(100):
            value = 0.6 * value + rng.gauss(0, 1)
            points.append((n / 60, 2.0 * n / 60 + value, ""))
        for name, shown in (("batches", in_batches(points)), ("all", points)):
            line = fitted(shown, LEVEL)
            assert line is not None
            held[name] += abs(line.slope - 2.0) <= line.half
    assert held["batches"] / runs > 0.9
    assert held["all"] / runs < 0.8
