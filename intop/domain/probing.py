"""From the catalogue to the space that one host offers, with a reason for all that is left out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from intop.domain.parameter import MEMORY_UNITS, RISKS, Component, Parameter, Risk
from intop.domain.space import Constraint, Exclusion, Order, Space, parameter_columns


@dataclass(frozen=True)
class Reading:
    """What a host says of one key: whether it can be written, and its value."""

    access: Literal["missing", "unreadable", "readable", "writable"]
    value: str


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """What a host is. `memory_bytes` is its RAM, `page_bytes` the size of a page of it;
    `clock_s` its Unix time when it was asked.

    `in_namespace` says that its network namespace is not the kernel's first one, so that it
    shares the rest of the kernel with a machine that is not ours to tune.
    """

    machine: str
    kernel: str
    cpu: str
    cpus: int
    memory_bytes: int
    page_bytes: int
    in_namespace: bool
    is_root: bool
    nginx: str
    clock_s: float


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a host said when it was asked: enough to know its space again without it."""

    facts: HostFacts
    readings: Mapping[str, Reading]


@dataclass(frozen=True)
class Probed:
    """The space that a host offers, and for every key left out the reason."""

    space: Space
    refused: Mapping[str, str]


def asked_keys(parameters: Iterable[Parameter]) -> list[str]:
    """The keys to read on a host before `space_of` can decide."""
    keys: dict[str, None] = {}
    for p in parameters:
        keys.update(dict.fromkeys(k for k in (p.key, *_choice_sources(p)) if k))
    return list(keys)


def space_of(
    parameters: Iterable[Parameter],
    constraints: tuple[Constraint, ...],
    probe: Probe,
    max_risk: Risk,
    wanted: Sequence[str] = ("*",),
) -> Probed:
    """The parameters that this host can be tuned by, with its values as defaults.

    `wanted` are glob patterns of keys; what no pattern matches is left out.
    """
    facts, readings = probe.facts, probe.readings
    chosen: dict[str, Parameter] = {}
    refused: dict[str, str] = {}
    for parameter in parameters:
        fitted = _fitted(parameter, facts, readings)
        if RISKS.index(parameter.risk) > RISKS.index(max_risk):
            fitted = f"its risk is {parameter.risk}: max_risk in [study] is {max_risk}"
        if not any(fnmatchcase(parameter.key, pattern) for pattern in wanted):
            fitted = "it is not among the parameters in [study]"
        if isinstance(fitted, str):
            refused[parameter.key] = fitted
        else:
            chosen[parameter.key] = fitted
    defaults = {k: r.value for k, r in readings.items() if r.access in ("readable", "writable")}
    for constraint in constraints:
        if isinstance(constraint, Exclusion):
            unfit = _zeroed(constraint, chosen, defaults)
        elif isinstance(constraint, Order):
            unfit = _without_room(constraint, chosen, defaults)
        else:
            continue
        for key in unfit:
            del chosen[key]
        refused |= unfit
    return Probed(Space(tuple(chosen.values()), constraints, defaults), refused)


def _zeroed(
    exclusion: Exclusion, chosen: Mapping[str, Parameter], defaults: Mapping[str, str]
) -> dict[str, str]:
    """Of paired keys, all but one, with the reason; the one in force stays."""
    present = [key for key in exclusion.keys if key in chosen]
    # The kernel shows the partner that is not in force as 0.
    in_force = [key for key in exclusion.keys if defaults.get(key, "0") != "0"]
    kept = next(iter(in_force or present), None)
    return {key: f"writing it would zero its partner {kept}" for key in present if key != kept}


def _without_room(
    order: Order, chosen: Mapping[str, Parameter], defaults: Mapping[str, str]
) -> dict[str, str]:
    """The parameters of an order that this host's ranges and defaults leave no room for."""
    partners = [
        p
        for p in chosen.values()
        if any(column.name in order.columns for column in parameter_columns(p))
    ]
    try:
        Space(tuple(partners), (order,), defaults)
    except ValueError:
        reason = f"this host has no room for {' <= '.join(order.columns)}"
        return {p.key: reason for p in partners}
    return {}


def _choice_sources(parameter: Parameter) -> tuple[str | None, str | None]:
    return (parameter.choices_from, parameter.choices_from_in_namespace)


def _fitted(
    parameter: Parameter, facts: HostFacts, readings: Mapping[str, Reading]
) -> Parameter | str:
    """The parameter as this host allows it, or why it doesn't."""
    reading = readings.get(parameter.key, Reading("missing", ""))
    if facts.in_namespace and parameter.scope == "machine":
        return "belongs to the whole machine, and this host is only a namespace of it"
    if reading.access == "missing":
        return "this kernel doesn't have it"
    if reading.access != "writable":
        return "can't be written" if reading.access == "readable" else "can't be read"
    if parameter.is_numeric:
        parts = reading.value.split(" ")
        if len(parts) != len(parameter.components) or not all(_is_integer(p) for p in parts):
            return f"reads as {reading.value!r}, not as {len(parameter.components)} numbers"
        return _within_memory(parameter, facts)
    return _available(parameter, facts, readings, reading.value)


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,20}", text) is not None


def _within_memory(parameter: Parameter, facts: HostFacts) -> Parameter | str:
    if parameter.ram_fraction is None:
        return parameter
    unit_bytes = {**MEMORY_UNITS, "pages": facts.page_bytes}[parameter.unit]
    limit = int(parameter.ram_fraction * facts.memory_bytes / unit_bytes)
    components: list[Component] = []
    for component in parameter.components:
        if limit <= component.low:
            return f"the host's memory allows {limit} {parameter.unit}, below the whole range"
        components.append(replace(component, high=min(component.high, limit)))
    return replace(parameter, components=tuple(components))


def _available(
    parameter: Parameter, facts: HostFacts, readings: Mapping[str, Reading], default: str
) -> Parameter | str:
    offered = set(parameter.choices)
    source, in_namespace = _choice_sources(parameter)
    for key in (source, in_namespace if facts.in_namespace else None):
        if key is not None and key in readings:
            offered &= set(readings[key].value.split())
    if default not in parameter.choices:
        return f"its value {default!r} is none of the known choices"
    # The value in force can always be written again, whatever the lists say.
    choices = tuple(c for c in parameter.choices if c in offered or c == default)
    if len(choices) < 2:
        return f"the host offers only {default}"
    return replace(parameter, choices=choices)
