"""Clusters: a load generator, the load balancer under test and its backends."""

import math
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Interval, MinLen, Predicate

from intop.domain.balancing import USUAL, Balancing, CpuList
from intop.domain.lab_files import LabFiles, LabWaits, check_files, check_waits
from intop.domain.matching import matching
from intop.domain.server import NGINX, SERVERS, Server
from intop.domain.workload import UrlPath

Role = Literal["load-generator", "load-balancer", "backend"]
LabKind = Literal["namespaces", "vm", "machine"]

MACHINES: Mapping[str, tuple[str, ...]] = {
    "x86": ("x86_64", "i686"),
    "arm": ("aarch64", "armv8l", "armv7l"),
}
"""`uname -m` of the machines that belong to an architecture."""


def native_arch() -> str:
    """Return the architecture of this machine; its `uname -m` if that is neither x86 nor arm."""
    machine = platform.machine()
    return next((arch for arch, machines in MACHINES.items() if machine in machines), machine)


def other_arch() -> str:
    """Return the architecture that this machine is not."""
    return "x86" if native_arch() == "arm" else "arm"


SHELL_WORD = r"[^-\s\x00-\x1f\x7f'\"`$\\;&<>|(){}][^\s\x00-\x1f\x7f'\"`$\\;&<>|(){}]*"
"""A name of a host or user that a shell leaves as it is, as OpenSSH has it.

A ProxyCommand has it in its line.
"""

Sudo = Literal[False, True, "ask", "doas"]
"""The way to become root: none, sudo, sudo with its password, doas."""

NOT_DESCRIBED = "not described"
"""The link of a cluster whose study says nothing of it."""
_NAME = r"[A-Za-z0-9_:][A-Za-z0-9_.:-]{0,252}"
_ZONED = r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*%[A-Za-z0-9_.-]{1,200}"
HostName = Annotated[str, matching(f"{_NAME}|{_ZONED}", "the name or address of a host")]
Port = Annotated[int, Interval(ge=1, le=65535)]


@dataclass(frozen=True, kw_only=True)
class HostAddress:
    """The way to a host over SSH. OpenSSH's configuration says what is None here."""

    hostname: HostName
    """A name or an address, which may have an interface's name as its zone."""
    role: Role
    name: Annotated[str, matching(_NAME, "a name of letters, digits, _, ., : and -")] = ""
    """The name in messages, files and columns of tables; without one it is the `hostname`."""
    port: Port | None = None
    """The port of its sshd."""
    user: Annotated[str, matching(SHELL_WORD, "a user's name")] | None = None
    """The user to log in as."""
    key_file: str | None = None
    """The private key, in place of the agent's and the usual ones."""
    known_hosts: str | None = None
    """A file of known host keys, in place of OpenSSH's."""
    jump: "HostAddress | None" = None
    """The host that connections go through."""
    ssh_config: Annotated[str, MinLen(1)] | None = None
    """A file in place of OpenSSH's usual configuration, or `none`."""
    sudo: Sudo = False
    """The way to become root: `true` is `sudo -n`, "ask" asks for its password, "doas" is doas."""
    state_dir: Annotated[
        str, matching(r"/[^\n\t]*[^/\s]", "a folder's path that begins with / and ends without")
    ] = "/var/lib/intop"
    """The folder on the host where the guard keeps its snapshot.

    It must be the host's own, and survive the session.
    """
    lease_s: Annotated[float, Interval(ge=2, le=3600)] = 30.0
    """Seconds that the host waits for a sign of life before it restores itself."""
    config_root: Annotated[
        str, matching(r"/([^\n\t]*[^/\s])?", "/ or a folder's path that begins with it")
    ] = "/"
    """The folder that stands for / where persistent configuration is (etc/sysctl.d, etc/tuned).

    It is another one on hosts that share a file system.
    """
    share: Annotated[float, Interval(gt=0, le=1)] | None = None
    """A load generator's share of the load; None is as much as any other."""
    load_cpus: CpuList = ""
    """The processors that a load generator's load may run on."""

    def __post_init__(self) -> None:
        if not self.name:
            # A zone's sign is no sign of a name.
            object.__setattr__(self, "name", self.hostname.replace("%", "-"))


def is_server_url(url: str) -> bool:
    """Return True for http://HOST or https://HOST:PORT. Raises ValueError for any other text."""
    if not re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?", url):
        raise ValueError("must be http://HOST:PORT or https://HOST:PORT, without a path")
    parts = urlsplit(url)
    if parts.port == 0 or not parts.hostname or parts.hostname.startswith("-"):
        raise ValueError("must have a host, and a port from 1 to 65535 if any")
    return True


