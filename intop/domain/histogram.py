"""Latency histograms: sparse counts of latencies at HdrHistogram's resolution.

Latencies are whole microseconds up to 1 h with 3 significant digits: exact below 2,048 us, then
1,024 buckets for each power of two. A bucket is named by its highest value, as HdrHistogram does,
so that a percentile is never reported lower than it was.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_US = 3_600_000_000
"""Highest latency that can be recorded (us): 1 h."""

BEHIND = 10
"""Requests that are slower than a percentile, at least: with fewer it is the time of a few."""

Statistic = Literal["P50", "P75", "P90", "P95", "P99", "P99.9", "mean latency"]
"""A latency that trials can be judged by: a percentile, or the mean of all requests."""
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
COARSE: tuple[Statistic, ...] = ("P99", "P99.9")
"""Latencies that rest on few requests of a short trial. Searches go by the slowest tenth instead.
"""

PERCENTS: Mapping[str, float] = {
    "P50": 50.0,
    "P75": 75.0,
    "P90": 90.0,
    "P95": 95.0,
    "P99": 99.0,
    "P99.9": 99.9,
}
"""The percentiles of a side of a verdict, by name."""

_SIGNIFICANT_DIGITS = 3
_EXACT_BITS = 11  # 2 * 10**3 distinct values need 11 bits: every value below 2**11 is a bucket


def _width_us(value_us: int) -> int:
    """Return how many microseconds share a bucket with this value."""
    return 1 << max(0, value_us.bit_length() - _EXACT_BITS)


def bucket_us(value_us: int) -> int:
    """Return the highest latency (us) in the bucket of this one."""
    return value_us | (_width_us(value_us) - 1)


@dataclass(frozen=True)
class Histogram:
    """Counts of latencies: `counts[i]` were in the bucket whose highest value is `values_us[i]`.

    Build one with `from_pairs`. ValueError if the values aren't ascending buckets from 0 to
    `MAX_US`, or a count isn't positive.
    """

    values_us: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.values_us) != len(self.counts):
            raise ValueError(f"{len(self.values_us)} values but {len(self.counts)} counts")
        previous = -1
        for value, count in zip(self.values_us, self.counts, strict=True):
            if not previous < value <= bucket_us(MAX_US):
                raise ValueError(f"latency {value} us: not ascending, or not in 0..{MAX_US}")
            if value != bucket_us(value):
                raise ValueError(f"latency {value} us is not the highest value of its bucket")
            if count < 1:
                raise ValueError(f"count {count} of latency {value} us is not positive")
            previous = value

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[int, int]]) -> Histogram:
        """Return the histogram of (latency in us, count) in any order; equal buckets add up.

        ValueError if a latency is outside 0..`MAX_US` or a count isn't positive.
        """
        counts: dict[int, int] = {}
        for value, count in pairs:
            if count < 1 or not 0 <= value <= bucket_us(MAX_US):
                raise ValueError(f"({value}, {count}): not a latency in us and a positive count")
            top = bucket_us(value)
            counts[top] = counts.get(top, 0) + count
        ordered = sorted(counts.items())
        return cls(tuple(value for value, _ in ordered), tuple(count for _, count in ordered))

    def merge(self, *histograms: Histogram) -> Histogram:
        """Return all counts of this histogram and further ones: `Histogram.merge(*histograms)`."""
        counts: dict[int, int] = {}
        for histogram in (self, *histograms):
            for value, count in histogram.pairs():
                counts[value] = counts.get(value, 0) + count
        values = sorted(counts)
        return Histogram._unchecked(tuple(values), tuple(counts[value] for value in values))

    @classmethod
    def _unchecked(cls, values_us: tuple[int, ...], counts: tuple[int, ...]) -> Histogram:
        """Return the histogram of ascending buckets, which need not be checked one by one."""
        histogram = cls.__new__(cls)
        object.__setattr__(histogram, "values_us", values_us)
        object.__setattr__(histogram, "counts", counts)
        return histogram

    def pairs(self) -> Iterable[tuple[int, int]]:
        """Return (latency in us, count), ascending."""
        return zip(self.values_us, self.counts, strict=True)

    @cached_property
    def _cumulative(self) -> tuple[int, ...]:
        return tuple(accumulate(self.counts))

    @property
    def total(self) -> int:
        """Number of latencies recorded."""
        return self._cumulative[-1] if self.counts else 0

    def percentile_ms(self, q: float) -> float:
        """Return the smallest recorded latency (ms) at or below which q % of all latencies lie.

        ValueError if q is outside 0..100 or nothing was recorded.
        """
        return self.at_rank_ms(self.rank(q))

    def statistic_ms(self, name: Statistic) -> float:
        """Return a percentile or the mean, in ms. ValueError if nothing was recorded."""
        return self.mean_ms if name == "mean latency" else self.percentile_ms(PERCENTS[name])

    def at_rank_ms(self, rank: int) -> float:
        """Return the latency (ms) at a place among all latencies, see `rank`."""
        return self.values_us[bisect_left(self._cumulative, rank)] / 1000

    def rank(self, q: float) -> int:
        """Return the place of the percentile q among all latencies in ascending order, from 1 on.

        ValueError if q is outside 0..100 or nothing was recorded.
        """
        if not 0 <= q <= 100:
            raise ValueError(f"percentile {q} is not in 0..100")
        self._require_counts()
        # Rounding first: 99.9 % of 1,000 is 999.0000000000001 in binary, and must stay rank 999.
        return max(1, math.ceil(round(q * self.total / 100, 6)))

    def slowest_ms(self, share: float) -> float:
        """Return the geometric mean (ms) of the slowest `share` (0 to 1), of one latency at least.

        Of the last bucket, only the latencies within the share count. No latency counts as less
        than 1 us. ValueError for another share, or if nothing was recorded.
        """
        if not 0 < share <= 1:
            raise ValueError(f"a share of {share} is not above 0 and at most 1")
        self._require_counts()
        count = left = max(1, round(share * self.total))
        logs = []
        for value, there in reversed(list(self.pairs())):
            logs.append(min(there, left) * math.log(max(value, 1)))
            left -= there
            if left <= 0:
                break
        return math.exp(math.fsum(logs) / count) / 1000

    def count_above(self, limit_ms: float) -> int:
        """Return the number of latencies above a limit (ms), by the tops of their buckets."""
        return sum(count for value, count in self.pairs() if value > 1000 * limit_ms)

    @property
    def max_ms(self) -> float:
        """The highest latency (ms), rounded up to its bucket. ValueError if there is none."""
        self._require_counts()
        return self.values_us[-1] / 1000

    @property
    def mean_ms(self) -> float:
        """Mean latency (ms), each at the middle of its bucket. ValueError if there is none."""
        self._require_counts()
        weighted = sum(_middle_us(value) * count for value, count in self.pairs())
        return weighted / self.total / 1000

    def _require_counts(self) -> None:
        if not self.counts:
            raise ValueError("no latency was recorded")

    def to_bytes(self) -> bytes:
        """Return HdrHistogram's compressed V2 encoding, readable by other Hdr tools."""
        # Imported here: with ctypes it costs more than the rest of this module.
        import numpy as np
        from hdrh.histogram import HdrHistogram

        encoded = HdrHistogram(1, MAX_US, _SIGNIFICANT_DIGITS)
        if self.counts:
            # Recording hundreds of values one by one would take ten times as long.
            counts = np.ctypeslib.as_array(encoded.counts)
            counts[_places(np.array(self.values_us))] = self.counts
            encoded.total_count, encoded.max_value = self.total, self.values_us[-1]
        return b64decode(encoded.encode())

    @classmethod
    def from_bytes(cls, data: bytes) -> Histogram:
        """Return what `to_bytes` wrote. ValueError if the bytes aren't an HdrHistogram."""
        import numpy as np
        from hdrh.histogram import HdrHistogram

        text = b64encode(data).decode("ascii")
        try:
            decoded = HdrHistogram.decode(text)
        except Exception as error:  # hdrh raises a family of its own, besides zlib's and base64's
            raise ValueError(f"not an HdrHistogram in base64: {text[:40]!r} ({error})") from error
        if (decoded.unit_magnitude, decoded.significant_figures) != (0, _SIGNIFICANT_DIGITS):
            raise ValueError(f"an HdrHistogram of another resolution: {text[:40]!r}")
        # Nearly all of 23,000 counts are 0. Asking for each of them would take ten times as long.
        counts = np.ctypeslib.as_array(decoded.counts)
        places = counts.nonzero()[0]
        values, counts = _top_us(places), counts[places]
        if len(values) and (values[-1] > bucket_us(MAX_US) or (counts < 1).any()):
            raise ValueError(f"an HdrHistogram with what is no latency: {text[:40]!r}")
        return cls._unchecked(tuple(values.tolist()), tuple(counts.tolist()))


