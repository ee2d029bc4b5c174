"""The probe of an nginx: enough to know the space of its directives again without it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from intop.domain.nginx.conf import Conf
from intop.domain.nginx.directive import Directive, Needs, NginxFacts
from intop.domain.nginx.proxied import direct
from intop.domain.nginx.standing import Directives, current, deciding, standing
from intop.domain.presence import is_before

SHOWN = 100
"""Characters shown of a statement that is not understood."""


@dataclass(frozen=True, kw_only=True)
class NginxProbe:
    """The facts of an nginx and its directives, by the keys of the catalogue.

    Of nginx's files it has no text but that of a statement in `unfit`.
    """

    facts: NginxFacts
    values: Mapping[str, str]
    """The values that are known."""
    unfit: Mapping[str, str] = field(default_factory=dict)
    """Reasons why directives can't be set, under any study."""
    lacking: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The choices of a directive that this nginx does not offer, with the reason."""
    followers: tuple[str, ...] = ()
    """Keys whose defaults follow other values."""


def probed(directives: Directives, conf: Conf, facts: NginxFacts) -> NginxProbe:
    """Return the probe of an nginx, by the files that it reads."""
    now = current(directives, conf, facts)
    unfit, lacking = {}, {}
    for key, directive in directives.by_key.items():
        if why := _unfit(directive, conf, facts, now[key]):
            unfit[key] = why
        elif lacks := _lacking(directive, conf, facts, now[key]):
            lacking[key] = lacks
    followers = tuple(
        key
        for key, directive in directives.by_key.items()
        if directive.follows and deciding(standing(conf, directive), directive) is None
    )
    values = {key: value for key, value in now.items() if value is not None}
    return NginxProbe(facts=facts, values=values, unfit=unfit, lacking=lacking, followers=followers)


def unmet(needs: Needs, conf: Conf, facts: NginxFacts) -> str:
    """Return what this nginx lacks of it, or ""."""
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
    """Return whether an address of `http` has it, by an option of `listen` or a directive."""
    is_option = any(
        protocol in place.statement.arguments[1:]
        for place in conf.named("listen")
        if place.context == ("http", "server")
    )
    return is_option or any(
        [argument.lower() for argument in place.statement.arguments] == ["on"]
        for place in conf.named(protocol)
        if place.context in (("http",), ("http", "server"))
    )


def _unfit(directive: Directive, conf: Conf, facts: NginxFacts, value: str | None) -> str:
    """Return why it can't be set here, or ""."""
    if why := unmet(directive.needs, conf, facts) or _has_no_place(directive, conf):
        return why
    if value is not None:
        return ""
    place = deciding(standing(conf, directive), directive)
    at = "" if place is None else place.where
    text = "" if place is None else " ".join(w.text for w in place.statement.words)
    return f"its value is none of those that are known: {at} has {text[:SHOWN]!r}"


def _lacking(
    directive: Directive, conf: Conf, facts: NginxFacts, value: str | None
) -> dict[str, str]:
    """Return the choices that are not offered, with the reason; the present one is."""
    if directive.as_is not in (None, value):
        return {directive.as_is: f"the files have {value}, and nothing to put in its place"}
    return {
        choice: why
        for choice, needs in directive.choice_needs.items()
        if choice != value and (why := unmet(needs, conf, facts))
    }


def _has_no_place(directive: Directive, conf: Conf) -> str:
    """Return why it can stand nowhere, or ""."""
    places = standing(conf, directive)
    if directive.level == "listen" and not places.addresses:
        return "http listens on no address whose options can be set"
    if directive.level in ("events", "http") and conf.block(directive.level) is None:
        return f"there is no block {directive.level}"
    if directive.level == "upstream" and not any(
        place.context == ("http",) for place in conf.named("upstream")
    ):
        names = next(iter(direct(conf)), None)
        why = "" if names is None else f": proxy_pass at {names.where} names its backend itself"
        return f"there is no upstream block{why}"
    if not directive.inserted and not (*places.own, *places.inner):
        return f"no {directive.name} stands that it could be added to"
    if places.shared and not (*places.own, *places.inner):
        return f"left alone: {places.shared[0].where} stands in other blocks, too"
    return ""
