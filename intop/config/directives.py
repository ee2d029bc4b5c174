"""The catalogue of nginx's directives, and what must hold between them."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from intop.config.catalogue import Choice
from intop.config.source import Listed, Model, Source
from intop.domain.nginx.directive import (
    Companion,
    Directive,
    Effective,
    Inner,
    Needed,
    Needs,
    version_of,
)
from intop.domain.nginx.permitted import BY_NAME, PREFIX
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import Component, Parameter, Risk, Scale, barred
from intop.domain.space import Capacity, Constraint, Order
from intop.errors import ConfigurationError

Key = Annotated[str, Field(pattern=rf"^{PREFIX}[a-z]+(\.[a-z0-9_]+)+$")]
VersionText = Annotated[str, Field(pattern=r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$")]
Option = Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]


class _NeedsModel(Model):
    since: VersionText | None = None
    kernel: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")] | Literal[""] = ""
    build: Annotated[str, Field(pattern=r"^--[a-z0-9_-]+$")] | Literal[""] = ""
    inside: Needed = ""
    on: Key | Literal[""] = ""

    def needs(self) -> Needs:
        since = None if self.since is None else version_of(self.since)
        return Needs(
            since=since, kernel=self.kernel, build=self.build, inside=self.inside, on=self.on
        )


class _BeforeModel(Model):
    version: VersionText
    default: str


class _CompanionModel(Model):
    value: str
    directive: Option
    arguments: Listed[str] = Field(min_length=1)
    until: VersionText

    def companion(self) -> Companion:
        return Companion(
            value=self.value,
            name=self.directive,
            arguments=self.arguments,
            until=version_of(self.until),
        )


class _DirectiveModel(Model):
    key: Key
    kind: Literal["integer", "boolean", "choice"]
    unit: str
    risk: Risk
    mechanism: str = Field(min_length=1)
    document: str = Field(pattern=r"^ngx_[a-z0-9_]+_module(#[a-z0-9_]+)?$")
    contexts: Listed[str] = Field(min_length=1)
    default: str
    effective: Effective
    low: int | None = None
    high: int | None = None
    scale: Scale | None = None
    choices: Listed[Choice] = ()
    argument: Annotated[int, Field(ge=0, le=9)] = 0
    option: Option | Literal[""] = ""
    flag: Option | Literal[""] = ""
    zone: Option | Literal[""] = ""
    fixed: Listed[Choice] = ()
    beside: Option | Literal[""] = ""
    inserted: bool = True
    absent: str | None = None
    as_is: str | None = None
    before: Listed[_BeforeModel] = ()
    follows: Listed[Key] = ()
    inner: Inner = "change"
    needs: _NeedsModel | None = None
    choice_needs: dict[str, _NeedsModel] = Field(default_factory=dict)
    companion: _CompanionModel | None = None
    per_cpu: Annotated[int, Field(ge=0)] = 0
    own_floor: bool = False
    interacts: dict[str, str] = Field(default_factory=dict)
    note: str = ""

    def directive(self) -> Directive:
        """Raises ValueError when the fields don't fit the kind, or the key may not be tuned."""
        if why := barred(self.key, {PREFIX + name for name in BY_NAME}):
            raise ValueError(f"{self.key} is {why}")
        if (self.kind == "integer") != (self.low is not None and self.high is not None):
            raise ValueError("low and high belong to an integer, and only there")
        if (self.kind == "integer") != (self.scale is not None):
            raise ValueError("scale belongs to an integer, and only there")
        components: tuple[Component, ...] = ()
        if self.low is not None and self.high is not None:
            components = (Component(name="", low=self.low, high=self.high),)
        parameter = Parameter(
            key=self.key,
            kind=self.kind,
            unit=self.unit,
            scope="nginx",
            risk=self.risk,
            mechanism=self.mechanism,
            document=self.document,
            components=components,
            choices=("off", "on") if self.kind == "boolean" else self.choices,
            scale=self.scale or "linear",
            note=self.note,
        )
        # An argument of its own is what most have.
        has_other = self.option or self.flag or self.zone
        return Directive(
            parameter=parameter,
            argument=self.argument or (0 if has_other else 1),
            before=tuple((version_of(b.version), b.default) for b in self.before),
            needs=self.needs.needs() if self.needs else Needs(),
            choice_needs={choice: n.needs() for choice, n in self.choice_needs.items()},
            companion=self.companion.companion() if self.companion else None,
            **self.model_dump(include=set(_SAME_FIELDS)),
        )