def _top_us(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the highest latency (us) of each bucket, by its place among HdrHistogram's counts."""
    half = 1 << (_EXACT_BITS - 1)
    powers = (places // half - 1).clip(0)  # the first two halves are exact
    tops: NDArray[np.int64] = ((places - powers * half + 1) << powers) - 1
    return tops


def _places(tops_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place among HdrHistogram's counts of each bucket, by its highest latency (us)."""
    import numpy as np

    half = 1 << (_EXACT_BITS - 1)
    _, bits = np.frexp(tops_us)  # of a whole number, how many bits it has
    powers = (bits - _EXACT_BITS).clip(0)
    places: NDArray[np.int64] = powers * half + (tops_us >> powers)
    return places


def _middle_us(value_us: int) -> int:
    """Return the middle (us) of a bucket, given its highest value, as HdrHistogram computes it."""
    width = _width_us(value_us)
    return value_us - width + 1 + width // 2


def requests_for(percent: float) -> int:
    """Return how many requests a percentile takes: 1,000 for P99, 10,000 for P99.9.

    Raises ValueError for a percentile that is not below 100.
    """
    if not 0 <= percent < 100:
        raise ValueError(f"percentile {percent} is not in 0..100 (without 100)")
    # Rounding first: 99.9 % of 10,000 leaves 9.999999999999432 in binary, and is to leave ten.
    return math.ceil(round(BEHIND * 100 / (100 - percent), 6))


def slower_share(name: Statistic) -> float:
    """Return the share of requests that are slower than a percentile; for a mean that of P99."""
    return round(1 - PERCENTS.get(name, PERCENTS["P99"]) / 100, 6)


def reliable_ms(histogram: Histogram, percent: float) -> float | None:
    """Return a percentile in ms, None with too few requests. Raises as `requests_for`."""
    if histogram.total < requests_for(percent):
        return None
    return histogram.percentile_ms(percent)
