"""configs/*.toml to domain types. Every problem of a file is reported at once, with its place.

pydantic checks types and ranges here, at the border; the domain's constructors check the rest.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from intop.domain.baseline import RESERVED, Baseline
from intop.domain.cluster import (
    Cluster,
    HostAddress,
    LabKind,
    LabSpec,
    Link,
    Role,
    native_arch,
)
from intop.domain.parameter import Component, Kind, Parameter, Risk, Scale, Scope
from intop.domain.space import (
    Constraint,
    Exclusion,
    Order,
    Requirement,
    parameter_columns,
)
from intop.domain.workload import WORKLOADS, Budget, Workload, WorkloadName
from intop.errors import ConfigurationError
from intop.resources import shipped

T = TypeVar("T")
Place = tuple[str | int, ...]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Port = Annotated[int, Field(ge=1, le=65535)]


@dataclass(frozen=True)
class Catalogue:
    """All parameters that intop knows, and what must hold between them."""

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """One configuration file: what to tune, where, under which load, with which budget.

    `clusters` by architecture; an embedded one is a LabSpec until it is up. Parameters of a higher
    risk than `max_risk` are left alone. `baselines` by name.
    """

    name: str
    path: str
    store: str
    seed: int
    max_risk: Risk
    catalogue: Catalogue
    clusters: Mapping[str, Cluster | LabSpec]
    workloads: Mapping[WorkloadName, Workload]
    budget: Budget
    baselines: Mapping[str, Baseline] = field(default_factory=dict)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _HostModel(_Model):
    hostname: str = Field(min_length=1, pattern=r"^[^-\s]\S*$")
    name: str | None = Field(default=None, min_length=1)
    port: Port = 22
    user: str = Field(default="root", min_length=1)
    key_file: str | None = None
    known_hosts: str | None = None
    sudo: bool = False
    state_dir: str = Field(default="/var/lib/intop", pattern=r"^/.*[^/]$")
    lease_s: Annotated[float, Field(ge=3, le=3600)] = 30.0
    jump: "_HostModel | None" = None

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
            sudo=self.sudo,
            state_dir=self.state_dir,
            lease_s=self.lease_s,
        )


class _LinkModel(_Model):
    rate_mbit: Positive | None = None
    burst_kb: Count = 32
    limit_kb: Count = 100
    delay_ms: Annotated[float, Field(ge=0, le=10_000)] = 0
    loss_percent: Annotated[float, Field(ge=0, lt=100)] = 0

    def link(self) -> Link:
        """Raises ValueError for one that shapes nothing, or a buffer without a rate."""
        if self.rate_mbit is None and self.model_fields_set & {"burst_kb", "limit_kb"}:
            raise ValueError("link: burst_kb and limit_kb belong to a rate_mbit")
        return Link(**self.model_dump())


class _LabModel(_Model):
    lab: str
    kind: LabKind = "namespaces"
    link: _LinkModel | None = None
    machines: tuple[str, ...] = ()


class _ClusterModel(_Model):
    load_generator: _HostModel
    load_balancer: _HostModel
    backends: tuple[_HostModel, ...] = Field(min_length=1)
    url: str = Field(pattern=r"^https?://[^/\s]+$")
    nginx_restart: str = Field(min_length=1)
    static_paths: tuple[Annotated[str, Field(pattern=r"^/\S*$")], ...] = Field(min_length=1)
    dynamic_path: str = Field(pattern=r"^/\S*$")
    link: str = "not described"
    machines: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _distinct(self) -> "_ClusterModel":
        names = [h.name or h.hostname for h in self._hosts()]
        if twice := {n for n in names if names.count(n) > 1}:
            raise ValueError(f"two hosts are called {', '.join(sorted(twice))}: give each a name")
        return self

    def _hosts(self) -> tuple[_HostModel, ...]:
        return (self.load_generator, self.load_balancer, *self.backends)


class _WorkloadModel(_Model):
    rate_rps: Annotated[float, Field(ge=1, le=10_000_000)]
    connections: Annotated[int, Field(ge=1, le=100_000)]
    threads: Annotated[int, Field(ge=1, le=1024)]
    duration_s: Annotated[int, Field(ge=1, le=3600)]
    warmup_s: Annotated[int, Field(ge=0, le=600)] = 1
    timeout_s: Annotated[int, Field(ge=1, le=600)] = 10

    @model_validator(mode="after")
    def _whole_threads(self) -> "_WorkloadModel":
        if self.connections % self.threads:
            raise ValueError(
                f"connections ({self.connections}) must be a multiple of threads ({self.threads})"
            )
        return self


class _BudgetModel(_Model):
    screen_trials: Annotated[int, Field(ge=8)] = 100
    keep: Count = 20
    collect_trials: Annotated[int, Field(ge=8)] = 200
    sentinel_every: Annotated[int, Field(ge=2)] = 8
    folds: Annotated[int, Field(ge=2, le=20)] = 4
    tuning_trials: Count = 20
    tuning_timeout_s: Positive = 60.0
    population: Annotated[int, Field(ge=4)] = 200
    generations: Count = 100
    patience: Count = 15
    finalists: Count = 3
    pick_rounds: Count = 3
    judge_pairs: Annotated[int, Field(ge=3)] = 10
    level: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    settle_limit_s: Positive = 90.0
    max_time_wait: Count = 4000
    max_failures: Count = 10
    retries: Annotated[int, Field(ge=0)] = 2
    max_steal: Fraction = 0.1


class _StudyModel(_Model):
    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9_.-]+$")
    store: str = "intop.db"
    seed: Annotated[int, Field(ge=0)] = 1
    max_risk: Risk = "medium"
    catalogue: str | None = None
    baselines: str | None = Field(default=None, min_length=1)


class _FileModel(_Model):
    study: _StudyModel
    budget: _BudgetModel = _BudgetModel()
    workload: dict[WorkloadName, _WorkloadModel] = Field(min_length=1)
    cluster: dict[Literal["x86", "arm", "native"], dict[str, Any]] = Field(min_length=1)


class _ComponentModel(_Model):
    name: str = Field(min_length=1)
    low: int
    high: int


_Key = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[A-Za-z0-9_-]+)+$")]


class _ParameterModel(_Model):
    key: _Key
    kind: Kind
    unit: str
    scope: Scope
    risk: Risk
    mechanism: str = Field(min_length=1)
    document: str = Field(min_length=1)
    low: int | None = None
    high: int | None = None
    components: tuple[_ComponentModel, ...] = ()
    choices: tuple[str, ...] = ()
    scale: Scale | None = None
    choices_from: str | None = None
    choices_from_in_namespace: str | None = None
    ram_fraction: Fraction | None = None
    note: str = ""

    def parameter(self) -> Parameter:
        """Raises ValueError when the fields don't fit the kind."""
        numeric = self.kind in ("integer", "vector")
        if numeric and self.scale is None:
            raise ValueError("scale is missing")
        if (self.kind == "integer") != (self.low is not None and self.high is not None):
            raise ValueError("low and high belong to an integer, and only there")
        components = [Component(name=c.name, low=c.low, high=c.high) for c in self.components]
        if self.low is not None and self.high is not None:
            components = [Component(name="", low=self.low, high=self.high)]
        same = self.model_dump(
            include=set(_SAME_FIELDS) - ({"choices"} if self.kind == "boolean" else set())
        )
        if self.kind == "boolean":
            same["choices"] = ("0", "1")
        return Parameter(components=tuple(components), scale=self.scale or "linear", **same)


