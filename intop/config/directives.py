"""The catalogue of nginx's directives, and what must hold between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from intop.config.catalogue import Text
from intop.config.source import Place, Source, Table
from intop.domain.constraints import Capacity, Constraint, Order
from intop.domain.matching import matching
from intop.domain.nginx.directive import Directive, version_of
from intop.domain.nginx.permitted import BY_NAME, PREFIX
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import barred
from intop.errors import ConfigurationError

_KEY: Any = Annotated[
    str, matching(rf"{PREFIX}[a-z]+(\.[a-z0-9_]+)+", f"a key such as {PREFIX}http.sendfile")
]
_DOCUMENT: Any = Annotated[
    str, matching("ngx_[a-z0-9_]+_module(#[a-z0-9_]+)?", "nginx's MODULE#NAME")
]
_PARAMETER = ("key", "kind", "unit", "risk", "mechanism", "document", "choices", "scale", "note")
"""The fields of an entry that are its parameter's."""
_VERSIONS = ("since", "until", "version")
_MOVED: Mapping[Place, Place] = {
    ("parameter", "components", 0): (),
    ("parameter",): (),
    ("companion", "name"): ("companion", "directive"),
}


@dataclass(frozen=True, kw_only=True)
class _Less:
    kind: Literal["less"]
    low: str
    high: str
    why: Text


@dataclass(frozen=True, kw_only=True)
class _Capacity:
    kind: Literal["capacity"]
    count: str
    size: str
    held: str
    why: Text


_CONSTRAINT: Any = Annotated[_Less | _Capacity, Field(discriminator="kind")]


def load_directives(path: Path) -> Directives:
    """The catalogue in a file. Raises ConfigurationError with a line for each problem."""
    source = Source.read(path)
    source.check_format("directive", "constraint")
    directives = _directives(source)
    constraints: list[Constraint | None] = []
    for index, entry in enumerate(source.tables("constraint")):
        place = ("constraint", index)
        table = source.convert(_CONSTRAINT, entry, place)
        if table is not None:
            constraints.append(source.check(partial(_constraint, table, directives), place))
    if source.problems:
        raise ConfigurationError(source.problems)
    return Directives(directives, tuple(c for c in constraints if c is not None))


def _directives(source: Source) -> dict[str, Directive]:
    directives: dict[str, Directive] = {}
    places: dict[str, int] = {}
    for index, table in enumerate(source.tables("directive")):
        place = ("directive", index)
        directive = _directive(source, table, place)
        if directive is not None and directive.key in directives:
            source.problem((*place, "key"), f"{directive.key} stands there twice")
        elif directive is not None:
            directives[directive.key], places[directive.key] = directive, index
    for directive in directives.values():
        for name, key in _named(directive):
            if key not in directives:
                where = ("directive", places[directive.key], name)
                source.problem(where, f"{key} is not in the catalogue")
    return directives


def _directive(source: Source, table: Any, place: Place) -> Directive | None:
    """Convert an entry. It has the fields of a directive and of its parameter."""
    if not isinstance(table, dict):
        return source.convert(Directive, table, place)
    for name, text in (("key", _KEY), ("document", _DOCUMENT)):
        if name in table and source.convert(text, table[name], (*place, name)) is None:
            return None
    if why := barred(table.get("key", PREFIX), {PREFIX + name for name in BY_NAME}):
        source.problem(place, f"{table.get('key')} is {why}")
        return None
    source.refuse(table, ("parameter",), place)
    left_out = {*_PARAMETER, "parameter", "low", "high"}
    own = {name: value for name, value in table.items() if name not in left_out}
    # An argument of its own is what most have.
    has_other = any(table.get(name) for name in ("option", "flag", "zone"))
    own["argument"] = table.get("argument") or (0 if has_other else 1)
    own["parameter"] = _parameter(table)
    for name in ("needs", "choice_needs", "before", "companion"):
        if name in own:
            own[name] = _with_versions(source, own[name], (*place, name))
    if isinstance(companion := own.get("companion"), dict) and "directive" in companion:
        own["companion"] = companion | {"name": companion.pop("directive")}
    directive = source.convert(Directive, own, place, _MOVED)
    if directive is not None:
        source.check(partial(_check_range, directive, table), place)
    return directive


def _parameter(table: Table) -> dict[str, Any]:
    """Return the table of an entry's parameter."""
    parameter = {name: table[name] for name in _PARAMETER if name in table}
    if table.get("kind") == "integer":
        numbers = {name: table[name] for name in ("low", "high") if name in table}
        parameter["components"] = [{"name": "", **numbers}]
    if table.get("kind") == "boolean":
        parameter["choices"] = ["off", "on"]
    return parameter | {"scope": "nginx"}


def _with_versions(source: Source, value: Any, place: Place) -> Any:
    """Return a value with numbers in place of the texts of versions in it."""
    if isinstance(value, list):
        return [_with_versions(source, part, (*place, n)) for n, part in enumerate(value)]
    if not isinstance(value, dict):
        return value
    result = {name: _with_versions(source, part, (*place, name)) for name, part in value.items()}
    for name in _VERSIONS:
        if name in value:
            version = source.check(partial(version_of, str(value[name])), (*place, name))
            result[name] = version or (0, 0, 0)
    return result


def _check_range(directive: Directive, table: Table) -> None:
    """Raises ValueError for fields of numbers that are missing, or stand where no number is."""
    is_numeric = directive.parameter.is_numeric
    if not is_numeric and table.keys() & {"low", "high"}:
        raise ValueError("low and high belong to an integer, and only there")
    if is_numeric != ("scale" in table):
        raise ValueError("scale belongs to an integer, and only there")


def _named(directive: Directive) -> list[tuple[str, str]]:
    """The other directives that one names, each with the field that does."""
    needs = (directive.needs, *directive.choice_needs.values())
    named = [("needs", n.on) for n in needs if n.on]
    named += [("follows", key) for key in directive.follows]
    if directive.beside:
        named += [("beside", f"{directive.key.rpartition('.')[0]}.{directive.beside}")]
    return named + [("interacts", key) for key in directive.interacts if key.startswith(PREFIX)]


def _constraint(table: _Less | _Capacity, directives: Mapping[str, Directive]) -> Constraint:
    """Raises ValueError for what is no number of the catalogue, or could be one piece only."""
    constraint: Order | Capacity
    if isinstance(table, _Less):
        constraint = Order(columns=(table.low, table.high), why=table.why)
    else:
        constraint = Capacity(count=table.count, size=table.size, held=table.held, why=table.why)
    for key in constraint.columns:
        if key not in directives or not directives[key].parameter.is_numeric:
            raise ValueError(f"{key} is not a number of the catalogue")
    if isinstance(table, _Capacity) and directives[table.count].parameter.components[0].low < 2:
        raise ValueError(f"{table.count} must be at least 2")
    return constraint
