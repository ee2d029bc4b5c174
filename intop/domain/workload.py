"""Workloads and budgets: the load that a cluster is measured under, and how much of it."""

import re
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import PurePath
from typing import Annotated, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Interval, MaxLen, Predicate

from intop.domain.histogram import Statistic
from intop.domain.matching import matching
from intop.domain.training import TREE_MODELS
from intop.errors import ResultMissingError
from intop.masking import masked_header

WorkloadKind = Literal["slt", "dlt"]
"""The purpose of requests: static files, or pages made on request. These are the paper's two
workloads."""
WORKLOAD_KINDS: tuple[WorkloadKind, ...] = ("slt", "dlt")

Arrivals = Literal["constant", "poisson", "recorded", "closed"]
"""The time at which requests are due. In a closed loop it is once a connection has its answer:
there is no rate, and a slow server is asked less often."""
Lifetimes = Literal["fixed", "geometric"]
Check = Literal["content", "length", "status"]
Http = Literal["1.1", "2"]
Scheme = Literal["", "http", "https"]
LoadToolChoice = Literal["auto", "engine", "wrk2"]
"""The choice of a load tool. `auto` takes wrk2 where the load generator has it and it can send the
load."""

Connections = Annotated[int, Interval(ge=1, le=100_000)]


def is_path(text: str) -> bool:
    """Return True for the path of one request. Raises ValueError for any other text."""
    if not re.fullmatch(r"/[A-Za-z0-9._~!$&()*+,;=:@%/?-]*", text):
        raise ValueError("a path begins with / and has no quotes, blanks or others to be %-encoded")
    return True


UrlPath = Annotated[str, Predicate(is_path)]

_FRAMING = "the load writes it itself, by body_bytes, and a server waits for what it announces"
_ENDING = "the load says by itself when connections end: see requests_per_connection"
REFUSED_HEADERS = {
    "content-length": _FRAMING,
    "transfer-encoding": _FRAMING,
    "trailer": "it announces what the load does not send",
    "te": "it asks for answers in an encoding that the load does not read",
    "expect": "the load does not wait for an interim answer",
    "upgrade": "it asks for another protocol, which the load does not speak",
    "http2-settings": 'it belongs to an upgrade: write http = "2"',
    "connection": _ENDING,
    "keep-alive": _ENDING,
    "proxy-connection": _ENDING,
}
"""Names in lower case that break a load tool, and why a request of a load can't have them."""

REFUSED_METHODS = {
    "CONNECT": "it asks for a tunnel, and its requests have no path",
    "TRACE": "its answer is the request itself, and nginx always refuses it",
    "PRI": "it is the first word of an HTTP/2 connection, and no request",
}


def is_header(line: str) -> bool:
    """Return True for a header of a load. Raises ValueError for any other line."""
    if line.startswith(":"):
        raise ValueError(
            f"{line.partition(' ')[0]} is a pseudo-header of HTTP/2: the load makes it of method, "
            "url and paths"
        )
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+: [ -~]+", line):
        raise ValueError("a header is 'Name: value' in printable ASCII, with one blank in between")
    name, _, value = line.partition(":")
    if why := REFUSED_HEADERS.get(name.lower()):
        raise ValueError(f"the header {name} is not for a load: {why}")
    if not value.strip():
        raise ValueError(f"the header {name} has no value")
    return True


def is_method(name: str) -> bool:
    """Return True for a method that a load can send. Raises ValueError for any other word."""
    if not re.fullmatch("[A-Z]{1,20}", name):
        raise ValueError("a method has 1 to 20 of A-Z")
    if why := REFUSED_METHODS.get(name):
        raise ValueError(f"the method {name} is not for a load: {why}")
    return True


def _is_source(text: str) -> bool:
    """Return True for an IP address or "". Raises ValueError for any other text."""
    try:
        return not text or bool(ip_address(text).version)
    except ValueError as error:
        raise ValueError("value is not a valid IPv4 or IPv6 address") from error


