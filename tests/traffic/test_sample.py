"""A sample of values: what it keeps, and what two of them are together."""

import pytest

from intop.traffic.sample import MOST, Sample


def sample_of(value: float, count: int) -> Sample:
    result = Sample()
    for _ in range(count):
        result.add(value)
    return result


def test_few_values_are_all_kept() -> None:
    joined = sample_of(1.0, 2).joined(sample_of(3.0, 1))
    assert (joined.values, joined.seen, joined.median) == ([1.0, 1.0, 3.0], 3, 1.0)
    assert Sample().joined(Sample()).median is None


def test_each_value_that_was_seen_weighs_alike() -> None:
    joined = sample_of(2.0, 9 * MOST).joined(sample_of(15.0, MOST))
    assert (len(joined.values), joined.seen) == (MOST, 10 * MOST)
    assert pytest.approx(joined.values.count(15.0) / MOST, abs=0.02) == 0.1
    assert joined.median == 2.0
