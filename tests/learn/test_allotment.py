"""What of an effort has room in the time of a training."""

from dataclasses import replace

import pytest

from intop.learn.allotment import allotted, cut_line, reckoned_s
from intop.learn.families import FAMILIES
from intop.learn.tuning_effort import Effort

ALL = tuple(FAMILIES)
WHOLE = Effort(folds=4, repeats=2, trials=20, timeout_s=60.0, seed=1)


def test_without_a_limit_all_is_tried() -> None:
    assert dict.fromkeys(ALL, WHOLE) == allotted(ALL, 66, 20, WHOLE)
    assert cut_line(allotted(ALL, 66, 20, WHOLE), WHOLE) is None


def test_time_that_is_enough_cuts_nothing_and_leaves_no_trace() -> None:
    """Searches of a campaign are found again though the time of its trials has grown."""
    assert dict.fromkeys(ALL, WHOLE) == allotted(ALL, 66, 20, replace(WHOLE, time_s=1e6))


@pytest.mark.parametrize("rows", [40, 66, 120])
@pytest.mark.parametrize("trial_s", [3.6, 8.0, 30.0])
def test_a_training_takes_at_most_a_quarter_of_the_trials_time(rows: int, trial_s: float) -> None:
    time_s = 0.25 * rows * trial_s
    assert reckoned_s(allotted(ALL, rows, 20, replace(WHOLE, time_s=time_s)), rows, 20) <= time_s


def test_cheap_families_try_more_and_dear_ones_less() -> None:
    short = replace(WHOLE, time_s=120.0)
    efforts = allotted(ALL, 66, 20, short)
    assert efforts["SVR"].trials == 20
    assert efforts["SVR"].trials > efforts["XGBoost"].trials > efforts["DNN"].trials >= 1
    assert {e.repeats for e in efforts.values()} == {2}
    line = cut_line(efforts, short)
    assert line is not None
    assert line.startswith(f"tries that fit in 2 min 0 s: DNN {efforts['DNN'].trials}, SVR 20, ")
    assert line.endswith("set tuning_share = 0 in [budget]")


def test_folds_are_drawn_once_where_a_single_try_of_each_is_too_much() -> None:
    efforts = allotted(ALL, 66, 20, replace(WHOLE, time_s=1.0))
    assert {(e.trials, e.repeats, e.interval_repeats) for e in efforts.values()} == {(1, 1, 2)}


def test_half_of_the_time_may_go_into_intervals_at_most() -> None:
    efforts = allotted(ALL, 66, 20, replace(WHOLE, time_s=240.0))
    assert {e.interval_repeats for e in efforts.values()} == {4}
    assert min(e.trials for e in efforts.values()) > 1
