"""Which percentiles may be told of how many requests."""

import pytest

from intop.domain.histogram import Histogram
from intop.domain.percentiles import requests_for, told_ms


@pytest.mark.parametrize(
    ("percent", "requests"),
    [(0, 10), (50, 20), (75, 40), (90, 100), (99, 1000), (99.5, 2000), (99.9, 10_000),
     (99.99, 100_000)],
)  # fmt: skip
def test_ten_requests_are_slower_than_what_is_told(percent: float, requests: int) -> None:
    assert requests == requests_for(percent)
    enough = Histogram.from_pairs([(1000, requests)])
    assert 1.0 == told_ms(enough, percent)
    assert told_ms(Histogram.from_pairs([(1000, requests - 1)]), percent) is None


def test_of_no_requests_nothing_is_told() -> None:
    assert told_ms(Histogram((), ()), 50) is None


@pytest.mark.parametrize("percent", [100, 101, -1])
def test_the_slowest_request_is_no_percentile(percent: float) -> None:
    with pytest.raises(ValueError, match="is not in 0"):
        requests_for(percent)
