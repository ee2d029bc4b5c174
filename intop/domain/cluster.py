"""Clusters: a load generator, the load balancer under test and its backends."""

import math
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from intop.domain.server import NGINX, SERVERS, Server, ServerName

Role = Literal["load-generator", "load-balancer", "backend"]
LabKind = Literal["namespaces", "vm", "machine"]

MACHINES: Mapping[str, tuple[str, ...]] = {
    "x86": ("x86_64", "i686"),
    "arm": ("aarch64", "armv8l", "armv7l"),
}
"""`uname -m` of the machines that belong to an architecture."""


def native_arch() -> str:
    """The architecture of this machine; its `uname -m` where that is neither x86 nor arm."""
    machine = platform.machine()
    return next((arch for arch, machines in MACHINES.items() if machine in machines), machine)


def other_arch() -> str:
    """The architecture that this machine is not."""
    return "x86" if native_arch() == "arm" else "arm"


SHELL_WORD = r"[^-\s\x00-\x1f\x7f'\"`$\\;&<>|(){}][^\s\x00-\x1f\x7f'\"`$\\;&<>|(){}]*"
"""A host's or user's name that a shell leaves as it is, since a ProxyCommand has it in its line; as
OpenSSH has it."""


Sudo = bool | Literal["ask", "doas"]
"""Whether commands run through sudo; `ask`: it wants a password; `doas`: by doas in its place."""