@dataclass(frozen=True, kw_only=True)
class Clients:
    """A class of clients: its part of the load, and its behaviour.

    As a text it has no secrets of headers, so that a new token is the same load.
    """

    name: Annotated[
        str, matching("[A-Za-z0-9_.-]{0,40}", "1 to 40 letters, digits, _, . and -")
    ] = ""
    """The name of the class."""
    share: Annotated[float, Interval(gt=0, le=1)] = 1.0
    """Its part of the rate, and of the connections unless it has its own."""
    connections: Connections | None = None
    """Its connections, in place of its share of all."""
    requests_per_connection: Annotated[float, Interval(ge=1, le=1e9)] | None = None
    """None is as many as the server takes."""
    lifetimes: Lifetimes = "fixed"
    """The distribution of a connection's requests. `geometric` makes their number an average."""
    think_ms: Annotated[float, Interval(ge=0, le=3_600_000)] = 0.0
    """The idle time of a connection after an answer."""
    read_kb_per_s: Annotated[float, Interval(ge=1, le=1e9)] | None = None
    """The rate at which each connection reads at most, in KB of 1,024 bytes."""
    tls_resume: bool = False
    """New connections resume TLS sessions."""
    http: Http = "1.1"
    """HTTP/2 is spoken over TLS by ALPN, else by prior knowledge."""
    streams_per_connection: Annotated[int, Interval(ge=1, le=1000)] = 1
    """Requests that a connection of HTTP/2 carries at once."""
    headers: tuple[Annotated[str, MaxLen(1000), Predicate(is_header)], ...] = ()
    """Further headers of each request, as `Name: value`."""
    method: Annotated[str, Predicate(is_method)] = "GET"
    """The method of each request."""
    body_bytes: Annotated[int, Interval(ge=0, le=100_000_000)] = 0
    """The size of each request's body."""
    source: Annotated[str, Predicate(_is_source)] = ""
    """The address that connections come from; "" leaves it to the system."""

    def __post_init__(self) -> None:
        """Raises ValueError for settings that don't fit together."""
        if self.http != "2" and self.streams_per_connection > 1:
            raise ValueError('streams_per_connection is for http = "2"')
        names = [header.partition(":")[0].lower() for header in self.headers]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(
                f"headers: {twice} stands there twice, and the load sends it once: join the "
                "values with a comma, or leave one out"
            )
        if self.method == "HEAD" and self.body_bytes:
            raise ValueError("body_bytes: a HEAD request has no body")
        if self.source:
            object.__setattr__(self, "source", str(ip_address(self.source)))

    def __str__(self) -> str:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        default = {f.name: f.default for f in fields(self)}
        return ", ".join(
            f"{name}={'|'.join(map(masked_header, value)) if isinstance(value, tuple) else value}"
            for name, value in values.items()
            if value != default[name]
        )


ALIKE = Clients()
"""All clients are alike, and keep their connections."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A file with the times and paths of requests, from an access log."""

    path: str = field(compare=False)
    """Its place on this machine. Others have the same recording in folders of their own."""
    seconds: float
    """The time that it covers. It has at least one request."""
    requests: int
    digest: str
    """A checksum of its content."""

    @property
    def rate_rps(self) -> float:
        """Requests/s on average."""
        return self.requests / self.seconds


