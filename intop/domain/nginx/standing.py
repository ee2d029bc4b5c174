"""The effective values of directives: where each stands, and its value there."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address

from intop.domain.constraints import Capacity, Constraint, Order
from intop.domain.nginx import quantity
from intop.domain.nginx.conf import Conf, Place
from intop.domain.nginx.directive import HOST_DEFAULTS, Directive, NginxFacts
from intop.domain.parameter import Parameter


@dataclass(frozen=True)
class Directives:
    """The directives that intop knows, by key, and what must hold between them."""

    by_key: Mapping[str, Directive]
    constraints: tuple[Constraint, ...] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All directives as parameters."""
        return tuple(directive.parameter for directive in self.by_key.values())

    def related(self, keys: Iterable[str]) -> set[str]:
        """Return the keys that these must agree with, directly or by others."""
        related = set(keys)
        while (
            more := {
                name
                for c in self.constraints
                if isinstance(c, Order | Capacity) and related & set(c.columns)
                for name in c.columns
            }
            - related
        ):
            related |= more
        return related


_SHARED = re.compile(r"shared:([^:]+):(.+)")


SETTING = ("backlog=", "rcvbuf=", "sndbuf=", "fastopen=", "so_keepalive=", "ipv6only=", "setfib=")
SETTING_FLAGS = ("deferred", "reuseport", "bind", "multipath")
"""Flags of which only one `listen` with the same address may have any."""

_EVERYWHERE = {4: "*", 6: "[::]"}


@dataclass(frozen=True)
class Address:
    """An address of TCP that nginx listens on."""

    host: str
    """An IP address, a name, or * for all interfaces."""
    version: int
    """The version of IP; 0 for a name, which only a resolver knows."""
    first: int
    last: int
    """The first and the last port."""

    def __str__(self) -> str:
        ports = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.host}:{ports}"

    def has_port_of(self, address: "Address") -> bool:
        """Return whether both have a port in common."""
        return self.first <= address.last and address.first <= self.last


def listening(conf: Conf) -> dict[str, Place]:
    """Return the `listen` with the options of each TCP address of `http`, by address.

    Left out are addresses that may share their socket with others: one of a single interface
    beside one of all, a name or a range with a port of others. So is what nginx reads for several
    servers.
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
    for socket, candidates in places.items():
        single = [p for p in candidates if times[p.span] == 1]
        setting = [p for p in candidates if is_setting(p.statement.arguments)]
        best = next(iter(setting or single), None)
        if best in single and best is not None and not _is_covered(socket, places):
            chosen[str(socket)] = best
    return chosen


def _is_covered(socket: Address, addresses: Collection[Address]) -> bool:
    """Return whether a further address may be the same socket, or has its connections."""
    hosts = (socket.host, _EVERYWHERE.get(socket.version))
    return any(
        socket.has_port_of(address) and (socket.version == 0 or address.host in hosts)
        for address in addresses
        if address != socket
    )


def address(text: str) -> Address:
    """Return what `listen` names in one spelling: 080 is 80, and [0:0::1] is [::1]."""
    is_port = re.fullmatch(r"[0-9]+(-[0-9]+)?", text)
    parts = re.fullmatch(r"(\[.*\]|[^:]*)(?::([0-9-]+))?", f"*:{text}" if is_port else text)
    host, ports = (parts[1], parts[2] or "80") if parts else (text, "80")
    first, _, last = ports.partition("-")
    version, host = _host(host)
    return Address(host, version, int(first or 0), int(last or first or 0))


def _host(text: str) -> tuple[int, str]:
    """Return the version of IP, 0 for a name, and the address in one spelling."""
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
    """Return whether a `listen` has options of its socket."""
    return any(a.startswith(SETTING) or a in SETTING_FLAGS for a in arguments)


@dataclass(frozen=True)
class Standing:
    """The place of a directive in what nginx reads."""

    own: tuple[Place, ...] = ()
    """Places of its own level."""
    inner: tuple[Place, ...] = ()
    """Places further in."""
    shared: tuple[Place, ...] = ()
    """Places that are left alone, since their text also stands where it is something else."""
    addresses: Mapping[str, Place] = field(default_factory=dict)


def standing(conf: Conf, directive: Directive) -> Standing:
    """Return where a directive stands, each text once."""
    if directive.level == "listen":
        addresses = listening(conf)
        return Standing(own=tuple(addresses.values()), addresses=addresses)
    ours: dict[tuple[str, int], Place] = {}
    strange: set[tuple[str, int]] = set()
    for place in conf.named(directive.name):
        if place.statement.body is not None or not _is_meant(directive, place):
            continue
        if _is_within(directive, place.context):
            # The outermost place decides, where one text stands in several.
            before = ours.get(place.span)
            if before is None or len(place.context) < len(before.context):
                ours[place.span] = place
        else:
            strange.add(place.span)
    depth = len(level_context(directive))
    places = [place for span, place in ours.items() if span not in strange]
    return Standing(
        own=tuple(p for p in places if len(p.context) == depth),
        inner=tuple(p for p in places if len(p.context) > depth),
        shared=tuple(place for span, place in ours.items() if span in strange),
    )


def level_context(directive: Directive) -> tuple[str, ...]:
    """Return the blocks around a place of a directive's own level."""
    if directive.level == "main":
        return ()
    return ("http", "upstream") if directive.level == "upstream" else (directive.level,)


