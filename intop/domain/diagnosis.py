"""Diagnoses of a cluster before anything is measured on it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from intop.domain.fetched import Fetched
from intop.domain.host_state import HostState
from intop.domain.parameter import Parameter, Scope
from intop.domain.probing import MISSING, HostFacts, Probe, Probed, Reading

Ranges = tuple[tuple[int, int], ...]
UNKNOWN_STATE = HostState()


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """The readiness of a host for a campaign."""

    free_mib: int | None
    """The room that its state folder may still take, None where that is not known."""
    can_store: bool
    """Whether that folder can be made and written."""
    untrusted: str = ""
    """Others who could change it, "" for nobody."""
    lacks: tuple[str, ...] = ()
    """Programs that it does not have."""
    tuners: tuple[str, ...] = ()
    """Running programs that set sysctls."""
    schedules: tuple[str, ...] = ()
    """Files by which something sets sysctls again and again."""
    confinement: str = ""
    """Reports of security modules about themselves, in words."""


@dataclass(frozen=True, kw_only=True)
class KeyDiagnosis:
    """One key of the catalogue on one host."""

    scope: Scope
    reading: Reading
    is_tried: bool
    """Whether it was asked to take its own value."""
    ranges: Ranges
    """The ranges of its numbers there: the catalogue's, bounded by the host's memory."""
    choices: tuple[str, ...]
    """Its choices there."""
    reason: str
    """The reason why it is out of bounds on this host, "" where it is not. Another replica may lack
    it all the same."""


@dataclass(frozen=True, kw_only=True)
class HostDiagnosis:
    """One host that answered."""

    name: str
    role: str
    facts: HostFacts
    clock_offset_s: float
    readiness: Readiness
    state: HostState = UNKNOWN_STATE
    keys: Mapping[str, KeyDiagnosis] = field(default_factory=dict)
    """A load balancer's keys: no other host is tuned."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The diagnosis of one cluster."""

    arch: str
    link: str
    load_tool: str
    hosts: tuple[HostDiagnosis, ...]
    offered: tuple[str, ...]
    """Parameters of the space, which replicas have in common."""
    ranges: Mapping[str, Ranges]
    """The ranges of their numbers, bounded by the smallest memory."""
    refused: Mapping[str, str]
    """All other parameters of the catalogue, with the reason."""
    lost: Mapping[str, Mapping[str, str]]
    """Choices that offered parameters are without, by key, each with the reason."""
    problems: tuple[str, ...]
    """Obstacles to a campaign's start."""
    warnings: tuple[str, ...] = ()
    emulation: str = ""
    fetched: tuple[Fetched, ...] = ()
    """The answer of each path of the loads, empty where none could be asked for."""


def ranges_of(parameter: Parameter) -> Ranges:
    """Return the lowest and highest value of each of its numbers."""
    return tuple((c.low, c.high) for c in parameter.components)


def lost_choices(
    parameters: Sequence[Parameter], probe: Probe, probed: Probed
) -> dict[str, dict[str, str]]:
    """Return, by offered key, the catalogue's choices that the hosts lack, with the reason."""
    offered = {p.key: p.choices for p in probed.space.parameters}
    lost = {
        p.key: {c: _why_lost(p, c, probe) for c in p.choices if c not in offered[p.key]}
        for p in parameters
        if p.key in offered
    }
    return {key: choices for key, choices in lost.items() if choices}


def _why_lost(parameter: Parameter, choice: str, probe: Probe) -> str:
    for key, module in (
        (parameter.choices_from, parameter.choices_module.replace("*", choice)),
        (parameter.choices_from_in_namespace if probe.facts.in_namespace else None, ""),
    ):
        if key and key in probe.readings and choice not in probe.readings[key].value.split():
            return f"modprobe {module}" if module else f"not in {key}"
    return "not on all replicas"


def diagnosed_keys(
    parameters: Sequence[Parameter], probe: Probe, alone: Probed, tried: Collection[str]
) -> dict[str, KeyDiagnosis]:
    """Return every key of the catalogue on a host, whose space without its replicas is `alone`.

    `tried` are those that it was asked to take their own values.
    """
    offered = {p.key: p for p in alone.space.parameters}
    return {
        p.key: KeyDiagnosis(
            scope=p.scope,
            reading=probe.readings.get(p.key, MISSING),
            is_tried=p.key in tried,
            ranges=ranges_of(offered.get(p.key, p)),
            choices=offered.get(p.key, p).choices,
            reason=alone.refused.get(p.key, ""),
        )
        for p in parameters
    }
