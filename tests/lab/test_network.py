"""Names, addresses and command lines of the lab's network, decided without touching anything."""

from ipaddress import IPv4Network

import pytest

from intop.domain.cluster import Link, lab_name_problem
from intop.errors import LabError
from intop.lab import network


@pytest.mark.parametrize("name", ["a", "x86", "t-a", "a-b-c", "123456789"])
def test_short_plain_names_are_fine(name: str) -> None:
    assert lab_name_problem(name) is None
    assert len(network.machine_link(name)) <= 15


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "A", "a_b", "a b", "a/b", "..", "1234567890", "ä", "a\n"]
)
def test_other_names_are_refused(name: str) -> None:
    assert "allowed" in (lab_name_problem(name) or "")


@pytest.mark.parametrize("lab", ["a", "a-b", "a-lb", "a-lb-lb", "sw"])
def test_a_namespace_tells_its_lab(lab: str) -> None:
    assert {network.lab_of_namespace(name) for name in network.namespaces(lab)} == {lab}


@pytest.mark.parametrize("name", ["cat-probe", "intop-a", "intop-a-xx", "intop--lb", "xintop-a-lb"])
def test_other_namespaces_belong_to_nobody(name: str) -> None:
    assert network.lab_of_namespace(name) is None


def test_no_two_labs_share_a_namespace() -> None:
    labs = ["a", "a-b", "a-lb", "a-b-lb", "lb", "b"]
    names = [name for lab in labs for name in network.namespaces(lab)]
    assert len(set(names)) == len(names) == 6 * len(labs)


def test_the_first_free_subnet_is_taken() -> None:
    assert network.choose_subnet([]) == IPv4Network("198.18.0.0/24")
    taken = [IPv4Network("198.18.0.0/24"), IPv4Network("198.18.1.128/25")]
    assert network.choose_subnet(taken) == IPv4Network("198.18.2.0/24")
    assert network.choose_subnet([IPv4Network("198.18.0.0/16")]) == IPv4Network("198.19.0.0/24")


def test_a_covered_pool_is_an_error() -> None:
    with pytest.raises(LabError, match="no /24"):
        network.choose_subnet([IPv4Network("198.0.0.0/8")])


def test_routes_are_read_without_the_default() -> None:
    text = (
        '[{"dst":"default","gateway":"192.0.2.1"},{"dst":"192.0.2.0/24"},{"dst":"198.18.0.1"},'
        '{"type":"broadcast","dst":"127.255.255.255"}]'
    )
    expected = [IPv4Network(to) for to in ("192.0.2.0/24", "198.18.0.1/32", "127.255.255.255/32")]
    assert network.parse_routes(text) == expected
    assert network.parse_routes("") == []


def test_shaping_is_what_was_measured_while_scouting() -> None:
    assert " ".join(network.shaping(Link(rate_mbit=300))) == (
        "tbf rate 300000000bit burst 32kb limit 100kb"
    )


def test_only_one_interface_is_on_the_machine() -> None:
    steps = network.wiring("t", IPv4Network("198.18.7.0/24"))
    machine = [line for where, lines in steps if where is None for line in lines]
    assert machine == [
        "link add name intop-t type veth peer name ctl netns intop-t-sw",
        "address add 198.18.7.1/24 dev intop-t",
        "link set intop-t up",
    ]
    assert ("intop-t-lb", "address add 198.18.7.20/24 dev eth0") in [
        (where, line) for where, lines in steps for line in lines
    ]
