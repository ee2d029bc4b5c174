import math
import random
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest
from hdrh.histogram import HdrHistogram

from intop.domain.histogram import MAX_US, Histogram, bucket_us, reliable_ms, requests_for


def histogram_of(*values_us: int) -> Histogram:
    return Histogram.from_pairs((value, 1) for value in values_us)


def random_pairs(seed: int, count: int) -> list[tuple[int, int]]:
    """Latencies spread over all orders of magnitude, with counts up to millions."""
    draw = random.Random(seed)
    return [(int(10 ** draw.uniform(0, 9.5)), int(10 ** draw.uniform(0, 6))) for _ in range(count)]


@pytest.mark.parametrize(
    ("value_us", "bucket"),
    [(0, 0), (1, 1), (2047, 2047), (2048, 2049), (2049, 2049), (4095, 4095), (4096, 4099),
     (1_000_000, 1_000_447), (MAX_US, 3_600_809_983)],
)  # fmt: skip
def test_bucket_is_named_by_its_highest_value(value_us: int, bucket: int) -> None:
    assert bucket == bucket_us(value_us)


def test_buckets_are_those_of_hdrhistogram() -> None:
    reference = HdrHistogram(1, MAX_US, 3)
    for value, _ in random_pairs(seed=1, count=5000):
        assert reference.get_highest_equivalent_value(value) == bucket_us(value)


def test_from_pairs_orders_and_adds_equal_buckets() -> None:
    histogram = Histogram.from_pairs([(5000, 2), (30, 1), (5001, 4)])
    assert Histogram(values_us=(30, 5003), counts=(1, 6)) == histogram


