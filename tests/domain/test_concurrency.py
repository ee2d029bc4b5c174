"""Little's law: the connections that a load needs, before and after it was sent."""

from dataclasses import replace
from typing import Any

import pytest

from intop.domain.concurrency import (
    Held,
    Room,
    carried,
    kept_connections,
    places_of,
    rooms,
    saturated,
)
from intop.domain.workload import Clients, Workload
from kit.golden import Golden


def load(*clients: Clients, **changes: Any) -> Workload:
    values: dict[str, Any] = {"name": "slt", "kind": "slt", "rate_rps": 100.0, "connections": 10}
    values |= {"threads": 1, "duration_s": 8, "warmup_s": 1, "timeout_s": 10}
    return Workload(clients=clients or (Clients(),), **(values | changes))


def room(workload: Workload, least_ms: float, most_ms: float | None = None) -> Room:
    held = Held(least_s=least_ms / 1000, most_s=(most_ms or least_ms) / 1000)
    (made,) = rooms(workload, [(workload.clients[0], held)])
    return made


@pytest.mark.parametrize(
    ("clients", "least_ms", "most_ms", "expected"),
    [
        ({}, 2002, 2002, "too small"),
        ({}, 90, 90, "large enough"),
        ({}, 99, 101, "may be too small"),
        # Within the tolerance a trial is on rate.
        ({}, 104, 104, "may be too small"),
        ({}, 106, 106, "too small"),
        ({"think_ms": 200}, 1, 1, "too small"),
        ({"think_ms": 90}, 9, 9, "large enough"),
        ({"http": "2", "streams_per_connection": 25}, 2000, 2000, "large enough"),
        ({"http": "2", "streams_per_connection": 10}, 2000, 2000, "too small"),
    ],
)
def test_a_load_has_room_for_its_rate_or_not(
    clients: dict[str, Any], least_ms: float, most_ms: float, expected: str
) -> None:
    made = room(load(Clients(**clients)), least_ms, most_ms)
    words = "may be too small" if made.may_be_too_small else "large enough"
    assert expected == ("too small" if made.is_too_small else words)


def test_what_is_missing_is_said_with_its_remedy() -> None:
    made = room(load(), 2002)
    assert f"{made}" == (
        "slt: 10 connections carry at most 5.0 of 100 requests/s, since each request holds one for "
        "2,002 ms (Little's law)"
    )
    assert made.remedy() == "write connections = 301 into [workload.slt], or a lower rate_rps"
    assert not room(load(connections=made.advised), 2002).may_be_too_small


def test_classes_have_their_own_shares_and_connections(golden: Golden) -> None:
    few = Clients(name="few", share=0.2, connections=3, think_ms=1000)
    many = Clients(name="many", share=0.8)
    workload = load(few, many)
    assert places_of(workload) == 11
    held = Held(least_s=0.05, most_s=0.05)
    first, second = rooms(workload, [(few, held), (many, held)])
    assert (first.places, first.rate_rps, first.is_too_small) == (3, 20.0, True)
    assert (second.places, second.rate_rps, second.is_too_small) == (8, 80.0, False)
    golden(f"{first}")
    assert "[[workload.slt.clients]] few" in first.remedy()


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_what_is_advised_is_enough_for_each_class(share: float) -> None:
    """A class without connections of its own has its share of what is written."""
    classes = (
        Clients(name="a", share=0.2, think_ms=1000),
        Clients(name="b", share=0.3, think_ms=300, http="2", streams_per_connection=3),
        Clients(name="c", share=0.5, connections=2, think_ms=100),
    )
    workload = load(*classes, rate_rps=1000)
    held = Held(least_s=0.01, most_s=0.02)
    for number, clients in enumerate(classes):
        (made,) = rooms(workload, [(clients, held)], share)
        assert made.is_too_small
        if clients.connections is None:
            more = replace(workload, connections=made.advised)
        else:
            enough = replace(clients, connections=made.advised)
            more = replace(workload, clients=(*classes[:number], enough))
        (after,) = rooms(more, [(more.clients[number], held)], share)
        assert not after.may_be_too_small


def test_a_short_time_is_no_zero(golden: Golden) -> None:
    made = room(load(rate_rps=1_000_000), 0.4)
    assert "since each request holds one for 0.4 ms (Little's law)" in f"{made}"
    made = room(load(Clients(think_ms=0.25), rate_rps=1_000_000, connections=1), 0)
    golden(f"{made}")
    workload = load(rate_rps=1_000_000)
    assert "held one for up to 0.02 ms, and" in saturated(workload, 500_000)


def test_streams_are_no_connections() -> None:
    workload = load(Clients(http="2", streams_per_connection=8))
    assert saturated(workload, 50) == (
        "its 10 connections of 8 streams carried 50.0 of 100 requests/s, so a request held one for "
        "up to 1,600 ms, and by Little's law the rate needs 20 of them"
    )
    two = (
        Clients(name="a", share=0.5, http="2", streams_per_connection=8),
        Clients(name="b", share=0.5),
    )
    assert "its 10 connections of 1-8 streams carried" in saturated(load(*two), 50)


def test_a_closed_loop_has_no_rate_to_miss() -> None:
    workload = load(arrivals="closed")
    assert rooms(workload, [(workload.clients[0], Held(least_s=9, most_s=9))]) == ()
    assert saturated(workload, 5) == ""


def test_what_was_carried_says_how_many_connections_are_needed() -> None:
    workload = load(Clients(think_ms=500))
    assert saturated(workload, 5) == (
        "its 10 connections carried 5.0 of 100 requests/s, so a request held one for up to "
        "2,000 ms, 500 ms of it think_ms, and by Little's law the rate needs 200 of them"
    )
    assert saturated(workload, 0) == ""
    assert saturated(workload, 100) == ""
    assert saturated(replace(workload, connections=1), 101) == ""


def test_connections_of_clients_are_counted_with_the_shared_ones() -> None:
    many = load(Clients(share=0.5, name="a"), Clients(share=0.5, name="b", connections=95))
    assert kept_connections(many) == 5 + 95
    new = Clients(requests_per_connection=2)
    assert kept_connections(load(new)) is None
    assert kept_connections(load(arrivals="closed")) is None


def test_few_requests_of_a_connection_are_said_to_be_few() -> None:
    assert carried(3.0, 2) == "a connection carries 3.0 requests in a trial of 2 s"
    assert carried(2.9, 2).endswith("hardly act: fewer connections, or a longer duration_s")
