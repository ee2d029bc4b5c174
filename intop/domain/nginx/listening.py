"""The addresses that `http` listens on, and the `listen` that has each one's options."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address

from intop.domain.nginx.conf import Conf, Place

SETTING = ("backlog=", "rcvbuf=", "sndbuf=", "fastopen=", "so_keepalive=", "ipv6only=", "setfib=")
SETTING_FLAGS = ("deferred", "reuseport", "bind", "multipath")
"""Of all `listen` with one address, only one may have any of these."""

_EVERYWHERE = {4: "*", 6: "[::]"}


@dataclass(frozen=True)
class Address:
    """A host, with * for all interfaces, and the ports from `first` to `last`.

    `version` is 4 or 6, and 0 for a name, which only a resolver knows.
    """

    host: str
    version: int
    first: int
    last: int

    def __str__(self) -> str:
        ports = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.host}:{ports}"

    def has_port_of(self, address: "Address") -> bool:
        """Whether both have a port in common."""
        return self.first <= address.last and address.first <= self.last


def listening(conf: Conf) -> dict[str, Place]:
    """The TCP addresses of `http`, and the `listen` that has or may have each one's options.

    An address of one interface is left out where all interfaces are listened to at its port: as
    long as it has no options they share a socket. Left out is also what may be another one's
    address: a name at the same port, and a range with the same port. So is what nginx reads for
    several servers.
    """
    places: dict[Address, list[Place]] = {}
    times: dict[tuple[str, int], int] = {}
    for place in conf.named("listen"):
        arguments = place.statement.arguments
        times[place.span] = times.get(place.span, 0) + 1
        is_tcp = arguments and not arguments[0].startswith("unix:") and "quic" not in arguments
        if is_tcp and place.context == ("http", "server"):
            places.setdefault(address(arguments[0]), []).append(place)
    chosen: dict[str, Place] = {}
    for name, candidates in places.items():
        single = [p for p in candidates if times[p.span] == 1]
        setting = [p for p in candidates if is_setting(p.statement.arguments)]
        best = next(iter(setting or single), None)
        if best in single and best is not None and not _is_covered(name, places):
            chosen[str(name)] = best
    return chosen


def _is_covered(name: Address, addresses: Collection[Address]) -> bool:
    """Whether another address may be the same socket, or has this one's connections."""
    return any(
        name.has_port_of(other)
        and (
            name.version == 0 or other.host == name.host or other.host == _EVERYWHERE[name.version]
        )
        for other in addresses
        if other != name
    )


def address(text: str) -> Address:
    """What `listen` names, in one spelling: 080 is 80, and [0:0::1] is [::1]."""
    is_port = re.fullmatch(r"[0-9]+(-[0-9]+)?", text)
    parts = re.fullmatch(r"(\[.*\]|[^:]*)(?::([0-9-]+))?", f"*:{text}" if is_port else text)
    host, ports = (parts[1], parts[2] or "80") if parts else (text, "80")
    first, _, last = ports.partition("-")
    version, host = _host(host)
    return Address(host, version, int(first or 0), int(last or first or 0))


def _host(text: str) -> tuple[int, str]:
    """The version of IP, 0 for a name, and the address in one spelling."""
    if text.startswith("["):
        try:
            return 6, f"[{IPv6Address(text[1:-1])}]"
        except ValueError:
            return 6, text
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", text):
        text = ".".join(str(int(number)) for number in text.split("."))
    elif text not in ("*", ""):
        return 0, text.lower()
    return 4, "*" if text in ("*", "0.0.0.0", "") else text  # noqa: S104


def is_setting(arguments: Iterable[str]) -> bool:
    """Whether a `listen` has options of its socket."""
    return any(a.startswith(SETTING) or a in SETTING_FLAGS for a in arguments)
