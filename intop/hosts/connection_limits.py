"""Limits of a host's connections beside its sockets: local ports, and conntrack's table."""

from dataclasses import dataclass

from intop.hosts.answers import by_word, count
from intop.hosts.host import Host, parsed_output
from intop.hosts.scripts import script

LIMITS = script("connection_limits.sh")
MOST_PORTS = 65_535


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """The limits of one host."""

    ports: int | None = None
    """The number of ports that connections to one address may come from; None where not known."""
    reuses_ports: bool = False
    """Whether a port in TIME_WAIT may be taken again (tcp_tw_reuse 1)."""
    tracked: int | None = None
    """The number of connections that conntrack follows; None where it is not at work."""
    tracked_most: int | None = None
    """The most connections that conntrack can follow."""
    tracked_s: int | None = None
    """The time for which conntrack remembers a closed connection, in s."""


def connection_limits(host: Host) -> ConnectionLimits:
    """Return the limits of a host. Raises CommandError when its answer makes no sense."""
    return parsed_output(host, LIMITS, parse_limits, "its connections can't be looked at")


def parse_limits(text: str) -> ConnectionLimits:
    """Return the limits in the lines that `connection_limits.sh` prints. Raises ValueError."""
    values = {word: rests[-1] for word, rests in by_word(text).items()}
    ports = None
    if "ports" in values:
        low, high = (count(number) for number in values["ports"].split())
        if not low <= high <= MOST_PORTS:
            raise ValueError(f"its local ports are {values['ports']}")
        ports = high - low + 1 - _reserved(values.get("reserved", ""), low, high)

    def number(word: str) -> int | None:
        return count(values[word]) if values.get(word) else None

    return ConnectionLimits(
        ports=ports,
        reuses_ports=values.get("reuse") == "1",
        tracked=number("tracked"),
        tracked_most=number("tracked_most"),
        tracked_s=number("tracked_s"),
    )


def _reserved(text: str, low: int, high: int) -> int:
    """Return how many ports of a range a list such as 8080,9000-9100 takes away."""
    taken = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        begin, end = count(first), count(last or first)
        taken += max(0, min(high, end) - max(low, begin) + 1)
    return taken