_SAME_FIELDS = [
    *("contexts", "default", "effective", "option", "flag", "zone", "fixed", "beside"),
    *("inserted", "absent", "as_is", "follows", "inner", "per_cpu", "own_floor", "interacts"),
]


class _LessModel(Model):
    kind: Literal["less"]
    low: Key
    high: Key
    why: str = Field(min_length=1)


class _CapacityModel(Model):
    kind: Literal["capacity"]
    count: Key
    size: Key
    held: Key
    why: str = Field(min_length=1)


_ConstraintModel = Annotated[_LessModel | _CapacityModel, Field(discriminator="kind")]


def load_directives(path: Path) -> Directives:
    """The catalogue in a file. Raises ConfigurationError with a line for each problem."""
    source = Source.read(path)
    source.check_format()
    for unknown in sorted(set(source.data) - {"schema", "directive", "constraint"}):
        source.problem((unknown,), "is not a known table")
    found = _directives(source)
    constraints = [
        source.check(partial(_constraint, entry, found), ("constraint", index))
        for index, entry in enumerate(source.tables("constraint"))
    ]
    if source.problems:
        raise ConfigurationError(source.problems)
    return Directives(found, tuple(c for c in constraints if c is not None))


def _directives(source: Source) -> dict[str, Directive]:
    found: dict[str, Directive] = {}
    places: dict[str, int] = {}
    for index, entry in enumerate(source.tables("directive")):
        made = source.check(partial(_directive, entry), ("directive", index))
        if made is not None and made.key in found:
            source.problem(("directive", index, "key"), f"{made.key} stands there twice")
        elif made is not None:
            found[made.key], places[made.key] = made, index
    for made in found.values():
        for what, key in _named(made):
            if key not in found:
                place = ("directive", places[made.key], what)
                source.problem(place, f"{key} is not in the catalogue")
    return found


def _directive(entry: object) -> Directive:
    return _DirectiveModel.model_validate(entry).directive()


def _named(directive: Directive) -> list[tuple[str, str]]:
    """The other directives that one names, each with the field that does."""
    needs = (directive.needs, *directive.choice_needs.values())
    found = [("needs", n.on) for n in needs if n.on]
    found += [("follows", key) for key in directive.follows]
    if directive.beside:
        found += [("beside", f"{directive.key.rpartition('.')[0]}.{directive.beside}")]
    return found + [("interacts", key) for key in directive.interacts if key.startswith(PREFIX)]


def _constraint(entry: object, found: dict[str, Directive]) -> Constraint:
    """Raises ValueError for what is no number of the catalogue, or could be one piece only."""
    adapter: TypeAdapter[Any] = TypeAdapter(_ConstraintModel)
    model = adapter.validate_python(entry)
    is_order = isinstance(model, _LessModel)
    keys = (model.low, model.high) if is_order else (model.count, model.size, model.held)
    for key in keys:
        if key not in found or not found[key].parameter.is_numeric:
            raise ValueError(f"{key} is not a number of the catalogue")
    if is_order:
        return Order(columns=keys, why=model.why)
    if found[model.count].parameter.components[0].low < 2:
        raise ValueError(f"{model.count} must be at least 2")
    return Capacity(count=model.count, size=model.size, held=model.held, why=model.why)
