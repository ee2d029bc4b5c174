"""A `[workload.NAME]` by a log's profile, with comments that say what each number rests on."""

import json
import math
from collections.abc import Iterator

from intop.domain.workload import Recording
from intop.traffic.profile import PathCount, Profile

HEAVIEST = 200
"""The weight of the most frequent path."""
HEAD = 40
"""Paths that are written by themselves. Rarer ones count for the groups that follow."""
FEWEST_CONNECTIONS = 8
DEFAULT_CONNECTIONS = 64
BURSTY = 2.0
"""The index of dispersion over a second, from which independent arrivals are too even."""
POISSON = 0.5


def workload_text(profile: Profile, name: str, recording: Recording | None = None) -> str:
    """Return the table. Raises ValueError where the log has no request that a load can send."""
    if not profile.counted or not profile.paths:
        raise ValueError("the log has no GET request that was answered with a status below 400")
    lines = [*_about(profile), f"[workload.{name}]", *_keys(profile, recording)]
    return "\n".join([*lines, "", *_paths(profile, name)]) + "\n"


def lab_files_text(profile: Profile, cluster: str) -> str:
    """Return the table of a lab's files: the paths of the workload with their mean sizes."""
    lines = [f"[cluster.{cluster}.files]        # KB by path, served by a lab"]
    lines += [
        f"{json.dumps(path.path)} = {max(path.bytes / path.requests, 1) / 1000:.3f}"
        for path in _shown(profile).values()
    ]
    return "\n".join(lines) + "\n"


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
    total = sum(profile.protocols.values())
    if profile.protocols.get("HTTP/2.0", 0) * 2 > total:
        yield f'http = "2"        # {profile.protocols["HTTP/2.0"] / total:.0%} of the requests'
    if profile.schemes:
        scheme, count = profile.schemes.most_common(1)[0]
        yield f'scheme = "{scheme}"        # {count / profile.counted:.0%} of the requests'
    if profile.round_trips_ms:
        ordered = sorted(profile.round_trips_ms)
        quarters = [ordered[len(ordered) * n // 4] for n in (1, 2, 3)]
        words = ", ".join(f"{each:.0f}" for each in quarters)
        yield f"# Round trips of clients: quartiles {words} ms ($tcpinfo_rtt)."


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
    each, idle_s = profile.requests_per_connection, profile.median_idle_s
    busy_s = profile.mean_request_s
    if busy_s is None:
        yield f"connections = {DEFAULT_CONNECTIONS}        # not in the log: add $request_time"
    else:
        held_s = busy_s + (idle_s or 0.0)
        # A burst that waits for connections is no burst any more.
        rate_rps = profile.peak_rps if recording else profile.rate_rps
        rate = "the busiest second's rate" if recording else "rate"
        needed = max(FEWEST_CONNECTIONS, math.ceil(1.5 * rate_rps * held_s))
        yield (
            f"connections = {needed}        # 1.5 times {rate} x {1000 * held_s:.0f} ms that a "
            "request holds one (Little's law)"
        )
    if each is None:
        yield "# Add $connection, $connection_requests, $msec and $request_time to log_format for"
        yield "# requests of a connection and its pauses."
        return
    yield f"requests_per_connection = {max(1.0, each):.1f}"
    yield 'lifetimes = "geometric"'
    if idle_s is not None and idle_s >= 0.001:
        pauses = f"the median of {len(profile.idle_s):,} pauses"
        yield f"think_ms = {1000 * idle_s:.0f}        # {pauses}"


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
    return groups


def _group(number: int, path: PathCount) -> Group:
    """Return the group of a path by its rank. Frequent paths are groups of their own."""
    if number < HEAD:
        return path.path, -1
    end = path.path.rpartition(".")[2] if "." in path.path.rpartition("/")[2] else ""
    return end.lower(), math.floor(math.log2(path.bytes / path.requests + 1)) // 3
