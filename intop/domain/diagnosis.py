"""What can be said about a cluster before anything is measured on it."""

from collections.abc import Mapping
from dataclasses import dataclass

from intop.domain.probing import HostFacts


@dataclass(frozen=True, kw_only=True)
class HostDiagnosis:
    """One host that answered. `guard` is what its guard has to say, "" for nothing."""

    name: str
    role: str
    facts: HostFacts
    clock_offset_s: float
    guard: str


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What the doctor found on one cluster.

    `offered` are the parameters of the space, `refused` all others of the catalogue with the
    reason; `problems` keep a campaign from starting.
    """

    arch: str
    link: str
    load_tool: str
    hosts: tuple[HostDiagnosis, ...]
    offered: tuple[str, ...]
    refused: Mapping[str, str]
    problems: tuple[str, ...]
    emulation: str = ""
