"""Whether nginx keeps its connections to backends, or opens one for each request.

A `proxy_pass` keeps them where its backends stand in an upstream block with `keepalive`, over
HTTP/1.1, and without a `Connection: close`. nginx does the last three by itself since KEPT_SINCE.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from intop.domain.nginx.conf import Conf, Place
from intop.domain.nginx.directive import Version

KEPT_SINCE: Version = (1, 29, 7)

_TARGET = re.compile(
    r"https?://(?P<host>\[[^\]]*\]|[^/:?$]+)(?P<port>:[0-9]+)?(?:[/?].*)?",
    re.DOTALL | re.IGNORECASE,
)
UPGRADE = "$http_upgrade"
"""The request's Upgrade, which is empty in a load."""


@dataclass(frozen=True, kw_only=True)
class Unkept:
    """A `proxy_pass` that opens a connection for each request: where it stands, why, the remedy."""

    where: str
    why: str
    remedy: str


def unkept(conf: Conf, version: Version) -> tuple[Unkept, ...]:
    """Return the places of `proxy_pass` whose connections nginx does not keep, each text once.

    Left out is what nobody can tell from the files: a target with a variable, or a unix socket.
    """
    upstreams = _upstreams(conf)
    places: dict[tuple[str, int], Unkept] = {}
    for place in conf.named("proxy_pass"):
        target = _target(place)
        if place.context[:1] != ("http",) or target is None:
            continue
        host, port = target
        reason = _reason(conf, place, host + port, upstreams.get(host.lower()), version)
        if reason is not None and place.span not in places:
            places[place.span] = Unkept(where=place.where, why=reason[0], remedy=reason[1])
    return tuple(places.values())


def direct(conf: Conf) -> Iterator[Place]:
    """Yield the places of `proxy_pass` that name a backend itself, and no upstream block."""
    upstreams = _upstreams(conf)
    for place in conf.named("proxy_pass"):
        target = _target(place)
        if place.context[:1] == ("http",) and target and target[0].lower() not in upstreams:
            yield place


def _upstreams(conf: Conf) -> dict[str, Place]:
    return {
        place.statement.arguments[0].lower(): place
        for place in conf.named("upstream")
        if place.context == ("http",) and place.statement.arguments
    }


def _target(place: Place) -> tuple[str, str] | None:
    """Return host and port of a `proxy_pass`, None for what nobody can tell."""
    arguments = place.statement.arguments
    match = _TARGET.fullmatch(arguments[0]) if arguments and "$" not in arguments[0] else None
    if match is None or match["host"] == "unix":
        return None
    return match["host"], match["port"] or ""


def _reason(
    conf: Conf, place: Place, target: str, upstream: Place | None, version: Version
) -> tuple[str, str] | None:
    """Return why connections are not kept, and what to do; None where they are."""
    is_old = version < KEPT_SINCE
    beside = 'proxy_http_version 1.1; and proxy_set_header Connection "";'
    if upstream is None:
        # In an upstream block the port is 80, whatever is spoken with it.
        is_tls = place.statement.arguments[0].lower().startswith("https:")
        server = f"{target}:443" if is_tls and not re.search(r":[0-9]+$", target) else target
        remedy = f"write upstream NAME {{ server {server}; keepalive 64; }} and proxy_pass to NAME"
        if not re.match(r"[0-9.]+(:|$)|\[", target) and not _has_host(conf, place):
            remedy += f", with proxy_set_header Host {target}; beside it"
        return (
            f"it names {target} itself, and no upstream block",
            f"{remedy}, with {beside} beside it" if is_old else remedy,
        )
    name = upstream.statement.arguments[0]
    kept = _kept(conf, upstream)
    if kept == 0 or (kept is None and is_old):
        remedy = f"write keepalive 64; at the end of upstream {name}"
        return (
            f"upstream {name} keeps none (keepalive)",
            f"{remedy}, and {beside} beside proxy_pass" if is_old else remedy,
        )
    http = _inherited(conf, place, "proxy_http_version")
    spoken = http[-1].statement.arguments[:1] if http else ("1.0" if is_old else "1.1",)
    if spoken == ("1.0",):
        return "it speaks HTTP/1.0 (proxy_http_version)", f"write {beside} beside it"
    headers = [
        arguments[1]
        for arguments in _headers(conf, place)
        if len(arguments) == 2 and arguments[0].lower() == "connection"
    ]
    if mapped := [value for value in headers if _without_upgrade(conf, value).lower() == "close"]:
        return (
            f"the map of {mapped[0]} has it close them where a request asks for no Upgrade",
            f"write '' ''; into map {UPGRADE} {mapped[0]}",
        )
    if any(value.lower() == "close" for value in headers) or (is_old and not headers):
        return (
            "it asks the backend to close them (Connection: close)",
            'write proxy_set_header Connection ""; beside it',
        )
    return None


def _headers(conf: Conf, place: Place) -> list[tuple[str, ...]]:
    """Return the arguments of each header that is set for a backend."""
    return [p.statement.arguments for p in _inherited(conf, place, "proxy_set_header")]


def _has_host(conf: Conf, place: Place) -> bool:
    return any(words[:1] and words[0].lower() == "host" for words in _headers(conf, place))


def _without_upgrade(conf: Conf, variable: str) -> str:
    """Return what a map makes of a request without Upgrade for this variable, or ""."""
    for place in conf.named("map"):
        if place.statement.arguments == (UPGRADE, variable) and place.statement.body:
            values = {
                entry.name: entry.arguments[0]
                for entry in place.statement.body
                if len(entry.arguments) == 1
            }
            return values.get("", values.get("default", ""))
    return ""


def _kept(conf: Conf, upstream: Place) -> int | None:
    """Return how many idle connections an upstream keeps, None where it does not say."""
    for place in conf.named("keepalive"):
        is_its = place.parents and place.parents[-1].span == upstream.span
        if is_its and (number := place.statement.arguments[:1]) and number[0].isdecimal():
            return int(number[0])
    return None


def _inherited(conf: Conf, place: Place, name: str) -> list[Place]:
    """Return the statements of this name in the innermost block around a place that has any.

    The blocks `if` and `limit_except` inherit as others do.
    """
    by_block: dict[tuple[tuple[str, int], ...], list[Place]] = {}
    for statement in conf.named(name):
        by_block.setdefault(_path(statement.parents), []).append(statement)
    for depth in range(len(place.parents), 0, -1):
        if statements := by_block.get(_path(place.parents[:depth])):
            return statements
    return []


def _path(parents: tuple[Place, ...]) -> tuple[tuple[str, int], ...]:
    return tuple(parent.span for parent in parents)


def lines(places: tuple[Unkept, ...]) -> Iterator[str]:
    """Yield a line for each reason, with its places and the remedy."""
    alike: dict[tuple[str, str], list[str]] = {}
    for place in places:
        alike.setdefault((place.why, place.remedy), []).append(place.where)
    for (why, remedy), where in alike.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        yield (
            f"proxy_pass at {where[0]}{more} opens a connection to a backend for each request, "
            f"since {why}: {remedy}"
        )
