"""Counters of a host over a trial, and their meaning."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Direction = Literal["worse", "better", "neutral"]
"""The meaning of more of a counter for latency."""

SOURCES: Mapping[str, tuple[str, ...]] = {
    "conntrack": ("conntrack.",),
    "sockets": ("clients.", "upstreams.", "listen."),
    "nginx": ("nginx.",),
    "generators": ("generators.",),
}
"""Sources of counters that a host may not show, and how the names of each begin."""

HELD_BACK = "generators.rwnd_limited_ms"
"""The time (ms) for which a load balancer's receive window held back what its clients send."""

_CPU = re.compile(r"^softnet\.cpu[0-9]+\.")
_SIDE = re.compile(r"^(clients|upstreams)\.")


@dataclass(frozen=True, kw_only=True)
class HostCounters:
    """One host's counters over a trial, as time series without those that were always 0."""

    at_s: tuple[float, ...]
    """Seconds after the reading before the load; the last point is the reading after it."""
    growth: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The growth of each counter up to each point since the point before."""
    levels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Each quantity that goes up and down, at each point."""
    unread: tuple[str, ...] = ()
    """Sources that the host did not show. Of all others, what is missing is 0."""

    def __post_init__(self) -> None:
        """Raises ValueError for series of another length than `at_s`."""
        for name, series in (*self.growth.items(), *self.levels.items()):
            if len(series) != len(self.at_s):
                raise ValueError(f"{name} has {len(series)} points of {len(self.at_s)}")

    def shows(self, name: str) -> bool:
        """Whether a counter that is missing was 0, and not unread."""
        return not any(name.startswith(SOURCES.get(source, ())) for source in self.unread)

    def total(self, name: str) -> int:
        """Return by how much a counter grew over the trial."""
        return sum(self.growth.get(name, ()))

    def highest(self, name: str) -> float:
        """Return the highest level at any point."""
        return max(self.levels.get(name, (0,)))

    @property
    def totals(self) -> dict[str, float]:
        """One number for each series: the growth of a counter, the highest of a level."""
        grown: dict[str, float] = {name: self.total(name) for name in self.growth}
        return grown | {name: self.highest(name) for name in self.levels}


def with_clients(balancer: HostCounters, generators: Iterable[HostCounters]) -> HostCounters:
    """Return a load balancer's counters with HELD_BACK, which only its clients know."""
    clients = list(generators)
    if not clients or any("sockets" in counters.unread for counters in clients):
        return replace(balancer, unread=(*balancer.unread, "generators"))
    held = sum(counters.total("upstreams.rwnd_limited_ms") for counters in clients)
    growth = {**balancer.growth, HELD_BACK: (*(0 for _ in balancer.at_s[1:]), held)}
    return replace(balancer, growth=growth)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A way in which a kernel makes requests wait."""

    name: str
    about: str
    """A sentence."""


@dataclass(frozen=True, kw_only=True)
class KernelCounter:
    """An entry of the catalogue of counters."""

    name: str
    """TABLE.COUNTER."""
    meaning: str
    document: str
    """The place in the kernel's source that defines it."""
    mechanism: str = ""
    """The mechanism that it is a sign of, "" for none in particular."""
    direction: Direction = "neutral"
    level: bool = False
    """Whether it goes up and down."""
    size: bool = False
    """Whether it says how long, how large or how far: only a comparison tells whether it is much.
    """


@dataclass(frozen=True)
class CounterCatalogue:
    """The counters that have an explanation, and the mechanisms that they are signs of."""

    counters: Mapping[str, KernelCounter]
    mechanisms: Mapping[str, Mechanism]
    blocks: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    """Sets of values (by key) for some mechanisms, each of which takes the mechanism away."""

    def find(self, name: str) -> KernelCounter | None:
        """Return the entry of a counter of a host; None for one that a newer kernel has added."""
        return self.counters.get(general(name))


def general(name: str) -> str:
    """Return a counter's name in the catalogue: one for all processors, and for both sides."""
    return _SIDE.sub("tcp_info.", _CPU.sub("softnet.", name))
