"""What a host counted while it was measured, and what counters mean."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Direction = Literal["worse", "better", "neutral"]
"""What more of a counter means for latency."""

SOURCES: Mapping[str, tuple[str, ...]] = {
    "conntrack": ("conntrack.",),
    "sockets": ("clients.", "upstreams.", "listen."),
    "nginx": ("nginx.",),
    "generators": ("generators.",),
}
"""Where counters come from that a host may not show, and what the names of each begin with."""

HELD_BACK = "generators.rwnd_limited_ms"
"""For which time (ms) a load balancer's receive window held back what its clients send."""

_CPU = re.compile(r"^softnet\.cpu[0-9]+\.")
_SIDE = re.compile(r"^(clients|upstreams)\.")


@dataclass(frozen=True, kw_only=True)
class HostCounters:
    """One host's counters over a trial, as time series.

    `at_s` are the times of the points in seconds after the reading before the load; the last point
    is the reading after it. `growth` has for each counter by how much it grew up to each point
    since the point before, and `levels` what each quantity that goes up and down was at each point.
    Both leave out what was 0 all the time. `unread` are the sources that the host did not show; of
    all others, what is missing is 0.
    """

    at_s: tuple[float, ...]
    growth: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    levels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for series of another length than `at_s`."""
        for name, series in (*self.growth.items(), *self.levels.items()):
            if len(series) != len(self.at_s):
                raise ValueError(f"{name} has {len(series)} points of {len(self.at_s)}")

    def shows(self, name: str) -> bool:
        """Whether a counter that is missing was 0, and not unread."""
        return not any(name.startswith(SOURCES.get(source, ())) for source in self.unread)

    def total(self, name: str) -> int:
        """By how much a counter grew over the trial."""
        return sum(self.growth.get(name, ()))

    def highest(self, name: str) -> float:
        """The highest level at any point."""
        return max(self.levels.get(name, (0,)))

    @property
    def totals(self) -> dict[str, float]:
        """One number for each series: the growth of a counter, the highest of a level."""
        grown: dict[str, float] = {name: self.total(name) for name in self.growth}
        return grown | {name: self.highest(name) for name in self.levels}


def with_clients(balancer: HostCounters, generators: Iterable[HostCounters]) -> HostCounters:
    """A load balancer's counters with what only its clients know: HELD_BACK, by their sockets."""
    clients = list(generators)
    if not clients or any("sockets" in one.unread for one in clients):
        return replace(balancer, unread=(*balancer.unread, "generators"))
    held = sum(one.total("upstreams.rwnd_limited_ms") for one in clients)
    growth = {**balancer.growth, HELD_BACK: (*(0 for _ in balancer.at_s[1:]), held)}
    return replace(balancer, growth=growth)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """How a kernel makes requests wait. `about` is a sentence."""

    name: str
    about: str


@dataclass(frozen=True, kw_only=True)
class KernelCounter:
    """An entry of the catalogue of counters.

    `name` is TABLE.COUNTER; `document` is what defines it in the kernel's source, `mechanism` what
    it is a sign of ("" for none in particular). A `level` goes up and down. A `size` says how long,
    how large or how far, so that only a comparison tells whether it is much.
    """

    name: str
    meaning: str
    document: str
    mechanism: str = ""
    direction: Direction = "neutral"
    level: bool = False
    size: bool = False


@dataclass(frozen=True)
class CounterCatalogue:
    """The counters that have an explanation, and the mechanisms that they are signs of.

    `blocks` has for some mechanisms sets of values (by key), each of which takes it away.
    """

    counters: Mapping[str, KernelCounter]
    mechanisms: Mapping[str, Mechanism]
    blocks: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)

    def find(self, name: str) -> KernelCounter | None:
        """The entry of a counter of a host; None for one that a newer kernel has added."""
        return self.counters.get(general(name))


def general(name: str) -> str:
    """A counter's name in the catalogue: there is one for all processors, and for both sides."""
    return _SIDE.sub("tcp_info.", _CPU.sub("softnet.", name))