def is_base_url(url: str) -> bool:
    """Return True for a server's URL, also with a path. Raises ValueError for any other text."""
    match = re.fullmatch(r"(https?://[A-Za-z0-9._\[\]:-]+)(/[A-Za-z0-9._/-]*)?", url)
    if match is None:
        raise ValueError("must be http://HOST:PORT or https://HOST:PORT, without a user")
    return is_server_url(match[1])


def is_command(text: str) -> bool:
    """Return True for a command. Raises ValueError for what `sh -c` takes for none."""
    if not text.strip():
        raise ValueError("must be a command, not blanks")
    if text.strip()[0] in "-+":
        raise ValueError(f"must not begin with {text.strip()[0]}, which sh takes for an option")
    return True


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One cluster of an architecture."""

    arch: str
    """`x86` or `arm`."""
    load_generator: HostAddress
    load_balancer: HostAddress
    backends: Annotated[tuple[HostAddress, ...], MinLen(1)]
    url: Annotated[str, Predicate(is_server_url)]
    """The load balancer as the load generator sees it, without a path."""
    server_restart: Annotated[str, Predicate(is_command)]
    """The command that makes the server open its listening sockets again."""
    static_paths: Annotated[tuple[UrlPath, ...], MinLen(1)]
    """The files that static requests ask for, equally often."""
    dynamic_path: UrlPath
    """The page that dynamic requests ask for, as `PATH?r=<a fresh number>`."""
    link: str = NOT_DESCRIBED
    """The load balancer's link in words. Trials of different links are not comparable."""
    machines: tuple[str, ...] = ()
    """The accepted values of `uname -m` on the load balancer."""
    emulation: str = ""
    """The emulator of a load balancer that is a virtual machine, such as "TCG on x86_64"."""
    programs: tuple[Annotated[str, MinLen(1)], ...] = ()
    """Further programs that carry the load, as in /proc/PID/comm: the backends' application."""
    more_generators: tuple[HostAddress, ...] = ()
    """Hosts that share the load with the first load generator."""
    stub_status: Annotated[
        str,
        matching(
            r"(http://(127\.0\.0\.1|localhost)(:[0-9]{1,5})?/[A-Za-z0-9_./-]*)?",
            "http://127.0.0.1:PORT/PATH, a page of the load balancer itself",
        ),
    ] = ""
    """The URL of the page of nginx's module of that name, on the load balancer itself."""
    server: Server = NGINX
    """The program that serves there."""

    def __post_init__(self) -> None:
        """Raises ValueError for hosts of one name, and for settings in the wrong place."""
        names = [host.name for host in self.hosts]
        lower = [name.lower() for name in names]
        if twice := {name for name in names if lower.count(name.lower()) > 1}:
            raise ValueError(f"two hosts are called {', '.join(sorted(twice))}: give each a name")
        if any(host.load_cpus for host in (self.load_balancer, *self.backends)):
            raise ValueError("load_cpus: only load generators send a load")
        if self.stub_status and self.server != NGINX:
            raise ValueError(
                f"stub_status: is a page of nginx, and the server is {self.server.name}"
            )

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


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a link."""

    rate_mbit: Annotated[float, Gt(0)] | None = None
    """Mbit/s; None leaves the rate as it is."""
    limit_kb: Annotated[int, Ge(1)] = 100
    """KB of 1,024 bytes that may wait for the rate."""
    delay_ms: Annotated[float, Interval(ge=0, le=10_000)] = 0
    """The delay one way."""
    jitter_ms: Annotated[float, Interval(ge=0, le=10_000)] = 0
    """The delay is at random up to so much more or less. The order of packets stays."""
    loss_percent: Annotated[float, Interval(ge=0, lt=100)] = 0
    """The part of the packets that is lost."""

    def __post_init__(self) -> None:
        if not 0 <= self.jitter_ms <= self.delay_ms:
            raise ValueError("the jitter must be between 0 and the delay")

    def in_words(self) -> str:
        """Return such as `delay 30 ms, loss 0.2 %, 75 Mbit/s, limit 200 KB`."""
        parts = [f"delay {self.delay_ms:g} ms"] if self.delay_ms else []
        parts += [f"jitter {self.jitter_ms:g} ms"] if self.jitter_ms else []
        parts += [f"loss {self.loss_percent:g} %"] if self.loss_percent else []
        if self.rate_mbit is not None:
            parts.append(f"{self.rate_mbit:g} Mbit/s, limit {self.limit_kb} KB")
        return ", ".join(parts) or "unshaped"


@dataclass(frozen=True, kw_only=True)
class Link(Direction):
    """A link of an embedded lab.

    With a rate and nothing else it is a token bucket that shapes what the load balancer sends.
    With delay, jitter, loss or `up` it is the way between load generator and load balancer.
    """

    burst_kb: Annotated[int, Ge(1)] = 32
    """The size of the token bucket."""
    seed: Annotated[int, Interval(ge=0, lt=2**32)] = 1
    """Chooses jitter and losses."""
    up: Direction | None = None
    """The load generator's direction; None is like the other one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate_mbit is None and not self.is_at_client:
            raise ValueError("give it a rate_mbit, a delay_ms or a loss_percent")

    @property
    def directions(self) -> tuple[Direction, Direction]:
        """The directions towards the load generator, and from it."""
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


