"""A study: what to tune, where, under which load, with which budget."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from intop.config.baselines import load_baselines
from intop.config.catalogue import Catalogue, load_catalogue
from intop.config.directives import load_directives
from intop.config.source import Fraction, Model, Place, Source
from intop.config.workload import UrlPath, WorkloadModel, WorkloadName
from intop.domain.baseline import Baseline
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
from intop.domain.guardrails import Guardrails
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import Parameter, Risk, Tuned
from intop.domain.server import NGINX, SERVERS, Server, ServerName
from intop.domain.training import Objective
from intop.domain.workload import WORKLOAD_KINDS, Budget, LoadToolChoice, Workload
from intop.errors import ConfigurationError, UsageError
from intop.resources import shipped

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Replicas = tuple[Cluster | LabSpec, ...]
"""One cluster, or several that are alike."""


def _server(url: str) -> str:
    """Raises ValueError for what is no http://HOST or https://HOST:PORT."""
    if not re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?", url):
        raise ValueError("must be http://HOST:PORT or https://HOST:PORT, without a path")
    parts = urlsplit(url)
    if parts.port == 0 or not parts.hostname or parts.hostname.startswith("-"):
        raise ValueError("must have a host, and a port from 1 to 65535 if any")
    return url


def _local_path(text: str) -> str:
    """Raises ValueError for a home folder that nobody has, and for several lines."""
    if "\n" in text:
        raise ValueError("a path has one line")
    try:
        Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"there is no user of that home folder: {text}") from error
    return text


def _unless_off(value: object) -> object:
    """None for false, which switches something off. Raises ValueError for true."""
    if value is True:
        raise ValueError("must be a number, or false to switch it off")
    return None if value is False else value


LocalPath = Annotated[str, AfterValidator(_local_path)]
HostName = Annotated[str, Field(max_length=253, pattern=r"^[A-Za-z0-9_:][A-Za-z0-9_.:-]*$")]
"""Of a host, and what we call it: in messages, file names and columns of tables."""
Port = Annotated[int, Field(ge=1, le=65535)]
ShellWord = Annotated[str, Field(pattern=f"^{SHELL_WORD}$")]