def _is_within(directive: Directive, context: tuple[str, ...]) -> bool:
    if directive.level == "http":
        inside = context[:1] == ("http",) and "upstream" not in context
        return inside and context[-1] in directive.contexts
    return context == level_context(directive)


def _is_meant(directive: Directive, place: Place) -> bool:
    arguments = place.statement.arguments
    if not directive.inserted and not is_file_log(arguments):
        return False
    return arguments[: len(directive.fixed)] == directive.fixed


def is_file_log(arguments: tuple[str, ...]) -> bool:
    """Return whether an `access_log` writes to a file whose buffer can be set.

    With `gzip` nginx always buffers, so such a log is left alone.
    """
    is_compressed = any(re.match("gzip(=|$)", a) for a in arguments[2:])
    is_plain = bool(arguments) and not re.match(r"off$|syslog:|.*\$", arguments[0])
    return is_plain and not is_compressed


def value_of(directive: Directive, place: Place, facts: NginxFacts) -> str | None:
    """Return the value that a directive has in a place, or None for what is no value of it."""
    arguments = place.statement.arguments[len(directive.fixed) :]
    if directive.flag:
        return "on" if directive.flag in arguments else "off"
    if directive.as_is is not None:
        return "off" if arguments[:1] == ("off",) else directive.as_is
    if directive.option:
        option = None if is_off(directive, arguments) else _option(directive, arguments)
        return default(directive, facts) if option is None else _value(directive, option, facts)
    if directive.zone:
        shared = zone_in(arguments)
        return directive.absent if shared is None else _value(directive, shared[2], facts)
    # A choice is the whole statement: `worker_cpu_affinity auto 01` is another thing than `auto`.
    is_more = not directive.parameter.is_numeric and len(arguments) > directive.argument
    if len(arguments) < directive.argument or is_more:
        return None
    return _value(directive, arguments[directive.argument - 1], facts)


def _option(directive: Directive, arguments: Sequence[str]) -> str | None:
    """Return the text of an option, or None. Of several nginx takes the last."""
    prefix = f"{directive.option}="
    return next((a.removeprefix(prefix) for a in reversed(arguments) if a.startswith(prefix)), None)


def is_off(directive: Directive, arguments: Sequence[str]) -> bool:
    """Return whether a directive of options is off, wherever the word stands, as in `max=5 off`."""
    is_of_options = directive.level == "http" and directive.inserted and bool(directive.option)
    return is_of_options and "off" in arguments


def zone_in(arguments: Sequence[str]) -> re.Match[str] | None:
    """Return the shared zone among the caches of `ssl_session_cache`, with its name and size.

    Of several nginx takes the last, and none beside `off` or `none`.
    """
    if "off" in arguments or "none" in arguments:
        return None
    return next((m for a in reversed(arguments) if (m := _SHARED.fullmatch(a))), None)


def _value(directive: Directive, text: str, facts: NginxFacts) -> str | None:
    if not directive.parameter.is_numeric:
        return choice_of(directive, text)
    if text == "auto" and directive.per_cpu:
        return str(facts.cpus)
    number = quantity.read(text, directive.parameter.unit)
    return None if number is None else str(number)


def choice_of(directive: Directive, text: str) -> str | None:
    """Return the choice that nginx's text stands for: `ON` is on, and 4M is 4m. Or None."""
    size = quantity.read(text, "bytes") if text[:1].isdigit() else None
    for choice in directive.parameter.choices:
        if text.lower() == choice or (size is not None and size == quantity.read(choice, "bytes")):
            return choice
    return None


def default(directive: Directive, facts: NginxFacts) -> str:
    """Return what nginx does where the directive doesn't stand."""
    value = directive.default_in(facts.version)
    if value in HOST_DEFAULTS:
        return str({"page": facts.page_kib, "nofile": facts.nofile}[value])
    return value


def is_without_effect(directives: Directives, key: str, held: Mapping[str, str | None]) -> bool:
    """Return whether it is an option of what is off with these values.

    It is not written then: nginx would refuse it, or there is no place for it.
    """
    directive = directives.by_key[key]
    base = key.rpartition(".")[0]
    is_alone = directive.beside and held[f"{base}.{directive.beside}"] == "0"
    return bool(is_alone) or (not directive.inserted and held[f"{base}"] == "off")


def deciding(places: Standing, directive: Directive) -> Place | None:
    """Return the place whose value counts as the directive's: the first in the outermost block.

    Of several in one block nginx takes the last, where it takes several at all. One `off` switches
    all logs of a block off.
    """
    inner = places.inner if directive.inner == "change" else ()
    first = next(iter((*places.own, *inner)), None)
    if first is None or directive.level == "listen":
        return first
    block = [place for place in (*places.own, *inner) if place.parents == first.parents]
    if directive.name != "access_log":
        return block[-1]
    return next((p for p in block if p.statement.arguments[:1] == ("off",)), first)


def current(directives: Directives, conf: Conf, facts: NginxFacts) -> dict[str, str | None]:
    """Return the value of each directive; None where what stands there is no value of it.

    A default that follows others is twice the largest of them, as nginx computes it.
    """
    values: dict[str, str | None] = {}
    followers: list[Directive] = []
    for key, directive in directives.by_key.items():
        place = deciding(standing(conf, directive), directive)
        if place is not None:
            values[key] = value_of(directive, place, facts)
        else:
            values[key] = default(directive, facts)
            followers += [directive] if directive.follows else []
    for directive in followers:
        leaders = [values.get(key) for key in directive.follows]
        values[directive.key] = str(2 * max(int(value) for value in leaders if value is not None))
    return values
