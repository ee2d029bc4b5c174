"""The share of a gain that is kept."""

import math
from dataclasses import replace

import pytest

from intop.explain.outcome import kept


def test_the_share_and_its_interval() -> None:
    default = [100.0, 110.0, 90.0, 100.0]
    full = [20.0, 22.0, 18.0, 20.0]
    result = kept(default, full, [25.0, 27.5, 22.5, 25.0], level=0.95)
    assert 0.75 == pytest.approx(result.share) == pytest.approx(result.low)
    assert pytest.approx([result.full.value, result.smaller.value, result.rounds]) == [5, 4, 4]
    scattered = kept(default, full, [20.0, 35.0, 18.0, 28.0], level=0.95)
    assert scattered.low < scattered.share < scattered.high


@pytest.mark.parametrize(
    ("share", "high", "was_seen", "lack"),
    [
        (0.7, 1.0, True, ""),
        (0.7, 0.8, True, "clearly less than 90% of the gain"),
        (0.7, 1.0, False, "less than 90% of the gain"),
        (0.92, 1.0, False, ""),
    ],
)
def test_what_the_search_saw_counts(share: float, high: float, was_seen: bool, lack: str) -> None:
    some = kept([10.0, 11.0], [5.0, 6.0], [5.0, 6.0], level=0.95)
    one = replace(some, share=share, low=0.5, high=high, was_seen=was_seen)
    assert (lack, not lack) == (one.lack, one.is_enough)


def test_without_a_gain_there_is_no_share() -> None:
    result = kept([10.0, 11.0], [10.0, 11.0], [9.0, 9.0], level=0.95)
    assert math.isnan(result.share)


def test_one_round_is_too_few() -> None:
    with pytest.raises(ValueError, match="two values or more"):
        kept([10.0], [5.0], [5.0], level=0.95)
