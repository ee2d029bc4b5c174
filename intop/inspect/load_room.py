"""Whether a load has enough connections for its rate, by what its paths answered or its link."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from intop.domain.cluster import Cluster, LabSpec, Link
from intop.domain.concurrency import (
    FEW_REQUESTS,
    Held,
    Room,
    carried,
    in_ms,
    kept_connections,
    rooms,
)
from intop.domain.fetched import Fetched
from intop.domain.workload import Clients, Workload
from intop.run.load_paths import numbered

ROUND_TRIPS = {"http": 2, "https": 3}
"""Round trips of a request with its connection. On a kept connection it has one: the answer's own.
"""
UNKNOWN = Held(least_s=0.0, most_s=0.0)


def rooms_of(
    workload: Workload, cluster: Cluster, url: str, fetched: Sequence[Fetched], share: float = 1.0
) -> tuple[Room, ...]:
    """Return the room of each class of clients of a workload, by a load generator's answers.

    The generator sends a `share` of the load. Requests that nobody tried, such as a POST, take
    their think time at least.
    """
    paths = [
        numbered(workload, path)
        for path in workload.asked(cluster.static_paths, cluster.dynamic_path)
    ]
    return rooms(workload, [(c, _held(c, paths, url, fetched)) for c in workload.clients], share)


def _held(clients: Clients, paths: Sequence[str], url: str, fetched: Sequence[Fetched]) -> Held:
    """Return how long a request of a class holds its connection, its think time aside."""
    manner = (clients.http, clients.headers)
    asked = [answer for answer in fetched if (answer.http, answer.headers) == manner]
    answered = {a.path: a for a in asked if a.status and not a.problem}
    times = [answered[path] for path in paths if path in answered]
    if clients.method != "GET" or not times:
        return UNKNOWN
    read_s = [
        a.bytes / 1024 / clients.read_kb_per_s if clients.read_kb_per_s else 0.0 for a in times
    ]
    # The first answer took a connection, too, which most of the load's requests don't.
    share = 1 / ROUND_TRIPS[url.partition(":")[0]]
    kept = [a.seconds * (share if a is asked[0] else 1.0) for a in times]
    return Held(
        least_s=fmean(map(max, kept, read_s)),
        most_s=fmean(max(a.seconds, read) for a, read in zip(times, read_s, strict=True)),
    )


def rooms_on_lab(workload: Workload, lab: LabSpec) -> tuple[Room, ...]:
    """Return the room of each class of clients on a lab, by its links alone.

    Where the lab's clients have links of their own, each has its share of rate and connections.
    """
    shares = [clients.share for clients in lab.clients] or [1.0]
    names = [clients.name for clients in lab.clients] or [""]
    return tuple(
        room
        for link, share, name in zip(lab.client_links, shares, names, strict=True)
        for room in rooms_after(workload, _trip_s(link), share, name)
    )


def _trip_s(link: Link | None) -> float:
    return sum(way.delay_ms for way in link.directions) / 1000 if link else 0.0


def rooms_after(
    workload: Workload, trip_s: float, share: float = 1.0, way: str = ""
) -> tuple[Room, ...]:
    """Return the room of each class of clients where an answer takes just a round trip."""
    held = Held(least_s=trip_s, most_s=trip_s)
    return rooms(workload, [(clients, held) for clients in workload.clients], share, way)


def short_connections(generator: str, workload: Workload) -> list[str]:
    """Return a line where a kept connection carries few requests in a trial."""
    connections = kept_connections(workload)
    if connections is None or workload.duration_s is None:
        return []
    each = workload.due_rps * workload.duration_s / connections
    if each >= FEW_REQUESTS:
        return []
    return [f"{generator}: {workload.name}: {carried(each, workload.duration_s)}"]


def problems(generator: str, rooms: Iterable[Room]) -> list[str]:
    """Return a line for each class of clients that has too few connections for its rate."""
    return [f"{generator}: {room}: {room.remedy()}" for room in rooms if room.is_too_small]


def warnings(generator: str, rooms: Iterable[Room]) -> list[str]:
    """Return a line for each class of clients that may have too few connections."""
    return [
        f"{generator}: {room.whose} may have too few connections: for {room.rate_rps:,.0f} "
        f"requests/s that hold one for up to {in_ms(room.held.most_s)}, {room.has} "
        f"{'is' if room.connections == 1 else 'are'} not enough "
        f"(Little's law): {room.remedy()}"
        for room in rooms
        if room.may_be_too_small and not room.is_too_small
    ]