@dataclass(frozen=True, kw_only=True)
class HostAddress:
    """How one host is reached over SSH.

    `state_dir` is the folder on the host where the guard keeps its snapshot; it must be the
    host's own, and survive the session. `lease_s` is how long the host waits for a sign of life
    before it restores itself. `config_root` is the folder that stands for / where persistent
    configuration is (etc/sysctl.d, etc/tuned): another one on hosts that share a file system.

    `port`, `user`, `key_file`, `known_hosts` and `jump` are what a study says; where it says
    nothing, OpenSSH's configuration does (`ssh_config`: a file in place of the usual ones, or
    `none`), and then root at port 22. `sudo` is by what every command becomes root. `share` is a
    load generator's of the load; None: as much as any other. `load_cpus` are the processors that
    its load may run on, as taskset lists them; "" is all.
    """

    name: str
    role: Role
    hostname: str
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    known_hosts: str | None = None
    jump: "HostAddress | None" = None
    ssh_config: str | None = None
    sudo: Sudo = False
    state_dir: str = "/var/lib/intop"
    lease_s: float = 30.0
    config_root: str = "/"
    share: float | None = None
    load_cpus: str = ""


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a link; None and zero leave it as it is.

    `rate_mbit` in Mbit/s, before a buffer of `limit_kb` in KB of 1,024 bytes; `delay_ms` one way,
    at random up to `jitter_ms` more or less, without changing the order; `loss_percent` of packets.
    """

    rate_mbit: float | None = None
    limit_kb: int = 100
    delay_ms: float = 0
    jitter_ms: float = 0
    loss_percent: float = 0

    def __post_init__(self) -> None:
        if self.rate_mbit is not None and self.rate_mbit <= 0:
            raise ValueError(f"link: the rate must be above zero, got {self.rate_mbit:g}")
        if self.limit_kb <= 0:
            raise ValueError("link: burst and limit must be above zero")
        if self.delay_ms < 0 or not 0 <= self.loss_percent < 100:
            raise ValueError("link: the delay must not be negative, the loss 0 up to 100 %")
        if not 0 <= self.jitter_ms <= self.delay_ms:
            raise ValueError("link: the jitter must be between 0 and the delay")

    def in_words(self) -> str:
        """Such as `delay 30 ms, loss 0.2 %, 75 Mbit/s, limit 200 KB`."""
        parts = [f"delay {self.delay_ms:g} ms"] if self.delay_ms else []
        parts += [f"jitter {self.jitter_ms:g} ms"] if self.jitter_ms else []
        parts += [f"loss {self.loss_percent:g} %"] if self.loss_percent else []
        if self.rate_mbit is not None:
            parts.append(f"{self.rate_mbit:g} Mbit/s, limit {self.limit_kb} KB")
        return ", ".join(parts) or "unshaped"


@dataclass(frozen=True, kw_only=True)
class Link(Direction):
    """A link of an embedded lab.

    With a rate and nothing else it is a token bucket of `burst_kb` that shapes what the load
    balancer sends. With delay, jitter, loss or `up` it is the way between the load generator and
    the load balancer: both directions are alike, unless `up` says what the load generator's is.
    Jitter and losses are chosen by `seed`.
    """

    burst_kb: int = 32
    seed: int = 1
    up: Direction | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.burst_kb <= 0:
            raise ValueError("link: burst and limit must be above zero")
        if self.rate_mbit is None and not self.is_at_client:
            raise ValueError("link: give it a rate_mbit, a delay_ms or a loss_percent")

    @property
    def directions(self) -> tuple[Direction, Direction]:
        """Towards the load generator, and from it."""
        return self, self.up or self

    @property
    def is_at_client(self) -> bool:
        """Whether it is the way to the load generator, and not the load balancer's own."""
        return bool(self.delay_ms or self.loss_percent or self.up)

    def __str__(self) -> str:
        if not self.is_at_client:
            shape = f"burst {self.burst_kb} KB, limit {self.limit_kb} KB"
            return f"tbf {self.rate_mbit:g} Mbit/s, {shape}"
        if self.up is None:
            return f"each way {self.in_words()}; seed {self.seed}"
        return f"down {self.in_words()}; up {self.up.in_words()}; seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One cluster of an architecture, `x86` or `arm`.

    `url` is the load balancer as the load generator sees it, without a path. `server` is what
    serves there, and `server_restart` the command that makes it open its listening sockets anew.
    `machines` are the accepted values of `uname -m` on the load balancer. `link` describes the
    load balancer's link in words; trials of different links are never compared silently.
    `emulation` says by what a load balancer that is a virtual machine is carried out ("KVM",
    "TCG on x86_64"), and is empty for any other. `programs` are those that carry the load beside
    nginx and the server, by the kernel's names for them (/proc/PID/comm): the backends'
    application above all.
    `more_generators` share the load with the first load generator. `stub_status` is the URL, on the
    load balancer itself, of the page of nginx's module of that name; "" where it has none.
    """

    arch: str
    load_generator: HostAddress
    load_balancer: HostAddress
    backends: tuple[HostAddress, ...]
    url: str
    server_restart: str
    static_paths: tuple[str, ...]
    dynamic_path: str
    link: str = "not described"
    machines: tuple[str, ...] = field(default=())
    emulation: str = ""
    programs: tuple[str, ...] = ()
    more_generators: tuple[HostAddress, ...] = ()
    stub_status: str = ""
    server: Server = NGINX

    @property
    def load_generators(self) -> tuple[HostAddress, ...]:
        """All hosts that send the load, which they share."""
        return (self.load_generator, *self.more_generators)

    @property
    def load_shares(self) -> tuple[float, ...]:
        """Their shares of the load."""
        even = 1 / len(self.load_generators)
        return tuple(even if g.share is None else g.share for g in self.load_generators)

    @property
    def hosts(self) -> tuple[HostAddress, ...]:
        """All hosts, the first load generator first and the load balancer second."""
        return (self.load_generator, self.load_balancer, *self.more_generators, *self.backends)


_LAB_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,7}[a-z0-9])?")


def lab_name_problem(name: str) -> str | None:
    """Why this can't be a lab's name: `intop-NAME` is an interface, of 15 characters at most."""
    if _LAB_NAME.fullmatch(name):
        return None
    return (
        f"lab name {name!r}: one to nine of a-z, 0-9 and hyphen are allowed, "
        "the hyphen neither first nor last"
    )


_NAMESPACED_KEY = re.compile(r"net(\.[a-z0-9_-]+)+")
_SYSCTL_VALUE = re.compile(r"[A-Za-z0-9_-]+( [A-Za-z0-9_-]+)*")


AccessLog = Literal["off", "memory", "disk"]
"""Where a lab's load balancer writes a line for each request."""
MOST_CPUS = 1024
"""As many as the C library has room for in a set of processors."""
ONLY_PROXIES: tuple[ServerName, ...] = ("haproxy", "varnish")
"""Servers that pass requests on, and serve no files."""
WITHOUT_BACKLOG: tuple[ServerName, ...] = ("caddy", "h2o")
"""Servers that have no setting for the queue of their listening socket."""
NGINXS_OWN = (
    *("upstream_keepalive", "proxy_buffers", "proxy_buffer_kb", "sndbuf_kb"),
    *("tls_key_bits", "access_log", "disk_iops", "server_cpus"),
)
"""What of `Balancing` a lab's other servers don't have."""

