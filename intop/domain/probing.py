"""The space that one host offers of the catalogue, with a reason for all that is left out."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from intop.domain.configuration import Configuration
from intop.domain.constraints import Capacity, Constraint, Exclusion, Order, keys_of
from intop.domain.nginx.probe import NginxProbe
from intop.domain.parameter import (
    MEMORY_UNITS,
    RISKS,
    Component,
    Parameter,
    Risk,
    barred,
    is_integer,
    normalised,
)

if TYPE_CHECKING:
    from intop.domain.space import Space  # with numpy, which most commands do without


@dataclass(frozen=True)
class Reading:
    """A key as a host has it."""

    access: Literal["missing", "unreadable", "readable", "writable"]
    """Going by its mode."""
    value: str
    refusal: str = ""
    """The kernel's words when the value was written back to it; "" unless it refused."""

    @property
    def has_value(self) -> bool:
        """Whether the key can be read."""
        return self.access in ("readable", "writable")


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """The facts of a host."""

    machine: str
    kernel: str
    cpu: str
    cpus: int
    memory_bytes: int
    """Its RAM."""
    page_bytes: int
    in_namespace: bool
    """Its network namespace is not the kernel's first: the rest of the kernel is a machine's."""
    is_root: bool
    nginx: str
    """The version of its server, whatever that is (`nginx/1.22.1`); "" where it has none."""
    clock_s: float
    """Its Unix time when it was asked."""
    in_user_namespace: bool = False
    """Its root is not the machine's."""
    mounts: Mapping[str, bool] = field(default_factory=dict)
    """Whether mounts at and below /proc are read-only, by place."""
    nginx_cpus: str = ""
    """The sets of processors of nginx's workers: `0-3`, or each tied to its own, `0 1 2 3`.

    `all` are those of the host's first process; "" is where no nginx runs.
    """
    congestion_control: str = ""
    """The algorithm of its new connections; "" where it was not asked."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The answers of a host: enough to know its space again without it."""

    facts: HostFacts
    readings: Mapping[str, Reading]
    """Its keys."""
    replicas: Mapping[str, "Probe"] = field(default_factory=dict)
    """The probes of its cluster's other replicas, by name."""
    nginx: NginxProbe | None = None
    """None where directives are not tuned."""

    @property
    def values(self) -> dict[str, str]:
        """The own values of its keys and directives, as far as they can be read."""
        nginx = {} if self.nginx is None else self.nginx.values
        return {**nginx, **{key: r.value for key, r in self.readings.items() if r.has_value}}


@dataclass(frozen=True)
class Probed:
    """The space that a host offers."""

    space: "Space"
    refused: Mapping[str, str]
    """The reason for each key that is left out. What comes before its first ": " is its kind."""


MISSING = Reading("missing", "")
"""The reading of a key that a host doesn't have."""


def asked_keys(parameters: Iterable[Parameter]) -> list[str]:
    """Return the keys to read on a host before `space_of` can decide."""
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
    """Return the parameters that a host and its replicas can be tuned by; its values are defaults.

    What one of them lacks is left out for all, and ranges are as narrow as on the one that has
    least memory. `wanted` are glob patterns of keys; what no pattern matches is left out.
    """
    readings = probe.readings
    chosen: dict[str, Parameter] = {}
    refused: dict[str, str] = {}
    for parameter in parameters:
        fitted = _fitted_everywhere(parameter, probe)
        if RISKS.index(parameter.risk) > RISKS.index(max_risk):
            fitted = f"its risk is {parameter.risk}: max_risk in [study] is {max_risk}"
        if not any(fnmatchcase(parameter.key, pattern) for pattern in wanted):
            fitted = "it is not among the parameters in [study]"
        if isinstance(fitted, str):
            refused[parameter.key] = fitted
        else:
            chosen[parameter.key] = fitted
    defaults = {k: r.value for k, r in readings.items() if r.has_value}
    for constraint in constraints:
        if isinstance(constraint, Exclusion):
            unfit = _zeroed(constraint, chosen, defaults)
        elif isinstance(constraint, Order):
            reason = f"this host has no room for {' <= '.join(constraint.columns)}"
            unfit = dict.fromkeys(without_room(constraint, chosen, defaults), reason)
        else:
            continue
        for key in unfit:
            del chosen[key]
        refused |= unfit
    from intop.domain.space import Space

    return Probed(Space(tuple(chosen.values()), constraints, defaults), refused)