@pytest.mark.parametrize("pair", [(-1, 1), (2 * MAX_US, 1), (5, 0), (5, -3)])
def test_from_pairs_refuses_what_is_no_latency_and_count(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not a latency in us and a positive count"):
        Histogram.from_pairs([pair])


@pytest.mark.parametrize(
    ("values", "counts", "message"),
    [
        ((1, 2), (1,), "2 values but 1 counts"),
        ((2, 1), (1, 1), "latency 1 us: not ascending"),
        ((1, 1), (1, 1), "latency 1 us: not ascending"),
        ((-1,), (1,), "latency -1 us: not ascending, or not in 0"),
        ((2048,), (1,), "latency 2048 us is not the highest value of its bucket"),
        ((1,), (0,), "count 0 of latency 1 us is not positive"),
    ],
)
def test_constructor_names_the_rule_and_the_value(
    values: tuple[int, ...], counts: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Histogram(values_us=values, counts=counts)


@pytest.mark.parametrize(
    ("q", "expected_ms"),
    [(0, 0.010), (10, 0.010), (10.1, 0.020), (50, 0.050), (90, 0.090), (99, 0.100), (100, 0.100)],
)
def test_percentile_is_the_smallest_latency_that_covers_q_percent(
    q: float, expected_ms: float
) -> None:
    assert expected_ms == histogram_of(*range(10, 101, 10)).percentile_ms(q)


def test_percentile_is_not_moved_by_binary_fractions() -> None:
    # 99.9 * 1000 / 100 is a hair above 999, which is still rank 999
    assert histogram_of(*range(1, 1001)).percentile_ms(99.9) == 0.999


@pytest.mark.parametrize("q", [-0.1, 100.1, float("nan")])
def test_percentile_outside_0_to_100_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match=r"is not in 0\.\.100"):
        histogram_of(1).percentile_ms(q)


def test_total_max_and_mean() -> None:
    histogram = Histogram.from_pairs([(100, 3), (900, 1), (5000, 1)])
    # 5000 us lies in the bucket 5000..5003, whose middle HdrHistogram takes for the mean
    assert (
        histogram.total,
        histogram.max_ms,
        histogram.mean_ms,
    ) == pytest.approx((5, 5.003, (300 + 900 + 5002) / 5000))


def test_mean_is_that_of_hdrhistogram() -> None:
    reference = HdrHistogram(1, MAX_US, 3)
    pairs = random_pairs(seed=2, count=300)
    for value, count in pairs:
        reference.record_value(value, count)
    expected_ms = pytest.approx(reference.get_mean_value() / 1000)
    assert expected_ms == Histogram.from_pairs(pairs).mean_ms


def test_the_slowest_are_counted_one_by_one() -> None:
    histogram = Histogram.from_pairs([(0, 5), (100, 3), (1000, 1), (1600, 1)])
    shares = {0.01: 1.6, 0.1: 1.6, 0.2: math.sqrt(1.6), 0.3: (1.6 * 0.1) ** (1 / 3)}
    # A latency below the resolution counts as the shortest that is in it.
    shares[1.0] = (1.6 * 0.1**3 * 0.001**5) ** 0.1
    for share, expected_ms in shares.items():
        assert histogram.slowest_ms(share) == pytest.approx(expected_ms)
    for share in (0.0, 1.01, float("nan")):
        with pytest.raises(ValueError, match="is not above 0 and at most 1"):
            histogram.slowest_ms(share)


def test_without_latencies_only_the_total_is_known() -> None:
    empty = Histogram.from_pairs([])
    assert empty.total == 0
    asks: list[Callable[[], float]] = [
        lambda: empty.percentile_ms(99),
        lambda: empty.max_ms,
        lambda: empty.mean_ms,
        lambda: empty.slowest_ms(0.1),
    ]
    for ask in asks:
        with pytest.raises(ValueError, match="no latency was recorded"):
            ask()


def test_merge_adds_all_counts() -> None:
    parts = [histogram_of(1, 2), histogram_of(2, 5000), histogram_of()]
    expected = Histogram(values_us=(1, 2, 5003), counts=(1, 2, 1))
    assert Histogram.merge(*parts) == expected
    assert parts[0].merge(*parts[1:]) == expected


@pytest.mark.parametrize("count", [0, 1, 20, 5000])
def test_bytes_round_trip(count: int) -> None:
    histogram = Histogram.from_pairs(random_pairs(seed=count, count=count))
    assert histogram == Histogram.from_bytes(histogram.to_bytes())


def test_bytes_are_readable_by_other_hdr_tools() -> None:
    histogram = Histogram.from_pairs([(100, 90), (5000, 9), (250_000, 1)])
    decoded = HdrHistogram.decode(b64encode(histogram.to_bytes()))
    expected = [histogram.total, *(round(histogram.percentile_ms(q) * 1000) for q in (50, 99, 100))]
    actual = [decoded.get_total_count(), *map(decoded.get_value_at_percentile, (50, 99, 100))]
    assert actual == expected


def test_bytes_are_those_of_values_that_hdrhistogram_recorded_one_by_one() -> None:
    recorded = HdrHistogram(1, MAX_US, 3)
    pairs = [(0, 3), (1, 1), (2047, 2), (2048, 1), (4095, 7), (4096, 1), (MAX_US, 1)]
    pairs += random_pairs(seed=1, count=900)
    for value, count in pairs:
        recorded.record_value(value, count)
    assert b64decode(recorded.encode()) == Histogram.from_pairs(pairs).to_bytes()


@pytest.mark.parametrize("data", [b"", b"no histogram", b64decode("HISTFAAA"), b"[[1,2]]"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an HdrHistogram in base64"):
        Histogram.from_bytes(data)


def test_import_is_light() -> None:
    script = (
        "import sys, intop.domain.histogram; "
        "print([name for name in ('numpy', 'pandas', 'hdrh') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert output.stdout == "[]\n", output.stderr


@pytest.mark.parametrize(
    ("percent", "requests"),
    [(0, 10), (50, 20), (75, 40), (90, 100), (99, 1000), (99.5, 2000), (99.9, 10_000),
     (99.99, 100_000)],
)  # fmt: skip
def test_ten_requests_are_slower_than_what_is_told(percent: float, requests: int) -> None:
    assert requests == requests_for(percent)
    enough = Histogram.from_pairs([(1000, requests)])
    assert reliable_ms(enough, percent) == 1.0
    assert reliable_ms(Histogram.from_pairs([(1000, requests - 1)]), percent) is None


def test_of_no_requests_nothing_is_told() -> None:
    assert reliable_ms(Histogram((), ()), 50) is None


@pytest.mark.parametrize("percent", [100, 101, -1])
def test_the_slowest_request_is_no_percentile(percent: float) -> None:
    with pytest.raises(ValueError, match="is not in 0"):
        requests_for(percent)
