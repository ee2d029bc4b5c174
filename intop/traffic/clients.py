"""Classes of clients: by the addresses that they come from, or by their round trips."""

import ipaddress
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from intop.domain.cluster import MAX_CLIENTS, LabClients
from intop.errors import UsageError
from intop.traffic.logged import is_whole
from intop.traffic.sample import Sample

BOUNDS_MS = (5, 20, 50, 100, 200)
"""Bounds of the classes of round trips."""
OTHERS = "others"
"""Clients whose address has none of the prefixes."""
LEAST_SHARE = 0.02
"""A class of round trips with a smaller share of the requests joins its nearer neighbour."""
A_FEW = " and a few others"
MOST_ADDRESSES = 65_536
"""Addresses whose class is remembered."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Prefixes = Sequence[tuple[str, Network]]
"""Names of classes, each with the addresses of its clients. A name may have several."""


@dataclass
class ClientClass:
    """The traffic of a class of clients."""

    name: str
    about: str
    """The clients in words."""
    requests: int = 0
    new_connections: int = 0
    idle_s: Sample = field(default_factory=Sample)
    round_trips_ms: Sample = field(default_factory=Sample)

    @property
    def requests_per_connection(self) -> float | None:
        """Requests that a connection carries; None where no connection began in the log."""
        return self.requests / self.new_connections if self.new_connections else None

    @property
    def delay_ms(self) -> float | None:
        """Half of the median round trip: the delay one way. None where it is not logged."""
        trip_ms = self.round_trips_ms.median
        return None if trip_ms is None else trip_ms / 2

    def joined(self, other: "ClientClass") -> "ClientClass":
        """Return one class of both, with the name of this one."""
        return ClientClass(
            self.name,
            f"{self.about.removesuffix(A_FEW)}{A_FEW}",
            self.requests + other.requests,
            self.new_connections + other.new_connections,
            self.idle_s.joined(other.idle_s),
            self.round_trips_ms.joined(other.round_trips_ms),
        )


class ClientClasses:
    """The classes of a log's clients.

    With `prefixes` a client's class follows from `$remote_addr`, else from `$tcpinfo_rtt`.
    """

    def __init__(self, prefixes: Prefixes = ()) -> None:
        self._by_prefix = {
            name: ClientClass(name, ", ".join(str(net) for own, net in prefixes if own == name))
            for name, _ in prefixes
        }
        self._others = ClientClass(OTHERS, "all other addresses")
        self._by_trip = [ClientClass(*words) for words in _trip_classes()]
        self._prefixes = prefixes
        self._class_of_address = lru_cache(MOST_ADDRESSES)(self._looked_up)

    def of(self, values: Mapping[str, str]) -> ClientClass | None:
        """Return the class of a line's client; None where the log does not say."""
        if self._prefixes:
            address = values.get("remote_addr")
            return self._class_of_address(address) if address else None
        trip_us = values.get("tcpinfo_rtt", "")
        if not is_whole(trip_us):
            return None
        return self._by_trip[bisect_right(BOUNDS_MS, int(trip_us) / 1000)]

    def shares(self) -> list[tuple[ClientClass, float]]:
        """Return the classes with their shares of the requests, which add up to 1.

        Raises UsageError where prefixes were asked for, and the log has no addresses.
        """
        if self._prefixes:
            classes = [c for c in (*self._by_prefix.values(), self._others) if c.requests]
        else:
            classes = _merged(self._by_trip)
        total = sum(c.requests for c in classes)
        if self._prefixes and not total:
            raise UsageError("--clients: the log has no addresses: add $remote_addr to log_format")
        parts = [round(c.requests / total, 4) for c in classes]
        if parts:
            # Rounding must not leave a rest: a study's shares add up to 1.
            largest = parts.index(max(parts))
            parts[largest] = round(1 - sum(parts) + parts[largest], 4)
        return [(c, part) for c, part in zip(classes, parts, strict=True) if part > 0]

    def _looked_up(self, text: str) -> ClientClass | None:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return None
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        for name, network in self._prefixes:
            if address in network:
                return self._by_prefix[name]
        return self._others


def prefixes_of(words: Sequence[str]) -> Prefixes:
    """Return the prefixes of words such as office=10.0.0.0/8. Raises UsageError."""
    result: list[tuple[str, Network]] = []
    for word in words:
        try:
            result.append(_prefix(word))
        except ValueError as error:
            raise UsageError(
                f"--clients {word}: {error}. Write NAME=PREFIX, such as office=10.0.0.0/8"
            ) from error
    if len({name for name, _ in result}) >= MAX_CLIENTS:
        raise UsageError(f"--clients: at most {MAX_CLIENTS - 1} classes, and {OTHERS}")
    return tuple(result)


def _prefix(word: str) -> tuple[str, Network]:
    """Return the name and the addresses of a word. Raises ValueError."""
    name, equals, text = word.partition("=")
    if not equals:
        raise ValueError("it has no =")
    LabClients(name=name, share=1.0)
    if name == OTHERS:
        raise ValueError(f"{OTHERS} are all clients without a prefix")
    return name, ipaddress.ip_network(text, strict=False)


def _trip_classes() -> list[tuple[str, str]]:
    """Return the names of the classes of round trips, each with its bounds in words."""
    between = [
        (f"rtt-{low}-{high}", f"round trips of {low} to {high} ms")
        for low, high in pairwise(BOUNDS_MS)
    ]
    first, last = BOUNDS_MS[0], BOUNDS_MS[-1]
    return [
        (f"rtt-under-{first}", f"round trips below {first} ms"),
        *between,
        (f"rtt-over-{last}", f"round trips from {last} ms on"),
    ]


def _merged(classes: Sequence[ClientClass]) -> list[ClientClass]:
    """Return the classes of which each has a share that is worth its own link."""
    least = LEAST_SHARE * sum(c.requests for c in classes)
    result: list[ClientClass] = []
    begun: ClientClass | None = None
    for own in classes:
        if not own.requests:
            continue
        # The nearest ones may be too few to stand alone.
        each, begun = own if begun is None else own.joined(begun), None
        if each.requests >= least:
            result.append(each)
        elif result:
            result[-1] = result[-1].joined(each)
        else:
            begun = each
    return result
