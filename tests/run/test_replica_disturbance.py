"""A replica whose load makes another one slower is found and named."""

import numpy as np
import pytest

from intop.run.replica_disturbance import (
    ReplicaDisturbance,
    Sentinel,
    Span,
    replica_disturbance,
    shared,
)

SPANS: list[Span] = [(60.0 * n, 60.0 * n + 10) for n in range(20)]
"""Of the sentinels of each replica."""
HALF: list[Span] = [(0.0, 600.0)]
ALL: list[Span] = [(0.0, 1200.0)]


def named(
    seed: int, slower: float, loads: dict[str, list[Span]], sd: float = 0.03
) -> ReplicaDisturbance | None:
    """Who disturbs whom, where the load of lb0 makes lb1 slower and nobody else."""
    rng = np.random.default_rng(seed)

    def sentinels(name: str) -> list[Sentinel]:
        return [
            Sentinel(
                latency_ms=100
                * float(np.exp(rng.normal(0, sd)))
                * (slower if name == "lb1" and shared(span, loads["lb0"]) >= 1 / 2 else 1),
                span=span,
            )
            for span in SPANS
        ]

    return replica_disturbance({name: sentinels(name) for name in loads}, loads)


@pytest.mark.parametrize("others", [(), ("lb2",)])
def test_a_replica_that_makes_another_one_slower_by_a_fifth_is_named(others: tuple[str]) -> None:
    loads = {"lb0": HALF, "lb1": ALL} | dict.fromkeys(others, SPANS[::2])
    for seed in range(20):
        result = named(seed, 1.2, loads)
        assert result is not None
        assert (result.replica, result.disturbed) == ("lb0", "lb1")
        assert 1.05 < result.ratio.low < 1.2 < result.ratio.high < 1.4


def test_hardly_a_campaign_without_a_disturbance_has_an_alarm() -> None:
    loads = {"lb0": HALF, "lb1": SPANS[::2]}
    assert sum(named(seed, 1.0, loads) is not None for seed in range(100)) <= 1


def test_replicas_that_are_always_under_load_together_tell_nothing() -> None:
    assert named(1, 1.2, {"lb0": ALL, "lb1": ALL}) is None


def test_a_disturbance_that_does_no_harm_is_let_be() -> None:
    assert named(1, 1.04, {"lb0": HALF, "lb1": ALL}, sd=0.001) is None
    assert named(1, 1.06, {"lb0": HALF, "lb1": ALL}, sd=0.001) is not None


def test_too_few_sentinels_beside_the_load_or_without_it_tell_nothing() -> None:
    assert named(1, 2.0, {"lb0": SPANS[:3], "lb1": ALL}) is None
    assert named(1, 2.0, {"lb0": [(180.0, 1200.0)], "lb1": ALL}) is None
    assert replica_disturbance({}, {}) is None


def test_the_share_of_a_span_within_others() -> None:
    assert shared((0.0, 10.0), []) == 0
    assert shared((0.0, 10.0), [(-5.0, 2.0), (4.0, 6.0), (9.0, 20.0)]) == pytest.approx(0.5)
    assert shared((0.0, 10.0), [(-5.0, 20.0)]) == 1
    assert shared((3.0, 3.0), [(0.0, 10.0)]) == 0
