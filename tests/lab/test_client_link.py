"""A client's link: what it is made of, and a real one by our own process. Needs root and tun."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from intop.domain.cluster import Direction, LabClients, LabSpec, Link
from intop.errors import LabDownError, LabError
from intop.lab import client_link, network
from intop.lab import cluster as lab
from intop.lab.state import folders_of
from kit.client_namespaces import CLIENT, linked, socket_of

SUBNET = IPv4Network("198.18.9.0/24")
NAME = f"t-k{os.getpid() % 10_000}"
PORT = 9


# -- what it is made of --------------------------------------------------------------------------


def test_netem_and_its_bottleneck_are_on_both_ends() -> None:
    up = Direction(delay_ms=20)
    link = Link(rate_mbit=50, delay_ms=10, loss_percent=1, up=up)
    assert [" ".join(words) for words in client_link.netem("lg", link)] == [
        "qdisc add dev lg-down root handle 1: netem limit 10000 delay 10ms loss 1%",
        "qdisc add dev lg-down parent 1:1 tbf rate 50000000bit burst 4kb limit 100kb",
        "qdisc add dev lg-up root handle 1: netem limit 10000 delay 20ms",
    ]


def test_batches_are_cut_before_netem_sees_them() -> None:
    wires = client_link.wiring("t", SUBNET, "lg", "netem")
    cut = [line.split()[2] for _, lines in wires for line in lines if "gso_max_segs" in line]
    assert cut == ["lg-wan", "wan"]


def test_only_what_the_balancer_gets_goes_over_it() -> None:
    for by in ("netem", "process"):
        (*_, (where, lines)) = client_link.wiring("t", SUBNET, "lg", by)
        assert where == "intop-t-lg"
        assert [line for line in lines if line.startswith("route")] == [
            "route add 198.18.9.20/32 dev wan src 198.18.9.110"
        ]


def test_jitter_is_not_left_to_netem(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would change the order."""
    monkeypatch.setattr(client_link, "has_netem", lambda: True)
    assert client_link.medium(Link(delay_ms=5)) == "netem"
    assert client_link.medium(Link(delay_ms=5, jitter_ms=1)) == "process"
    up = Direction(delay_ms=5, jitter_ms=1)
    assert client_link.medium(Link(delay_ms=5, up=up)) == "process"


def test_a_machine_without_tun_can_have_no_such_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(client_link, "has_netem", lambda: False)
    monkeypatch.setattr(client_link, "TUN_DEVICE", tmp_path / "tun")
    with pytest.raises(LabError, match="modprobe tun"):
        client_link.medium(Link(delay_ms=5))


def test_whether_there_is_netem_is_tried_and_leaves_nothing() -> None:
    before = set(network.all_namespaces())
    assert client_link.has_netem() in (True, False)
    assert not {name for name in network.all_namespaces() if "netem" in name} - before


# -- our own process -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ends:
    """Two sockets with a link between them."""

    server: socket.socket
    client: socket.socket

    def sent_down(self, count: int, length: int) -> list[tuple[int, float]]:
        """Of so many packets the numbers that arrived, and when, in s since they were sent."""
        begin = time.monotonic()
        for number in range(count):
            self.server.send(number.to_bytes(4, "big") + bytes(length - 4))
        result = []
        try:
            while True:
                data = self.client.recv(2000)
                result.append((int.from_bytes(data[:4], "big"), time.monotonic() - begin))
        except TimeoutError:
            return result


@contextmanager
def ends(folder: Path, link: Link) -> Iterator[Ends]:
    with (
        linked(NAME, link, folder) as (server, client),
        socket_of(server, socket.SOCK_DGRAM) as here,
        socket_of(client, socket.SOCK_DGRAM, 0.2) as there,
    ):
        there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        there.bind((CLIENT, PORT))
        here.connect((CLIENT, PORT))
        here.send(b"who is where")  # what waits for the answer to ARP goes out in any order
        with suppress(TimeoutError):  # it may be lost
            there.recv(2000)
        yield Ends(here, there)