def _is_path_if_any(text: str) -> bool:
    return not text or is_path(text)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A rate of requests of one kind."""

    name: str
    kind: WorkloadKind
    """Static files, or pages made on request."""
    rate_rps: Annotated[float, Interval(ge=1, le=10_000_000)]
    """Requests/s over all connections."""
    connections: Connections
    """Connections that are open at once."""
    threads: Annotated[int, Interval(ge=1, le=1024)] = 2
    """Threads of wrk2."""
    duration_s: Annotated[int, Interval(ge=1, le=3600)] | None = None
    """Counted seconds of a trial; None leaves them to a pilot."""
    warmup_s: Annotated[int, Interval(ge=0, le=600)] = 1
    """Uncounted seconds before them, on the same connections."""
    timeout_s: Annotated[int, Interval(ge=1, le=600)] = 10
    """Seconds after which a request has failed."""
    paths: tuple[UrlPath, ...] = ()
    """Paths that requests for files ask for at random, by how often they stand here.

    Without any, they are the cluster's own static paths.
    """
    arrivals: Arrivals = "constant"
    """The times at which requests are due: at equal distances, at random, or as recorded."""
    recording: Recording | None = None
    """The requests of `recorded` arrivals, in a file beside the study.

    `intop workload learn --record FILE` writes it. At another rate, it is played faster or slower.
    """
    clients: tuple[Clients, ...] = (ALIKE,)
    """The classes that share the load."""
    check: Check = "content"
    """The part of an answer to a static path that must be as when the campaign began.

    It is the length and the checksum, the length alone, or neither.
    """
    only_path: Annotated[str, Predicate(_is_path_if_any)] = ""
    """The one path that a trial of a sweep over files asks for."""
    scheme: Scheme = ""
    """The load goes to its usual port on the cluster's host; "" is the cluster's URL."""
    script: Annotated[
        str, matching(r"(([^\n]*/)?[A-Za-z0-9_-]{1,40}\.lua)?", "the path of a file NAME.lua")
    ] = ""
    """A Lua script of the user's own, which takes the arguments of its kind; "" is intop's."""
    judged_by: Statistic = "P99"
    """The latency that its trials are judged by: the study's objective."""
    tuned: bool = True
    """Commands tune it where no workload is named to them."""

    @property
    def own_script(self) -> str:
        """The name of a Lua script of the user's own, without its folder and .lua."""
        return PurePath(self.script).stem

    @property
    def traffic(self) -> str:
        """The differences from a constant rate on connections that are kept; "" without any.

        For conditions: trials of different traffic aren't comparable.
        """
        digest = self.recording.digest if self.recording else ""
        words = {
            "constant": "",
            "poisson": "poisson arrivals",
            "recorded": f"recorded arrivals ({digest})",
            "closed": "closed loop",
        }
        parts = (self.scheme, words[self.arrivals], *map(str, self.clients))
        return "; ".join(filter(None, parts))

    def url(self, of_cluster: str) -> str:
        """Return where it goes to on a cluster with this URL."""
        parts = urlsplit(of_cluster)
        if self.scheme in ("", parts.scheme):
            return of_cluster
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{self.scheme}://{host}"

    @property
    def due_rps(self) -> float:
        """Requests that are due in a second; 0 in a closed loop, in which nothing is due."""
        return 0.0 if self.arrivals == "closed" else self.rate_rps

    @property
    def counted_s(self) -> int:
        """The duration. Raises ResultMissingError while no pilot has chosen it."""
        if self.duration_s is None:
            raise ResultMissingError(
                f"{self.name}: how long a trial takes is not chosen yet: intop pilot --workload "
                f"{self.name} (or set duration_s in [workload.{self.name}])"
            )
        return self.duration_s

    def asked(self, static_paths: tuple[str, ...], dynamic_path: str) -> tuple[str, ...]:
        """Return the paths that are asked for on a cluster with these."""
        return (dynamic_path,) if self.kind == "dlt" else self.paths or static_paths