@dataclass(frozen=True, kw_only=True)
class Study:
    """One configuration file: what to tune, where, under which load, with which budget.

    `clusters` by architecture, each with all its replicas, which are measured in parallel; an
    embedded one is a LabSpec until it is up. Architectures in `optional` are done without where
    they can't be brought up. Parameters of a higher risk than `max_risk` are
    left alone, and so are those that none of the patterns `wanted` matches. `tunes` says whose
    parameters there are: of the kernel, of nginx, or of both. `baselines` by name.
    `objective` is what models learn; a verdict is always on P99, within the `guardrails`. With
    `warm_start` a refinement learns from earlier campaigns, too. With `hints` a screening
    expects parameters to act that take away the mechanisms which the default shows, and a
    collection begins with them. `load_tool` sends the load. With `workers` trials are measured by
    `intop worker` processes, and commands only ask for them.
    """

    name: str
    path: str
    store: str
    seed: int
    max_risk: Risk
    catalogue: Catalogue
    clusters: Mapping[str, Replicas]
    workloads: Mapping[str, Workload]
    budget: Budget
    guardrails: Guardrails = field(default_factory=Guardrails)
    optional: frozenset[str] = frozenset()
    wanted: tuple[str, ...] = ("*",)
    tunes: tuple[Tuned, ...] = ("kernel",)
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    objective: Objective = "p99"
    warm_start: bool = True
    hints: bool = True
    load_tool: LoadToolChoice = "auto"
    workers: bool = False

    @property
    def without_nginx(self) -> Mapping[str, Server]:
        """The servers by architecture, where that is not nginx: no directives are tuned there."""
        return _without_nginx(self.clusters)

    @cached_property
    def directives(self) -> Directives:
        """The catalogue of nginx's directives that comes with intop."""
        return load_directives(shipped("configs") / "nginx.toml")

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All that there may be to tune, of the kinds that are tuned."""
        kernel = self.catalogue.parameters if "kernel" in self.tunes else ()
        nginx = self.directives.parameters if "nginx" in self.tunes else ()
        return (*kernel, *nginx)


CpuList = Annotated[str, Field(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$")]
"""Processors as taskset lists them, such as 0-3,8."""


class _HostModel(Model):
    hostname: HostName
    name: HostName | None = None
    port: Port | None = None
    user: ShellWord | None = None
    key_file: LocalPath | None = None
    known_hosts: LocalPath | None = None
    ssh_config: LocalPath | None = Field(default=None, min_length=1)
    sudo: Literal[False, True, "ask"] = False
    state_dir: str = Field(default="/var/lib/intop", pattern=r"^/[^\n\t]*[^/\s]$")
    lease_s: Annotated[float, Field(ge=2, le=3600)] = 30.0
    config_root: str = Field(default="/", pattern=r"^/([^\n\t]*[^/\s])?$")
    jump: "_HostModel | None" = None
    load_cpus: CpuList | None = None

    def address(self, role: Role) -> HostAddress:
        return HostAddress(
            name=self.name or self.hostname,
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
    r"((?P<user>[^\s:]+)@)?(?P<hostname>\[[0-9A-Fa-f:.]+\]|[^\s@:\[\]]+)(:(?P<port>[0-9]+))?"
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
    clients: tuple[_LabClientsModel, ...] = ()
    optional: bool = False
    machines: tuple[str, ...] = ()
    load_cpus: CpuList | None = None
    upstream_keepalive: Annotated[int, Field(ge=0, le=10_000)] = 64
    backlog: Annotated[int, Field(ge=1, le=65535)] = 65535
    workers: int = 1
    proxy_buffers: int = 16
    proxy_buffer_kb: int = 16
    tls_key_bits: int = 0
    access_log: Annotated[AccessLog, BeforeValidator(_log_mode)] = "off"
    server_cpus: CpuList | None = None
    sync_disk: bool = False
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
            tls_key_bits=self.tls_key_bits,
            access_log=self.access_log,
            sync_disk=self.sync_disk,
            server_cpus=self.server_cpus or "",
            sysctls=tuple((key, str(value)) for key, value in self.sysctls.items()),
        )


STATUS_PAGE = r"^(http://(127\.0\.0\.1|localhost)(:[0-9]{1,5})?/[A-Za-z0-9_./-]*)?$"
"""Of the load balancer itself, so that nobody else's page is taken for its own."""


class _ClusterModel(Model):
    load_generator: _HostModel | None = None
    load_generators: tuple[_HostModel, ...] = ()
    load_balancer: _HostModel
    backends: tuple[_HostModel, ...] = Field(min_length=1)
    url: Annotated[str, AfterValidator(_server)]
    server: ServerName = NGINX.name
    server_restart: str | None = Field(default=None, min_length=1)
    nginx_restart: str | None = Field(default=None, min_length=1)
    static_paths: tuple[UrlPath, ...] = Field(min_length=1)
    dynamic_path: UrlPath
    link: str = "not described"
    machines: tuple[str, ...] = ()
    programs: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    stub_status: Annotated[str, Field(pattern=STATUS_PAGE)] = ""

    @model_validator(mode="after")
    def _distinct(self) -> "_ClusterModel":
        names = [h.name or h.hostname for h in self._hosts()]
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


