"""Whether nginx's workers may have as many connections and open files as a load takes."""

import math
from collections.abc import Iterable

from intop.domain.nginx.conf import Conf
from intop.domain.workload import Workload
from intop.hosts.nginx import UNLIMITED, RunningNginx

PER_CONNECTION = 2
"""A connection that is passed on is one to the client and one to a backend."""
OTHER_FILES = 16
"""Of a worker: sockets that it listens on, logs, epoll, channels to the master."""
DEFAULT_CONNECTIONS = 512
"""nginx's own worker_connections, where it doesn't stand."""


def connections_of(workloads: Iterable[Workload]) -> int:
    """The most connections that one of the loads has open at once, over all clients."""
    return max((_connections(workload) for workload in workloads), default=0)


def _connections(workload: Workload) -> int:
    own = sum(clients.connections or 0 for clients in workload.clients)
    return max(workload.connections, own)


def warnings(name: str, found: RunningNginx, conf: Conf | None, connections: int) -> list[str]:
    """What to say of a load balancer whose workers are too narrow for so many connections.

    They are shared evenly at best. `conf` is what nginx reads, None where that is not known: then
    nothing is said of worker_connections. Nothing is said, either, where not exactly one nginx
    runs, or its workers are not known.
    """
    if found.masters != 1 or not found.workers:
        return []
    workers = len(found.workers)
    each = math.ceil(PER_CONNECTION * connections / workers)
    load = (
        f"the load's {connections:,} connections, {PER_CONNECTION} for each that is passed on, "
        f"make {each:,} for each of {workers}"
    )
    told: list[str] = []
    limit = min(found.workers)
    if limit < min(each + OTHER_FILES, UNLIMITED):
        told.append(
            f"{name}: a worker of nginx may open {limit:,} files, and {load}: "
            f"{_raise_nofile(found, conf, _roomy(each + OTHER_FILES))}"
        )
    allowed = None if conf is None else _number(conf, "worker_connections", ("events",))
    if conf is not None and (allowed or DEFAULT_CONNECTIONS) < each:
        told.append(
            f"{name}: a worker of nginx takes {allowed or DEFAULT_CONNECTIONS:,} connections "
            f"(worker_connections), and {load}: write worker_connections {_roomy(each)}; into "
            "its block events"
        )
    return told


def _raise_nofile(found: RunningNginx, conf: Conf | None, files: int) -> str:
    if conf is not None and _number(conf, "worker_rlimit_nofile", ()) is not None:
        return f"write worker_rlimit_nofile {files}; in place of the one in its configuration"
    if found.unit:
        return (
            f"write [Service] and LimitNOFILE={files} to "
            f"/etc/systemd/system/{found.unit}.d/nofile.conf, then: systemctl daemon-reload && "
            f"systemctl restart {found.unit}"
        )
    return f"write worker_rlimit_nofile {files}; at the top of its configuration"


def _number(conf: Conf, directive: str, context: tuple[str, ...]) -> int | None:
    for place in conf.named(directive):
        arguments = place.statement.arguments
        if place.context == context and arguments and arguments[0].isascii():
            return int(arguments[0]) if arguments[0].isdecimal() else None
    return None


def _roomy(number: int) -> int:
    """The power of two that has room for twice as many."""
    return 1 << (2 * number - 1).bit_length()
