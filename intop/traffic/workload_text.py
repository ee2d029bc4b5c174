"""A `[workload.NAME]` by a log's profile, with comments that say what each number rests on."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from intop.domain.lab_files import MOST_WEIGHT
from intop.domain.workload import Recording
from intop.traffic.clients import ClientClass
from intop.traffic.profile import PathCount, Profile

HEAVIEST = 200
"""The weight of the most frequent path."""
LEAST_DELAY_MS = 0.5
"""A link of a lab with a shorter delay would only add its own work."""
HEAD = 40
"""Paths that are written by themselves. Rarer ones count for the groups that follow."""
FEWEST_CONNECTIONS = 8
DEFAULT_CONNECTIONS = 64
FROM_AFAR_S = 0.1
"""A client from afar holds a connection for at least so long. A server's times don't show it."""
LONGEST_WARM_UP_S = 30
BURSTY = 2.0
"""The index of dispersion over a second, from which independent arrivals are too even."""
POISSON = 0.5

Shares = Sequence[tuple[ClientClass, float]]


def workload_text(
    profile: Profile,
    name: str,
    recording: Recording | None = None,
    *,
    has_classes: bool = True,
) -> str:
    """Return the table. Without `has_classes` all clients are alike in it: a lab's classes differ.

    Raises ValueError where the log has no request that a load can send.
    """
    if not profile.counted or not profile.paths:
        raise ValueError("the log has no GET request that was answered with a status below 400")
    classes = profile.clients.shares() if has_classes else []
    lines = [*_about(profile), f"[workload.{name}]", *_keys(profile, recording)]
    if len(classes) < 2:
        lines += [f"# Clients: {_class_about(*only)}." for only in classes]
        lines += _behaviour(profile, None)
        classes = []
    for each, share in classes:
        lines += ["", f"[[workload.{name}.clients]]        # {_class_about(each, share)}"]
        lines += [f"name = {json.dumps(each.name)}", f"share = {share:.4f}"]
        lines += _behaviour(profile, each)
    return "\n".join([*lines, "", *_paths(profile, name)]) + "\n"


def lab_text(profile: Profile, cluster: str, lost_percent: float | None = None) -> str:
    """Return what makes a lab serve the log's files, answer as late, and have its clients.

    `lost_percent` is the share of packets that links with a delay lose; None where it is not known.
    """
    shown = list(_shown(profile).values())
    lines = [
        *_links(profile, cluster, lost_percent),
        f"[cluster.{cluster}.files]        # KB by path",
    ]
    lines += [
        f"{json.dumps(path.path)} = {max(path.bytes / path.requests, 1) / 1000:.3f}"
        for path in shown
    ]
    if any(path.waits for path in shown):
        about = "weights of the ms after which a page is there ($upstream_response_time)"
        lines += ["", f"[cluster.{cluster}.waits]        # {about}"]
        lines += [f"{json.dumps(path.path)} = {_weights(path)}" for path in shown if path.waits]
    return "\n".join(lines) + "\n"


def _weights(path: PathCount) -> str:
    """Return an inline table with the weight of each wait (ms). The rarest ones are left out."""
    counts = Counter(path.waits)
    counts[0] += path.without_upstream
    most = max(counts.values())
    weights = {ms: round(MOST_WEIGHT * n / most) for ms, n in sorted(counts.items())}
    parts = [f"{ms} = {weight}" for ms, weight in weights.items() if weight]
    return f"{{ {', '.join(parts)} }}"


def _about(profile: Profile) -> Iterator[str]:
    """Yield what was read, and what is left out."""
    yield f"# Learned by intop workload learn from {profile.lines:,} lines."
    if profile.unreadable:
        where = ", ".join(profile.examples)
        yield f"# {profile.unreadable:,} lines could not be read, such as {where}."
    for reason, count in profile.left_out.most_common():
        yield f"# Left out: {count:,} requests, {reason}."
    if profile.secret_requests:
        yield f"# Left out: {profile.secret_requests:,} requests whose path may hold a secret."
    if profile.with_query:
        yield f"# {profile.with_query:,} requests had a query string, which is never written."
    if profile.backwards:
        yield f"# Time went backwards {profile.backwards:,} times."


def _keys(profile: Profile, recording: Recording | None) -> Iterator[str]:
    yield 'kind = "slt"'
    yield 'check = "status"        # answers may change from one request to the next'
    rate_rps = round(recording.rate_rps, 2) if recording else round(profile.rate_rps)
    yield f"rate_rps = {max(1, rate_rps)}        # the mean of the busiest hour"
    yield from _recorded(profile, recording) if recording else _arrivals(profile)
    yield from _connections(profile, recording)
    if profile.schemes:
        scheme, count = profile.schemes.most_common(1)[0]
        yield f'scheme = "{scheme}"        # {count / profile.counted:.0%} of the requests'


def _arrivals(profile: Profile) -> Iterator[str]:
    second, tenth, ten = (profile.dispersion(n) for n in (10, 1, 100))
    if second is None:
        yield "# The log is too short to tell how bursty arrivals are."
        return
    known = [(0.1, tenth), (1, second), (10, ten)]
    words = ", ".join(
        f"{value:.2f} over {length:g} s" for length, value in known if value is not None
    )
    kind = "poisson" if second >= POISSON else "constant"
    yield f'arrivals = "{kind}"        # index of dispersion: {words}'
    if second > BURSTY:
        yield "# The log's arrivals come in larger bursts than independent ones."
    if tenth is None:
        yield "# Times are whole seconds. Add $msec to log_format for shorter bursts."


def _recorded(profile: Profile, recording: Recording) -> Iterator[str]:
    yield 'arrivals = "recorded"'
    about = f"{recording.requests:,} requests of {recording.seconds:,.0f} s, beside the study"
    yield f"recording = {json.dumps(recording.path)}        # {about}"
    if not profile.has_parts:
        yield "# Times are whole seconds: the recording draws them within each second. Add $msec to"
        yield "# log_format for the log's own bursts."
    if profile.secret_requests:
        yield "# There, a request whose path may hold a secret asks for the path before it."


def _connections(profile: Profile, recording: Recording | None) -> Iterator[str]:
    busy_s = profile.mean_request_s
    if busy_s is None:
        yield f"connections = {DEFAULT_CONNECTIONS}        # not in the log: add $request_time"
        return
    held_s = busy_s + (profile.median_idle_s or 0.0)
    # A burst that waits for connections is no burst any more.
    rate_rps = profile.peak_rps if recording else profile.rate_rps
    rate = "the busiest second's rate" if recording else "rate"
    needed = rate_rps * held_s
    why = f"{rate} x {1000 * held_s:.0f} ms that a request holds one (Little's law)"
    burst = profile.peak_tenth if recording else None
    if burst is not None and burst > needed:
        needed = burst
        why = f"the requests of the busiest {1000 * FROM_AFAR_S:.0f} ms, which may all be under way"
    connections = max(FEWEST_CONNECTIONS, math.ceil(1.5 * needed))
    yield f"connections = {connections}        # 1.5 times {why}"
    each = profile.requests_per_connection
    if each is not None and each > 1:
        used_s = math.ceil(connections / max(1.0, profile.rate_rps))
        warm_up_s = min(LONGEST_WARM_UP_S, max(1, used_s))
        yield f"warmup_s = {warm_up_s}        # then each connection has carried a request"


def _behaviour(profile: Profile, clients: ClientClass | None) -> Iterator[str]:
    """Yield what a class of clients does; None stands for all clients."""
    each = profile.requests_per_connection
    idle_s = profile.idle_s
    if clients is not None and clients.requests_per_connection is not None:
        each = clients.requests_per_connection
    if clients is not None and clients.idle_s.seen:
        idle_s = clients.idle_s
    total = sum(profile.protocols.values())
    if profile.protocols.get("HTTP/2.0", 0) * 2 > total:
        yield f'http = "2"        # {profile.protocols["HTTP/2.0"] / total:.0%} of the requests'
    if each is None:
        yield "# Add $connection, $connection_requests, $msec and $request_time to log_format for"
        yield "# requests of a connection and its pauses."
        return
    yield f"requests_per_connection = {max(1.0, each):.1f}"
    yield 'lifetimes = "geometric"'
    if idle_s.median is not None and idle_s.median >= 0.001:
        yield f"think_ms = {1000 * idle_s.median:.0f}        # the median of {idle_s.seen:,} pauses"


def _class_about(clients: ClientClass, share: float) -> str:
    """Return what a class of clients rests on."""
    trip_ms = clients.round_trips_ms.median
    trips = "" if trip_ms is None else f"; median round trip {trip_ms:.0f} ms ($tcpinfo_rtt)"
    return f"{share:.0%} of the requests, {clients.about}{trips}"


def _links(profile: Profile, cluster: str, lost_percent: float | None) -> Iterator[str]:
    """Yield a lab's classes of clients, each behind a link with its delay and loss."""
    classes = profile.clients.shares()
    if len(classes) < 2 and not any(_delay_ms(each) for each, _ in classes):
        return
    yield "# A link's delay is half of the median $tcpinfo_rtt of its class. A log does not tell"
    if lost_percent is None:
        yield "# loss: add loss_percent where you know it."
    else:
        yield "# loss: it is the share of its segments that the host has sent again since it"
        yield "# started, also to backends."
    lost = f"{lost_percent or 0:.2f}"
    loss = f", loss_percent = {lost}" if float(lost) else ""
    for each, share in classes:
        yield f"[[cluster.{cluster}.clients]]        # {_class_about(each, share)}"
        yield f"name = {json.dumps(each.name)}"
        yield f"share = {share:.4f}"
        if delay_ms := _delay_ms(each):
            yield f"link = {{ delay_ms = {delay_ms:.1f}{loss} }}"
        yield ""