class _BudgetModel(Model):
    screen_trials: Annotated[int, Field(ge=8)] = 100
    screen_stable: Annotated[int, Field(ge=0)] = 3
    keep: Count = 20
    # Half for a design that fills the space, half for what the models then find most telling.
    collect_trials: Annotated[int, Field(ge=8)] = 120
    refine_trials: Annotated[int, Field(ge=0)] = 120
    refine_batch: Count = 4
    replicate_trials: Annotated[int, Field(ge=0)] | None = None
    sentinel_every: Annotated[int, Field(ge=2)] = 8
    folds: Annotated[int, Field(ge=2, le=20)] = 4
    repeats: Annotated[int, Field(ge=1, le=20)] = 2
    tuning_trials: Count = 20
    tuning_timeout_s: Positive = 60.0
    population: Annotated[int, Field(ge=5)] = 200  # SciPy's evolution needs so many
    generations: Count = 100
    patience: Count = 15
    finalists: Count = 3
    pick_rounds: Count = 3
    judge_pairs: Annotated[int, Field(ge=3)] = 10
    judge_looks: Annotated[int, Field(ge=1, le=10)] = 2
    judge_duration_s: Annotated[int, Field(ge=1, le=3600)] | None = None
    agree_rounds: Annotated[int, Field(ge=3)] = 6
    level: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    settle_limit_s: Positive = 90.0
    max_time_wait: Count = 20_000
    max_failures: Count = 10
    retries: Annotated[int, Field(ge=0)] = 2
    max_steal: Fraction = 0.1
    max_steal_cores: Positive = 0.2
    max_foreign_cores: Positive = 0.4
    max_load_cpu: Share = 0.9
    max_lag: Share = 0.2
    prune_factor: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    pilot_trials: Annotated[int, Field(ge=3, le=100)] = 5
    pilot_max_s: Annotated[int, Field(ge=2, le=3600)] = 60
    pilot_resolution: Annotated[float, Field(gt=1, le=100)] = 1.25
    explain_rounds: Annotated[int, Field(ge=0)] = 4
    explain_pairs: Annotated[int, Field(ge=3)] = 16

    @model_validator(mode="after")
    def _explain_rounds_have_intervals(self) -> "_BudgetModel":
        if self.explain_rounds == 1:
            raise ValueError("explain_rounds (1) must be 2 or more, or 0 to explain nothing")
        return self

    @model_validator(mode="after")
    def _prunes_what_is_worse(self) -> "_BudgetModel":
        if 0 < self.prune_factor <= 1:
            raise ValueError(
                f"prune_factor ({self.prune_factor:g}) must be more than 1, or 0 to prune none"
            )
        return self


Times = Annotated[Annotated[float, Field(ge=1, le=100)] | None, BeforeValidator(_unless_off)]
RateTimes = Annotated[Annotated[float, Field(gt=0, le=1)] | None, BeforeValidator(_unless_off)]
Points = Annotated[Annotated[float, Field(ge=0, le=100)] | None, BeforeValidator(_unless_off)]
Mebibytes = Annotated[Annotated[float, Field(ge=0)] | None, BeforeValidator(_unless_off)]
"""Margins of guardrails; none where false switches it off."""


class _GuardrailsModel(Model):
    p50_times: Times = 1.1
    rate_times: RateTimes = 0.99
    error_points: Points = 0.1
    cpu_points: Points = 5.0
    cpu_times: Times = 1.1
    memory_mib: Mebibytes = 64.0
    memory_times: Times = 1.1


class _StudyModel(Model):
    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9_.-]+$")
    store: LocalPath = "intop.db"
    seed: Annotated[int, Field(ge=0)] = 1
    max_risk: Risk = "medium"
    catalogue: str | None = None
    parameters: tuple[str, ...] = Field(default=("*",), min_length=1)
    tunes: tuple[Tuned, ...] = Field(default=("kernel",), min_length=1, max_length=2)
    baselines: str | None = Field(default=None, min_length=1)
    objective: Objective = "p99"
    warm_start: bool = True
    hints: bool = True
    load_tool: LoadToolChoice = "auto"
    workers: bool = False


class _FileModel(Model):
    study: _StudyModel
    budget: _BudgetModel = _BudgetModel()
    guardrails: _GuardrailsModel = _GuardrailsModel()
    workload: Annotated[dict[WorkloadName, WorkloadModel], Field(min_length=1, max_length=50)]
    cluster: dict[
        Literal["x86", "arm", "native", "other"],
        dict[str, Any] | Annotated[list[dict[str, Any]], Field(min_length=1)],
    ] = Field(min_length=1)