_SAME_FIELDS = [
    "key",
    "kind",
    "unit",
    "scope",
    "risk",
    "mechanism",
    "document",
    "choices",
    "choices_from",
    "choices_from_in_namespace",
    "ram_fraction",
    "note",
]


class _IncreasingModel(_Model):
    kind: Literal["increasing"]
    key: str
    gap: Annotated[int, Field(ge=0)] = 0
    why: str = Field(min_length=1)


class _LessModel(_Model):
    kind: Literal["less"]
    low: str
    high: str
    why: str = Field(min_length=1)


class _RequiresModel(_Model):
    kind: Literal["requires"]
    key: str
    values: tuple[str, ...] = Field(min_length=1)
    needs: str
    to_be: tuple[str, ...] = Field(min_length=1)
    why: str = Field(min_length=1)


class _ExclusiveModel(_Model):
    kind: Literal["exclusive"]
    keys: tuple[str, ...] = Field(min_length=2)
    why: str = Field(min_length=1)


def _value_text(value: object) -> str:
    """A sysctl value as text. Raises ValueError for anything but text and whole numbers."""
    if isinstance(value, dict):  # TOML takes a dot outside of quotes as a table in a table.
        raise ValueError('a key has to stand in quotes, such as "net.core.somaxconn" = 4096')  # noqa: TRY004
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise ValueError("a value is a text or a whole number")
    return str(value)


class _BaselineModel(_Model):
    version: Literal[1] = Field(alias="schema")
    title: str = Field(min_length=1)
    source: str = Field(min_length=1)
    values: dict[_Key, Annotated[str, BeforeValidator(_value_text)]] = Field(min_length=1)


_ConstraintModel = Annotated[
    _IncreasingModel | _LessModel | _RequiresModel | _ExclusiveModel, Field(discriminator="kind")
]


def default_path() -> Path:
    """The configuration of this folder, or else the embedded lab's."""
    own = Path("intop.toml")
    return own if own.is_file() else shipped("configs") / "lab.toml"


