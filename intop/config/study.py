"""A study: what to tune, where, under which load, with which budget."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from intop.config.baselines import load_baselines
from intop.config.catalogue import Catalogue, load_catalogue
from intop.config.cluster import Replicas, clusters_of, without_nginx
from intop.config.directives import load_directives
from intop.config.source import Count, Fraction, Listed, LocalPath, Model, Positive, Share, Source
from intop.config.workload import WorkloadModel, WorkloadName
from intop.domain.baseline import Baseline
from intop.domain.guardrails import Guardrails
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import Parameter, Risk, Tuned
from intop.domain.server import Server
from intop.domain.training import Objective
from intop.domain.workload import WORKLOAD_KINDS, Budget, LoadToolChoice, Workload
from intop.errors import ConfigurationError
from intop.resources import shipped


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
        return without_nginx(self.clusters)

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


def _unless_off(value: object) -> object:
    """None for false, which switches something off. Raises ValueError for true."""
    if value is True:
        raise ValueError("must be a number, or false to switch it off")
    return None if value is False else value


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
    store: LocalPath = Field(default="intop.db", min_length=1)
    seed: Annotated[int, Field(ge=0)] = 1
    max_risk: Risk = "medium"
    catalogue: str | None = None
    parameters: Listed[str] = Field(default=("*",), min_length=1)
    tunes: Listed[Tuned] = Field(default=("kernel",), min_length=1, max_length=2)
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
    clusters, optional = clusters_of(source)
    wanted = found.study.catalogue if found else None
    catalogue_path = path.parent / wanted if wanted else shipped("configs") / "parameters.toml"
    catalogue = source.check(lambda: load_catalogue(catalogue_path), ())
    if found and catalogue:
        _check(source, found, catalogue)
    workloads = _workloads(source, found) if found else {}
    for arch, server in without_nginx(clusters).items():
        if found and "nginx" in found.study.tunes:
            source.problem(
                ("study", "tunes"),
                f"only nginx has directives that are tuned, and the server of cluster {arch} is "
                f"{server.title}: leave nginx out, or that cluster",
            )
    baselines: dict[str, Baseline] = {}
    for folder in _baseline_folders(path, found):
        place = ("study", "baselines")
        known = (catalogue.parameters, catalogue.constraints) if catalogue else ()
        baselines |= source.check(partial(load_baselines, folder, *known), place) or {}
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
