"""What a lab's link and its hosts may be."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders.trials import cluster
from intop.domain.balancing import Balancing, cpus_of
from intop.domain.cluster import Direction, HostAddress, LabClients, LabSpec, Link


def test_a_link_is_described_in_words() -> None:
    assert str(Link(rate_mbit=300)) == "tbf 300 Mbit/s, burst 32 KB, limit 100 KB"
    assert str(Link(delay_ms=10)) == "each way delay 10 ms; seed 1"
    both = Link(rate_mbit=50, delay_ms=2.5, jitter_ms=1, loss_percent=1, seed=7)
    shape = "delay 2.5 ms, jitter 1 ms, loss 1 %, 50 Mbit/s, limit 100 KB"
    assert str(both) == f"each way {shape}; seed 7"
    up = Direction(rate_mbit=5)
    assert str(replace(both, up=up)) == f"down {shape}; up 5 Mbit/s, limit 100 KB; seed 7"


def test_what_has_delay_loss_or_two_directions_is_at_the_client() -> None:
    assert not Link(rate_mbit=300).is_at_client
    assert Link(delay_ms=1).is_at_client
    assert Link(loss_percent=1).is_at_client
    lossless = Direction()
    assert Link(rate_mbit=300, up=lossless).directions[1] == lossless
    assert Link(delay_ms=1).directions[1].delay_ms == 1


@pytest.mark.parametrize(
    ("shape", "output"),
    [
        ({}, "give it a rate_mbit"),
        ({"delay_ms": 1, "jitter_ms": 2}, "jitter must be between 0 and the delay"),
    ],
)
def test_a_link_that_makes_no_sense_is_refused(shape: dict[str, float], output: str) -> None:
    with pytest.raises(ValueError, match=output):
        Link(**shape)


LAN = LabClients(name="lan", share=0.75)
MOBILE = LabClients(name="mobile", share=0.25, link=Link(delay_ms=40))


def test_each_class_of_clients_has_its_link() -> None:
    assert LabSpec(link=Link(rate_mbit=75)).client_links == (None,)
    assert (Link(delay_ms=1),) == LabSpec(link=Link(delay_ms=1)).client_links
    both = LabSpec(link=Link(rate_mbit=75), clients=(LAN, MOBILE))
    assert (None, Link(delay_ms=40)) == both.client_links


@pytest.mark.parametrize(
    ("make", "output"),
    [
        (lambda: LabSpec(clients=(LAN,)), "add up to 1"),
        (lambda: LabSpec(clients=(LAN, replace(MOBILE, name="lan"))), "a name of its own"),
        (lambda: LabSpec(clients=(LAN, MOBILE), link=Link(delay_ms=1)), "links of theirs"),
        (lambda: LabClients(name="lb", share=1), "none of lb"),
        (lambda: LabClients(name="A", share=1), "a letter first"),
        (lambda: LabClients(name="a", share=1, link=Link(rate_mbit=1)), "a rate alone"),
    ],
)
def test_classes_that_make_no_sense_are_refused(make: Callable[[], object], output: str) -> None:
    with pytest.raises(ValueError, match=output):
        make()


def test_labs_are_of_namespaces_unless_said_otherwise() -> None:
    assert LabSpec(name="a").kind == "namespaces"


@pytest.mark.parametrize(
    ("settings", "output"),
    [
        ({"tls_key_bits": 512}, "tls_key_bits must be 0, or 2048 to 8192"),
        ({"sysctls": (("vm.swappiness", "1"),)}, "only keys of net. can be a lab's own"),
        ({"sysctls": (("net.ipv4/../../vm.swappiness", "1"),)}, "only keys of net."),
        ({"sysctls": (("net.core.somaxconn", "1' > x"),)}, "is no value"),
    ],
)
def test_a_load_balancers_settings_are_checked(settings: dict[str, Any], output: str) -> None:
    with pytest.raises(ValueError, match=output):
        Balancing(**settings)


@pytest.mark.parametrize(
    ("text", "expected"), [("", ()), ("3", (3,)), ("0-2,8", (0, 1, 2, 8)), ("4,1-2", (1, 2, 4))]
)
def test_processors_are_listed_as_taskset_does(text: str, expected: tuple[int, ...]) -> None:
    assert cpus_of(text) == expected


@pytest.mark.parametrize("text", ["3-1", "1024", "0-2000"])
def test_no_processors_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="are no processors of 0 to 1023"):
        Balancing(server_cpus=text)


@pytest.mark.parametrize(
    "settings",
    [{"disk_iops": 300}, {"tls_key_bits": 2048}, {"access_log": "disk"}, {"server_cpus": "1"}],
)
def test_a_guest_has_neither_a_slow_disk_nor_tls(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="only where all hosts are namespaces"):
        LabSpec(kind="vm", balancing=Balancing(**settings))


def test_a_cluster_has_one_load_generator_or_more() -> None:
    """The balancer's metrics come second, whatever else there is."""
    one = cluster()
    assert [host.name for host in one.load_generators] == ["lg"]
    assert [host.name for host in one.hosts] == ["lg", "lb", "b1"]
    second = HostAddress(name="lg2", role="load-generator", hostname="lg2")
    two = cluster(more_generators=(second,))
    assert [host.name for host in two.load_generators] == ["lg", "lg2"]
    assert [host.name for host in two.hosts] == ["lg", "lb", "lg2", "b1"]