def load_study(path: Path) -> Study:
    """The study in a file. Raises ConfigurationError with a line for each problem."""
    source = _Source.read(path)
    found = source.check(lambda: _FileModel.model_validate(source.data), ())
    clusters: dict[str, Cluster | LabSpec] = {}
    for name, table in _tables(source.data.get("cluster")):
        arch = native_arch() if name == "native" else name
        if arch in clusters:
            source.problem(("cluster", name), f"this machine is {arch}, which stands here already")
        made = source.check(partial(_cluster, table, arch), ("cluster", name))
        if made is not None:
            clusters[arch] = made
    wanted = found.study.catalogue if found else None
    catalogue_path = path.parent / wanted if wanted else shipped("configs") / "parameters.toml"
    catalogue = source.check(lambda: load_catalogue(catalogue_path), ())
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
        workloads={
            name: Workload(name=name, **found.workload[name].model_dump())
            for name in WORKLOADS
            if name in found.workload
        },
        budget=Budget(**found.budget.model_dump()),
        baselines=baselines,
    )


def load_baselines(folder: Path) -> dict[str, Baseline]:
    """The baselines of a folder by name, which is that of the file without .toml.

    Raises ConfigurationError with a line for each problem of each file, ValueError for a folder
    without any.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ValueError(f"there are no files *.toml in {folder}")
    found: dict[str, Baseline] = {}
    problems: list[str] = []
    for path in paths:
        try:
            found[path.stem] = _baseline(path)
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return found


_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def _baseline_folders(path: Path, found: _FileModel | None) -> list[Path]:
    """Ours, and then the study's own, so that theirs replace ours of the same name."""
    own = found.study.baselines if found else None
    return [shipped("configs") / "baselines"] + ([path.parent / own] if own else [])


def _baseline(path: Path) -> Baseline:
    source = _Source.read(path)
    if path.stem in RESERVED:
        source.problem((), f"a baseline can't be called {path.stem}: {RESERVED[path.stem]}")
    if not _NAME.fullmatch(path.stem):
        source.problem((), "a baseline's file is named of letters, digits, dots, _ and -")
    model = source.check(lambda: _BaselineModel.model_validate(source.data), ())
    if model is None or source.problems:
        raise ConfigurationError(source.problems)
    return Baseline(name=path.stem, title=model.title, source=model.source, values=model.values)


def load_catalogue(path: Path) -> Catalogue:
    """The catalogue in a file. Raises ConfigurationError with a line for each problem."""
    source = _Source.read(path)
    if source.data.get("schema") != 1:
        source.problem(("schema",), f"must be 1, got {source.data.get('schema')!r}")
    for unknown in sorted(set(source.data) - {"schema", "parameter", "constraint"}):
        source.problem((unknown,), "is not a known table")
    parameters = _parameters(source)
    constraints = _constraints(source, parameters)
    if source.problems:
        raise ConfigurationError(source.problems)
    return Catalogue(tuple(parameters.values()), constraints)


def _parameters(source: "_Source") -> dict[str, Parameter]:
    parameters: dict[str, Parameter] = {}
    for index, entry in enumerate(source.tables("parameter")):
        place = ("parameter", index)
        made = source.check(partial(_parameter, entry), place)
        if made is not None and made.key in parameters:
            source.problem((*place, "key"), f"{made.key} stands there twice")
        elif made is not None:
            parameters[made.key] = made
    return parameters


def _parameter(entry: object) -> Parameter:
    return _ParameterModel.model_validate(entry).parameter()


def _constraints(source: "_Source", parameters: Mapping[str, Parameter]) -> tuple[Constraint, ...]:
    entries = enumerate(source.tables("constraint"))
    made = [
        source.check(partial(_constraint, entry, parameters), ("constraint", index))
        for index, entry in entries
    ]
    return tuple(constraint for constraint in made if constraint is not None)


def _cluster(table: Mapping[str, Any], arch: str) -> Cluster | LabSpec:
    if "lab" in table:
        lab = _LabModel.model_validate(table)
        return LabSpec(
            name=lab.lab,
            arch=arch,
            kind=lab.kind,
            link=lab.link.link() if lab.link else None,
            machines=lab.machines,
        )
    model = _ClusterModel.model_validate(table)
    return Cluster(
        arch=arch,
        load_generator=model.load_generator.address("load-generator"),
        load_balancer=model.load_balancer.address("load-balancer"),
        backends=tuple(b.address("backend") for b in model.backends),
        url=model.url,
        nginx_restart=model.nginx_restart,
        static_paths=model.static_paths,
        dynamic_path=model.dynamic_path,
        link=model.link,
        machines=model.machines,
    )