def load_study(path: Path) -> Study:
    """The study in a file. Raises ConfigurationError with a line for each problem."""
    source = Source.read(path)
    found = source.check(lambda: _FileModel.model_validate(source.data), ())
    clusters, optional = _clusters(source)
    wanted = found.study.catalogue if found else None
    catalogue_path = path.parent / wanted if wanted else shipped("configs") / "parameters.toml"
    catalogue = source.check(lambda: load_catalogue(catalogue_path), ())
    if found and catalogue:
        _check(source, found, catalogue)
    workloads = _workloads(source, found) if found else {}
    for arch, server in _without_nginx(clusters).items():
        if found and "nginx" in found.study.tunes:
            source.problem(
                ("study", "tunes"),
                f"only nginx has directives that are tuned, and the server of cluster {arch} is "
                f"{server.title}: leave nginx out, or that cluster",
            )
    baselines: dict[str, Baseline] = {}
    for folder in _baseline_folders(path, found):
        place = ("study", "baselines")
        baselines |= source.check(partial(load_baselines, folder), place) or {}
    if found is None or catalogue is None or source.problems:
        raise ConfigurationError(source.problems)
    return Study(
        name=found.study.name,
        path=str(path),
        store=found.study.store,
        seed=found.study.seed,
        max_risk=found.study.max_risk,
        catalogue=catalogue,
        clusters=clusters,
        workloads=workloads,
        budget=Budget(**found.budget.model_dump()),
        guardrails=Guardrails(**found.guardrails.model_dump()),
        optional=optional,
        wanted=found.study.parameters,
        tunes=tuple(dict.fromkeys(found.study.tunes)),
        baselines=baselines,
        objective=found.study.objective,
        warm_start=found.study.warm_start,
        hints=found.study.hints,
        load_tool=found.study.load_tool,
        workers=found.study.workers,
    )


def host_address(word: str, **options: Any) -> HostAddress:
    """A tuned host by `[USER@]HOST[:PORT]`, IPv6 in brackets; `options` as in a study's file.

    It is called `HOST[:PORT]`. Raises UsageError.
    """
    if (match := _HOST.fullmatch(word)) is None:
        raise UsageError(f"{word!r} is no host: [USER@]HOST[:PORT], an IPv6 address in brackets")
    given = {key: value for key, value in match.groupdict().items() if value is not None}
    hostname = given["hostname"].strip("[]")
    name = f"{hostname}:{given['port']}" if "port" in given else hostname
    given |= {"hostname": hostname, "name": name, **options}
    source = Source(Path(f"--host {word}"), "", given)
    model = source.check(lambda: _HostModel.model_validate(source.data), ())
    if model is None:
        raise ConfigurationError(source.problems)
    return model.address("load-balancer")


def _check(source: Source, found: _FileModel, catalogue: Catalogue) -> None:
    """What only shows where two tables are seen together."""
    if not any(workload.tuned for workload in found.workload.values()):
        source.problem(("workload",), "none of them is tuned: take tuned = false out of one")
    keys = [p.key for p in catalogue.parameters]
    if "nginx" in found.study.tunes:
        keys += load_directives(shipped("configs") / "nginx.toml").by_key
    for pattern in found.study.parameters:
        if not any(fnmatchcase(key, pattern) for key in keys):
            source.problem(("study", "parameters"), f"{pattern} matches no parameter")


def _workloads(source: Source, found: _FileModel) -> dict[str, Workload]:
    """The paper's two first, then the others as they stand in the file."""
    names = dict.fromkeys((*(n for n in WORKLOAD_KINDS if n in found.workload), *found.workload))
    scripts: dict[str, Path] = {}
    for name in names:
        if script := found.workload[name].script:
            path = source.path.parent / script
            if scripts.setdefault(path.name, path) != path:
                source.problem(("workload", name, "script"), f"there is another {path.name}")
        if found.workload[name].paths and "dlt" in (name, found.workload[name].kind):
            place = ("workload", name, "paths")
            source.problem(place, "dlt asks for the cluster's dynamic_path only")
    made = {
        name: source.check(
            partial(found.workload[name].workload, name, source.path.parent), ("workload", name)
        )
        for name in names
    }
    return {name: workload for name, workload in made.items() if workload is not None}


def _baseline_folders(path: Path, found: _FileModel | None) -> list[Path]:
    """Ours, and then the study's own, so that theirs replace ours of the same name."""
    own = found.study.baselines if found else None
    return [shipped("configs") / "baselines"] + ([path.parent / own] if own else [])


def _clusters(source: Source) -> tuple[dict[str, Replicas], frozenset[str]]:
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


def _without_nginx(clusters: Mapping[str, Replicas]) -> dict[str, Server]:
    found = {arch: replica.server for arch, replicas in clusters.items() for replica in replicas}
    return {arch: server for arch, server in found.items() if server != NGINX}


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
