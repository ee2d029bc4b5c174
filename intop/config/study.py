"""A study: what to tune, where, under which load, with which budget."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Len, MinLen

from intop.config.baselines import load_baselines
from intop.config.catalogue import Catalogue, load_catalogue, shipped_catalogue
from intop.config.cluster import Replicas, clusters_of, without_nginx
from intop.config.directives import load_directives
from intop.config.source import LocalPath, Source
from intop.config.workload import workloads_of
from intop.domain.baseline import Baseline
from intop.domain.canary import CanarySettings
from intop.domain.guardrails import Guardrails
from intop.domain.matching import matching
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import Parameter, Risk, Tuned
from intop.domain.server import Server
from intop.domain.training import Objective, judged_by
from intop.domain.workload import Budget, LoadToolChoice, Workload
from intop.errors import ConfigurationError
from intop.resources import shipped


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a study that are in its file as they are here."""

    name: Annotated[str, matching("[A-Za-z0-9_.-]+", "a name of letters, digits, _, . and -")]
    """The study's name in the store and in reports."""
    store: Annotated[LocalPath, MinLen(1)] = "intop.db"
    """The store of its results: a file or an URL."""
    seed: Annotated[int, Ge(0)] = 1
    """The seed of all draws and orders."""
    max_risk: Risk = "medium"
    """Parameters of a higher risk stay at the host's own values."""
    tunes: Annotated[tuple[Tuned, ...], Len(1, 2)] = ("kernel",)
    """The owners of the parameters that are tuned."""
    objective: Objective = "p99"
    """The latency that is lowered: a percentile or the mean. With `component` the models learn the
    first component of all metrics, and the verdict is on P99."""
    warm_start: bool = True
    """A refinement learns from earlier campaigns, too."""
    hints: bool = True
    """A screening and a collection begin with parameters that act on the default's mechanisms."""
    load_tool: LoadToolChoice = "auto"
    """The program that sends the load."""
    workers: bool = False
    """Trials are measured by `intop worker` processes, and commands only ask for them."""


@dataclass(frozen=True, kw_only=True)
class _StudyTable(Settings):
    """The table [study]; `catalogue` and `baselines` are paths beside the study's file."""

    catalogue: str | None = None
    """A file in place of intop's catalogue of parameters."""
    parameters: Annotated[tuple[str, ...], MinLen(1)] = ("*",)
    """Patterns of the parameters that are tuned, such as `net.ipv4.tcp_*`."""
    baselines: Annotated[str, MinLen(1)] | None = None
    """A folder with sets of values of your own for `intop contest`."""


@dataclass(frozen=True, kw_only=True)
class Study(Settings):
    """One configuration file: what to tune, where, under which load, with which budget."""

    path: str
    clusters: Mapping[str, Replicas]
    """The clusters by architecture, with all replicas, which are measured in parallel.

    An embedded one is a LabSpec until it is up.
    """
    workloads: Mapping[str, Workload]
    budget: Budget
    guardrails: Guardrails = field(default_factory=Guardrails)
    canary: CanarySettings = field(default_factory=CanarySettings)
    optional: frozenset[str] = frozenset()
    """Architectures that are left out where they can't be brought up."""
    wanted: tuple[str, ...] = ("*",)
    """Patterns of keys; parameters that match none of them are left alone."""
    own_catalogue: Catalogue | None = None
    """The catalogue of its file, in place of intop's."""
    own_baselines: Mapping[str, Baseline] = field(default_factory=dict)
    """The baselines of its own folder, by name."""

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of parameters."""
        return self.own_catalogue or shipped_catalogue()

    @cached_property
    def baselines(self) -> Mapping[str, Baseline]:
        """Baselines by name. The study's own stand for intop's of the same name."""
        known = self.catalogue.parameters, self.catalogue.constraints
        return {**load_baselines(_OUR_BASELINES, *known), **self.own_baselines}

    @property
    def without_nginx(self) -> Mapping[str, Server]:
        """The servers by architecture that are not nginx: no directives are tuned there."""
        return without_nginx(self.clusters)

    @cached_property
    def directives(self) -> Directives:
        """The catalogue of nginx's directives that comes with intop."""
        return load_directives(shipped("configs") / "nginx.toml")

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters of the kinds that are tuned."""
        kernel = self.catalogue.parameters if "kernel" in self.tunes else ()
        nginx = self.directives.parameters if "nginx" in self.tunes else ()
        return (*kernel, *nginx)


EVERYTHING = ("*",)
"""The patterns of a study without patterns."""
_OUR_BASELINES = shipped("configs") / "baselines"
_Arch = Literal["x86", "arm", "native", "other"]
_Table = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _File:
    """The tables of a study's file. Clusters and workloads are looked into by themselves."""

    study: _StudyTable
    workload: Annotated[dict[str, _Table], Len(1, 50)]
    cluster: Annotated[dict[_Arch, _Table | Annotated[list[_Table], MinLen(1)]], MinLen(1)]
    budget: Budget = field(default_factory=Budget)
    guardrails: Guardrails = field(default_factory=Guardrails)
    canary: CanarySettings = field(default_factory=CanarySettings)


