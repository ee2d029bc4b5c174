"""The space that one nginx offers of the catalogue's directives, with what is left out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from intop.domain.constraints import Capacity, Order
from intop.domain.nginx.directive import Directive
from intop.domain.nginx.probe import NginxProbe
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import RISKS, Parameter, Risk, barred
from intop.domain.probing import Probed, without_room

NO_REPLICAS: Mapping[str, NginxProbe] = {}


def offer(
    directives: Directives,
    probe: NginxProbe,
    max_risk: Risk,
    *,
    wanted: Sequence[str] = ("*",),
    by_name: Collection[str] = (),
    replicas: Mapping[str, NginxProbe] = NO_REPLICAS,
) -> Probed:
    """Return the directives that this nginx can be tuned by, with its values as defaults.

    As `intop.domain.probing.space_of` does for the kernel. `wanted` are glob patterns of keys;
    `by_name` are the denied ones that the study allows. `replicas` are the nginx of other
    replicas by their names: what is not alike on all of them is left out.
    """
    chosen: dict[str, Parameter] = {}
    refused: dict[str, str] = {}
    elsewhere = {
        key: why
        for name, replica in replicas.items()
        for key, why in _otherwise(probe, replica, name).items()
    }
    for key, directive in directives.by_key.items():
        why = barred(key, by_name)
        if not any(fnmatchcase(key, pattern) for pattern in wanted) and key not in by_name:
            why = "it is not among the parameters in [study]"
        elif not why and RISKS.index(directive.parameter.risk) > RISKS.index(max_risk):
            why = f"its risk is {directive.parameter.risk}: max_risk in [study] is {max_risk}"
        fitted = why or elsewhere.get(key) or _fitted(directive, probe)
        if isinstance(fitted, str):
            refused[key] = fitted
        else:
            chosen[key] = fitted
    # What needs another directive goes with it, in a chain perhaps.
    while gone := {
        key: why
        for key in chosen
        if (why := _lacks_partner(directives.by_key[key], directives, probe.values, chosen))
    }:
        refused |= gone
        chosen = {key: parameter for key, parameter in chosen.items() if key not in gone}
    defaults, followers = dict(probe.values), frozenset(probe.followers)
    for constraint in directives.constraints:
        if not isinstance(constraint, Order | Capacity):
            continue
        unfit = without_room(constraint, chosen, defaults, followers)
        refused |= unfit
        chosen = {key: parameter for key, parameter in chosen.items() if key not in unfit}
    from intop.domain.space import Space

    space = Space(tuple(chosen.values()), directives.constraints, defaults, followers)
    return Probed(space, refused)


def _otherwise(probe: NginxProbe, replica: NginxProbe, name: str) -> dict[str, str]:
    """Return why directives can't be tuned that a replica does not have as this nginx."""
    reasons: dict[str, str] = {}
    for key, value in probe.values.items():
        if why := replica.unfit.get(key):
            reasons[key] = f"not on all replicas: on {name}, {why}"
        elif (theirs := replica.values.get(key)) != value:
            reasons[key] = f"not alike on all replicas: {value} against {theirs} on {name}"
        elif probe.lacking.get(key) != replica.lacking.get(key):
            reasons[key] = f"not alike on all replicas: {name} has other choices"
    return reasons


def _fitted(directive: Directive, probe: NginxProbe) -> Parameter | str:
    """Return the parameter as this nginx allows it, or why it doesn't."""
    if why := probe.unfit.get(directive.key):
        return why
    parameter, value = directive.parameter, probe.values[directive.key]
    if parameter.is_numeric:
        (only,) = parameter.components
        low, high = only.low, only.high
        if directive.per_cpu:
            high = max(low + 1, min(high, directive.per_cpu * probe.facts.cpus))
        if directive.own_floor:
            low = max(low, int(value))
        if low >= high:
            return f"its value {value} is not below the range, and a smaller one can hurt"
        floor = low if directive.own_floor else None
        return replace(parameter, components=(replace(only, low=low, high=high, floor=floor),))
    lacks = probe.lacking.get(directive.key, {})
    choices = tuple(choice for choice in parameter.choices if choice not in lacks)
    if len(choices) < 2:
        return f"only {choices[0]} is offered: {'; '.join(lacks.values())}"
    return replace(parameter, choices=choices)


def _lacks_partner(
    directive: Directive,
    directives: Directives,
    now: Mapping[str, str],
    chosen: dict[str, Parameter],
) -> str:
    """Return which directive it needs that is neither on nor tuned, or ""."""
    on = directive.needs.on
    if on and on not in chosen and now.get(on) in ("off", "0", None):
        return f"without effect: {on} is off"
    if not directive.beside:
        return ""
    base = directive.key.rpartition(".")[0]
    partner = f"{base}.{directive.beside}"
    if partner in chosen or now.get(partner) not in (directives.by_key[partner].absent, None):
        return ""
    return f"without effect: {partner} is not set"
