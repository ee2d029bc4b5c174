"""The catalogue: all parameters that intop knows, and what must hold between them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from intop.config.source import Fraction, Listed, Model, Source
from intop.domain.parameter import Component, Kind, Parameter, Risk, Scale, Scope, barred
from intop.domain.presence import UNKNOWN, Presence
from intop.domain.space import Constraint, Exclusion, Order, Requirement, parameter_columns
from intop.errors import ConfigurationError


@dataclass(frozen=True)
class Catalogue:
    """All parameters that intop knows, and what must hold between them.

    `former` are keys that published sets of values still name though kernels have dropped them or
    heed them no more, and what became of each.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    former: Mapping[str, str] = field(default_factory=dict)


Hard = Literal["", "low", "high", "both"]
"""Which ends of a range are hard bounds: beyond them a value can hurt the host."""


class _ComponentModel(Model):
    name: str = Field(min_length=1)
    low: int
    high: int
    hard: Hard = ""
    own_floor: bool = False

    def component(self) -> Component:
        return _component(self.name, self.low, self.high, self.hard, own_floor=self.own_floor)


def _component(name: str, low: int, high: int, hard: Hard, *, own_floor: bool) -> Component:
    return Component(
        name=name,
        low=low,
        high=high,
        floor=low if hard in ("low", "both") else None,
        ceiling=high if hard in ("high", "both") else None,
        own_floor=own_floor,
    )


_KEY = re.compile(r"[a-z0-9_]+(\.[A-Za-z0-9_-]+)+")


def _key(text: str) -> str:
    """Raises ValueError for what can't be a key."""
    if not _KEY.fullmatch(text):
        raise ValueError("is no key: its parts have dots between them, as in net.core.somaxconn")
    return text


Key = Annotated[str, AfterValidator(_key)]

Choice = Annotated[
    str, Field(max_length=200, pattern=r"^[A-Za-z0-9_.,:/-]+( [A-Za-z0-9_.,:/-]+)*$")
]
"""Words as the kernel prints them: no shell takes them for anything else."""


class _PresenceModel(Model):
    since: str = ""
    until: str = ""
    moved_to: str = ""
    module: str = ""
    option: str = ""
    namespaced_since: str = ""
    inert_since: str = ""
    source: str = ""


class _ParameterModel(Model):
    key: Key
    kind: Kind
    unit: str
    scope: Scope
    risk: Risk
    mechanism: str = Field(min_length=1)
    document: str = Field(min_length=1)
    low: int | None = None
    high: int | None = None
    hard: Hard = ""
    own_floor: bool = False
    components: Listed[_ComponentModel] = ()
    choices: Listed[Choice] = ()
    scale: Scale | None = None
    choices_from: str | None = None
    choices_from_in_namespace: str | None = None
    choices_module: str = ""
    ram_fraction: Fraction | None = None
    presence: _PresenceModel | None = None
    effect: str = ""
    note: str = ""

    def parameter(self) -> Parameter:
        """Raises ValueError when the fields don't fit the kind, or the key may not be tuned."""
        if why := barred(self.key):
            raise ValueError(f"{self.key} is {why}")
        numeric = self.kind in ("integer", "vector")
        if numeric and self.scale is None:
            raise ValueError("scale is missing")
        if (self.kind == "integer") != (self.low is not None and self.high is not None):
            raise ValueError("low and high belong to an integer, and only there")
        if self.kind != "integer" and (self.hard or self.own_floor):
            raise ValueError("hard and own_floor belong to an integer, or to a vector's component")
        components = [c.component() for c in self.components]
        if self.low is not None and self.high is not None:
            own = self.own_floor
            components = [_component("", self.low, self.high, self.hard, own_floor=own)]
        same = self.model_dump(
            include=set(_SAME_FIELDS) - ({"choices"} if self.kind == "boolean" else set())
        )
        if self.kind == "boolean":
            same["choices"] = ("0", "1")
        presence = Presence(**self.presence.model_dump()) if self.presence else UNKNOWN
        return Parameter(
            components=tuple(components),
            scale=self.scale or "linear",
            presence=presence,
            **same,
        )


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
    "choices_module",
    "ram_fraction",
    "effect",
    "note",
]


class _FormerModel(Model):
    key: Key
    became: str = Field(min_length=1)
    source: str = Field(min_length=1)


class _IncreasingModel(Model):
    kind: Literal["increasing"]
    key: str
    gap: Annotated[int, Field(ge=0)] = 0
    why: str = Field(min_length=1)


class _LessModel(Model):
    kind: Literal["less"]
    low: str
    high: str
    why: str = Field(min_length=1)


class _RequiresModel(Model):
    kind: Literal["requires"]
    key: str
    values: Listed[str] = Field(min_length=1)
    needs: str
    to_be: Listed[str] = Field(min_length=1)
    why: str = Field(min_length=1)


class _ExclusiveModel(Model):
    kind: Literal["exclusive"]
    keys: Listed[str] = Field(min_length=2)
    why: str = Field(min_length=1)


_ConstraintModel = Annotated[
    _IncreasingModel | _LessModel | _RequiresModel | _ExclusiveModel, Field(discriminator="kind")
]


def load_catalogue(path: Path) -> Catalogue:
    """The catalogue in a file. Raises ConfigurationError with a line for each problem."""
    source = Source.read(path)
    source.check_format()
    for unknown in sorted(set(source.data) - {"schema", "parameter", "constraint", "former"}):
        source.problem((unknown,), "is not a known table")
    parameters = _parameters(source)
    constraints = _constraints(source, parameters)
    former = _former(source, parameters)
    if source.problems:
        raise ConfigurationError(source.problems)
    return Catalogue(tuple(parameters.values()), constraints, former)


def _parameters(source: Source) -> dict[str, Parameter]:
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


def _former(source: Source, parameters: Mapping[str, Parameter]) -> dict[str, str]:
    former: dict[str, str] = {}
    for index, entry in enumerate(source.tables("former")):
        place = ("former", index)
        made = source.check(partial(_FormerModel.model_validate, entry), place)
        if made is not None and (made.key in parameters or made.key in former):
            source.problem((*place, "key"), f"{made.key} stands there twice")
        elif made is not None:
            former[made.key] = made.became
    return former


def _constraints(source: Source, parameters: Mapping[str, Parameter]) -> tuple[Constraint, ...]:
    entries = enumerate(source.tables("constraint"))
    made = [
        source.check(partial(_constraint, entry, parameters), ("constraint", index))
        for index, entry in entries
    ]
    return tuple(constraint for constraint in made if constraint is not None)


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
