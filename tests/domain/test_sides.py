"""Both sides of a verdict beyond P99."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from intop.domain.histogram import Histogram
from intop.domain.sides import side_by_side
from intop.domain.stats import RatioInterval, paired_ratio
from intop.domain.trial import Trial
from intop.domain.verdict import Pairwise
from samples import METRICS, trial


def made(*pairs: tuple[int, int], **changes: object) -> Trial:
    """A usable trial with these latencies (us, count)."""
    return replace(trial(), histogram=Histogram.from_pairs(pairs), **changes)  # type: ignore[arg-type]


def quick(us: int) -> Trial:
    return made((us, 100))


def test_latencies_are_of_all_requests_and_ratios_of_single_trials() -> None:
    default = [made((100, 98), (1000, 2)), made((200, 98), (2000, 2))]
    tuned = [made((100, 98), (500, 2)), made((100, 98), (500, 2))]
    found = side_by_side(default, tuned, level=0.95)
    assert ["P50", "P90", "P99", "P99.9", "max"] == list(found.latencies_ms)
    p50, p99, highest = (found.latencies_ms[name] for name in ("P50", "P99", "max"))
    # 200 requests: the 100th is one of 98 + 98 of the two lowest, the 198th and on are the slow.
    assert (0.2, 0.1) == (p50.default, p50.tuned)
    assert (1.0, 0.5) == (p99.default, p99.tuned)
    assert (2.0, 0.5, None) == (highest.default, highest.tuned, highest.ratio)
    assert paired_ratio([0.1, 0.2], [0.1, 0.1], level=0.95) == p50.ratio
    assert paired_ratio([1, 2], [0.5, 0.5], level=0.95) == p99.ratio
    assert Pairwise(default=200, tuned=200) == found.requests


def test_the_ratio_of_p99_is_the_one_that_is_judged() -> None:
    # 10 of 110 requests failed, so P99 is the whole timeout of 2 s.
    default = [made((1000, 100), (2_000_000, 10), errors={"timeout": 10}) for _ in range(2)]
    tuned = [quick(1000), quick(1000)]
    found = side_by_side(default, tuned, level=0.95)
    ratio = found.latencies_ms["P99"].ratio
    assert ratio is not None
    assert 2000 == pytest.approx(ratio.ratio, rel=0.001)
    p99 = found.latencies_ms["P99"]
    assert (pytest.approx(2000, rel=0.001), 1.0) == (p99.default, p99.tuned)
    assert (1.0, 1.0) == (found.latencies_ms["P50"].default, found.latencies_ms["P50"].tuned)
    assert (pytest.approx(20 / 220), 0.0) == (found.error_share.default, found.error_share.tuned)


def test_rate_and_cpu_are_means_over_trials() -> None:
    def trials(rate: float, cpu: float) -> list[Trial]:
        hosts = {
            "lg": METRICS,
            "lb": replace(METRICS, cpu=cpu),
            "b1": METRICS,
        }
        rates = (rate - 5, rate + 5)
        return [replace(quick(1000), achieved_rps=r, metrics=hosts) for r in rates]

    found = side_by_side(trials(100, 0.5), trials(50, 0.25), level=0.9)
    assert (100, 50) == (found.achieved_rps.default, found.achieved_rps.tuned)
    assert (0.5, 0.25) == (found.balancer_cpu.default, found.balancer_cpu.tuned)
    assert RatioInterval(2.0, 2.0, 2.0) == found.balancer_cpu.ratio


@pytest.mark.parametrize("side", ["default", "tuned"])
def test_what_is_zero_has_no_ratio(side: str) -> None:
    sides: dict[str, Sequence[Trial]] = {
        "default": [quick(1000), quick(1000)],
        "tuned": [quick(1000), quick(1000)],
    }
    sides[side] = [quick(1000), replace(made((0, 100)), achieved_rps=0.0)]
    found = side_by_side(sides["default"], sides["tuned"], level=0.95)
    assert found.latencies_ms["P50"].ratio is None
    assert found.achieved_rps.ratio is None


def test_one_pair_is_too_few() -> None:
    with pytest.raises(ValueError, match="two values or more"):
        side_by_side([quick(1000)], [quick(1000)], level=0.95)