def _constraint(entry: object, parameters: Mapping[str, Parameter]) -> Constraint:
    """Raises ValueError for a key or a choice that the catalogue doesn't have."""
    adapter: TypeAdapter[Any] = TypeAdapter(_ConstraintModel)
    model = adapter.validate_python(entry)
    if isinstance(model, _ExclusiveModel):
        for key in model.keys:
            _known(key, parameters)
        return Exclusion(keys=model.keys, why=model.why)
    if isinstance(model, _RequiresModel):
        _known_choices(model.key, model.values, parameters)
        _known_choices(model.needs, model.to_be, parameters)
        return Requirement(
            key=model.key, values=model.values, needs=model.needs, to_be=model.to_be, why=model.why
        )
    columns = {c.name for p in parameters.values() for c in parameter_columns(p) if c.component}
    if isinstance(model, _IncreasingModel):
        parameter = _known(model.key, parameters)
        names = tuple(c.name for c in parameter_columns(parameter))
        return Order(columns=names, gap=model.gap, why=model.why)
    for name in (model.low, model.high):
        if name not in columns:
            raise ValueError(f"{name} is not a number of the catalogue")
    return Order(columns=(model.low, model.high), why=model.why)


def _known(key: str, parameters: Mapping[str, Parameter]) -> Parameter:
    if key not in parameters:
        raise ValueError(f"{key} is not in the catalogue")
    return parameters[key]


def _known_choices(key: str, choices: Iterable[str], parameters: Mapping[str, Parameter]) -> None:
    offered = _known(key, parameters).choices
    for choice in choices:
        if choice not in offered:
            raise ValueError(f"{choice!r} is no choice of {key}")


def _tables(data: object) -> list[tuple[str, Mapping[str, Any]]]:
    """The tables of a table; what else is wrong with it, the model says."""
    if not isinstance(data, dict):
        return []
    return [(name, value) for name, value in data.items() if isinstance(value, dict)]


class _Source:
    """A TOML file and the problems found in it so far."""

    def __init__(self, path: Path, text: str, data: Mapping[str, Any]) -> None:
        self.path = path
        self.data = data
        self.problems: list[str] = []
        self._lines = text.splitlines()

    @classmethod
    def read(cls, path: Path) -> "_Source":
        """Raises ConfigurationError when there is no such file, or it is not TOML."""
        try:
            text = path.read_text(encoding="utf-8")
            return cls(path, text, tomllib.loads(text))
        except OSError as error:
            raise ConfigurationError([f"{path}: can't be read: {error.strerror}"]) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError([f"{path}: is not TOML: {error}"]) from error

    def problem(self, place: Place, what: str) -> None:
        """Note a problem at a place such as ("cluster", "arm", "url")."""
        line = self._line_of(place)
        where = f"{self.path}:{line}" if line else str(self.path)
        words = ".".join(str(part) for part in place)
        self.problems.append(f"{where}: {words}: {what}" if words else f"{where}: {what}")

    def tables(self, name: str) -> Sequence[Any]:
        """The entries of an array of tables."""
        entries = self.data.get(name, [])
        if isinstance(entries, list):
            return entries
        self.problem((name,), f"must be a list of tables, each begun by [[{name}]]")
        return []

    def check(self, make: Callable[[], T], place: Place) -> T | None:
        """What `make` makes, or None when it finds problems, which are noted."""
        try:
            return make()
        except ConfigurationError as error:
            self.problems += error.problems
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                inner = tuple(p for p in detail["loc"] if p not in _UNION_TAGS)
                got = "" if detail["type"] == "missing" else f" (got {_short(detail['input'])})"
                self.problem((*place, *inner), f"{_plain(detail['msg'])}{got}")
        except ValueError as error:
            self.problem(place, str(error))
        return None

    def _line_of(self, place: Place) -> int | None:
        """The line of a place: its table's header, and below it the key if that is found."""
        best: int | None = None
        start, end = 0, len(self._lines)
        names = [p for p in place if isinstance(p, str)]
        indexes = [p for p in place if isinstance(p, int)]
        for depth in range(len(names), 0, -1):
            header = re.escape(".".join(names[:depth]))
            pattern = re.compile(rf"\s*\[\[?\s*{header}\s*\]")
            hits = [n for n, line in enumerate(self._lines) if pattern.match(line)]
            if hits:
                nth = indexes[0] if indexes and indexes[0] < len(hits) else 0
                start, best = hits[nth] + 1, hits[nth] + 1
                names = names[depth:]
                break
        for number in range(start, end):
            line = self._lines[number]
            if best is not None and line.lstrip().startswith("["):
                break
            if names and re.match(rf'\s*"?{re.escape(names[0])}"?\s*[=.]', line):
                return number + 1
        return best


_UNION_TAGS = ("increasing", "less", "requires", "exclusive")


def _plain(message: str) -> str:
    """Pydantic's message without its prefix, starting small."""
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
