"""What trials say of their configurations, as rows of numbers."""

import math
from dataclasses import replace

import pytest

from builders.trials import METRICS, trial
from intop.domain.histogram import Histogram
from intop.domain.performance import P99, performance

LATENCIES = Histogram.from_pairs([(100, 500), (200, 400), (400, 80), (2_000_000, 20)])
CPUS = {"load": 0.9, "lb": METRICS.cpu, "one": 0.2, "two": 0.4}
WHOLE = replace(
    trial(),
    histogram=LATENCIES,
    errors={"timeout": 5, "status": 15},
    achieved_rps=99.5,
    metrics={name: replace(METRICS, cpu=cpu) for name, cpu in CPUS.items()},
)


def test_a_trial_is_a_row_of_its_metrics() -> None:
    result = performance([WHOLE])
    (row,) = result.rows
    message = dict(zip(result.metrics, row, strict=True))
    # A fiftieth of its requests failed, so P99 and all above it are the timeout of 2 s.
    assert pytest.approx(
        [math.exp(message[f"log {name}"]) for name in ("P50", "P90", "P99", "P99.9", "max")],
        rel=0.01,
    ) == [0.1, 0.2, 2000, 2000, 2000]
    assert (message["achieved rate"], message["error share"]) == (99.5, 0.02)
    assert (message["balancer's CPU"], message["balancer's memory"]) == (0.25, 100.5)
    counts = [message[name] for name in ("retransmits", "TIME_WAIT", "listen overflows")]
    assert [math.log(1 + n) for n in (4, 3, 1)] == pytest.approx(counts)
    assert message["backends' CPU"] == pytest.approx(0.3)
    assert [message[P99]] == result.column(P99)


def test_further_load_generators_are_no_backends() -> None:
    """They come between the load balancer and the backends."""
    more = {"load-2": replace(METRICS, cpu=0.8, load_cpu=0.5)}
    hosts = list(WHOLE.metrics.items())
    result = performance([replace(WHOLE, metrics=dict(hosts[:2]) | more | dict(hosts[2:]))])
    assert performance([WHOLE]).column("backends' CPU") == result.column("backends' CPU")


def test_a_latency_of_nothing_has_a_logarithm() -> None:
    result = performance([replace(trial(), histogram=Histogram.from_pairs([(0, 5)]))])
    assert math.isfinite(result.column("log P50")[0])
