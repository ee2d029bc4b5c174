"""Names, addresses and command lines of the lab's network, decided without touching anything."""

from ipaddress import IPv4Network

import pytest

from intop.domain.cluster import LabClients, LabSpec, Link, lab_name_problem
from intop.errors import LabError
from intop.lab import network

SUBNET = IPv4Network("198.18.7.0/24")


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


def shaping(**shape: float) -> list[str]:
    return [" ".join(words) for words in network.shaping(Link(**shape))]  # type: ignore[arg-type]


def test_shaping_is_what_was_measured_while_scouting() -> None:
    assert shaping(rate_mbit=300) == [
        "tc qdisc add dev eth0 root tbf rate 300000000bit burst 32kb limit 100kb"
    ]


def test_a_clients_link_leaves_the_load_balancers_own_as_it_is() -> None:
    assert shaping(loss_percent=1, delay_ms=10, rate_mbit=50) == []


@pytest.mark.parametrize(
    ("link", "shown", "wrong"),
    [
        (None, "qdisc noqueue 0: root refcnt 2", None),
        (Link(rate_mbit=300), "qdisc tbf 8001: root refcnt 2 rate 300Mbit", None),
        (Link(rate_mbit=300, delay_ms=1), "qdisc noqueue 0: root refcnt 2", None),
        (Link(rate_mbit=300), "", "the link has 'no queueing', expected tbf 300 Mbit/s"),
        (Link(rate_mbit=300), "qdisc netem 1: root", "expected tbf 300 Mbit/s"),
        (None, "qdisc tbf 8001: root", "expected no shaping"),
    ],
)
def test_a_link_of_another_shape_is_named(link: Link | None, shown: str, wrong: str | None) -> None:
    result = network.shape_problem(link, shown)
    assert result is None if wrong is None else wrong in (result or "")


def test_a_guest_hangs_at_a_tap_and_has_no_namespace() -> None:
    assert "intop-t-lb" not in network.namespaces("t", ("lb",))
    steps = network.wiring(LabSpec(name="t", kind="vm"), SUBNET)
    assert "intop-t-lb" not in [where for where, _ in steps]
    switch = steps[0][1]
    assert {"tuntap add dev lb mode tap", "link set lb master br0 up"} <= set(switch)
    assert not any("198.18.7.20" in line for _, lines in steps for line in lines)


def test_a_lab_has_a_host_for_each_class_of_clients() -> None:
    assert network.hosts() == ("lg", "lb", "b1", "b2", "b3")
    assert network.hosts(3) == (*network.hosts(), "c2", "c3")
    names = network.namespaces("t", count=3)
    assert {network.lab_of_namespace(name) for name in names} == {"t"}
    classes = tuple(LabClients(name=name, share=0.5) for name in ("near", "far"))
    steps = network.wiring(LabSpec(name="t", clients=classes), SUBNET)
    assert ("intop-t-c2", "address add 198.18.7.12/24 dev eth0") in [
        (where, line) for where, lines in steps for line in lines
    ]


def test_only_one_interface_is_on_the_machine() -> None:
    steps = network.wiring(LabSpec(name="t"), SUBNET)
    machine = [line for where, lines in steps if where is None for line in lines]
    assert machine == [
        "link add name intop-t type veth peer name ctl netns intop-t-sw",
        "address add 198.18.7.1/24 dev intop-t",
        "link set intop-t up",
    ]
    assert ("intop-t-lb", "address add 198.18.7.20/24 dev eth0") in [
        (where, line) for where, lines in steps for line in lines
    ]
