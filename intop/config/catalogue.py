"""The catalogue: all parameters that intop knows, and what must hold between them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, MinLen, Predicate
from pydantic import Field

from intop.config.source import Place, Source, Table
from intop.domain.constraints import Constraint, Exclusion, Order, Requirement
from intop.domain.parameter import Parameter, barred
from intop.errors import ConfigurationError
from intop.resources import shipped


@dataclass(frozen=True)
class Catalogue:
    """The parameters that intop knows, and the constraints between them."""

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    former: Mapping[str, str] = field(default_factory=dict)
    """Keys of published sets that kernels have dropped or ignore, and what became of each."""


_RANGE = ("low", "high", "hard", "own_floor")
_HARD: Any = Literal["", "low", "high", "both"]
"""The ends of a range that are hard bounds: beyond them a value can hurt the host."""


def _is_key(text: str) -> bool:
    """Return True for what can be a key. Raises ValueError."""
    if not re.fullmatch(r"[a-z0-9_]+(\.[A-Za-z0-9_-]+)+", text):
        raise ValueError("is no key: its parts have dots between them, as in net.core.somaxconn")
    return True


Key = Annotated[str, Predicate(_is_key)]
_ANY_KEY: Any = Key
Text = Annotated[str, MinLen(1)]
Texts = Annotated[tuple[str, ...], MinLen(1)]


@dataclass(frozen=True, kw_only=True)
class _Former:
    key: Key
    became: Text
    source: Text


@dataclass(frozen=True, kw_only=True)
class _Increasing:
    """The numbers of one key, which rise."""

    kind: Literal["increasing"]
    key: str
    gap: Annotated[int, Ge(0)] = 0
    why: Text


@dataclass(frozen=True, kw_only=True)
class _Less:
    """Two numbers of different keys."""

    kind: Literal["less"]
    low: str
    high: str
    why: Text


@dataclass(frozen=True, kw_only=True)
class _Requires:
    kind: Literal["requires"]
    key: str
    values: Texts
    needs: str
    to_be: Texts
    why: Text


@dataclass(frozen=True, kw_only=True)
class _Exclusive:
    kind: Literal["exclusive"]
    keys: Annotated[tuple[str, ...], MinLen(2)]
    why: Text


_CONSTRAINT: Any = Annotated[
    _Increasing | _Less | _Requires | _Exclusive, Field(discriminator="kind")
]


def load_catalogue(path: Path) -> Catalogue:
    """Return the catalogue in a file. Raises ConfigurationError with a line for each problem."""
    source = Source.read(path)
    source.check_format("parameter", "constraint", "former")
    parameters = _parameters(source)
    constraints = _constraints(source, parameters)
    former = _former(source, parameters)
    if source.problems:
        raise ConfigurationError(source.problems)
    return Catalogue(tuple(parameters.values()), constraints, former)


@cache
def shipped_catalogue() -> Catalogue:
    """Return the catalogue that comes with intop. It is read when something asks for it."""
    return load_catalogue(shipped("configs") / "parameters.toml")


def _parameters(source: Source) -> dict[str, Parameter]:
    parameters: dict[str, Parameter] = {}
    for index, entry in enumerate(source.tables("parameter")):
        place = ("parameter", index)
        parameter = _parameter(source, entry, place)
        if parameter is not None and parameter.key in parameters:
            source.problem((*place, "key"), f"{parameter.key} stands there twice")
        elif parameter is not None:
            parameters[parameter.key] = parameter
    return parameters


def _parameter(source: Source, table: Any, place: Place) -> Parameter | None:
    """Convert an entry. A plain integer has its range in it, and not in a component."""
    if not isinstance(table, dict):
        return source.convert(Parameter, table, place)
    if "key" in table and source.convert(_ANY_KEY, table["key"], (*place, "key")) is None:
        return None
    own = {name: value for name, value in table.items() if name not in _RANGE}
    moved: Mapping[Place, Place] = {}
    if table.get("kind") == "integer":
        numbers = {name: table[name] for name in _RANGE if name in table}
        own["components"] = [_component(source, {"name": "", **numbers}, place)]
        moved = {("components", 0): ()}
    elif isinstance(components := own.get("components"), list):
        places = [(*place, "components", number) for number in range(len(components))]
        own["components"] = [_component(source, *c) for c in zip(components, places, strict=True)]
    if table.get("kind") == "boolean":
        own["choices"] = ["0", "1"]
    parameter = source.convert(Parameter, own, place, moved)
    if parameter is not None:
        source.check(partial(_check, parameter, table), place)
    return parameter


def _component(source: Source, table: Any, place: Place) -> Any:
    """Return the table of a component, in which `hard` says which ends are hard bounds."""
    if not isinstance(table, dict):
        return table
    source.refuse(table, ("floor", "ceiling"), place)
    hard = source.convert(_HARD, table.get("hard", ""), (*place, "hard"))
    bounds = {
        bound: table[end]
        for bound, end in (("floor", "low"), ("ceiling", "high"))
        if hard in (end, "both") and isinstance(table.get(end), int)
    }
    return {name: table[name] for name in table if name not in ("hard", *bounds)} | bounds


def _check(parameter: Parameter, table: Table) -> None:
    """Raises ValueError for fields that don't fit the kind, and a key that may not be tuned."""
    if why := barred(parameter.key):
        raise ValueError(f"{parameter.key} is {why}")
    if parameter.is_numeric and "scale" not in table:
        raise ValueError("scale is missing")
    if parameter.kind == "vector" and not all(c.name for c in parameter.components):
        raise ValueError("each component of a vector has a name")
    if parameter.kind != "integer" and table.keys() & {"low", "high"}:
        raise ValueError("low and high belong to an integer, and only there")
    if parameter.kind != "integer" and table.keys() & {"hard", "own_floor"}:
        raise ValueError("hard and own_floor belong to an integer, or to a vector's component")


