"""Parameters: what can be tuned, in which range, and what must never be."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from intop.domain.presence import UNKNOWN, Presence

Kind = Literal["integer", "boolean", "choice", "vector"]
Scale = Literal["linear", "log"]
Scope = Literal["namespace", "machine"]
Risk = Literal["low", "medium", "high"]
RISKS: tuple[Risk, ...] = ("low", "medium", "high")

DENIED: dict[str, str] = {
    "kernel.randomize_va_space": "address space randomisation protects every process",
    "kernel.kptr_restrict": "hides kernel addresses from attackers",
    "kernel.dmesg_restrict": "hides kernel messages from attackers",
    "kernel.perf_event_paranoid": "limits who may observe the machine",
    "kernel.unprivileged_bpf_disabled": "keeps unprivileged code out of the kernel",
    "kernel.unprivileged_userns_clone": "keeps users away from the kernel's less tested parts",
    "kernel.yama.*": "limits who may trace processes",
    "kernel.modules_disabled": "can't be undone without a reboot",
    "kernel.kexec_load_disabled": "can't be undone without a reboot",
    "kernel.sysrq": "opens the console to emergency commands",
    "kernel.core_pattern": "runs a program of one's choice as root",
    "kernel.modprobe": "runs a program of one's choice as root",
    "kernel.hotplug": "runs a program of one's choice as root",
    "kernel.poweroff_cmd": "runs a program of one's choice as root",
    "fs.binfmt_misc.*": "runs a program of one's choice in place of another",
    "kernel.panic*": "decides whether the machine survives a fault",
    "fs.suid_dumpable": "leaks the memory of privileged programs",
    "fs.protected_*": "closes link attacks in shared folders",
    "vm.mmap_min_addr": "protects against null pointer exploits",
    "vm.panic_on_oom": "decides whether the machine survives a shortage of memory",
    "net.core.bpf_jit_harden": "hardens the kernel against code injection",
    "net.ipv4.ip_forward": "turns the host into a router",
    "net.ipv4.tcp_syncookies": "without it a SYN flood takes the host down",
    "net.ipv4.icmp_echo_ignore_*": "changes how the host answers the network's diagnosis",
    "net.*.*forwarding*": "turns the host into a router",
    "net.*.rp_filter": "protects against forged source addresses",
    "net.*.*_redirects": "lets others change the host's routes",
    "net.*.accept_source_route": "lets others choose the route of packets",
    "net.*.accept_ra*": "lets others change the host's routes",
    "net.*.accept_local": "weakens the check of source addresses",
    "net.*.route_localnet": "exposes services that listen on loopback only",
    "net.*.log_martians": "hides signs of an attack, or floods the log",
    "net.*.disable_ipv6": "takes addresses from the host",
    "net.*.arp_*": "changes who answers for an address",
    "net.*.proxy_arp*": "changes who answers for an address",
}
"""Keys (glob patterns) that no configuration file can bring into a space, and why.

This list is code, not data: a file that a user edits must not be able to shorten it.
"""

PAIRS = (
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
)
"""Of such two, the kernel sets one to zero when the other is written (mm/page-writeback.c,
mm/util.c). guard.sh knows them as well."""
PARTNERS: Mapping[str, str] = dict(PAIRS) | {other: one for one, other in PAIRS}


def zeroed(values: Mapping[str, str]) -> dict[str, str]:
    """The partners of keys that are set, with the zero that the kernel gives them."""
    return {PARTNERS[k]: "0" for k, value in values.items() if k in PARTNERS and value != "0"}


def denied(key: str) -> str | None:
    """Why `key` must not be tuned, or None when it may be."""
    for pattern, reason in DENIED.items():
        if fnmatchcase(key, pattern):
            return reason
    return None


@dataclass(frozen=True, kw_only=True)
class Component:
    """One number of a parameter: `low` and `high` are the kernel's values, both included."""

    name: str
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One tunable of the kernel.

    Numbers (`integer`, `vector`) have `components` and a `scale`; a plain integer has one
    component without a name. `boolean` and `choice` have `choices`, texts as the kernel prints
    them. `ram_fraction` bounds a memory quantity (unit bytes, KiB or pages) by a part of the
    host's memory. `choices_from` is a key that lists the choices that a host has, another one
    lists those of its namespaces; `choices_module` is the module that brings a choice, * for its
    name. `effect` is what writing it does at once, even its own value. Raises ValueError when these
    don't fit together or the key is denied.
    """

    key: str
    kind: Kind
    unit: str
    scope: Scope
    risk: Risk
    mechanism: str
    document: str
    components: tuple[Component, ...] = ()
    choices: tuple[str, ...] = ()
    scale: Scale = "linear"
    choices_from: str | None = None
    choices_from_in_namespace: str | None = None
    choices_module: str = ""
    ram_fraction: float | None = None
    presence: Presence = UNKNOWN
    effect: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if reason := denied(self.key):
            raise ValueError(f"{self.key} is on the deny list: {reason}")
        if self.is_numeric:
            if self.choices or not self.components:
                raise ValueError(f"a parameter of kind {self.kind} has a range and no choices")
            if self.kind == "integer" and len(self.components) != 1:
                raise ValueError(f"an integer has exactly one range, got {len(self.components)}")
            lowest = min(c.low for c in self.components)
            if self.scale == "log" and lowest < 1:
                raise ValueError(f"a log scale needs low of at least 1, got {lowest}")
        elif self.components or len(self.choices) < 2:
            raise ValueError(f"a parameter of kind {self.kind} has two or more choices, no range")
        elif len(set(self.choices)) < len(self.choices):
            raise ValueError(f"the same choice stands there twice: {', '.join(self.choices)}")
        if self.ram_fraction is not None and self.unit not in MEMORY_UNITS:
            raise ValueError(
                f"ram_fraction needs one of the units {', '.join(MEMORY_UNITS)}, got {self.unit!r}"
            )

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers on a scale, rather than names."""
        return self.kind in ("integer", "vector")


_BLANKS = re.compile(r"[ \t\n]+")

MEMORY_UNITS: dict[str, int] = {"bytes": 1, "KiB": 1024, "pages": 4096}
"""Bytes in one unit of memory. A host with other pages says so itself."""


def normalised(value: str) -> str:
    """A sysctl value with single blanks: the kernel separates vectors by tabs, people by blanks.

    Nothing else counts as a blank: what a value holds beyond that must read back as it was written.
    """
    return " ".join(part for part in _BLANKS.split(value) if part)
