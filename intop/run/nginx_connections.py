"""Whether nginx may have as many connections as the loads, and how it has those to backends."""

from collections.abc import Sequence

from intop.domain.cluster import Cluster
from intop.domain.nginx import proxied
from intop.domain.workload import Workload
from intop.errors import HostError
from intop.hosts.connection_limits import connection_limits as limits_of
from intop.hosts.host import Host
from intop.hosts.nginx import running, what_it_reads
from intop.run import connection_limits, worker_limits


def warnings(host: Host, workloads: Sequence[Workload], cluster: Cluster) -> list[str]:
    """What to say of a load balancer before these loads. Raises what asking it does."""
    name, seen, conf = host.address.name, running(host), None
    told: list[str] = []
    if seen.masters == 1:
        try:
            conf = what_it_reads(host)
        except HostError as error:
            told.append(f"worker_connections was not looked at: {error}")
    elif seen.masters == 0 and seen.not_roots:
        told.append(
            f"{name}: nginx {seen.not_roots[0]}. intop asks no such nginx for its configuration, "
            "and can't tune its directives; it tunes the kernel's parameters as usual"
        )
    most = worker_limits.connections_of(workloads)
    told += worker_limits.warnings(name, seen, conf, most)
    opening: tuple[proxied.Unkept, ...] = ()
    if conf is not None and seen.facts is not None:
        opening = proxied.unkept(conf, seen.facts.version)
        told += [f"{name}: {line}" for line in proxied.lines(opening)]
    return told + connection_limits.warnings(
        name, limits_of(host), workloads, backends=len(cluster.backends), is_kept=not opening
    )
