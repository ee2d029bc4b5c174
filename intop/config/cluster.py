"""Clusters as they stand in a study's file: hosts that are there, or a lab that intop makes."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from intop.config.source import Count, Listed, LocalPath, Model, Place, Positive, Share, Source
from intop.config.workload import UrlPath
from intop.domain.cluster import (
    SHELL_WORD,
    AccessLog,
    Balancing,
    Cluster,
    Direction,
    HostAddress,
    LabClients,
    LabKind,
    LabSpec,
    Link,
    Role,
    native_arch,
    other_arch,
)
from intop.domain.server import NGINX, SERVERS, Server, ServerName
from intop.errors import ConfigurationError, UsageError
from intop.masking import masked_value

Replicas = tuple[Cluster | LabSpec, ...]
"""One cluster, or several that are alike."""

_NAME = r"[A-Za-z0-9_:][A-Za-z0-9_.:-]*"
Name = Annotated[str, Field(max_length=253, pattern=f"^{_NAME}$")]
"""What we call a host: in messages, file names and columns of tables."""
HostName = Annotated[
    str, Field(max_length=253, pattern=f"^({_NAME}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*%[A-Za-z0-9_.-]+)$")
]
"""Where a host is: a name or an address, which may have an interface's name as its zone."""
Port = Annotated[int, Field(ge=1, le=65535)]
ShellWord = Annotated[str, Field(pattern=f"^{SHELL_WORD}$")]
CpuList = Annotated[str, Field(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$")]
"""Processors as taskset lists them, such as 0-3,8."""


def _sudo(value: object) -> object:
    """Raises ValueError for a number: for Python, 1 is true."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError('must be true, false, "ask" or "doas"')  # noqa: TRY004
    return value


Sudo = Annotated[Literal[False, True, "ask", "doas"], BeforeValidator(_sudo)]


class _HostModel(Model):
    hostname: HostName
    name: Name | None = None
    port: Port | None = None
    user: ShellWord | None = None
    key_file: LocalPath | None = None
    known_hosts: LocalPath | None = None
    ssh_config: LocalPath | None = Field(default=None, min_length=1)
    sudo: Sudo = False
    state_dir: str = Field(default="/var/lib/intop", pattern=r"^/[^\n\t]*[^/\s]$")
    lease_s: Annotated[float, Field(ge=2, le=3600)] = 30.0
    config_root: str = Field(default="/", pattern=r"^/([^\n\t]*[^/\s])?$")
    jump: "_HostModel | None" = None
    load_cpus: CpuList | None = None

    @property
    def called(self) -> str:
        """Its name: the host's own without one, where a zone's sign is no sign of a name."""
        return self.name or self.hostname.replace("%", "-")

    def address(self, role: Role) -> HostAddress:
        return HostAddress(
            name=self.called,
            role=role,
            hostname=self.hostname,
            port=self.port,
            user=self.user,
            key_file=self.key_file,
            known_hosts=self.known_hosts,
            jump=self.jump.address(role) if self.jump else None,
            ssh_config=self.ssh_config,
            sudo=self.sudo,
            state_dir=self.state_dir,
            lease_s=self.lease_s,
            config_root=self.config_root,
            load_cpus=self.load_cpus or "",
        )


_HOST = re.compile(
    r"((?P<user>[^\s:]+)@)?"
    r"(?P<hostname>\[[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?\]|[^\s@:\[\]]+)"
    r"(:(?P<port>[0-9]{1,9}))?"
)


class _DirectionModel(Model):
    rate_mbit: Positive | None = None
    limit_kb: Count = 100
    delay_ms: Annotated[float, Field(ge=0, le=10_000)] = 0
    jitter_ms: Annotated[float, Field(ge=0, le=10_000)] = 0
    loss_percent: Annotated[float, Field(ge=0, lt=100)] = 0


class _LinkModel(_DirectionModel):
    burst_kb: Count = 32
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    up: _DirectionModel | None = None

    def link(self) -> Link:
        """Raises ValueError for one that shapes nothing, or a buffer without a rate.

        What `up` does not say is as it is for the other direction.
        """
        said = self.model_dump(exclude={"up"}, exclude_unset=True)
        if self.rate_mbit is None and said.keys() & {"burst_kb", "limit_kb"}:
            raise ValueError("link: burst_kb and limit_kb belong to a rate_mbit")
        up = None
        if self.up is not None:
            same = {key: said[key] for key in said.keys() & _DirectionModel.model_fields.keys()}
            up = Direction(**(same | self.up.model_dump(exclude_unset=True)))
        link = Link(**said, up=up)
        if link.is_at_client and "burst_kb" in said:
            raise ValueError("link: burst_kb belongs to a rate_mbit without delay, loss or up")
        if not link.is_at_client and "seed" in said:
            raise ValueError("link: seed belongs to a loss or jitter")
        return link


class _LabClientsModel(Model):
    name: str
    share: Share
    link: _LinkModel | None = None


def _log_mode(value: object) -> object:
    """A word for true and false, which it was before there were three modes."""
    return {False: "off", True: "disk"}[value] if isinstance(value, bool) else value


class _LabModel(Model):
    lab: str
    kind: LabKind = "namespaces"
    server: ServerName = NGINX.name
    serves_files: bool = False
    link: _LinkModel | None = None
    clients: Listed[_LabClientsModel] = ()
    optional: bool = False
    machines: Listed[str] = ()
    load_cpus: CpuList | None = None
    upstream_keepalive: Annotated[int, Field(ge=0, le=10_000)] = 64
    backlog: Annotated[int, Field(ge=1, le=65535)] = 65535
    workers: int = 1
    proxy_buffers: int = 16
    proxy_buffer_kb: int = 16
    sndbuf_kb: int = 0
    tls_key_bits: int = 0
    access_log: Annotated[AccessLog, BeforeValidator(_log_mode)] = "off"
    server_cpus: CpuList | None = None
    disk_iops: int = 0
    sysctls: dict[str, int | str] = Field(default_factory=dict)

    def balancing(self) -> Balancing:
        """Raises ValueError for sysctls that are not a lab's own, and for what nginx refuses."""
        return Balancing(
            server=self.server,
            serves_files=self.serves_files,
            upstream_keepalive=self.upstream_keepalive,
            backlog=self.backlog,
            workers=self.workers,
            proxy_buffers=self.proxy_buffers,
            proxy_buffer_kb=self.proxy_buffer_kb,
            sndbuf_kb=self.sndbuf_kb,
            tls_key_bits=self.tls_key_bits,
            access_log=self.access_log,
            disk_iops=self.disk_iops,
            server_cpus=self.server_cpus or "",
            sysctls=tuple((key, str(value)) for key, value in self.sysctls.items()),
        )


def _server(url: str) -> str:
    """Raises ValueError for what is no http://HOST or https://HOST:PORT."""
    if not re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?", url):
        raise ValueError("must be http://HOST:PORT or https://HOST:PORT, without a path")
    parts = urlsplit(url)
    if parts.port == 0 or not parts.hostname or parts.hostname.startswith("-"):
        raise ValueError("must have a host, and a port from 1 to 65535 if any")
    return url


def _command(text: str) -> str:
    """Raises ValueError for what `sh -c` takes for no command."""
    if not text.strip():
        raise ValueError("must be a command, not blanks")
    if text.strip()[0] in "-+":
        raise ValueError(f"must not begin with {text.strip()[0]}, which sh takes for an option")
    return text


Command = Annotated[str, AfterValidator(_command)]
STATUS_PAGE = r"^(http://(127\.0\.0\.1|localhost)(:[0-9]{1,5})?/[A-Za-z0-9_./-]*)?$"
"""Of the load balancer itself, so that nobody else's page is taken for its own."""


class _ClusterModel(Model):
    load_generator: _HostModel | None = None
    load_generators: Listed[_HostModel] = ()
    load_balancer: _HostModel
    backends: Listed[_HostModel] = Field(min_length=1)
    url: Annotated[str, AfterValidator(_server)]
    server: ServerName = NGINX.name
    server_restart: Command | None = None
    nginx_restart: Command | None = None
    static_paths: Listed[UrlPath] = Field(min_length=1)
    dynamic_path: UrlPath
    link: str = "not described"
    machines: Listed[str] = ()
    programs: Listed[Annotated[str, Field(min_length=1)]] = ()
    stub_status: Annotated[str, Field(pattern=STATUS_PAGE)] = ""

    @model_validator(mode="after")
    def _distinct(self) -> "_ClusterModel":
        names = [h.called for h in self._hosts()]
        lower = [n.lower() for n in names]
        if twice := {n for n in names if lower.count(n.lower()) > 1}:
            raise ValueError(f"two hosts are called {', '.join(sorted(twice))}: give each a name")
        return self

    @model_validator(mode="after")
    def _loads_are_pinned(self) -> "_ClusterModel":
        if any(host.load_cpus for host in (self.load_balancer, *self.backends)):
            raise ValueError("load_cpus: only load generators send a load")
        return self

    @model_validator(mode="after")
    def _is_of_the_server(self) -> "_ClusterModel":
        if self.nginx_restart is not None and self.server != NGINX.name:
            raise ValueError(
                f"nginx_restart: the server is {self.server}: write server_restart, or leave it "
                f"out for `{SERVERS[self.server].restart}`"
            )
        if self.nginx_restart is not None and self.server_restart is not None:
            raise ValueError("nginx_restart and server_restart are the same: leave one out")
        if self.stub_status and self.server != NGINX.name:
            raise ValueError(f"stub_status: is a page of nginx, and the server is {self.server}")
        return self

    def restart(self) -> str:
        """The command that restarts the server."""
        return self.server_restart or self.nginx_restart or SERVERS[self.server].restart

    def _hosts(self) -> tuple[_HostModel, ...]:
        return (*self.generators(), self.load_balancer, *self.backends)

    def generators(self) -> tuple[_HostModel, ...]:
        """All hosts that send the load."""
        first = () if self.load_generator is None else (self.load_generator,)
        return (*first, *self.load_generators)

    @model_validator(mode="after")
    def _generators_once(self) -> "_ClusterModel":
        if (self.load_generator is None) == (not self.load_generators):
            raise ValueError(
                "give it a load_generator, or [[...load_generators]] where several share the load"
            )
        return self


def clusters_of(source: Source) -> tuple[dict[str, Replicas], frozenset[str]]:
    """The clusters by architecture, and which of them are optional."""
    clusters: dict[str, Replicas] = {}
    optional: set[str] = set()
    for name, tables in _tables(source.data.get("cluster")):
        arch = {"native": native_arch(), "other": other_arch()}.get(name, name)
        if arch in clusters:
            source.problem(("cluster", name), f"it means {arch} here, which stands there already")
        made = [
            source.check(partial(_cluster, table, arch), place) for place, table in tables.items()
        ]
        replicas = tuple(cluster for cluster in made if cluster is not None)
        clusters[arch] = replicas
        if any(table.get("optional") is True for table in tables.values()):
            optional.add(arch)
        if twice := _tuned_twice(replicas):
            source.problem(("cluster", name), f"two replicas have {twice}: each needs its own")
        if len(servers := {replica.server.name: None for replica in replicas}) > 1:
            source.problem(("cluster", name), f"replicas have one server, not {', '.join(servers)}")
    return clusters, frozenset(optional)


def without_nginx(clusters: Mapping[str, Replicas]) -> dict[str, Server]:
    """The servers by architecture, where that is not nginx."""
    found = {arch: replica.server for arch, replicas in clusters.items() for replica in replicas}
    return {arch: server for arch, server in found.items() if server != NGINX}


def host_address(word: str, **options: Any) -> HostAddress:
    """A tuned host by `[USER@]HOST[:PORT]`, IPv6 in brackets; `options` as in a study's file.

    It is called `HOST[:PORT]`. Raises UsageError.
    """
    if (match := _HOST.fullmatch(word)) is None:
        raise UsageError(
            f"{masked_value(word)!r} is no host: [USER@]HOST[:PORT], an IPv6 address in brackets"
        )
    given: dict[str, Any] = {k: v for k, v in match.groupdict().items() if v is not None}
    hostname = given["hostname"].strip("[]")
    name = f"{hostname}:{given['port']}" if "port" in given else hostname
    name = name.replace("%", "-")
    given |= {"hostname": hostname, "name": name, **options}
    if "port" in given:
        given["port"] = int(given["port"])
    source = Source(Path(f"--host {word}"), "", given)
    model = source.check(lambda: _HostModel.model_validate(source.data), ())
    if model is None:
        raise ConfigurationError(source.problems)
    return model.address("load-balancer")


def _tuned_twice(replicas: Replicas) -> str | None:
    """A lab or load balancer that stands in more than one replica."""
    names = [
        f"lab {r.name}"
        if isinstance(r, LabSpec)
        else f"load balancer {r.load_balancer.hostname}:{r.load_balancer.port or 22}"
        for r in replicas
    ]
    return next((name for name in names if names.count(name) > 1), None)


def _cluster(table: Mapping[str, Any], arch: str) -> Cluster | LabSpec:
    if "lab" in table:
        lab = _LabModel.model_validate(table)
        return LabSpec(
            name=lab.lab,
            arch=arch,
            kind=lab.kind,
            link=lab.link.link() if lab.link else None,
            machines=lab.machines,
            balancing=lab.balancing(),
            load_cpus=lab.load_cpus or "",
            clients=tuple(
                LabClients(name=c.name, share=c.share, link=c.link.link() if c.link else None)
                for c in lab.clients
            ),
        )
    model = _ClusterModel.model_validate(table)
    first, *others = (g.address("load-generator") for g in model.generators())
    return Cluster(
        arch=arch,
        load_generator=first,
        more_generators=tuple(others),
        load_balancer=model.load_balancer.address("load-balancer"),
        backends=tuple(b.address("backend") for b in model.backends),
        url=model.url,
        server=SERVERS[model.server],
        server_restart=model.restart(),
        static_paths=model.static_paths,
        dynamic_path=model.dynamic_path,
        link=model.link,
        machines=model.machines,
        programs=model.programs,
        stub_status=model.stub_status,
    )


def _tables(data: object) -> list[tuple[str, dict[Place, Mapping[str, Any]]]]:
    """Each architecture's tables by their places; what else is wrong with it, the model says."""
    found: list[tuple[str, dict[Place, Mapping[str, Any]]]] = []
    for name, value in data.items() if isinstance(data, dict) else ():
        place: Place = ("cluster", name)
        if isinstance(value, dict):
            found.append((name, {place: value}))
        elif isinstance(value, list):
            entries = enumerate(value)
            found.append((name, {(*place, n): v for n, v in entries if isinstance(v, dict)}))
    return found