def unfit(configuration: Configuration, probed: Probed, own: Mapping[str, str]) -> dict[str, str]:
    """Return why keys of a configuration can't be set on a host, by key; empty if all can.

    `own` has the host's own values, which are always fit. A range is for searches: only what
    `Parameter.unfit` names is refused.
    """
    offered = {p.key: p for p in probed.space.parameters}
    reasons: dict[str, str] = {}
    for key, value in configuration.values.items():
        if (parameter := offered.get(key)) is None:
            reasons[key] = probed.refused.get(key) or barred(key) or "not in the catalogue"
        elif key not in own or value != normalised(own[key]):
            reasons[key] = parameter.unfit(value)
    return {key: why for key, why in reasons.items() if why}


def _zeroed(
    exclusion: Exclusion, chosen: Mapping[str, Parameter], defaults: Mapping[str, str]
) -> dict[str, str]:
    """Return why paired keys can't be set, but for the one in force."""
    present = [key for key in exclusion.keys if key in chosen]
    # The kernel shows the partner that is not in force as 0.
    in_force = [key for key in exclusion.keys if defaults.get(key, "0") != "0"]
    kept = next(iter(in_force or present), None)
    return {key: f"writing it would zero its partner {kept}" for key in present if key != kept}


def without_room(
    constraint: Order | Capacity,
    chosen: Mapping[str, Parameter],
    defaults: Mapping[str, str],
    followers: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """Return why parameters can't meet a constraint in their ranges, by key; empty if they can."""
    from intop.domain.space import Space

    partners = [chosen[key] for key in keys_of(constraint) if key in chosen]
    try:
        # Each by itself, too: the others may not be among those that are chosen later.
        for parameters in (tuple(partners), *((p,) for p in partners)):
            Space(parameters, (constraint,), defaults, followers)
    except ValueError as error:
        return {p.key: f"no room: {error}" for p in partners}
    return {}


def tried_keys(
    parameters: Iterable[Parameter],
    constraints: Iterable[Constraint],
    readings: Mapping[str, Reading],
) -> list[str]:
    """Return the keys whose own values can be written back, to see whether that is allowed.

    Not those of pairs that zero each other, nor those where writing does something by itself.
    """
    paired = {k for c in constraints if isinstance(c, Exclusion) for k in c.keys}
    return [
        p.key
        for p in parameters
        if not p.effect
        and p.key not in paired
        and readings.get(p.key, MISSING).access == "writable"
    ]


def changes(before: Probe, now: Probe, ignored: Collection[str | None] = ()) -> list[str]:
    """Return a line for each key of a host whose value or access is not as it was."""
    lines = []
    for key, reading in before.readings.items():
        was, is_now = _in_words(reading), _in_words(now.readings.get(key, MISSING))
        if key not in ignored and was != is_now:
            lines.append(f"{key}: {was} against {is_now}")
    return lines


def other_values(first: Probe, second: Probe, ignored: Collection[str | None] = ()) -> list[str]:
    """Return a line for each key that two hosts have with different values.

    A key that only one of them has leaves the space of both, and is no difference.
    """
    lines = []
    for key, a in first.readings.items():
        b = second.readings.get(key, MISSING)
        if key not in ignored and a.has_value and b.has_value and a.value != b.value:
            lines.append(f"{key}: {a.value} against {b.value}")
    return lines


def _in_words(reading: Reading) -> str:
    if not reading.has_value:
        return "missing" if reading.access == "missing" else "unreadable"
    is_settable = reading.access == "writable" and not reading.refusal
    return (reading.value or "empty") + ("" if is_settable else ", read-only")


def _fitted_everywhere(parameter: Parameter, probe: Probe) -> Parameter | str:
    """Return the parameter as the host and all replicas allow it, or why one of them doesn't."""
    fitted = _fitted(parameter, probe.facts, probe.readings)
    for name, replica in probe.replicas.items():
        if isinstance(fitted, str):
            return fitted
        there = _fitted(parameter, replica.facts, replica.readings)
        if isinstance(there, str):
            return f"not on all replicas: on {name}, {there}"
        fitted = _in_common(fitted, there, name)
    return fitted


def _in_common(here: Parameter, there: Parameter, name: str) -> Parameter | str:
    """Return the part of the ranges or choices that two replicas have in common."""
    if here.is_numeric:
        pairs = list(zip(here.components, there.components, strict=True))
        if any(max(a.low, b.low) >= min(a.high, b.high) for a, b in pairs):
            return f"not on all replicas: with {name} there is no range left"
        return replace(here, components=tuple(_overlap(a, b) for a, b in pairs))
    choices = tuple(c for c in here.choices if c in there.choices)
    if len(choices) < 2:
        return f"not on all replicas: with {name} there is no choice left"
    return replace(here, choices=choices)


def _overlap(a: Component, b: Component) -> Component:
    floors = [c.floor for c in (a, b) if c.floor is not None]
    ceilings = [c.ceiling for c in (a, b) if c.ceiling is not None]
    return replace(
        a,
        low=max(a.low, b.low),
        high=min(a.high, b.high),
        floor=max(floors, default=None),
        ceiling=min(ceilings, default=None),
    )


def _choice_sources(parameter: Parameter) -> tuple[str | None, str | None]:
    return (parameter.choices_from, parameter.choices_from_in_namespace)


def _fitted(
    parameter: Parameter, facts: HostFacts, readings: Mapping[str, Reading]
) -> Parameter | str:
    """Return the parameter as this host allows it, or why it doesn't."""
    reading = readings.get(parameter.key, MISSING)
    if why := _barred(parameter, facts, reading):
        return why
    if parameter.is_numeric:
        parts = reading.value.split(" ")
        if len(parts) != len(parameter.components) or not all(is_integer(p) for p in parts):
            return f"reads as {reading.value!r}, not as {len(parameter.components)} numbers"
        within = _within_memory(parameter, facts)
        return within if isinstance(within, str) else _above_own(within, reading.value)
    return _available(parameter, facts, readings, reading.value)


def why_not_set(parameter: Parameter, value: str, probe: Probe, own: str | None = None) -> str:
    """Return why a host can't be given a value that others have; "" where it can.

    `own` is the host's own value where it has another one now, None where it has its own.
    """
    if why := _barred(parameter, probe.facts, probe.readings.get(parameter.key, MISSING)):
        return why
    if not parameter.is_numeric:
        offered = offered_choices(parameter, probe.facts, probe.readings)
        choices = ", ".join(c for c in parameter.choices if c in offered) or "nothing that is known"
        return "" if value in offered else f"the host doesn't offer {value}: it has {choices}"
    fitted = _within_memory(parameter, probe.facts)
    if isinstance(fitted, str):
        return fitted
    for part, component in zip(value.split(), fitted.components, strict=False):
        if is_integer(part) and int(part) > component.high:
            limit = f"{component.high} {parameter.unit}".rstrip()
            return f"beyond what is tried on a host of its memory, at most {limit}"
    bounded: Parameter | str = fitted
    held = probe.readings.get(parameter.key, MISSING).value if own is None else own
    if value != held and len(parts := held.split()) == len(fitted.components):
        bounded = _above_own(fitted, held) if all(map(is_integer, parts)) else fitted
    if isinstance(bounded, str):
        return bounded
    return "" if value == held else bounded.unfit(value)


def _barred(parameter: Parameter, facts: HostFacts, reading: Reading) -> str:
    """Return why the key can't be set at all on this host, or ""."""
    presence = parameter.presence
    if facts.in_namespace and parameter.scope == "machine":
        return "belongs to the whole machine, and this host is only a namespace of it"
    if facts.in_namespace and presence.was_machine_wide(facts.kernel):
        since = f"each namespace has its own since kernel {presence.namespaced_since}"
        return f"belongs to the whole machine, and this host is only a namespace of it: {since}"
    if reading.access == "missing":
        why = presence.why_missing(facts.kernel)
        return f"this kernel doesn't have it{': ' if why else ''}{why}"
    if presence.is_inert(facts.kernel):
        return f"has no effect: since kernel {presence.inert_since}"
    if reading.access == "unreadable":
        return "can't be read"
    why = _locked(parameter.key, reading, facts)
    return f"can't be written: {why}" if why else ""


def _locked(key: str, reading: Reading, facts: HostFacts) -> str:
    """Return why a key that is there can't be written, or ""."""
    path = f"/proc/sys/{key.replace('.', '/')}/"
    over = [place for place in facts.mounts if path.startswith(f"{place.rstrip('/')}/")]
    nearest = max(over, key=len, default="")
    if facts.mounts.get(nearest, False):
        return f"{nearest} is mounted read-only, as in a container"
    if reading.refusal:
        return f"the kernel refuses its own value, {reading.refusal}"
    if reading.access == "writable":
        return ""
    if not facts.is_root:
        return "we are not root there"
    if facts.in_user_namespace:
        return "root there is not the machine's, as in a container without privileges"
    return "the kernel has it for reading only"


def _above_own(parameter: Parameter, own: str) -> Parameter | str:
    """Return the parameter without values below the host's own, where those can hurt."""
    components: list[Component] = []
    for component, number in zip(parameter.components, map(int, own.split()), strict=True):
        if not component.own_floor:
            components.append(component)
            continue
        if number >= component.high:
            return f"its value {number} is not below the range, and a smaller one can hurt"
        floor = number if component.floor is None else max(component.floor, number)
        components.append(replace(component, low=max(component.low, number), floor=floor))
    return replace(parameter, components=tuple(components))


def _within_memory(parameter: Parameter, facts: HostFacts) -> Parameter | str:
    if parameter.ram_fraction is None:
        return parameter
    unit_bytes = {**MEMORY_UNITS, "pages": facts.page_bytes}[parameter.unit]
    limit = int(parameter.ram_fraction * facts.memory_bytes / unit_bytes)
    components: list[Component] = []
    for component in parameter.components:
        if limit <= component.low:
            return f"the host's memory allows {limit} {parameter.unit}, below the whole range"
        ceiling = limit if component.ceiling is None else min(component.ceiling, limit)
        high = min(component.high, limit)
        components.append(replace(component, high=high, ceiling=ceiling))
    return replace(parameter, components=tuple(components))


def _available(
    parameter: Parameter, facts: HostFacts, readings: Mapping[str, Reading], default: str
) -> Parameter | str:
    offered = offered_choices(parameter, facts, readings)
    if default not in parameter.choices:
        return f"its value {default!r} is none of the known choices"
    # The value in force can always be written again, whatever the lists say.
    choices = tuple(c for c in parameter.choices if c in offered or c == default)
    if len(choices) < 2:
        return f"the host offers only {default}"
    return replace(parameter, choices=choices)


def offered_choices(
    parameter: Parameter, facts: HostFacts, readings: Mapping[str, Reading]
) -> set[str]:
    """Return the choices that the host's own lists have."""
    offered = set(parameter.choices)
    source, in_namespace = _choice_sources(parameter)
    for key in (source, in_namespace if facts.in_namespace else None):
        if key is not None and key in readings:
            offered &= set(readings[key].value.split())
    return offered