Count = Annotated[int, Ge(1)]
Whole = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
Share = Annotated[float, Interval(gt=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The disturbance beyond which a trial is measured again."""

    max_steal: Annotated[float, Interval(gt=0, lt=1)] = 0.1
    """The share of any one processor's time that other machines may take."""
    max_steal_cores: Positive = 0.2
    """Processors of a host that other machines may take. A share would let whole ones go."""
    max_foreign_cores: Positive = 0.4
    """Processors of a host that programs without a part in the load may use."""
    max_load_cpu: Share = 0.9
    """The share of its threads' CPU time that the load tool may use."""
    max_lag: Share = 0.2
    """The share of P99 by which the load tool may be late itself."""


@dataclass(frozen=True, kw_only=True)
class Budget(Limits):
    """The limits of what a study measures and computes, for each architecture and workload."""

    screen_trials: Annotated[int, Ge(8)] = 100
    """Configurations that a screening measures, once each."""
    screen_stable: Whole = 3
    """Looks in a row that find the same end a screening early; 0 measures all trials."""
    keep: Count = 20
    """The number of parameters that vary at once after the screening, about."""
    collect_trials: Annotated[int, Ge(8)] = 120
    """Configurations of a design that fills the space, measured once each."""
    refine_trials: Whole = 120
    """Configurations that are the most telling by all trials before; 0 leaves `refine` out."""
    refine_batch: Count = 4
    """Configurations that a refinement chooses at a time."""
    replicate_trials: Whole | None = None
    """Further trials of collected configurations that promise or scatter much.

    None is a quarter of the configurations, and none where there are `refine_trials`.
    """
    sentinel_every: Annotated[int, Ge(2)] = 8
    """The default, as a sentinel, is measured after so many configurations."""
    folds: Annotated[int, Interval(ge=2, le=20)] = 4
    """Parts of the trials, each of which judges models that learned from the others."""
    repeats: Annotated[int, Interval(ge=1, le=20)] = 2
    """Times that the folds are drawn."""
    tuning_trials: Count = 20
    """Hyper-parameters that the search of one family in one fold tries."""
    tuning_timeout_s: Positive = 60.0
    """Seconds that this search may take."""
    tuning_share: Annotated[float, Ge(0)] = 0.25
    """Reckoned time of a training / time of its trials: where it is short, searches try fewer.

    0 is no limit.
    """
    population: Annotated[int, Ge(5)] = 200
    """Individuals of a search on models. SciPy's evolution needs five."""
    generations: Count = 100
    """Generations of a search on models at most."""
    patience: Count = 15
    """Generations without a better individual that end a search on models."""
    finalists: Count = 3
    """Predicted winners that `pick` measures, beside each tree model's own."""
    pick_rounds: Count = 3
    """Rounds in which `pick` compares them."""
    trim_rounds: Whole = 4
    """Rounds of each step of `trim`, which drops idle changes: 0 for no `trim`, or 2 and more."""
    judge_pairs: Annotated[int, Ge(3)] = 10
    """Fresh pairs in which the winner meets the default, at most."""
    judge_more: Whole = 0
    """Further pairs that a verdict takes by itself where it is not clear, at most."""
    judge_looks: Annotated[int, Interval(ge=1, le=10)] = 2
    """Looks at the pairs; none follow once the verdict is clear."""
    judge_duration_s: Annotated[int, Interval(ge=1, le=3600)] | None = None
    """Counted seconds of a verdict's trials; None is as many as all others have."""
    agree_rounds: Annotated[int, Ge(3)] = 6
    """Trials of the default on each replica, to see that replicas agree."""
    level: Annotated[float, Interval(ge=0.5, lt=1)] = 0.95
    """The level of intervals."""
    settle_limit_s: Positive = 90.0
    """Seconds to wait for a quiet cluster before a trial."""
    max_time_wait: Count = 20_000
    """Sockets in TIME-WAIT with which a host counts as settled."""
    max_failures: Count = 10
    """Failed trials after which a stage stops."""
    retries: Whole = 2
    """Further attempts at a disturbed trial."""
    prune_factor: Annotated[float, Ge(0)] = 5.0
    """A trial is pruned once it certainly has so many times the default's latency; 0: never."""
    pilot_trials: Annotated[int, Interval(ge=3, le=100)] = 5
    """Trials of the default that a pilot measures at each duration."""
    pilot_max_s: Annotated[int, Interval(ge=2, le=3600)] = 60
    """The longest duration that a pilot tries (s)."""
    pilot_resolution: Annotated[float, Interval(gt=1, le=100)] = 1.25
    """The ratio that a verdict is to resolve with a pilot's duration."""
    explain_rounds: Whole = 4
    """Rounds in which each of the stronger changes is left out and alone; 0 explains nothing."""
    explain_pairs: Annotated[int, Ge(3)] = 16
    """Rounds in which the smallest set is judged."""

    def __post_init__(self) -> None:
        if self.trim_rounds == 1:
            raise ValueError("trim_rounds (1) must be 2 or more, or 0 to drop nothing")
        if self.explain_rounds == 1:
            raise ValueError("explain_rounds (1) must be 2 or more, or 0 to explain nothing")
        if 0 < self.prune_factor <= 1:
            raise ValueError(
                f"prune_factor ({self.prune_factor:g}) must be more than 1, or 0 to prune none"
            )

    @property
    def pick_arms(self) -> int:
        """The most arms that meet in a round of `pick`.

        They are the finalists, each tree model's winner, and the default.
        """
        return self.finalists + len(TREE_MODELS) + 1