_LAB_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,7}[a-z0-9])?")


def lab_name_problem(name: str) -> str | None:
    """Return why this can't be a lab's name: `intop-NAME` is an interface, of 15 characters."""
    if _LAB_NAME.fullmatch(name):
        return None
    return (
        f"lab name {name!r}: one to nine of a-z, 0-9 and hyphen are allowed, "
        "the hyphen neither first nor last"
    )


MAX_CLIENTS = 9
"""Classes of clients that a lab may have."""
_CLASS_NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")


@dataclass(frozen=True, kw_only=True)
class LabClients:
    """Clients that reach a lab's load balancer over a link of their own."""

    name: str
    """The name of the class."""
    share: Annotated[float, Interval(gt=0, le=1)]
    """Their part of the load's rate and connections."""
    link: Link | None = None
    """None is a link without shaping."""

    def __post_init__(self) -> None:
        if not _CLASS_NAME.fullmatch(self.name) or self.name in ("lb", "b1", "b2", "b3"):
            raise ValueError(
                f"clients {self.name!r}: a name has up to 15 of a-z, 0-9 and hyphen, a letter "
                "first, and is none of lb, b1, b2, b3"
            )
        if self.link is not None and not self.link.is_at_client:
            raise ValueError(
                f"clients {self.name}: a link with a rate alone is the load balancer's: give it a "
                "delay_ms, a loss_percent or up"
            )


_Algorithm = Annotated[
    str, matching(r"[a-z][a-z0-9_]{0,14}", "a name as in /proc/sys, such as bbr")
]


@dataclass(frozen=True, kw_only=True)
class CongestionControl:
    """The algorithm that each role of a lab's hosts starts with. Distributions ship cubic."""

    load_balancer: _Algorithm = "cubic"
    """The load balancer's own."""
    backends: _Algorithm = "cubic"
    """All backends'."""
    clients: _Algorithm = "cubic"
    """The load generators'."""


@dataclass(frozen=True, kw_only=True)
class LabSpec:
    """A description of an embedded lab."""

    name: str = "lab"
    """The lab's name, by which it is brought up and taken down."""
    arch: str = "x86"
    """The architecture that its cluster counts as."""
    kind: LabKind = "namespaces"
    """The kind of its load balancer: a network namespace as all its other hosts, a virtual
    machine with a kernel of its own, or a whole Debian machine with systemd and a disk.
    """
    link: Link | None = None
    """None is a link without shaping. With `clients` it can only be the load balancer's."""
    machines: tuple[str, ...] = ()
    """The accepted values of `uname -m`."""
    balancing: Balancing = USUAL
    clients: tuple[LabClients, ...] = ()
    """Classes of clients, each a load generator."""
    load_cpus: CpuList = ""
    """The processors that the load may run on."""
    congestion_control: CongestionControl = CongestionControl()
    """A guest's load balancer has its kernel's own."""
    files: LabFiles = ()
    """Further files that the backends serve, with their sizes in KB."""
    waits: LabWaits = ()
    """Files that are pages of an application: the weights of the ms after which they are there."""

    def __post_init__(self) -> None:
        check_files(self.files)
        check_waits(self.waits, self.files)
        if self.files and self.balancing.serves_files:
            raise ValueError("files: the load balancer serves files itself (serves_files)")
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
        if self.kind != "namespaces" and self.congestion_control.load_balancer != "cubic":
            raise ValueError("congestion_control: a guest's load balancer has its kernel's own")
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
        """The server on its load balancer."""
        return SERVERS[self.balancing.server]

    @property
    def client_links(self) -> tuple[Link | None, ...]:
        """The link of each load generator to the load balancer, None for a bare one."""
        if self.clients:
            return tuple(clients.link for clients in self.clients)
        return (self.link if self.link is not None and self.link.is_at_client else None,)