def _former(source: Source, parameters: Mapping[str, Parameter]) -> dict[str, str]:
    former: dict[str, str] = {}
    for index, entry in enumerate(source.tables("former")):
        place = ("former", index)
        old = source.convert(_Former, entry, place)
        if old is not None and (old.key in parameters or old.key in former):
            source.problem((*place, "key"), f"{old.key} stands there twice")
        elif old is not None:
            former[old.key] = old.became
    return former


def _constraints(source: Source, parameters: Mapping[str, Parameter]) -> tuple[Constraint, ...]:
    constraints: list[Constraint | None] = []
    for index, entry in enumerate(source.tables("constraint")):
        place = ("constraint", index)
        table = source.convert(_CONSTRAINT, entry, place)
        if table is not None:
            constraints.append(source.check(partial(_constraint, table, parameters), place))
    return tuple(constraint for constraint in constraints if constraint is not None)


def _constraint(
    table: _Increasing | _Less | _Requires | _Exclusive, parameters: Mapping[str, Parameter]
) -> Constraint:
    """Raises ValueError for a key or a choice that the catalogue doesn't have."""
    if isinstance(table, _Exclusive):
        for key in table.keys:
            _known(key, parameters)
        return Exclusion(keys=table.keys, why=table.why)
    if isinstance(table, _Requires):
        _known_choices(table.key, table.values, parameters)
        _known_choices(table.needs, table.to_be, parameters)
        return Requirement(
            key=table.key, values=table.values, needs=table.needs, to_be=table.to_be, why=table.why
        )
    if isinstance(table, _Increasing):
        names = tuple(_known(table.key, parameters).numbers)
        return Order(columns=names, gap=table.gap, why=table.why)
    columns = {name for parameter in parameters.values() for name in parameter.numbers}
    for name in (table.low, table.high):
        if name not in columns:
            raise ValueError(f"{name} is not a number of the catalogue")
    return Order(columns=(table.low, table.high), why=table.why)


def _known(key: str, parameters: Mapping[str, Parameter]) -> Parameter:
    if key not in parameters:
        raise ValueError(f"{key} is not in the catalogue")
    return parameters[key]


def _known_choices(key: str, choices: Iterable[str], parameters: Mapping[str, Parameter]) -> None:
    offered = _known(key, parameters).choices
    for choice in choices:
        if choice not in offered:
            raise ValueError(f"{choice!r} is no choice of {key}")
