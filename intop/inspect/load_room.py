"""Whether a load has enough connections for its rate, by what its paths answered or its link."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from intop.domain.cluster import Cluster, LabSpec, Link
from intop.domain.concurrency import Held, Room, in_ms, rooms
from intop.domain.fetched import Fetched
from intop.domain.workload import Clients, Workload
from intop.run.load_paths import numbered

ROUND_TRIPS = {"http": 2, "https": 3}
"""Of a request with its connection. On a connection that is kept it has one: the answer's own."""
UNKNOWN = Held(least_s=0.0, most_s=0.0)


def rooms_of(
    workload: Workload, cluster: Cluster, url: str, fetched: Sequence[Fetched], share: float = 1.0
) -> tuple[Room, ...]:
    """The room of each class of clients of a workload, by what a load generator was answered.

    The generator sends a `share` of the load. What nobody asked for, such as a POST, takes its
    think time at least.
    """
    paths = [
        numbered(workload, path)
        for path in workload.asked(cluster.static_paths, cluster.dynamic_path)
    ]
    return rooms(workload, [(c, _held(c, paths, url, fetched)) for c in workload.clients], share)


def _held(clients: Clients, paths: Sequence[str], url: str, fetched: Sequence[Fetched]) -> Held:
    """How long a request of a class holds its connection, its think time aside."""
    manner = (clients.http, clients.headers)
    asked = [one for one in fetched if (one.http, one.headers) == manner]
    answered = {one.path: one for one in asked if one.status and not one.problem}
    times = [answered[path] for path in paths if path in answered]
    if clients.method != "GET" or not times:
        return UNKNOWN
    read_s = [
        one.bytes / 1024 / clients.read_kb_per_s if clients.read_kb_per_s else 0.0 for one in times
    ]
    # The first one had to connect, and the load's requests don't, but for those of new connections.
    share = 1 / ROUND_TRIPS[url.partition(":")[0]]
    kept = [one.seconds * (share if one is asked[0] else 1.0) for one in times]
    return Held(
        least_s=fmean(map(max, kept, read_s)),
        most_s=fmean(max(one.seconds, read) for one, read in zip(times, read_s, strict=True)),
    )


def rooms_on_lab(workload: Workload, lab: LabSpec) -> tuple[Room, ...]:
    """The room of each class of clients on a lab that nobody has asked: by its links alone.

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
    """The room of each class of clients where an answer takes a round trip and no more."""
    held = Held(least_s=trip_s, most_s=trip_s)
    return rooms(workload, [(clients, held) for clients in workload.clients], share, way)


def problems(generator: str, rooms: Iterable[Room]) -> list[str]:
    """A line for each class of clients that can't reach its rate for lack of connections."""
    return [f"{generator}: {room}: {room.remedy()}" for room in rooms if room.is_too_small]


def warnings(generator: str, rooms: Iterable[Room]) -> list[str]:
    """A line for each class of clients that may have too few connections."""
    return [
        f"{generator}: {room.whose} may have too few connections: for {room.rate_rps:,.0f} "
        f"requests/s that hold one for up to {in_ms(room.held.most_s)}, {room.has} "
        f"{'is' if room.connections == 1 else 'are'} not enough "
        f"(Little's law): {room.remedy()}"
        for room in rooms
        if room.may_be_too_small and not room.is_too_small
    ]
