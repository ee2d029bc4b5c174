"""Little's law for a load: how many requests are under way at once, and how many there is room for.

The requests under way are the rate times the time that each of them holds a connection. A load with
fewer connections than that does not reach its rate, whatever the server does.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from intop.domain.overload import RATE_TOLERANCE
from intop.domain.workload import Clients, Workload

SPARE = 1.5
"""So many times the connections that are needed are advised: latencies scatter."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """How long a request holds its place on a connection, in s, at least and at most."""

    least_s: float
    most_s: float


@dataclass(frozen=True, kw_only=True)
class Room:
    """The places that a class of clients has for requests, and how long each request holds one.

    `rate_rps` is due to the class, `connections` carry `streams` requests at once each. `held`
    includes the think time.
    """

    workload: str
    clients: Clients
    rate_rps: float
    connections: int
    held: Held

    @property
    def places(self) -> int:
        """How many requests may be under way at once."""
        return self.connections * self.clients.streams_per_connection

    @property
    def carried_rps(self) -> float:
        """The rate that the places carry at most."""
        return math.inf if not self.held.least_s else self.places / self.held.least_s

    @property
    def is_too_small(self) -> bool:
        """Whether a trial would count as overloaded for lack of connections, for certain."""
        return self.carried_rps < RATE_TOLERANCE * self.rate_rps

    @property
    def may_be_too_small(self) -> bool:
        """Whether it would be so if each request held its place as long as it may."""
        return self.places < self.rate_rps * self.held.most_s

    @property
    def advised(self) -> int:
        """Connections that are enough, with some to spare."""
        needed = SPARE * self.rate_rps * self.held.most_s
        return math.ceil(needed / self.clients.streams_per_connection)

    def __str__(self) -> str:
        name, streams = self.clients.name, self.clients.streams_per_connection
        whose = f"{self.workload} (clients {name})" if name else self.workload
        has = f"{self.connections:,} connections"
        has += f" of {streams} streams" if streams > 1 else ""
        held = f"{1000 * self.held.least_s:,.0f} ms"
        held += f", think_ms {self.clients.think_ms:g} included" if self.clients.think_ms else ""
        return (
            f"{whose}: {has} carry at most {self.carried_rps:,.1f} of {self.rate_rps:,.0f} "
            f"requests/s, since each request holds one for {held} (Little's law)"
        )

    def remedy(self) -> str:
        """What to write into the study."""
        table = f"[workload.{self.workload}]"
        if self.clients.connections is not None:
            table = f"[[workload.{self.workload}.clients]] {self.clients.name}"
        return f"write connections = {self.advised} into {table}, or a lower rate_rps"


def rooms(workload: Workload, held: Iterable[tuple[Clients, Held]]) -> tuple[Room, ...]:
    """The room of each class of clients whose answers take so long, without its think time.

    There is none in a closed loop, in which no request is due.
    """
    if not workload.due_rps:
        return ()
    return tuple(
        Room(
            workload=workload.name,
            clients=clients,
            rate_rps=workload.due_rps * clients.share,
            connections=connections_of(workload, clients),
            held=Held(
                least_s=answer.least_s + clients.think_ms / 1000,
                most_s=answer.most_s + clients.think_ms / 1000,
            ),
        )
        for clients, answer in held
    )


def connections_of(workload: Workload, clients: Clients) -> int:
    """The connections of one class: its own, or its share."""
    return clients.connections or max(1, round(workload.connections * clients.share))


def places_of(workload: Workload) -> int:
    """How many requests of a load may be under way at once."""
    return sum(
        connections_of(workload, clients) * clients.streams_per_connection
        for clients in workload.clients
    )


def saturated(workload: Workload, achieved_rps: float) -> str:
    """What follows if all connections of a load were busy while it reached this rate only.

    Empty where nothing follows.
    """
    if not (workload.due_rps and achieved_rps):
        return ""
    places = places_of(workload)
    held_s = places / achieved_rps
    if not (needed := math.ceil(workload.due_rps * held_s)) > places:
        return ""
    think_ms = sum(clients.share * clients.think_ms for clients in workload.clients)
    think = f", {think_ms:,.0f} ms of it think_ms" if think_ms else ""
    return (
        f"its {places:,} connections carried {achieved_rps:,.1f} of {workload.due_rps:,.0f} "
        f"requests/s, so a request held one for up to {1000 * held_s:,.0f} ms{think}, and by "
        f"Little's law the rate needs {needed:,} of them"
    )