def test_loss_is_by_the_seed_and_delay_is_kept(tmp_path: Path) -> None:
    count, loss, delay_s = 1500, 0.1, 0.03
    losses: list[set[int]] = []
    for seed in (1, 1, 2):
        link = Link(delay_ms=1e3 * delay_s, jitter_ms=2, loss_percent=100 * loss, seed=seed)
        with ends(tmp_path, link) as two:
            result = two.sent_down(count, 40)
        numbers = [number for number, _ in result]
        assert numbers == sorted(numbers)  # jitter does not change the order
        assert result[0][1] >= delay_s - 0.002
        lost = count - len(result)
        assert abs(lost - count * loss) < 5 * (count * loss * (1 - loss)) ** 0.5
        losses.append(set(range(count)) - set(numbers))
    first, again, other = losses
    assert is_same(first, again, count)
    assert not is_same(first, other, count)


def is_same(one: set[int], other: set[int], count: int, strays: int = 3) -> bool:
    """Whether the same packets are lost, where up to `strays` of the hosts' own came before them.

    The seed decides about the n-th packet of a link, whoever sends it.
    """
    inner = range(strays, count - strays)
    return any(
        {n for n in one if n in inner} == {n + shift for n in other if n + shift in inner}
        for shift in range(-strays, strays + 1)
    )


def test_the_rate_is_kept_and_what_the_buffer_does_not_hold_is_dropped(tmp_path: Path) -> None:
    frame = 1242  # with 14, 20 and 8 bytes of headers
    limit_kb, count = 100, 1000
    with ends(tmp_path, Link(rate_mbit=20, limit_kb=limit_kb, up=Direction())) as two:
        result = two.sent_down(count, frame - 42)
    assert result[-1][1] >= 0.99 * len(result) * frame * 8 / 20e6
    # What fits into the buffer, and what has left it until the last one was sent.
    assert limit_kb * 1024 // frame <= len(result) < count


def test_each_class_of_clients_has_its_own_way() -> None:
    classes = (
        LabClients(name="lan", share=0.75),
        LabClients(name="mobile", share=0.25, link=Link(delay_ms=15)),
    )
    spec = LabSpec(name=NAME, link=Link(rate_mbit=300), clients=classes)
    try:
        made = lab.up(spec)
        assert lab.up(spec) == made  # as it is read again
        assert [host.name for host in made.load_generators] == [f"{NAME}-lan", f"{NAME}-mobile"]
        assert made.load_shares == (0.75, 0.25)
        assert "lan (0.75 of the load): unshaped | mobile (0.25 of the load): each" in made.link
        took = []
        for host in network.clients(2):
            begin = time.monotonic()
            with socket_of(network.namespace(NAME, host)) as client:
                client.connect((made.load_balancer.hostname, 80))
            took.append(time.monotonic() - begin)
        assert took[0] < 0.03 <= took[1] + 1e-3
    finally:
        lab.down(NAME)
    assert not [name for name in network.all_namespaces() if NAME in name]


def test_a_lab_with_such_a_link_knows_when_it_is_dead() -> None:
    link = Link(delay_ms=10, up=Direction(delay_ms=5, jitter_ms=1))
    folder = folders_of(NAME).host("lg")
    try:
        made = lab.up(LabSpec(name=NAME, link=link))
        assert made.link.startswith("down delay 10 ms; up delay 5 ms, jitter 1 ms; seed 1; by ")
        assert client_link.PROGRAM in made.programs  # its CPU time is the load's own
        balancer = made.load_balancer.hostname
        begin = time.monotonic()
        with socket_of(network.namespace(NAME, "lg")) as client:
            client.connect((balancer, 80))
        assert time.monotonic() - begin >= 0.014
        # The way to the hosts themselves is not delayed.
        with socket.create_connection((made.load_generator.hostname, 22)) as control:
            assert control.recv(4) == b"SSH-"
            pid = client_link.pid(NAME, "lg", folder)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            control.settimeout(5)
            while control.recv(1000):  # the load generator goes with it: nobody measures on
                pass
        status = lab.status(NAME)
        assert status.state == "damaged"
        assert status.problems[0].startswith("lg: its link does not run")
        with pytest.raises(LabDownError, match="its link does not run"):
            lab.cluster(NAME)
    finally:
        lab.down(NAME)
    assert lab.status(NAME).state == "down"
