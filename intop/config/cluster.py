"""Clusters as they stand in a study's file: hosts that are there, or a lab that intop makes."""

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from intop.config.source import Place, Source, Table, is_local_path
from intop.domain.balancing import Balancing
from intop.domain.cluster import (
    Cluster,
    Direction,
    HostAddress,
    LabSpec,
    Link,
    Role,
    native_arch,
    other_arch,
)
from intop.domain.server import NGINX, SERVERS, Server, ServerName
from intop.errors import ConfigurationError, UsageError
from intop.masking import masked_value

Replicas = tuple[Cluster | LabSpec, ...]
"""One cluster, or several that are alike."""

_SERVER_NAME: Any = ServerName
_DIRECTION = {field.name for field in fields(Direction)}
_BALANCING = {field.name for field in fields(Balancing)}
_HOST = re.compile(
    r"((?P<user>[^\s:]+)@)?"
    r"(?P<hostname>\[[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?\]|[^\s@:\[\]]+)"
    r"(:(?P<port>[0-9]{1,9}))?"
)


def clusters_of(source: Source) -> tuple[dict[str, Replicas], frozenset[str]]:
    """Return the clusters by architecture, and the architectures that are optional."""
    clusters: dict[str, Replicas] = {}
    optional: set[str] = set()
    for name, tables in _tables(source.data.get("cluster")):
        arch = {"native": native_arch(), "other": other_arch()}.get(name, name)
        if arch in clusters:
            source.problem(("cluster", name), f"it means {arch} here, which stands there already")
        converted = [
            (_lab if "lab" in table else _cluster)(source, table, place, arch)
            for place, table in tables.items()
        ]
        replicas = tuple(cluster for cluster in converted if cluster is not None)
        clusters[arch] = replicas
        if any(table.get("optional") is True for table in tables.values()):
            optional.add(arch)
        if twice := _tuned_twice(replicas):
            source.problem(("cluster", name), f"two replicas have {twice}: each needs its own")
        if len(servers := {replica.server.name: None for replica in replicas}) > 1:
            source.problem(("cluster", name), f"replicas have one server, not {', '.join(servers)}")
    return clusters, frozenset(optional)


def without_nginx(clusters: Mapping[str, Replicas]) -> dict[str, Server]:
    """Return the servers that are not nginx, by architecture."""
    servers = {arch: replica.server for arch, replicas in clusters.items() for replica in replicas}
    return {arch: server for arch, server in servers.items() if server != NGINX}


def host_address(word: str, **options: Any) -> HostAddress:
    """Return a tuned host by `[USER@]HOST[:PORT]`, IPv6 in brackets; `options` as in a file.

    It is called `HOST[:PORT]`. Raises UsageError.
    """
    if (match := _HOST.fullmatch(word)) is None:
        raise UsageError(
            f"{masked_value(word)!r} is no host: [USER@]HOST[:PORT], an IPv6 address in brackets"
        )
    given: dict[str, Any] = {k: v for k, v in match.groupdict().items() if v is not None}
    hostname = given["hostname"].strip("[]")
    name = f"{hostname}:{given['port']}" if "port" in given else hostname
    given |= {"hostname": hostname, "name": name.replace("%", "-"), **options}
    if "port" in given:
        given["port"] = int(given["port"])
    source = Source(Path(f"--host {word}"), "", given)
    host = source.convert(HostAddress, _hosts(source, given, "load-balancer", ()), ())
    if host is None or source.problems:
        raise ConfigurationError(source.problems)
    return host


def _hosts(source: Source, value: Any, role: Role, place: Place) -> Any:
    """Return the table of a host, or those of several, with the role that their place means."""
    if isinstance(value, list):
        return [_hosts(source, table, role, (*place, n)) for n, table in enumerate(value)]
    if not isinstance(value, dict):
        return value
    source.refuse(value, ("role", "share"), place)
    for name in ("key_file", "known_hosts", "ssh_config"):
        if isinstance(path := value.get(name), str):
            source.check(partial(is_local_path, path), (*place, name))
    if type(sudo := value.get("sudo")) in (int, float):
        # For Python, 1 is true.
        what = f'must be true, false, "ask" or "doas" (got {sudo})'
        source.problem((*place, "sudo"), what)
    host = {name: part for name, part in value.items() if name != "share"} | {"role": role}
    if "jump" in value:
        host["jump"] = _hosts(source, value["jump"], role, (*place, "jump"))
    return host


