"""What models' own winners are worth, from made-up rounds."""

import math

import pytest

from intop.domain.speedups import ModelSpeedUp, SpeedUps, speed_ups
from intop.domain.stats import Interval, paired_ratio
from intop.domain.trial import SeriesRound

DEFAULT = {(1, 1): 8.0, (1, 2): 8.0, (1, 3): 2.0}
ONE = {(1, 1): 4.0, (1, 2): 2.0, (1, 3): 1.0}
OTHER = {(1, 1): 8.0, (1, 2): 8.0, (1, 3): 0.5}


def found(
    arms: dict[str, str], made: dict[str, dict[SeriesRound, float]], **failures: int
) -> SpeedUps:
    return speed_ups(arms, {"default": DEFAULT, **made}, failures, default="default", level=0.9)


def test_each_model_has_the_paired_ratio_of_its_arm() -> None:
    both = found({"RFR": "RFR", "XGBoost": "candidate 1"}, {"RFR": ONE, "candidate 1": OTHER})
    rfr, xgboost = both.models
    expected = paired_ratio([8, 8, 2], [4, 2, 1], level=0.9)
    assert ModelSpeedUp(model="RFR", arm="RFR", rounds=3, judged_ms=2.0, ratio=expected) == rfr
    assert (xgboost.arm, xgboost.rounds, xgboost.failures) == ("candidate 1", 3, 0)
    assert rfr == both.best


def test_the_mean_is_over_models_and_its_interval_over_rounds() -> None:
    both = found({"RFR": "RFR", "XGBoost": "XGBoost"}, {"RFR": ONE, "XGBoost": OTHER})
    rounds = [math.sqrt(2 * 1), math.sqrt(4 * 1), math.sqrt(2 * 4)]
    expected = paired_ratio(rounds, [1, 1, 1], level=0.9)
    assert both.mean is not None
    assert (expected.value, expected.low, expected.high) == pytest.approx(
        (both.mean.value, both.mean.low, both.mean.high)
    )
    assert (both.rounds, both.level) == (3, 0.9)


def test_models_with_the_same_winner_count_once_each() -> None:
    both = found(
        {"RFR": "RFR", "CatBoost": "RFR", "XGBoost": "XGBoost"}, {"RFR": ONE, "XGBoost": OTHER}
    )
    assert both.mean is not None
    one, other = 16 ** (1 / 3), 4 ** (1 / 3)
    assert both.mean.value == pytest.approx((one * one * other) ** (1 / 3))


def test_a_winner_that_failed_has_no_speed_up_and_is_in_no_mean() -> None:
    both = found(
        {"RFR": "RFR", "XGBoost": "XGBoost"},
        {"RFR": ONE, "XGBoost": {(1, 1): 0.1, (1, 2): 0.1}},
        XGBoost=1,
    )
    xgboost = both.models[1]
    assert (xgboost.rounds, xgboost.failures, xgboost.ratio) == (2, 1, None)
    assert both.models[0] == both.best
    assert both.mean is not None
    assert both.mean.value == pytest.approx(16 ** (1 / 3))


def test_rounds_that_a_model_lacks_are_in_no_mean() -> None:
    both = found(
        {"RFR": "RFR", "XGBoost": "XGBoost"},
        {"RFR": ONE, "XGBoost": {(1, 1): 8.0, (1, 2): 8.0}},
    )
    assert both.rounds == 2
    assert both.mean is not None
    assert both.mean.value == pytest.approx(math.sqrt(math.sqrt(2 * 4)))


def test_one_round_has_no_interval() -> None:
    alone = found({"RFR": "RFR"}, {"RFR": {(1, 2): 2.0}})
    assert (
        SpeedUps(
            models=(ModelSpeedUp(model="RFR", arm="RFR", rounds=1, judged_ms=2.0),),
            level=0.9,
            rounds=0,
            mean=None,
        )
        == alone
    )
    assert alone.best is None


def test_without_the_default_there_is_nothing_to_tell() -> None:
    nothing = speed_ups({"RFR": "RFR"}, {"RFR": ONE}, {}, default="default", level=0.95)
    assert (nothing.mean, nothing.models[0].rounds, nothing.models[0].ratio) == (None, 0, None)
    assert Interval(1, 1, 1) == found({"RFR": "RFR"}, {"RFR": DEFAULT}).mean