def load_study(path: Path) -> Study:
    """Return the study in a file. Raises ConfigurationError with a line for each problem."""
    source = Source.read(path)
    file = source.convert(_File, {**source.data, **_margins(source)}, ())
    workloads = workloads_of(source)
    clusters, optional = clusters_of(source)
    own = file.study if file else None
    catalogue: Catalogue | None = None
    if own and own.catalogue:
        catalogue = source.check(partial(load_catalogue, path.parent / own.catalogue), ())
    if own and own.parameters != EVERYTHING:
        _check_patterns(source, own, catalogue or shipped_catalogue())
    if own and "nginx" in own.tunes:
        _check_servers(source, clusters)
    baselines = _own_baselines(source, own, catalogue)
    if file is None or own is None or source.problems:
        raise ConfigurationError(source.problems)
    settings = {f.name: getattr(own, f.name) for f in fields(Settings)}
    judged = judged_by(own.objective)
    return Study(
        **settings | {"tunes": tuple(dict.fromkeys(own.tunes))},
        path=str(path),
        clusters=clusters,
        workloads={name: replace(load, judged_by=judged) for name, load in workloads.items()},
        budget=file.budget,
        guardrails=file.guardrails,
        canary=file.canary,
        optional=optional,
        wanted=own.parameters,
        own_catalogue=catalogue,
        own_baselines=baselines,
    )


def _margins(source: Source) -> _Table:
    """The table [guardrails], if any, with None for false, which switches a margin off."""
    table = source.data.get("guardrails")
    if not isinstance(table, dict):
        return {}
    margins: _Table = {}
    for name, margin in table.items():
        if margin is True:
            what = "must be a number, or false to switch it off (got True)"
            source.problem(("guardrails", name), what)
        else:
            margins[name] = None if margin is False else margin
    return {"guardrails": margins}


def _check_patterns(source: Source, own: _StudyTable, catalogue: Catalogue) -> None:
    """Note a problem for a pattern of `parameters` that matches none."""
    keys = [p.key for p in catalogue.parameters]
    if "nginx" in own.tunes:
        keys += load_directives(shipped("configs") / "nginx.toml").by_key
    for pattern in own.parameters:
        if not any(fnmatchcase(key, pattern) for key in keys):
            source.problem(("study", "parameters"), f"{pattern} matches no parameter")


def _check_servers(source: Source, clusters: Mapping[str, Replicas]) -> None:
    """Note a problem for a cluster without nginx, where directives are tuned."""
    for arch, server in without_nginx(clusters).items():
        source.problem(
            ("study", "tunes"),
            f"only nginx has directives that are tuned, and the server of cluster {arch} is "
            f"{server.title}: leave nginx out, or that cluster",
        )


def _own_baselines(
    source: Source, own: _StudyTable | None, catalogue: Catalogue | None
) -> Mapping[str, Baseline]:
    """Return the baselines of the study's own folder, after noting the problems of them.

    Ours are looked into only for a catalogue that is not ours: tests have done the rest.
    """
    folders = [_OUR_BASELINES] if catalogue else []
    folders += [source.path.parent / own.baselines] if own and own.baselines else []
    baselines: Mapping[str, Baseline] = {}
    for folder in folders:
        known = catalogue or shipped_catalogue()
        load = partial(load_baselines, folder, known.parameters, known.constraints)
        baselines = source.check(load, ("study", "baselines")) or {}
    return baselines if own and own.baselines else {}