def _lab(source: Source, table: Table, place: Place, arch: str) -> LabSpec | None:
    source.refuse(table, ("name", "arch", "balancing"), place)
    source.convert(bool, table.get("optional", False), (*place, "optional"))
    balancing = {key: value for key, value in table.items() if key in _BALANCING}
    if isinstance(log := table.get("access_log"), bool):
        balancing["access_log"] = "disk" if log else "off"
    if isinstance(sysctls := table.get("sysctls"), dict):
        values = sysctls.items()
        balancing["sysctls"] = [[k, str(v) if type(v) is int else v] for k, v in values]
    left_out = {"lab", "optional", *_BALANCING}
    own = {key: value for key, value in table.items() if key not in left_out}
    own |= {"name": table["lab"], "arch": arch, "balancing": balancing}
    own["link"] = _link(table.get("link"))
    if isinstance(clients := table.get("clients"), list):
        own["clients"] = [
            {**c, "link": _link(c.get("link"))} if isinstance(c, dict) else c for c in clients
        ]
    if isinstance(files := table.get("files"), dict):
        own["files"] = [[path, kb] for path, kb in files.items()]
    if isinstance(waits := table.get("waits"), dict):
        own["waits"] = [[path, _weights(own_table)] for path, own_table in waits.items()]
    lab = source.convert(LabSpec, own, place, {("balancing",): (), ("name",): ("lab",)})
    if lab is not None:
        source.check(partial(_check_link, lab.link, table.get("link")), place)
        for clients, own_table in zip(lab.clients, table.get("clients", ()), strict=True):
            source.check(partial(_check_link, clients.link, own_table.get("link")), place)
    return lab


def _weights(table: Any) -> Any:
    """Return pairs of a wait (ms) and its weight. In TOML a name is a text, also a number's."""
    if not isinstance(table, dict):
        return table
    return [[int(ms) if re.fullmatch("[0-9]{1,9}", ms) else ms, n] for ms, n in table.items()]


def _link(table: Any) -> Any:
    """The table of a link. What its `up` does not say is as it is for the other direction."""
    if not isinstance(table, dict) or not isinstance(table.get("up"), dict):
        return table
    same = {key: value for key, value in table.items() if key in _DIRECTION}
    return {**table, "up": {**same, **table["up"]}}


def _check_link(link: Link | None, table: Table | None) -> None:
    """Raises ValueError for settings that mean nothing without others."""
    if link is None or table is None:
        return
    if link.rate_mbit is None and table.keys() & {"burst_kb", "limit_kb"}:
        raise ValueError("link: burst_kb and limit_kb belong to a rate_mbit")
    if link.is_at_client and "burst_kb" in table:
        raise ValueError("link: burst_kb belongs to a rate_mbit without delay, loss or up")
    if not link.is_at_client and "seed" in table:
        raise ValueError("link: seed belongs to a loss or jitter")


_ROLES: Mapping[str, Role] = {
    "load_generator": "load-generator",
    "load_generators": "load-generator",
    "load_balancer": "load-balancer",
    "backends": "backend",
}


def _cluster(source: Source, table: Table, place: Place, arch: str) -> Cluster | None:
    source.refuse(table, ("arch", "emulation", "more_generators"), place)
    server = source.convert(_SERVER_NAME, table.get("server", NGINX.name), (*place, "server"))
    server = SERVERS[server or NGINX.name]
    source.check(partial(_check_restart, table, server), place)
    own = {key: value for key, value in table.items() if key != "nginx_restart"}
    own |= {"arch": arch, "server": asdict(server)}
    moved: dict[Place, Place] = {}
    if "nginx_restart" in table:
        moved["server_restart",] = ("nginx_restart",)
    own["server_restart"] = table.get("nginx_restart", table.get("server_restart", server.restart))
    for name, role in _ROLES.items():
        if name in table:
            own[name] = _hosts(source, table[name], role, (*place, name))
    if bool(table.get("load_generator")) == bool(table.get("load_generators")):
        what = "give it a load_generator, or [[...load_generators]] where several share the load"
        source.problem(place, what)
        return None
    if generators := own.pop("load_generators", None):
        several = generators if isinstance(generators, list) else [generators]
        own["load_generator"], *own["more_generators"] = several
        moved["load_generator",] = ("load_generators", 0)
        moved |= {("more_generators", n): ("load_generators", n + 1) for n in range(len(several))}
    return source.convert(Cluster, own, place, moved)


def _check_restart(table: Table, server: Server) -> None:
    """Raises ValueError for a command of nginx where another server is, and for two commands."""
    if "nginx_restart" in table and server != NGINX:
        raise ValueError(
            f"nginx_restart: the server is {server.name}: write server_restart, or leave it out "
            f"for `{server.restart}`"
        )
    if "nginx_restart" in table and "server_restart" in table:
        raise ValueError("nginx_restart and server_restart are the same: leave one out")


def _tuned_twice(replicas: Replicas) -> str | None:
    """Return a lab or load balancer that stands in more than one replica."""
    names = [
        f"lab {r.name}"
        if isinstance(r, LabSpec)
        else f"load balancer {r.load_balancer.hostname}:{r.load_balancer.port or 22}"
        for r in replicas
    ]
    return next((name for name in names if names.count(name) > 1), None)


def _tables(data: object) -> list[tuple[str, dict[Place, Table]]]:
    """Return each architecture's tables by their places. Conversion says what else is wrong."""
    tables: list[tuple[str, dict[Place, Table]]] = []
    for name, value in data.items() if isinstance(data, dict) else ():
        place: Place = ("cluster", name)
        if isinstance(value, dict):
            tables.append((name, {place: value}))
        elif isinstance(value, list):
            entries = enumerate(value)
            tables.append((name, {(*place, n): v for n, v in entries if isinstance(v, dict)}))
    return tables
