import math

import pytest

from intop.campaign.search.pareto import cost, knee
from intop.campaign.search.tradeoff import LearnedObjective


def test_the_knee_is_nearest_to_the_best_of_all() -> None:
    # In units of the ranges, 10 and 1000: (0, 1), (0.2, 0.2), (0.5, 0.1) and (1, 0).
    assert knee([(0, 1000), (2, 200), (5, 100), (10, 0)]) == 1


def test_the_knee_goes_by_ranges_and_not_by_units() -> None:
    points = [(0.0, 1.0, 0.5), (0.1, 0.5, 0.0), (1.0, 0.0, 0.1)]
    assert knee(points) == knee([(a, 1000 * b, 5 + c) for a, b, c in points]) == 1


def test_what_is_the_same_for_all_is_no_distance() -> None:
    assert knee([(1, 7), (2, 7)]) == 0
    assert knee([(3, 3)]) == 0
    with pytest.raises(ValueError, match="without points"):
        knee([])


def test_a_higher_throughput_costs_less() -> None:
    assert cost("throughput", 200) < cost("throughput", 100)
    assert cost("p99", 200) > cost("p99", 100)
    assert math.log(0.5) == cost("cpu", 0.5)


@pytest.mark.parametrize(("high", "varies"), [(102.0, False), (120.0, True)])
def test_what_an_objective_is_worth(high: float, varies: bool) -> None:
    one = LearnedObjective(
        name="throughput",
        mape=1.0,
        r2=0.05,
        spearman=0.0,
        configurations=20,
        measured_low=100.0,
        measured_high=high,
    )
    assert varies == one.varies
    assert one.is_guesswork
