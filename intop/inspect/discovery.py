"""The cluster as its load balancer shows it: architecture, address, backends, logs, restart."""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from intop.domain.cluster import MACHINES, HostAddress
from intop.domain.nginx.access_logs import access_logs
from intop.domain.nginx.conf import Conf, parse_shown
from intop.errors import NginxFileError
from intop.hosts.facts import facts_and_conf
from intop.hosts.host import Connect, Host, output

SYSTEMD = "systemctl is-active --quiet nginx 2>/dev/null && echo yes || true"
RESTART = "systemctl restart nginx"
"""The command that restarts a service of systemd."""

NEARBY = ("unix:", "127.", "[::1]", "localhost")
"""Beginnings of addresses that no other host reaches."""

_ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[^:\s]+)(?::\d+)?")
_PROXY = re.compile(r"(?:https?|grpcs?)://(?P<host>\[[^\]]+\]|[^:/\s$]+)(?::\d+)?")


@dataclass(frozen=True, kw_only=True)
class Discovered:
    """The facts that a load balancer shows. A part that it does not show is empty."""

    arch: str = ""
    urls: tuple[str, ...] = ()
    """An address for each port that nginx listens on."""
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
    text = next(filter(None, shown), "")
    if not text:
        return replace(known, problem="no nginx runs there that shows its configuration")
    try:
        conf = parse_shown(text)
    except NginxFileError as error:
        return replace(known, problem=str(error))
    return replace(
        known,
        urls=tuple(dict.fromkeys(urls_of(conf, host.address.hostname))),
        backends=tuple(dict.fromkeys(backends_of(conf))),
        access_logs=tuple(dict.fromkeys(log.path for log in access_logs(conf))),
    )


def urls_of(conf: Conf, hostname: str) -> Iterator[str]:
    """Yield an address for each port of HTTP, those without TLS first."""
    name = f"[{hostname}]" if ":" in hostname else hostname
    ports: dict[bool, list[str]] = {False: [], True: []}
    for place in conf.named("listen"):
        words = place.statement.arguments
        if place.context != ("http", "server") or not words or words[0].startswith(NEARBY):
            continue
        port = words[0].rpartition(":")[2]
        ports["ssl" in words[1:]].append(port if port.isdigit() else "80")
    for is_tls, usual in ((False, "80"), (True, "443")):
        for port in ports[is_tls]:
            scheme = "https" if is_tls else "http"
            yield f"{scheme}://{name}" + ("" if port == usual else f":{port}")


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
        if match and not argument.startswith("unix:"):
            yield match["host"].strip("[]")
