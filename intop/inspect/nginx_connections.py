"""Whether a load balancer has connections, files, ports and room in conntrack for the loads."""

import math
from collections.abc import Iterable, Iterator, Sequence

from intop.domain.cluster import Cluster
from intop.domain.nginx import proxied
from intop.domain.nginx.conf import Conf
from intop.domain.workload import Workload
from intop.errors import HostError
from intop.hosts.connection_limits import ConnectionLimits, connection_limits
from intop.hosts.host import Host
from intop.hosts.nginx import UNLIMITED, RunningNginx, running, what_it_reads

PER_CONNECTION = 2
"""A connection that is passed on is one to the client and one to a backend."""
OTHER_FILES = 16
"""Files of a worker: sockets that it listens on, logs, epoll, channels to the master."""
DEFAULT_CONNECTIONS = 512
"""nginx's own default of worker_connections."""
TIME_WAIT_S = 60
"""Seconds for which the end that closes first keeps a connection's port. Linux has it as a
constant."""
TRACKED_S = 120
"""Seconds for which conntrack remembers a closed connection, where the host does not say."""
NEARLY = 0.8
"""A share of conntrack's table above which it is full soon."""


def warnings(host: Host, workloads: Sequence[Workload], cluster: Cluster) -> list[str]:
    """Return what to say of a load balancer before these loads. Raises what asking it does."""
    name, nginx, conf = host.address.name, running(host), None
    lines: list[str] = []
    if nginx.masters == 1:
        try:
            conf = what_it_reads(host)
        except HostError as error:
            lines.append(f"worker_connections was not looked at: {error}")
    elif nginx.masters == 0 and nginx.not_roots:
        lines.append(
            f"{name}: nginx {nginx.not_roots[0]}. intop asks no such nginx for its configuration, "
            "and can't tune its directives; it tunes the kernel's parameters as usual"
        )
    lines += [f"{name}: {line}" for line in _workers(nginx, conf, _most_connections(workloads))]
    unkept: tuple[proxied.Unkept, ...] = ()
    if conf is not None and nginx.facts is not None:
        unkept = proxied.unkept(conf, nginx.facts.version)
        lines += [f"{name}: {line}" for line in proxied.lines(unkept)]
    limits = connection_limits(host)
    return lines + [
        f"{name}: {line}"
        for line in limit_warnings(
            limits, workloads, backends=len(cluster.backends), is_kept=not unkept
        )
    ]


def _most_connections(workloads: Iterable[Workload]) -> int:
    """Return the most connections that a load has open at once, over all clients."""
    return max(
        (max(w.connections, sum(c.connections or 0 for c in w.clients)) for w in workloads),
        default=0,
    )


# Workers ------------------------------------------------------------------------------------------


def _workers(nginx: RunningNginx, conf: Conf | None, connections: int) -> Iterator[str]:
    """Yield what nginx's workers lack for so many connections, which they share evenly at best.

    `conf` is what nginx reads, if that is known. Nothing is said where not exactly one nginx runs,
    or its workers are not known.
    """
    if nginx.masters != 1 or not nginx.workers:
        return
    workers = len(nginx.workers)
    each = math.ceil(PER_CONNECTION * connections / workers)
    load = (
        f"the load's {connections:,} connections, {PER_CONNECTION} for each that is passed on, "
        f"make {each:,} for each of {workers}"
    )
    limit = min(nginx.workers)
    if limit < min(each + OTHER_FILES, UNLIMITED):
        yield (
            f"a worker of nginx may open {limit:,} files, and {load}: "
            f"{_raise_nofile(nginx, conf, _roomy(each + OTHER_FILES))}"
        )
    if conf is None:
        return
    allowed = _number(conf, "worker_connections", ("events",)) or DEFAULT_CONNECTIONS
    if allowed < each:
        yield (
            f"a worker of nginx takes {allowed:,} connections (worker_connections), and {load}: "
            f"write worker_connections {_roomy(each)}; into its block events"
        )