def _delay_ms(clients: ClientClass) -> float:
    """Return the delay of a link one way (ms), or 0 where there should be none."""
    delay_ms = clients.delay_ms or 0.0
    return delay_ms if delay_ms >= LEAST_DELAY_MS else 0.0


def _paths(profile: Profile, name: str) -> Iterator[str]:
    shown = list(_shown(profile).values())
    largest = max(path.requests for path in shown)
    yield f"# {len(profile.paths):,} different paths; ids in them count as one path."
    yield f"[workload.{name}.paths]        # with weights"
    for path in shown:
        weight = max(1, round(HEAVIEST * path.requests / largest))
        size = path.bytes / path.requests
        more = f", for {path.paths:,} rare paths" if path.paths > 1 else ""
        yield f"{json.dumps(path.path)} = {weight}        # {size / 1000:.1f} kB{more}"


def places(profile: Profile) -> dict[str, int]:
    """Return, for each path of a profile, its place among those of the text: itself or a group."""
    place_of = {group: place for place, group in enumerate(_shown(profile))}
    return {path.path: place_of[_group(number, path)] for number, path in enumerate(profile.paths)}


Group = tuple[str, int]


def _shown(profile: Profile) -> dict[Group, PathCount]:
    """Return the paths that are written: one for all rare ones of a type and about a size."""
    groups: dict[Group, PathCount] = {}
    for number, path in enumerate(profile.paths):
        known = groups.setdefault(_group(number, path), PathCount(path.path, paths=0))
        known.requests += path.requests
        known.bytes += path.bytes
        known.paths += path.paths
        known.without_upstream += path.without_upstream
        for ms, count in path.waits.items():
            known.waits[ms] = known.waits.get(ms, 0) + count
    return groups


def _group(number: int, path: PathCount) -> Group:
    """Return the group of a path by its rank. Frequent paths are groups of their own."""
    if number < HEAD:
        return path.path, -1
    end = path.path.rpartition(".")[2] if "." in path.path.rpartition("/")[2] else ""
    return end.lower(), math.floor(math.log2(path.bytes / path.requests + 1)) // 3
