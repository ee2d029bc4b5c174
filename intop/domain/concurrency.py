"""Little's law for a load: how many requests are under way at once, and how many there is room for.

The requests under way are the rate times the time that each of them holds a connection. A load with
fewer connections than that does not reach its rate, whatever the server does.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from intop.domain.overload import RATE_TOLERANCE
from intop.domain.workload import Clients, Workload

SPARE = 1.5
"""Advised connections, as a multiple of those needed: latencies scatter."""
FEW_REQUESTS = 3.0
"""Requests of a kept connection in a trial. With fewer, little passes from one to the next."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """The time that a request holds its place on a connection, at least and at most."""

    least_s: float
    most_s: float


@dataclass(frozen=True, kw_only=True)
class Room:
    """The places that a class of clients has for requests."""

    workload: str
    clients: Clients
    rate_rps: float
    """The rate that is due to the class."""
    connections: int
    held: Held
    """The time that each request holds a place, with the think time."""
    share: float = 1.0
    """Its part of the connections that the study's file has a number for."""
    way: str = ""
    """The clients of a lab that have a link of their own; "" where all are alike."""

    @property
    def places(self) -> int:
        """The number of requests that may be under way at once."""
        return self.connections * self.clients.streams_per_connection

    @property
    def carried_rps(self) -> float:
        """The rate that the places carry at most."""
        return math.inf if not self.held.least_s else self.places / self.held.least_s

    @property
    def is_too_small(self) -> bool:
        """Whether the class misses its rate for lack of connections, for certain."""
        return self.carried_rps < RATE_TOLERANCE * self.rate_rps

    @property
    def may_be_too_small(self) -> bool:
        """Whether it would miss its rate if each request held its place as long as it may."""
        return self.places < self.rate_rps * self.held.most_s

    @property
    def advised(self) -> int:
        """The study's number of connections that is enough, with some to spare."""
        needed = SPARE * self.rate_rps * self.held.most_s
        return math.ceil(needed / self.clients.streams_per_connection / self.share)

    def __str__(self) -> str:
        held = in_ms(self.held.least_s)
        carry = "carries" if self.connections == 1 else "carry"
        held += f", think_ms {self.clients.think_ms:g} included" if self.clients.think_ms else ""
        return (
            f"{self.whose}: {self.has} {carry} at most {self.carried_rps:,.1f} of "
            f"{self.rate_rps:,.0f} requests/s, since each request holds one for {held} (Little's "
            "law)"
        )

    @property
    def whose(self) -> str:
        """The workload, and the clients where there are several."""
        names = " over ".join(filter(None, (self.clients.name, self.way)))
        return f"{self.workload} (clients {names})" if names else self.workload

    @property
    def has(self) -> str:
        """Its connections, in words."""
        return _connections(self.connections, {self.clients.streams_per_connection})

    def remedy(self) -> str:
        """Return what to write into the study."""
        table = f"[workload.{self.workload}]"
        if self.clients.connections is not None:
            table = f"[[workload.{self.workload}.clients]] {self.clients.name}"
        return f"write connections = {self.advised} into {table}, or a lower rate_rps"


def rooms(
    workload: Workload, held: Iterable[tuple[Clients, Held]], share: float = 1.0, way: str = ""
) -> tuple[Room, ...]:
    """Return the room of each class of clients whose answers take so long.

    The times are without think time. The room is that of the `share` of the load that goes this
    `way`, as from one of several generators. In a closed loop, no request is due, and none is
    needed.
    """
    if not workload.due_rps:
        return ()
    return tuple(
        Room(
            workload=workload.name,
            clients=clients,
            rate_rps=workload.due_rps * clients.share * share,
            connections=max(1, round(connections_of(workload, clients) * share)),
            share=share if clients.connections is not None else share * clients.share,
            way=way,
            held=Held(
                least_s=answer.least_s + clients.think_ms / 1000,
                most_s=answer.most_s + clients.think_ms / 1000,
            ),
        )
        for clients, answer in held
    )


def connections_of(workload: Workload, clients: Clients) -> int:
    """Return the connections of one class: its own, or its share."""
    return clients.connections or max(1, round(workload.connections * clients.share))


def kept_connections(workload: Workload) -> int | None:
    """Return the number of connections that share a load's requests.

    None where some clients open new ones, and in a closed loop.
    """
    are_kept = all(clients.requests_per_connection is None for clients in workload.clients)
    if not are_kept or not workload.due_rps:
        return None
    return _all_connections(workload)


def _all_connections(workload: Workload) -> int:
    return sum(connections_of(workload, clients) for clients in workload.clients)


def carried(each: float, duration_s: float) -> str:
    """Return the requests that each kept connection carries, and what follows where these are few.

    Parameters of congestion control and of idle connections act from one request to the next.
    """
    text = f"a connection carries {each:.1f} requests in a trial of {duration_s:g} s"
    if each >= FEW_REQUESTS:
        return text
    return (
        f"{text}, so parameters of congestion control and of idle connections hardly act: fewer "
        "connections, or a longer duration_s"
    )


def places_of(workload: Workload) -> int:
    """Return the number of requests of a load that may be under way at once."""
    return sum(
        connections_of(workload, clients) * clients.streams_per_connection
        for clients in workload.clients
    )


def saturated(workload: Workload, achieved_rps: float) -> str:
    """Return what follows if all connections of a load were busy at this rate.

    Empty where nothing follows.
    """
    if not (workload.due_rps and achieved_rps):
        return ""
    places = places_of(workload)
    held_s = places / achieved_rps
    factor = workload.due_rps / achieved_rps
    connections = _all_connections(workload)
    if not (needed := math.ceil(connections * factor)) > connections:
        return ""
    think_s = sum(clients.share * clients.think_ms for clients in workload.clients) / 1000
    think = f", {in_ms(think_s)} of it think_ms" if think_s else ""
    has = _connections(connections, {c.streams_per_connection for c in workload.clients})
    return (
        f"its {has} carried {achieved_rps:,.1f} of {workload.due_rps:,.0f} requests/s, so a "
        f"request held one for up to {in_ms(held_s)}{think}, and by Little's law the rate needs "
        f"{needed:,} of them"
    )


def in_ms(seconds: float) -> str:
    """Return a time in ms, with three digits where it is short."""
    return f"{1000 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1000 * seconds:.3g} ms"


def _connections(count: int, streams: Collection[int]) -> str:
    """Return connections in words, with the streams of each where they have several."""
    noun = "connection" if count == 1 else "connections"
    many = "-".join(map(str, sorted({min(streams), max(streams)})))
    return f"{count:,} {noun}" + (f" of {many} streams" if max(streams) > 1 else "")
