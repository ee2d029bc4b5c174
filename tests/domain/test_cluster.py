"""What a lab's link and its hosts may be."""

import pytest

from intop.domain.cluster import HostAddress, LabSpec, Link
from samples import cluster


def test_a_link_is_described_in_words() -> None:
    assert "tbf 300 Mbit/s, burst 32 KB, limit 100 KB" == str(Link(rate_mbit=300))
    assert "netem delay 10 ms" == str(Link(delay_ms=10))
    both = Link(rate_mbit=50, delay_ms=2.5, loss_percent=1)
    assert "netem delay 2.5 ms, loss 1 %; tbf 50 Mbit/s, burst 32 KB, limit 100 KB" == str(both)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({}, "give it a rate_mbit"),
        ({"rate_mbit": 0}, "rate must be above zero"),
        ({"rate_mbit": 1, "burst_kb": 0}, "burst and limit"),
        ({"delay_ms": -1}, "delay must not be negative"),
        ({"loss_percent": 100}, "loss 0 up to 100"),
    ],
)
def test_a_link_that_makes_no_sense_is_refused(shape: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Link(**shape)


def test_labs_are_of_namespaces_unless_said_otherwise() -> None:
    assert "namespaces" == LabSpec(name="a").kind


def test_a_cluster_has_one_load_generator_or_more() -> None:
    """The balancer's metrics come second, whatever else there is."""
    one = cluster()
    assert ["lg"] == [host.name for host in one.load_generators]
    assert ["lg", "lb", "b1"] == [host.name for host in one.hosts]
    second = HostAddress(name="lg2", role="load-generator", hostname="lg2")
    two = cluster(more_generators=(second,))
    assert ["lg", "lg2"] == [host.name for host in two.load_generators]
    assert ["lg", "lb", "lg2", "b1"] == [host.name for host in two.hosts]
