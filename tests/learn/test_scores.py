from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from builders.trials import table
from intop.learn.samples import Samples
from intop.learn.scores import Scores


def of(*logs: float) -> Samples:
    return table(np.arange(len(logs), dtype=np.float64)[:, None], np.array(logs))


def test_scores_are_those_of_ranks_whatever_the_distances() -> None:
    scores = Scores(of(0.1, 9.0, 0.0, 0.2)).samples.log_target
    assert scores == pytest.approx(norm.ppf([0.375, 0.875, 0.125, 0.625]))


def test_alike_rows_share_a_score() -> None:
    scores = Scores(of(1.0, 1.0, 0.0, 2.0)).samples.log_target
    assert scores == pytest.approx(norm.ppf([0.5, 0.5, 0.125, 0.875]))


def test_trials_of_a_row_scatter_in_scores_also_beyond_the_known() -> None:
    samples = of(0.0, 1.0, 2.0, 3.0)
    samples = replace(samples, measured=(tuple(np.exp([-1.0, 0.0, 1.0])), *samples.measured[1:]))
    low, middle, high = np.log(Scores(samples).samples.measured[0])
    assert (middle, high) == pytest.approx(norm.ppf([0.125, 0.375]))
    assert low == pytest.approx(middle - (norm.ppf(0.875) - norm.ppf(0.125)) / 3)


def test_a_unit_is_the_distance_of_good_rows() -> None:
    few = norm.ppf(2.5 / 8) - norm.ppf(0.5 / 8)
    assert Scores(of(0.0, 0.1, 0.2, 0.3, 5.0, 6.0, 7.0, 8.0)).unit == pytest.approx(0.2 / few)


def test_where_all_are_alike_nothing_is_worth_anything() -> None:
    scores = Scores(of(2.0, 2.0, 2.0))
    assert scores.unit == 0
    assert scores.samples.log_target == pytest.approx(np.zeros(3))


def test_trials_scatter_as_replicates_say() -> None:
    once = of(0.0, 1.0, 2.0)
    low, *others = once.measured
    assert Scores(once).scatter == np.inf
    assert Scores(replace(once, measured=(low * 2, *others))).scatter == 0
    apart = replace(once, measured=(tuple(np.exp([0.0, 0.2])), others[0] * 2, others[1]))
    # A standard deviation of 0.1, which two pairs don't know well.
    assert Scores(apart).scatter == pytest.approx(0.1 * np.sqrt(2))
