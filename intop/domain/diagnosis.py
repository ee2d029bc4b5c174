"""What can be said about a cluster before anything is measured on it."""

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
    """What a host has for a campaign, and what could come in its way.

    `free_mib` is what its state folder may still grow by, None where that is not known, and
    `can_store` whether it can be made and written. `untrusted` says by whom else it could be
    changed, "" where by nobody. `lacks` are programs that it does not have.
    `tuners` are running programs that set sysctls, and `schedules` files by which something sets
    them again and again. `confinement` is what security modules say of themselves, in words.
    """

    free_mib: int | None
    can_store: bool
    untrusted: str = ""
    lacks: tuple[str, ...] = ()
    tuners: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    confinement: str = ""


@dataclass(frozen=True, kw_only=True)
class KeyDiagnosis:
    """One key of the catalogue on one host.

    `is_tried` says that it was asked to take its own value. `ranges` are what the campaign would
    choose its numbers from there: the catalogue's, bounded by the host's memory; `choices`
    likewise. `reason` says why it is out of bounds on this host, and is empty where it is not;
    another replica may lack it all the same.
    """

    scope: Scope
    reading: Reading
    is_tried: bool
    ranges: Ranges
    choices: tuple[str, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class HostDiagnosis:
    """One host that answered. `keys` are those of a load balancer: no other host is tuned."""

    name: str
    role: str
    facts: HostFacts
    clock_offset_s: float
    readiness: Readiness
    state: HostState = UNKNOWN_STATE
    keys: Mapping[str, KeyDiagnosis] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What the doctor found on one cluster.

    `offered` are the parameters of the space, which replicas have in common, and `ranges` those of
    its numbers, bounded by the smallest memory; `refused` are all others of the catalogue with the
    reason, `lost` the choices that offered ones are without, by key, each with the reason;
    `fetched` is what each path of the loads answered, empty where none could be asked for;
    `problems` keep a campaign from starting, `warnings` don't.
    """

    arch: str
    link: str
    load_tool: str
    hosts: tuple[HostDiagnosis, ...]
    offered: tuple[str, ...]
    ranges: Mapping[str, Ranges]
    refused: Mapping[str, str]
    lost: Mapping[str, Mapping[str, str]]
    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    emulation: str = ""
    fetched: tuple[Fetched, ...] = ()


def ranges_of(parameter: Parameter) -> Ranges:
    """The lowest and highest value of each of its numbers."""
    return tuple((c.low, c.high) for c in parameter.components)


def lost_choices(
    parameters: Sequence[Parameter], probe: Probe, probed: Probed
) -> dict[str, dict[str, str]]:
    """By offered key, the choices of the catalogue that the hosts don't have, with the reason."""
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
    """Every key of the catalogue on a host, whose space without its replicas is `alone`.

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
