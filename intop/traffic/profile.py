"""The traffic of a log, in memory that does not grow with it."""

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from statistics import fmean
from typing import TYPE_CHECKING

from intop.domain.workload import is_path
from intop.traffic.clients import ClientClasses
from intop.traffic.logged import is_whole, seconds, whole
from intop.traffic.sample import Sample
from intop.traffic.upstream import NO_UPSTREAM, step_ms, upstream_ms

if TYPE_CHECKING:
    from intop.traffic.recorder import Recorder

MOST_PATHS = 20_000
"""Paths that are counted by themselves; later ones count by their type and size."""
MOST_CONNECTIONS = 50_000
"""Connections whose last answer is remembered."""
MOST_EXAMPLES = 3
HOUR_S = 3600
TENTHS = 10 * HOUR_S
SIZES = (2_000, 10_000, 50_000, 200_000, 1_000_000)
"""Bounds of the classes of sizes that rare paths are grouped by, in bytes."""

_NAMES = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTHS = {_NAMES[3 * n : 3 * n + 3]: n + 1 for n in range(12)}
_LOCAL = re.compile(r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")
_SECRET = re.compile(
    r"@|%40|[A-Za-z0-9_-]{24,}|\beyJ|token|secret|passw|session|apikey|api_key", re.IGNORECASE
)
"""Parts of a path that may be a token or an address of a person. Such a path is never written."""
_ID = re.compile(r"/(?:\d+|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*)(?=/|$)", re.IGNORECASE)
_TYPE = re.compile(r"\.([A-Za-z0-9]{1,8})$")
_STATUS = re.compile("[0-9]{3}")
PROTOCOLS = ("HTTP/0.9", "HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "HTTP/3.0")
METHODS = (
    *(
        "HEAD",
        "POST",
        "PUT",
        "DELETE",
        "CONNECT",
        "OPTIONS",
        "TRACE",
        "PATCH",
        "PROPFIND",
        "REPORT",
    ),
    *("MKCOL", "MOVE", "COPY", "LOCK", "UNLOCK", "PURGE", "SEARCH"),
)
"""Methods that are counted by name. Anybody may send another one, however long."""
MALFORMED = ("", "", "")
"""A request line that is none, such as a TLS handshake on a port without TLS."""
LATEST_S = 1e11
"""A time beyond this is no number of seconds since 1970."""


@dataclass
class PathCount:
    """A path, or a group of paths of which one stands for all."""

    path: str
    requests: int = 0
    bytes: int = 0
    paths: int = 1
    waits: dict[int, int] = field(default_factory=dict)
    """Requests by the time that upstreams took for them (ms, see `step_ms`), where logged."""
    without_upstream: int = 0
    """Requests that went to no upstream, as those of a cache, where the log tells."""


@dataclass
class Profile:
    """Counts over all lines. `add` takes the values of a line by nginx's names."""

    lines: int = 0
    unreadable: int = 0
    examples: list[str] = field(default_factory=list)
    """Places of lines that could not be read."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Requests that the workload is without, by reason."""
    protocols: Counter[str] = field(default_factory=Counter)
    schemes: Counter[str] = field(default_factory=Counter)
    with_query: int = 0
    counted: int = 0
    first_s: float = 0.0
    last_s: float = 0.0
    backwards: int = 0
    """Lines whose time is before the line above by more than a second."""
    has_parts: bool = False
    """Whether times have parts of seconds."""
    new_connections: int = 0
    knows_connections: bool = False
    request_s: float = 0.0
    timed: int = 0
    idle_s: Sample = field(default_factory=Sample)
    """Pauses of kept connections between two requests."""
    clients: ClientClasses = field(default_factory=ClientClasses)
    recorder: "Recorder | None" = None
    """Takes the times and paths of all requests."""
    _paths: dict[str, PathCount] = field(default_factory=dict)
    _groups: dict[tuple[str, int], PathCount] = field(default_factory=dict)
    _secret: int = 0
    _hours: dict[int, "array[int]"] = field(default_factory=dict)
    _busiest: "tuple[int, array[int]] | None" = None
    _ended: dict[str, float] = field(default_factory=dict)
    _clock: tuple[str, float] = ("", 0.0)

    def add_unreadable(self, place: str) -> None:
        """Count a line of another format."""
        self.lines += 1
        self.unreadable += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(place)

    def add(self, place: str, values: Mapping[str, str]) -> None:
        """Count a line."""
        at = self._time(values)
        request = _request(values)
        status = values.get("status", "")
        is_malformed = request == MALFORMED and status < "400"
        if at is None or request is None or is_malformed or not _STATUS.fullmatch(status):
            self.add_unreadable(place)
            return
        self.lines += 1
        if not request:
            self.left_out[f"empty request (status {status})"] += 1
            return
        if reason := _reason(request, status):
            self.left_out[reason] += 1
            return
        _, uri, protocol = request
        self.counted += 1
        self.protocols[protocol if protocol in PROTOCOLS else "another"] += 1
        if scheme := _scheme(values):
            self.schemes[scheme] += 1
        self._count_time(at)
        size = whole(values.get("body_bytes_sent") or values.get("bytes_sent"))
        path = self._count_path(uri, size, values.get("upstream_response_time"))
        self._count_connection(at, values)
        if self.recorder is not None:
            took_s = seconds(values.get("request_time")) or 0.0
            self.recorder.add(at, took_s, 1e-3 if "." in self._clock[0] else 1.0, path)

    @property
    def paths(self) -> list[PathCount]:
        """All paths that may be written, and groups of rare ones, the most frequent first."""
        everything = [*self._paths.values(), *self._groups.values()]
        return sorted(everything, key=lambda path: -path.requests)

    @property
    def secret_requests(self) -> int:
        """Requests for paths that may hold a token or a person's address."""
        return self._secret

    @property
    def busiest(self) -> "tuple[int, array[int]] | None":
        """The busiest hour since 1970, and the requests in each of its tenths of a second."""
        hours = [*self._hours.items(), *([self._busiest] if self._busiest else [])]
        return max(hours, key=lambda hour: sum(hour[1]), default=None)

    @property
    def busiest_part(self) -> tuple[float, float, int] | None:
        """The part of the busiest hour that the log has: begin and end (s), and its requests."""
        if self.busiest is None:
            return None
        hour, tenths = self.busiest
        begin, end = hour * HOUR_S, (hour + 1) * HOUR_S
        return max(begin, self.first_s), min(end, self.last_s), sum(tenths)

    @property
    def rate_rps(self) -> float:
        """Requests/s of the busiest hour, or of the part of it that the log has."""
        if (part := self.busiest_part) is None:
            return 0.0
        begin_s, end_s, requests = part
        return requests / max(1.0, end_s - begin_s)

    @property
    def peak_rps(self) -> float:
        """Requests in the busiest second of the busiest hour."""
        if self.busiest is None:
            return 0.0
        _, tenths = self.busiest
        return float(max(sum(tenths[n : n + 10]) for n in range(0, TENTHS, 10)))

    @property
    def peak_tenth(self) -> int | None:
        """Requests in the busiest tenth of a second of that hour; None for whole seconds only."""
        return max(self.busiest[1]) if self.busiest and self.has_parts else None

    def dispersion(self, tenths: int) -> float | None:
        """Return the variance of requests in so many tenths of a second / their mean.

        It is 1 for independent arrivals (Cox and Lewis, The Statistical Analysis of Series of
        Events, 1966). None where the log is too short, or has whole seconds only.
        """
        if self.busiest is None or (tenths < 10 and not self.has_parts):
            return None
        _, busiest = self.busiest
        used = [n for n, count in enumerate(busiest) if count]
        within = busiest[used[0] : used[-1] + 1]
        counts = [sum(within[n : n + tenths]) for n in range(0, len(within) - tenths + 1, tenths)]
        if len(counts) < 10:
            return None
        mean = fmean(counts)
        return fmean((count - mean) ** 2 for count in counts) / mean

    @property
    def requests_per_connection(self) -> float | None:
        """Requests that a connection carries; None where the log does not tell."""
        if not self.knows_connections or not self.new_connections:
            return None
        return self.counted / self.new_connections

    @property
    def mean_request_s(self) -> float | None:
        """The mean of `$request_time`."""
        return self.request_s / self.timed if self.timed else None

    @property
    def median_idle_s(self) -> float | None:
        """The median pause of a kept connection between two requests."""
        return self.idle_s.median

    def _time(self, values: Mapping[str, str]) -> float | None:
        """Return the end of a request in seconds since 1970."""
        text = values.get("msec") or values.get("time_local") or values.get("time_iso8601")
        text = text or values.get("time")
        if not text:
            return None
        if text == self._clock[0]:
            return self._clock[1]
        at = _moment(text)
        if at is not None:
            self._clock = (text, at)
            self.has_parts |= at != int(at)
        return at

    def _count_time(self, at: float) -> None:
        if self.counted == 1:
            self.first_s = at
        elif at < self.last_s - 1:
            self.backwards += 1
        self.first_s, self.last_s = min(self.first_s, at), max(self.last_s, at)
        hour, rest = divmod(at, HOUR_S)
        tenths = self._hours.get(int(hour))
        if tenths is None:
            tenths = self._hours[int(hour)] = array("I", bytes(4 * TENTHS))
            self._forget_hours()
        tenths[int(rest * 10)] += 1

    def _forget_hours(self) -> None:
        """Keep the two latest hours, since lines are nearly ordered, and the busiest before."""
        while len(self._hours) > 2:
            hour = min(self._hours)
            ended = (hour, self._hours.pop(hour))
            if self._busiest is None or sum(ended[1]) > sum(self._busiest[1]):
                self._busiest = ended
        if self.recorder is not None:
            busiest = [self._busiest[0]] if self._busiest else []
            self.recorder.keep([*self._hours, *busiest])

    def _count_path(self, uri: str, size: int, waited: str | None) -> str | None:
        """Return the path that counts it; None for one that may hold a secret."""
        path, mark, _ = uri.partition("?")
        self.with_query += bool(mark)
        if _SECRET.search(path) or not _is_path(path):
            self._secret += 1
            return None
        name = path_name(path)
        count = self._paths.get(name)
        if count is None and len(self._paths) < MOST_PATHS:
            count = self._paths[name] = PathCount(path)
        if count is None:
            kind = match[1].lower() if (match := _TYPE.search(path)) else ""
            group = (kind, bisect_right(SIZES, size))
            count = self._groups.setdefault(group, PathCount(path, paths=0))
            count.paths += 1
        count.requests += 1
        count.bytes += size
        if (waited_ms := upstream_ms(waited)) is not None:
            step = step_ms(waited_ms)
            count.waits[step] = count.waits.get(step, 0) + 1
        count.without_upstream += waited == NO_UPSTREAM
        return count.path

    def _count_connection(self, at: float, values: Mapping[str, str]) -> None:
        took_s = seconds(values.get("request_time"))
        if took_s is not None:
            self.request_s += took_s
            self.timed += 1
        mine = self.clients.of(values)
        if mine is not None:
            mine.requests += 1
            if is_whole(trip_us := values.get("tcpinfo_rtt", "")):
                mine.round_trips_ms.add(int(trip_us) / 1000)
        number = values.get("connection_requests", "")
        if not is_whole(number):
            return
        self.knows_connections = True
        is_first = number == "1"
        self.new_connections += is_first
        if mine is not None:
            mine.new_connections += is_first
        name = values.get("connection")
        if name is None or took_s is None or not self.has_parts:
            return
        before = self._ended.pop(name, None)
        if before is not None and not is_first:
            idle_s = max(0.0, at - took_s - before)
            self.idle_s.add(idle_s)
            if mine is not None:
                mine.idle_s.add(idle_s)
        self._ended[name] = at
        if len(self._ended) > MOST_CONNECTIONS:
            del self._ended[next(iter(self._ended))]


def _request(values: Mapping[str, str]) -> tuple[str, str, str] | tuple[()] | None:
    """Return method, URI and protocol; () for an empty request, None where there is none.

    A line that is no request is MALFORMED.
    """
    line = values.get("request")
    if line is None:
        method = values.get("request_method")
        uri = values.get("request_uri") or values.get("uri")
        if method is None or uri is None:
            return None
        return method, uri, values.get("server_protocol", "")
    if line in ("", "-"):
        return ()
    parts = line.split(" ")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else MALFORMED


def _scheme(values: Mapping[str, str]) -> str:
    """Return http or https; "" where the log does not say."""
    scheme = values.get("scheme") or ("https" if values.get("ssl_protocol", "-") != "-" else "")
    return scheme if scheme in ("http", "https") else ""


def _reason(request: tuple[str, ...], status: str) -> str:
    """Return why a request is not of the workload, "" where it is."""
    method = request[0]
    if request == MALFORMED:
        return f"malformed request (status {status})"
    if status == "101":
        return "upgraded connection (status 101)"
    if status == "499":
        return "closed by the client (status 499)"
    if method != "GET":
        return f"method {method}" if method in METHODS else "unknown method"
    return "" if "200" <= status < "400" else f"status {status}"


def _moment(text: str) -> float | None:
    """Return a time of a log in seconds since 1970."""
    if match := _LOCAL.fullmatch(text):
        day, month, year, hour, minute, second, sign, hours, minutes = match.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        numbers = (int(year), _MONTHS.get(month, 0), int(day), int(hour), int(minute), int(second))
        try:
            zone = timezone(-shift if sign == "-" else shift)
            return datetime(*numbers, tzinfo=zone).timestamp()
        except ValueError:
            return None
    try:
        at_s = float(text)
    except ValueError:
        return _of_iso(text)
    return at_s if 0 <= at_s < LATEST_S else None


def _of_iso(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _is_path(text: str) -> bool:
    try:
        return is_path(text)
    except ValueError:
        return False


def path_name(path: str) -> str:
    """Return the name by which paths count, in which ids are a star."""
    return _ID.sub("/*", path)


def profile_of(
    lines: Iterable[tuple[str, Mapping[str, str] | None]],
    recorder: "Recorder | None" = None,
    clients: ClientClasses | None = None,
) -> Profile:
    """Return the profile of lines with their places; None stands for a line of another format."""
    profile = Profile(recorder=recorder, clients=clients or ClientClasses())
    for place, values in lines:
        if values is None:
            profile.add_unreadable(place)
        else:
            profile.add(place, values)
    return profile
