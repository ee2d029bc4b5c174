"""Whether the load balancer has ports to its backends, and room in conntrack, for a load."""

from collections.abc import Iterable, Iterator

from intop.domain.workload import Workload
from intop.hosts.connection_limits import ConnectionLimits
from intop.run.worker_limits import PER_CONNECTION, connections_of

TIME_WAIT_S = 60
"""How long the end that closes first keeps a connection's port. Linux has it as a constant."""
TRACKED_S = 120
"""How long conntrack remembers a closed connection, where the host does not say."""
NEARLY = 0.8
"""A share of conntrack's table above which it is full soon."""


def warnings(
    name: str,
    limits: ConnectionLimits,
    workloads: Iterable[Workload],
    *,
    backends: int,
    is_kept: bool,
) -> list[str]:
    """What to say of a load balancer whose connections may run out of ports or table.

    `is_kept` says that connections to backends are kept: else each request has one of its own.
    """
    loads = tuple(workloads)
    return [
        f"{name}: {line}"
        for line in (
            *_ports(limits, loads, backends=backends, is_kept=is_kept),
            *_tracked(limits, loads, is_kept=is_kept),
        )
    ]


def _ports(
    limits: ConnectionLimits, loads: tuple[Workload, ...], *, backends: int, is_kept: bool
) -> Iterator[str]:
    if limits.ports is None:
        return
    widen = "widen net.ipv4.ip_local_port_range there"
    at_once = connections_of(loads) / backends
    if at_once > limits.ports:
        yield (
            f"it has {limits.ports:,} local ports to each backend, and the load's connections may "
            f"be {at_once:,.0f} to each at once: {widen}, or add backends or addresses of them"
        )
        return
    rate_rps = max((load.rate_rps for load in loads), default=0.0) / backends
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
    limits: ConnectionLimits, loads: tuple[Workload, ...], *, is_kept: bool
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
    closed = max((_opened_rps(load, is_kept=is_kept) for load in loads), default=0.0)
    needed = PER_CONNECTION * connections_of(loads) + closed * remembered_s
    if now + needed > most:
        yield (
            f"conntrack follows {now:,} of at most {most:,} connections, and the load adds up to "
            f"{needed:,.0f}, since it remembers closed ones for {remembered_s} s: {raise_it}"
        )


def _opened_rps(load: Workload, *, is_kept: bool) -> float:
    """New connections a second, those to backends included."""
    by_clients = sum(
        load.rate_rps * clients.share / clients.requests_per_connection
        for clients in load.clients
        if clients.requests_per_connection
    )
    return by_clients + (0.0 if is_kept else load.rate_rps)
