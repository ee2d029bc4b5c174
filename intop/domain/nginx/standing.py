"""What is effective now: where a directive stands, and the value that it has there."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from intop.domain.nginx import quantity
from intop.domain.nginx.conf import Conf, Place
from intop.domain.nginx.directive import HOST_DEFAULTS, Directive, NginxFacts
from intop.domain.parameter import Parameter
from intop.domain.space import Capacity, Constraint, Order


@dataclass(frozen=True)
class Directives:
    """The directives that intop knows, by key, and what must hold between them."""

    by_key: Mapping[str, Directive]
    constraints: tuple[Constraint, ...] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All of them as parameters."""
        return tuple(directive.parameter for directive in self.by_key.values())

    def related(self, keys: Iterable[str]) -> set[str]:
        """The keys that these must agree with, directly or by others."""
        found = set(keys)
        while (
            more := {
                name
                for c in self.constraints
                if isinstance(c, Order | Capacity) and found & set(c.columns)
                for name in c.columns
            }
            - found
        ):
            found |= more
        return found


_SHARED = re.compile(r"shared:([^:]+):(.+)")

SETTING = ("backlog=", "rcvbuf=", "sndbuf=", "fastopen=", "so_keepalive=", "ipv6only=", "setfib=")
SETTING_FLAGS = ("deferred", "reuseport", "bind", "multipath")
"""Of all `listen` with one address, only one may have any of these."""


@dataclass(frozen=True)
class Standing:
    """Where a directive stands in what nginx reads.

    `own` are the places of its own level, `inner` those further in, `shared` those whose text also
    stands where it is something else, so that they are left alone. `address` is for `listen`.
    """

    own: tuple[Place, ...] = ()
    inner: tuple[Place, ...] = ()
    shared: tuple[Place, ...] = ()
    addresses: Mapping[str, Place] = field(default_factory=dict)


def standing(conf: Conf, directive: Directive) -> Standing:
    """Where a directive stands, each text once."""
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
    found = [place for span, place in ours.items() if span not in strange]
    return Standing(
        own=tuple(p for p in found if len(p.context) == depth),
        inner=tuple(p for p in found if len(p.context) > depth),
        shared=tuple(place for span, place in ours.items() if span in strange),
    )


def level_context(directive: Directive) -> tuple[str, ...]:
    """The blocks around a place of a directive's own level."""
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
    """Whether an `access_log` writes to a file that it can buffer."""
    return bool(arguments) and not re.match(r"off$|syslog:|.*\$", arguments[0])


def listening(conf: Conf) -> dict[str, Place]:
    """The TCP addresses of `http`, and the `listen` that has or may have each one's options.

    An address of one interface is left out where all interfaces are listened to at its port: as
    long as it has no options they share a socket. So is what nginx reads for several servers.
    """
    found: dict[str, list[Place]] = {}
    times: dict[tuple[str, int], int] = {}
    for place in conf.named("listen"):
        arguments = place.statement.arguments
        times[place.span] = times.get(place.span, 0) + 1
        is_tcp = arguments and not arguments[0].startswith("unix:") and "quic" not in arguments
        if is_tcp and place.context == ("http", "server"):
            found.setdefault(address(arguments[0]), []).append(place)
    chosen: dict[str, Place] = {}
    for name, places in found.items():
        host, _, port = name.rpartition(":")
        everywhere = f"{'[::]' if host.startswith('[') else '*'}:{port}"
        single = [p for p in places if times[p.span] == 1]
        setting = [p for p in places if is_setting(p.statement.arguments)]
        best = next(iter(setting or single), None)
        if best in single and best is not None and (name == everywhere or everywhere not in found):
            chosen[name] = best
    return chosen


def address(text: str) -> str:
    """HOST:PORT of what `listen` names, with * for all interfaces."""
    if re.fullmatch(r"[0-9]+(-[0-9]+)?", text):
        return f"*:{text}"
    found = re.fullmatch(r"(\[.*\]|[^:]*)(?::([0-9-]+))?", text)
    host, port = (found[1], found[2] or "80") if found else (text, "80")
    return f"{'*' if host in ('*', '0.0.0.0', '') else host}:{port}"  # noqa: S104


def is_setting(arguments: Iterable[str]) -> bool:
    """Whether a `listen` has options of its socket."""
    return any(a.startswith(SETTING) or a in SETTING_FLAGS for a in arguments)


def value_of(directive: Directive, place: Place, facts: NginxFacts) -> str | None:
    """The value that a directive has in one place, or None for what is no value of it."""
    arguments = place.statement.arguments[len(directive.fixed) :]
    if directive.flag:
        return "on" if directive.flag in arguments else "off"
    if directive.option:
        prefix = f"{directive.option}="
        text = next((a.removeprefix(prefix) for a in arguments if a.startswith(prefix)), None)
        return default(directive, facts) if text is None else _value(directive, text, facts)
    if directive.zone:
        shared = next((m for a in arguments if (m := _SHARED.fullmatch(a))), None)
        return directive.absent if shared is None else _value(directive, shared[2], facts)
    if len(arguments) < directive.argument:
        return None
    if directive.as_is is not None:
        return directive.as_is if is_file_log(arguments) else "off"
    return _value(directive, arguments[directive.argument - 1], facts)


def _value(directive: Directive, text: str, facts: NginxFacts) -> str | None:
    if not directive.parameter.is_numeric:
        return text if text in directive.parameter.choices else None
    if text == "auto" and directive.per_cpu:
        return str(facts.cpus)
    number = quantity.read(text, directive.parameter.unit)
    return None if number is None else str(number)


def default(directive: Directive, facts: NginxFacts) -> str:
    """What nginx does where the directive doesn't stand."""
    value = directive.default_in(facts.version)
    if value in HOST_DEFAULTS:
        found = {"page": facts.page_kib, "nofile": facts.nofile}
        return str(found[value])
    return value


def is_without_effect(directives: Directives, key: str, held: Mapping[str, str | None]) -> bool:
    """Whether it is an option of what is off with these values, and is not written then: nginx
    would refuse it, or there is no place for it.
    """
    directive = directives.by_key[key]
    base = key.rpartition(".")[0]
    is_alone = directive.beside and held[f"{base}.{directive.beside}"] == "0"
    return bool(is_alone) or (not directive.inserted and held[f"{base}"] == "off")


def deciding(found: Standing, directive: Directive) -> Place | None:
    """The place whose value counts as the directive's: the outermost one, of these the first."""
    inner = found.inner if directive.inner == "change" else ()
    return next(iter((*found.own, *inner)), None)


def current(directives: Directives, conf: Conf, facts: NginxFacts) -> dict[str, str | None]:
    """The value of each directive; None where what stands there is no value of it.

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
