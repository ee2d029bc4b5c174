"""From the catalogue of directives to the space that one nginx offers, with what is left out."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from intop.domain.nginx.conf import Conf
from intop.domain.nginx.directive import Directive, Needs, NginxFacts
from intop.domain.nginx.standing import Directives, current, deciding, standing
from intop.domain.parameter import RISKS, Parameter, Risk, barred
from intop.domain.presence import is_before
from intop.domain.probing import Probed
from intop.domain.space import Capacity, Constraint, Order, Space


def offer(
    directives: Directives,
    conf: Conf,
    facts: NginxFacts,
    max_risk: Risk,
    *,
    wanted: Sequence[str] = ("*",),
    by_name: Collection[str] = (),
) -> Probed:
    """The directives that this nginx can be tuned by, with its values as defaults.

    As `intop.domain.probing.space_of` does for the kernel. `wanted` are glob patterns of keys;
    `by_name` are the denied ones that the study allows.
    """
    now = current(directives, conf, facts)
    chosen: dict[str, Parameter] = {}
    refused: dict[str, str] = {}
    for key, directive in directives.by_key.items():
        why = barred(key, by_name)
        if not any(fnmatchcase(key, pattern) for pattern in wanted) and key not in by_name:
            why = "it is not among the parameters in [study]"
        elif not why and RISKS.index(directive.parameter.risk) > RISKS.index(max_risk):
            why = f"its risk is {directive.parameter.risk}: max_risk in [study] is {max_risk}"
        fitted = why or _fitted(directive, conf, facts, now[key])
        if isinstance(fitted, str):
            refused[key] = fitted
        else:
            chosen[key] = fitted
    # What needs another directive goes with it, in a chain perhaps.
    while gone := {
        key: why
        for key in chosen
        if (why := _lacks_partner(directives.by_key[key], directives, now, chosen))
    }:
        refused |= gone
        chosen = {key: parameter for key, parameter in chosen.items() if key not in gone}
    defaults = {key: value for key, value in now.items() if value is not None}
    followers = frozenset(
        key
        for key, directive in directives.by_key.items()
        if directive.follows and deciding(standing(conf, directive), directive) is None
    )
    for constraint in directives.constraints:
        unfit = _without_room(constraint, chosen, defaults, followers)
        refused |= unfit
        chosen = {key: parameter for key, parameter in chosen.items() if key not in unfit}
    space = Space(tuple(chosen.values()), directives.constraints, defaults, followers)
    return Probed(space, refused)


def unmet(needs: Needs, conf: Conf, facts: NginxFacts) -> str:
    """What this nginx lacks of it, or ""."""
    if needs.since is not None and facts.version < needs.since:
        return f"it came with nginx {'.'.join(map(str, needs.since))}"
    if needs.build and needs.build not in facts.build:
        return f"nginx was built without {needs.build}"
    if needs.kernel and is_before(facts.kernel, needs.kernel):
        return f"it needs kernel {needs.kernel}"
    if needs.inside == "tls" and not _serves(conf, "ssl"):
        return "no address is served with TLS"
    if needs.inside == "http2" and not _serves(conf, "http2"):
        return "no address is served with HTTP/2"
    return ""


def _serves(conf: Conf, protocol: str) -> bool:
    is_option = any(protocol in place.statement.arguments for place in conf.named("listen"))
    return is_option or any(p.statement.arguments == ("on",) for p in conf.named(protocol))


def _fitted(
    directive: Directive, conf: Conf, facts: NginxFacts, value: str | None
) -> Parameter | str:
    """The parameter as this nginx allows it, or why it doesn't."""
    if why := unmet(directive.needs, conf, facts):
        return why
    if why := _has_no_place(directive, conf):
        return why
    if value is None:
        place = deciding(standing(conf, directive), directive)
        at = "" if place is None else place.where
        text = "" if place is None else " ".join(w.text for w in place.statement.words)
        return f"its value is none of those that are known: {at} has {text[:100]!r}"
    parameter = directive.parameter
    if parameter.is_numeric:
        (only,) = parameter.components
        low, high = only.low, only.high
        if directive.per_cpu:
            high = max(low + 1, min(high, directive.per_cpu * facts.cpus))
        if directive.own_floor:
            low = max(low, int(value))
        if low >= high:
            return f"its value {value} is not below the range, and a smaller one can hurt"
        floor = low if directive.own_floor else None
        return replace(parameter, components=(replace(only, low=low, high=high, floor=floor),))
    lacks = {
        choice: why
        for choice, needs in directive.choice_needs.items()
        if choice != value and (why := unmet(needs, conf, facts))
    }
    choices = tuple(choice for choice in parameter.choices if choice not in lacks)
    if len(choices) < 2:
        return f"only {choices[0]} is offered: {'; '.join(lacks.values())}"
    return replace(parameter, choices=choices)


def _has_no_place(directive: Directive, conf: Conf) -> str:
    """Why it can stand nowhere, or ""."""
    found = standing(conf, directive)
    if directive.level == "listen" and not found.addresses:
        return "http listens on no address whose options can be set"
    if directive.level in ("events", "http") and conf.block(directive.level) is None:
        return f"there is no block {directive.level}"
    if directive.level == "upstream" and not any(
        place.context == ("http",) for place in conf.named("upstream")
    ):
        return "there is no upstream block"
    if not directive.inserted and not (*found.own, *found.inner):
        return f"no {directive.name} stands that it could be added to"
    if found.shared and not (*found.own, *found.inner):
        return f"left alone: {found.shared[0].where} stands in other blocks, too"
    return ""


def _lacks_partner(
    directive: Directive,
    directives: Directives,
    now: dict[str, str | None],
    chosen: dict[str, Parameter],
) -> str:
    """Which directive it has no effect without, if that is neither on nor tuned; or ""."""
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


def _without_room(
    constraint: Constraint,
    chosen: dict[str, Parameter],
    defaults: dict[str, str],
    followers: frozenset[str],
) -> dict[str, str]:
    """The parameters of a constraint that ranges and defaults leave no room for."""
    if not isinstance(constraint, Order | Capacity):
        return {}
    partners = [chosen[name] for name in constraint.columns if name in chosen]
    groups: Iterable[tuple[Parameter, ...]] = (tuple(partners), *((p,) for p in partners))
    try:
        # Each by itself, too: the others may not be among those that are chosen later.
        for group in groups:
            Space(group, (constraint,), defaults, followers)
    except ValueError as error:
        return {p.key: f"no room: {error}" for p in partners}
    return {}
