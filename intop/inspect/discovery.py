"""The cluster as its load balancer shows it: architecture, address, backends, logs, restart."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from intop.domain.cluster import MACHINES, HostAddress, is_server_url
from intop.domain.nginx.access_logs import access_logs
from intop.domain.nginx.conf import Conf
from intop.errors import CommandError
from intop.hosts.facts import facts_and_conf
from intop.hosts.host import Connect, Host, output
from intop.hosts.nginx import serving_conf
from intop.hosts.ssh.config import route

SYSTEMD = "systemctl is-active --quiet nginx 2>/dev/null && echo yes || true"
RESTART = "systemctl restart nginx"
"""The command that restarts a service of systemd."""

ADDRESSES = "ip -o addr show scope global 2>/dev/null || true"
NEARBY = ("unix:", "127.", "[::1]", "localhost")
"""Beginnings of addresses that no other host reaches."""
EVERYWHERE = ("*", "0.0.0.0", "::")  # noqa: S104  (nginx binds them)
"""Addresses of sockets that listen on all of a host's."""
OF_CONTAINERS = ("docker", "br-", "veth", "virbr", "cni", "lxc")
"""Beginnings of names of interfaces that lead to guests of the host itself."""
MOST_TRIED, REACH_S = 8, 3
"""URLs that a load generator tries, and its seconds for each."""
UNTRIED = "untried"
CAN_TRY = (
    f"{{ command -v bash && command -v timeout; }} >/dev/null || {{ echo {UNTRIED}; exit 0; }}"
)

_ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[^:\s]+)(?::(?P<port>\d+))?")
_PROXY = re.compile(r"(?:https?|grpcs?)://(?P<host>\[[^\]]+\]|[^:/\s$]+)(?::\d+)?")
_OWN = re.compile(r"^\d+: (?P<interface>\S+?)(?:@\S+)? +inet6? (?P<address>[0-9a-fA-F.:]+)/")


@dataclass(frozen=True, kw_only=True)
class Discovered:
    """The facts that a load balancer shows. A part that it does not show is empty."""

    arch: str = ""
    urls: tuple[str, ...] = ()
    """A URL for each address and port that nginx listens on, those without TLS first."""
    backends: tuple[str, ...] = ()
    """Hosts of upstreams, as nginx names them."""
    access_logs: tuple[str, ...] = ()
    restart: str = ""
    is_root: bool = True
    problem: str = ""
    """Why nginx's configuration is not known."""


def discover(address: HostAddress, connect: Connect) -> Discovered:
    """Ask a load balancer. Raises UnreachableError and CommandError. Nothing is written there."""
    with closing(connect(address)) as host:
        return _discovered(host)


def _discovered(host: Host) -> Discovered:
    facts, shown = facts_and_conf(host)
    archs = [arch for arch, machines in MACHINES.items() if facts.machine in machines]
    restart = RESTART if output(host, SYSTEMD).strip() == "yes" else ""
    known = Discovered(arch=archs[0] if archs else "", restart=restart, is_root=facts.is_root)
    try:
        conf = serving_conf(host, shown)
    except CommandError as error:
        return replace(known, problem=error.message)
    return replace(
        known,
        urls=tuple(dict.fromkeys(urls_of(conf, _names(host)))),
        backends=tuple(dict.fromkeys(backends_of(conf))),
        access_logs=tuple(dict.fromkeys(log.path for log in access_logs(conf))),
    )


def urls_of(conf: Conf, names: Sequence[str]) -> Iterator[str]:
    """Yield the URLs of HTTP that nginx listens on, those without TLS first.

    Where it listens on every address of the host, these are the `names`.
    """
    sockets: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
    for place in conf.named("listen"):
        words = place.statement.arguments
        if place.context != ("http", "server") or not words or words[0].startswith(NEARBY):
            continue
        socket = f"*:{words[0]}" if words[0].isdigit() else words[0]
        if match := _ADDRESS.fullmatch(socket):
            address = match["host"].strip("[]")
            sockets["ssl" in words[1:]].append((address, match["port"] or "80"))
    for is_tls, usual in ((False, "80"), (True, "443")):
        scheme = "https" if is_tls else "http"
        for address, port in sockets[is_tls]:
            for name in names if address in EVERYWHERE else (address,):
                host = f"[{name}]" if ":" in name else name
                url = f"{scheme}://{host}" + ("" if port == usual else f":{port}")
                if _is_url(url):
                    yield url


def _is_url(url: str) -> bool:
    try:
        return is_server_url(url)
    except ValueError:
        return False


def _names(host: Host) -> list[str]:
    """Return the names and addresses by which others may reach a host.

    The first is the one that ssh takes: an alias of its configuration is known here alone.
    """
    name = route(host.address).hostname
    names = [] if name.startswith(NEARBY) or name == "::1" else [name]
    for line in output(host, ADDRESSES).splitlines():
        match = _OWN.match(line)
        if match and not match["interface"].startswith(OF_CONTAINERS):
            names.append(match["address"])
    return names


def reached(address: HostAddress, connect: Connect, urls: Sequence[str]) -> str:
    """Return the first of these URLs that a load generator can connect to; "" for none.

    Raises UnreachableError and CommandError, also for a host without bash or timeout. Nothing is
    sent to the server.
    """
    tried = urls[:MOST_TRIED]
    tests = [f"if {_connecting(url)}; then echo {n}; " for n, url in enumerate(tried)]
    if not tests:
        return ""
    command = f"{CAN_TRY}; {'el'.join(tests)}fi; true"
    with closing(connect(address)) as host:
        answer = output(host, command, timeout_s=30 + REACH_S * len(tried)).strip()
    if answer == UNTRIED:
        raise CommandError(address.name, "has no bash, or no timeout")
    return tried[int(answer)] if answer.isdigit() and int(answer) < len(tried) else ""


def _connecting(url: str) -> str:
    """Return a command that succeeds where it can connect to a URL."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    socket = f"/dev/tcp/{parts.hostname}/{port}"
    return f"timeout {REACH_S} bash -c {shlex.quote(f': < {socket}')} 2>/dev/null"


def backends_of(conf: Conf) -> Iterator[str]:
    """Yield the hosts of upstreams, and those that proxy_pass names itself."""
    upstreams = {argument for p in conf.named("upstream") for argument in p.statement.arguments[:1]}
    for place in conf.named("server"):
        if place.context == ("http", "upstream"):
            yield from _hosts(place.statement.arguments[:1], _ADDRESS)
    for place in conf.named("proxy_pass"):
        yield from (
            host for host in _hosts(place.statement.arguments[:1], _PROXY) if host not in upstreams
        )


def _hosts(arguments: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for argument in arguments:
        match = pattern.match(argument)
        # What only the balancer itself reaches is an application there, and no backend to add.
        if match and not argument.startswith("unix:") and not match["host"].startswith(NEARBY):
            yield match["host"].strip("[]")