RANGES = {
    "backlog": (1, 65_535),
    "workers": (1, 64),
    "sndbuf_kb": (0, 4_096),
    "disk_iops": (0, 1_000_000),
}
"""The least and the most of numbers of `Balancing`."""


@dataclass(frozen=True, kw_only=True)
class Balancing:
    """How a lab's load balancer is set up, where that is not as usual.

    Its `server` passes requests on to the backends, or answers them from the static files with
    `serves_files`. What follows is nginx's, but for `workers`, `backlog` and `sysctls`.

    nginx keeps up to `upstream_keepalive` idle connections to the backends; with 0 each request has
    a new one. `backlog` is that of its listening socket, `workers` the number of its processes; an
    answer has `proxy_buffers` of `proxy_buffer_kb` KB each, and a connection a send buffer of
    `sndbuf_kb` KB, or with 0 one that the kernel lets grow. With `tls_key_bits` clients come
    over TLS, to an RSA key of so many bits; sessions are resumed by nginx's cache only, which is
    off at first. Its `access_log` is off, on a tmpfs and buffered (`memory`), or a file that each
    line is written to at once (`disk`). With `disk_iops` each write of that and of its temporary
    files waits for a disk that does so many operations a second and is always busy (a line of a log
    takes about three); with 0 none waits. With `server_cpus`, as taskset lists processors, each
    worker is tied to one of these in turn; "" ties none. `sysctls` are values that its host starts
    with: a rollback gives them back, as any host's own. They are of the network, since the rest of
    a namespace is the machine's.
    """

    server: ServerName = "nginx"
    serves_files: bool = False
    upstream_keepalive: int = 64
    backlog: int = 65535
    workers: int = 1
    proxy_buffers: int = 16
    proxy_buffer_kb: int = 16
    sndbuf_kb: int = 0
    tls_key_bits: int = 0
    access_log: AccessLog = "off"
    disk_iops: int = 0
    sysctls: tuple[tuple[str, str], ...] = ()
    server_cpus: str = ""

    def __post_init__(self) -> None:
        if self.upstream_keepalive < 0:
            raise ValueError("upstream_keepalive must not be negative")
        for name, (low, high) in RANGES.items():
            if not low <= (given := getattr(self, name)) <= high:
                raise ValueError(f"{name} must be {low} to {high}, got {given}")
        if self.proxy_buffers < 3 or self.proxy_buffer_kb < 1:
            raise ValueError("nginx needs proxy_buffers of at least 3, and proxy_buffer_kb of 1")
        if self.tls_key_bits and not 2048 <= self.tls_key_bits <= 8192:
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
        usual = Balancing()
        if self.server in WITHOUT_BACKLOG and self.backlog != usual.backlog:
            raise ValueError(f"backlog: {self.server} takes what somaxconn allows")
        given = [name for name in NGINXS_OWN if getattr(self, name) != getattr(usual, name)]
        if given:
            raise ValueError(f"{', '.join(given)}: only where the server is nginx")