def _raise_nofile(nginx: RunningNginx, conf: Conf | None, files: int) -> str:
    if conf is not None and _number(conf, "worker_rlimit_nofile", ()) is not None:
        return f"write worker_rlimit_nofile {files}; in place of the one in its configuration"
    if nginx.unit:
        return (
            f"write [Service] and LimitNOFILE={files} to "
            f"/etc/systemd/system/{nginx.unit}.d/nofile.conf, then: systemctl daemon-reload && "
            f"systemctl restart {nginx.unit}"
        )
    return f"write worker_rlimit_nofile {files}; at the top of its configuration"


def _number(conf: Conf, directive: str, context: tuple[str, ...]) -> int | None:
    for place in conf.named(directive):
        arguments = place.statement.arguments
        if place.context == context and arguments and arguments[0].isascii():
            return int(arguments[0]) if arguments[0].isdecimal() else None
    return None


def _roomy(number: int) -> int:
    """Return the power of two that has room for twice as many."""
    return 1 << (2 * number - 1).bit_length()


# Ports and conntrack ------------------------------------------------------------------------------


def limit_warnings(
    limits: ConnectionLimits, workloads: Sequence[Workload], *, backends: int, is_kept: bool
) -> Iterator[str]:
    """Yield where the loads' connections may run out of ports or of conntrack's table.

    `is_kept` says that connections to backends are kept: else each request has its own.
    """
    connections = _most_connections(workloads)
    yield from _ports(limits, workloads, connections / backends, backends, is_kept=is_kept)
    yield from _tracked(limits, workloads, connections, is_kept=is_kept)


def _ports(
    limits: ConnectionLimits,
    workloads: Iterable[Workload],
    at_once: float,
    backends: int,
    *,
    is_kept: bool,
) -> Iterator[str]:
    if limits.ports is None:
        return
    widen = "widen net.ipv4.ip_local_port_range there"
    if at_once > limits.ports:
        yield (
            f"it has {limits.ports:,} local ports to each backend, and the load's connections may "
            f"be {at_once:,.0f} to each at once: {widen}, or add backends or addresses of them"
        )
        return
    rate_rps = max((load.rate_rps for load in workloads), default=0.0) / backends
    if not is_kept and not limits.reuses_ports and rate_rps * TIME_WAIT_S > limits.ports:
        s = limits.ports / rate_rps
        lasting = f"{s:,.0f} s" if s >= 10 else f"{s:.2g} s"
        yield (
            f"each request opens a connection to a backend, {rate_rps:,.0f}/s to each, and its "
            f"{limits.ports:,} local ports last for {lasting} where it "
            f"closes first (TIME_WAIT takes {TIME_WAIT_S} s): keep the connections, {widen}, or "
            "set net.ipv4.tcp_tw_reuse = 1"
        )


def _tracked(
    limits: ConnectionLimits, workloads: Iterable[Workload], connections: int, *, is_kept: bool
) -> Iterator[str]:
    now, most = limits.tracked, limits.tracked_most
    if now is None or not most:
        return
    raise_it = (
        "raise net.netfilter.nf_conntrack_max there, or exempt the load (notrack), else packets "
        "are dropped (nf_conntrack: table full)"
    )
    if now > NEARLY * most:
        yield f"conntrack follows {now:,} of at most {most:,} connections already: {raise_it}"
        return
    remembered_s = limits.tracked_s or TRACKED_S
    closed = max((_opened_rps(load, is_kept=is_kept) for load in workloads), default=0.0)
    needed = PER_CONNECTION * connections + closed * remembered_s
    if now + needed > most:
        yield (
            f"conntrack follows {now:,} of at most {most:,} connections, and the load adds up to "
            f"{needed:,.0f}, since it remembers closed ones for {remembered_s} s: {raise_it}"
        )


def _opened_rps(load: Workload, *, is_kept: bool) -> float:
    """Return the new connections a second, with those to backends."""
    by_clients = sum(
        load.rate_rps * clients.share / clients.requests_per_connection
        for clients in load.clients
        if clients.requests_per_connection
    )
    return by_clients + (0.0 if is_kept else load.rate_rps)
