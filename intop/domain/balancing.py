"""The settings of an embedded lab's load balancer."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from intop.domain.matching import matching
from intop.domain.server import NGINX, ServerName

CpuList = Annotated[
    str,
    matching(
        r"([0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*)?",
        "processors as taskset lists them, such as 0-3,8",
    ),
]
"""Processors as taskset lists them; "" is all."""

_NAMESPACED_KEY = re.compile(r"net(\.[a-z0-9_-]+)+")
_SYSCTL_VALUE = re.compile(r"[A-Za-z0-9_-]+( [A-Za-z0-9_-]+)*")


AccessLog = Literal["off", "memory", "disk"]
MOST_CPUS = 1024
"""The size of a set of processors in the C library."""
ONLY_PROXIES: tuple[ServerName, ...] = ("haproxy", "varnish")
"""Servers that pass requests on, and serve no files."""
WITHOUT_BACKLOG: tuple[ServerName, ...] = ("caddy", "h2o")
"""Servers that have no setting for the queue of their listening socket."""
NGINXS_OWN = (
    *("upstream_keepalive", "proxy_buffers", "proxy_buffer_kb", "sndbuf_kb"),
    *("tls_key_bits", "access_log", "disk_iops", "server_cpus"),
)
"""Fields of `Balancing` that a lab's other servers don't have."""


def cpus_of(text: str) -> tuple[int, ...]:
    """Return the processors in a list of taskset's, such as 0-3,8, ascending; none for "".

    Raises ValueError for a range that falls, and for processors beyond MOST_CPUS.
    """
    cpus: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if not low <= high < MOST_CPUS:
            raise ValueError(f"{part} are no processors of 0 to {MOST_CPUS - 1}")
        cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


@dataclass(frozen=True, kw_only=True)
class Balancing:
    """The settings of a lab's load balancer, most of them for nginx only (NGINXS_OWN)."""

    server: ServerName = "nginx"
    """The program that serves there."""
    serves_files: bool = False
    """It answers requests from the static files, and does not pass them on to the backends."""
    upstream_keepalive: Annotated[int, Interval(ge=0, le=10_000)] = 64
    """Idle connections to the backends that nginx keeps; with 0 each request has a new one."""
    backlog: Annotated[int, Interval(ge=1, le=65_535)] = 65535
    """The queue of its listening socket."""
    workers: Annotated[int, Interval(ge=1, le=64)] = 1
    """Processes that serve."""
    proxy_buffers: Annotated[int, Ge(3)] = 16
    """Buffers of an answer. nginx needs three."""
    proxy_buffer_kb: Annotated[int, Ge(1)] = 16
    """The size of each of them in KB."""
    sndbuf_kb: Annotated[int, Interval(ge=0, le=4_096)] = 0
    """The send buffer of a connection in KB; with 0 the kernel lets it grow."""
    tls_key_bits: Annotated[int, Interval(ge=0, le=8192)] = 0
    """Bits of the RSA key for clients over TLS; 0 is without TLS.

    Sessions are resumed by nginx's cache only, which is off at first.
    """
    access_log: AccessLog = "off"
    """The place of each request's line: nowhere, buffered on a tmpfs, or at once in a file."""
    disk_iops: Annotated[int, Interval(ge=0, le=1_000_000)] = 0
    """Operations a second of a busy disk, which writes of logs and temporary files wait for.

    0 is no such disk. A line of a log takes about three.
    """
    sysctls: tuple[tuple[str, str], ...] = ()
    """Values that its host starts with: a rollback restores them, as any host's own.

    They are of the network, since the rest of a namespace is the machine's.
    """
    server_cpus: CpuList = ""
    """Each worker is tied to one of these in turn; "" ties none."""

    def __post_init__(self) -> None:
        """Raises ValueError for settings that the server or a namespace doesn't have."""
        if 0 < self.tls_key_bits < 2048:
            raise ValueError(f"tls_key_bits must be 0, or 2048 to 8192, got {self.tls_key_bits}")
        cpus_of(self.server_cpus)
        self._check_server()
        for key, value in self.sysctls:
            if not _NAMESPACED_KEY.fullmatch(key):
                raise ValueError(f"sysctls: only keys of net. can be a lab's own, got {key!r}")
            if not _SYSCTL_VALUE.fullmatch(value):
                raise ValueError(f"sysctls: {key} is to be {value!r}, which is no value")

    def _check_server(self) -> None:
        if self.serves_files and self.server in ONLY_PROXIES:
            raise ValueError(f"serves_files: {self.server} has no files of its own to serve")
        if self.server == NGINX.name:
            return
        if self.server in WITHOUT_BACKLOG and self.backlog != USUAL.backlog:
            raise ValueError(f"backlog: {self.server} takes what somaxconn allows")
        given = [name for name in NGINXS_OWN if getattr(self, name) != getattr(USUAL, name)]
        if given:
            raise ValueError(f"{', '.join(given)}: only where the server is nginx")


USUAL = Balancing()
