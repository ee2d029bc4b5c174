"""The catalogue of nginx's directives, and what must hold between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Interval, MinLen
from pydantic import Field

from intop.config.catalogue import Text, Texts
from intop.config.source import Source
from intop.domain.constraints import Capacity, Constraint, Order
from intop.domain.matching import matching
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
from intop.domain.parameter import Choice, Component, Parameter, Risk, Scale, barred
from intop.errors import ConfigurationError

KEY, A_KEY = rf"{PREFIX}[a-z]+(\.[a-z0-9_]+)+", f"a key such as {PREFIX}http.sendfile"
Key = Annotated[str, matching(KEY, A_KEY)]
VersionText = Annotated[
    str, matching(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}", "a version such as 1.22.1")
]
Option = Annotated[str, matching("[a-z0-9_]*", "a word of a-z, 0-9 and _")]


@dataclass(frozen=True, kw_only=True)
class _Needs:
    since: VersionText | None = None
    kernel: Annotated[str, matching(r"([0-9]+\.[0-9]+)?", "a version such as 5.14")] = ""
    build: Annotated[str, matching("(--[a-z0-9_-]+)?", "an argument of configure")] = ""
    inside: Needed = ""
    on: Annotated[str, matching(f"({KEY})?", A_KEY)] = ""

    def needs(self) -> Needs:
        since = None if self.since is None else version_of(self.since)
        return Needs(
            since=since, kernel=self.kernel, build=self.build, inside=self.inside, on=self.on
        )


@dataclass(frozen=True, kw_only=True)
class _Before:
    version: VersionText
    default: str


@dataclass(frozen=True, kw_only=True)
class _Companion:
    value: str
    directive: Annotated[str, matching("[a-z0-9_]+", "the name of a directive")]
    arguments: Annotated[tuple[str, ...], MinLen(1)]
    until: VersionText

    def companion(self) -> Companion:
        return Companion(
            value=self.value,
            name=self.directive,
            arguments=self.arguments,
            until=version_of(self.until),
        )


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A directive and its parameter in one table."""

    key: Key
    kind: Literal["integer", "boolean", "choice"]
    unit: str
    risk: Risk
    mechanism: Text
    document: Annotated[str, matching("ngx_[a-z0-9_]+_module(#[a-z0-9_]+)?", "nginx's MODULE#NAME")]
    contexts: Texts
    default: str
    effective: Effective
    low: int | None = None
    high: int | None = None
    scale: Scale | None = None
    choices: tuple[Choice, ...] = ()
    argument: Annotated[int, Interval(ge=0, le=9)] = 0
    option: Option = ""
    flag: Option = ""
    zone: Option = ""
    fixed: tuple[Choice, ...] = ()
    beside: Option = ""
    inserted: bool = True
    absent: str | None = None
    as_is: str | None = None
    before: tuple[_Before, ...] = ()
    follows: tuple[Key, ...] = ()
    inner: Inner = "change"
    needs: _Needs | None = None
    choice_needs: dict[str, _Needs] = field(default_factory=dict)
    companion: _Companion | None = None
    per_cpu: Annotated[int, Ge(0)] = 0
    own_floor: bool = False
    interacts: dict[str, str] = field(default_factory=dict)
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
            **{name: getattr(self, name) for name in _SAME_FIELDS},
        )


_SAME_FIELDS = [
    *("contexts", "default", "effective", "option", "flag", "zone", "fixed", "beside"),
    *("inserted", "absent", "as_is", "follows", "inner", "per_cpu", "own_floor", "interacts"),
]


@dataclass(frozen=True, kw_only=True)
class _Less:
    kind: Literal["less"]
    low: Key
    high: Key
    why: Text


@dataclass(frozen=True, kw_only=True)
class _Capacity:
    kind: Literal["capacity"]
    count: Key
    size: Key
    held: Key
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
        entry = source.convert(_Entry, table, place)
        directive = None if entry is None else source.check(entry.directive, place)
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


def _named(directive: Directive) -> list[tuple[str, str]]:
    """The other directives that one names, each with the field that does."""
    needs = (directive.needs, *directive.choice_needs.values())
    found = [("needs", n.on) for n in needs if n.on]
    found += [("follows", key) for key in directive.follows]
    if directive.beside:
        found += [("beside", f"{directive.key.rpartition('.')[0]}.{directive.beside}")]
    return found + [("interacts", key) for key in directive.interacts if key.startswith(PREFIX)]


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