def cpus_of(text: str) -> tuple[int, ...]:
    """The processors in a list of taskset's, such as 0-3,8, in ascending order; none for "".

    Raises ValueError for what is no such list, or beyond MOST_CPUS.
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if not low <= high < MOST_CPUS:
            raise ValueError(f"{part} are no processors of 0 to {MOST_CPUS - 1}")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


MAX_CLIENTS = 9
"""Classes of clients that a lab may have."""
_CLASS_NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")


@dataclass(frozen=True, kw_only=True)
class LabClients:
    """Clients that reach a lab's load balancer over a link of their own, None: over a bare one.

    `share` is theirs of the load's rate and connections.
    """

    name: str
    share: float
    link: Link | None = None

    def __post_init__(self) -> None:
        if not _CLASS_NAME.fullmatch(self.name) or self.name in ("lb", "b1", "b2", "b3"):
            raise ValueError(
                f"clients {self.name!r}: a name has up to 15 of a-z, 0-9 and hyphen, a letter "
                "first, and is none of lb, b1, b2, b3"
            )
        if not 0 < self.share <= 1:
            raise ValueError(f"clients {self.name}: the share must be above 0, and at most 1")
        if self.link is not None and not self.link.is_at_client:
            raise ValueError(
                f"clients {self.name}: a link with a rate alone is the load balancer's: give it a "
                "delay_ms, a loss_percent or up"
            )


@dataclass(frozen=True, kw_only=True)
class LabSpec:
    """What an embedded lab shall be. `link` as in Link; None: no shaping.

    With several classes of `clients` each is a load generator, and `link` can only be the load
    balancer's. `load_cpus` as in `HostAddress`.

    `arch` is what its cluster counts as, `machines` the accepted values of `uname -m`. `kind` says
    what its load balancer is: a network namespace as all its other hosts, a virtual machine of the
    architecture with a kernel of its own, or a whole Debian machine with systemd and a disk.
    """

    name: str = "lab"
    arch: str = "x86"
    kind: LabKind = "namespaces"
    link: Link | None = None
    machines: tuple[str, ...] = ()
    balancing: Balancing = Balancing()
    clients: tuple[LabClients, ...] = ()
    load_cpus: str = ""

    def __post_init__(self) -> None:
        if problem := lab_name_problem(self.name):
            raise ValueError(problem)
        if self.clients:
            self._check_clients()
        has = self.balancing
        of_namespaces = has.tls_key_bits, has.disk_iops, has.access_log != "off", has.server_cpus
        if self.kind != "namespaces" and any(of_namespaces):
            raise ValueError(
                "tls_key_bits, disk_iops, access_log and server_cpus: only where all hosts are "
                "namespaces"
            )
        if self.kind != "namespaces" and (self.server != NGINX or self.balancing.serves_files):
            raise ValueError("server and serves_files: only where all hosts are namespaces")
        if self.arch not in MACHINES:
            raise ValueError(f"lab arch: one of {', '.join(MACHINES)}, got {self.arch!r}")

    def _check_clients(self) -> None:
        names = [clients.name for clients in self.clients]
        if len(set(names)) < len(names) or len(names) > MAX_CLIENTS:
            raise ValueError(f"clients: at most {MAX_CLIENTS}, each with a name of its own")
        if abs(math.fsum(clients.share for clients in self.clients) - 1) > 1e-6:
            raise ValueError("clients: their shares must add up to 1")
        if self.link is not None and self.link.is_at_client:
            raise ValueError("link: with clients, a delay or loss belongs to the links of theirs")

    @property
    def server(self) -> Server:
        """What runs on its load balancer."""
        return SERVERS[self.balancing.server]

    @property
    def client_links(self) -> tuple[Link | None, ...]:
        """The link of each load generator to the load balancer, None for a bare one."""
        if self.clients:
            return tuple(clients.link for clients in self.clients)
        return (self.link if self.link is not None and self.link.is_at_client else None,)
