"""Parameters: what can be tuned, in which range, and what must never be."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from annotated_types import Interval, MinLen

from intop.domain.matching import matching
from intop.domain.nginx import permitted
from intop.domain.presence import UNKNOWN, Presence

Kind = Literal["integer", "boolean", "choice", "vector"]
Scale = Literal["linear", "log"]
Scope = Literal["namespace", "machine", "nginx"]
"""The reach of a value. "nginx" is for directives, whose keys begin with `nginx:`."""
Tuned = Literal["kernel", "nginx"]
"""The owner of the parameters that are tuned."""

Risk = Literal["low", "medium", "high"]
RISKS: tuple[Risk, ...] = ("low", "medium", "high")

Choice = Annotated[
    str,
    matching(
        r"(?=.{1,200}$)[A-Za-z0-9_.,:/-]+( [A-Za-z0-9_.,:/-]+)*",
        "words of letters, digits and _.,:/- with one blank between, 200 characters at most",
    ),
]
"""Words as the kernel prints them: no shell takes them for anything else."""

ALLOWED: tuple[str, ...] = (
    *("net.core.*", "net.unix.max_dgram_qlen", "net.netfilter.nf_conntrack_*"),
    *("net.ipv4.tcp_*", "net.ipv4.udp_*", "net.ipv4.fib_multipath_*", "net.ipv6.fib_multipath_*"),
    *("net.ipv4.ip_local_port_range", "net.ipv4.ip_autobind_reuse", "net.ipv4.ip_early_demux"),
    *("net.ipv4.ip_no_pmtu_disc", "net.ipv4.ip_default_ttl"),
    *("net.ipv4.route.gc_*", "net.ipv4.route.min_*", "net.ipv4.route.mtu_expires"),
    *("net.ipv6.route.gc_*", "net.ipv6.route.min_*", "net.ipv6.route.mtu_expires"),
    *("net.ipv6.auto_flowlabels", "net.ipv6.flowlabel_*"),
    *("net.ipv4.neigh.*", "net.ipv6.neigh.*"),
    *("vm.dirty*", "vm.watermark_*", "vm.compaction_*", "vm.overcommit_*", "vm.percpu_pagelist_*"),
    *("vm.swappiness", "vm.vfs_cache_pressure", "vm.min_free_kbytes", "vm.extfrag_threshold"),
    *("vm.compact_unevictable_allowed", "vm.defrag_mode"),
    *("vm.zone_reclaim_mode", "vm.min_slab_ratio", "vm.min_unmapped_ratio"),
    *("vm.page-cluster", "vm.page_lock_unfairness", "vm.stat_interval", "vm.numa_stat"),
    *("fs.file-max", "fs.nr_open", "fs.aio-max-nr", "fs.epoll.*", "fs.dentry-negative"),
    *("kernel.sched_*", "kernel.numa_balancing*", "kernel.timer_migration"),
    "kernel.nmi_watchdog",
)
"""Keys (glob patterns) that a space may have at all. What a kernel adds later is not among them."""

_DENIED_SINCE: dict[str, tuple[str, ...]] = {
    "address space randomisation protects every process": ("kernel.randomize_va_space",),
    "hides kernel addresses from attackers": ("kernel.kptr_restrict",),
    "hides kernel messages from attackers": ("kernel.dmesg_restrict",),
    "limits who may observe the machine": ("kernel.perf_event_paranoid",),
    "keeps unprivileged code out of the kernel": ("kernel.unprivileged_bpf_disabled",),
    "keeps users away from the kernel's less tested parts": (
        *("kernel.unprivileged_userns_clone", "kernel.io_uring_disabled", "kernel.io_uring_group"),
    ),
    "limits who may trace processes": ("kernel.yama.*",),
    "can't be undone without a reboot": ("kernel.modules_disabled", "kernel.kexec_load_disabled"),
    "opens the console to emergency commands": ("kernel.sysrq",),
    "runs a program of one's choice as root": (
        *("kernel.core_pattern", "kernel.modprobe", "kernel.hotplug", "kernel.poweroff_cmd"),
    ),
    "runs a program of one's choice in place of another": ("fs.binfmt_misc.*",),
    "decides which programs the kernel runs as root, and with what": ("kernel.usermodehelper.*",),
    "decides whether the machine survives a fault": (
        *("kernel.panic*", "kernel.*_panic", "kernel.oops_limit", "kernel.warn_limit"),
    ),
    "stops all processors to print what they do": ("kernel.*_all_cpu_backtrace",),
    "without room for another process nobody can log in": ("kernel.pid_max", "kernel.threads-max"),
    "without it one process of real time can hang the machine": ("kernel.sched_rt_*",),
    "lets processes of real time take whole processors": ("kernel.sched_deadline_*",),
    "without room for another namespace containers and services don't start": ("user.max_*",),
    "lets users load drivers, and type into others' terminals": ("dev.tty.*",),
    "leaks the memory of privileged programs": ("fs.suid_dumpable",),
    "closes link attacks in shared folders": ("fs.protected_*",),
    "protects against null pointer exploits": ("vm.mmap_min_addr",),
    "takes memory from all programs at once, and may not give it back": ("vm.nr_hugepages*",),
    "lets huge pages take memory from all programs": ("vm.nr_overcommit_hugepages",),
    "helps exploits to win races against the kernel": ("vm.unprivileged_userfaultfd",),
    "decides whether the machine survives a shortage of memory": ("vm.panic_on_oom",),
    "hardens the kernel against code injection": ("net.core.bpf_jit_harden", "net.core.bpf_jit_*"),
    "is a secret, and who reads it can forge connections": ("net.*.tcp_fastopen_key",),
    "is a secret, and decides the host's addresses": ("net.*.stable_secret",),
    "limits attacks that guess sequence numbers": ("net.*.tcp_challenge_ack_limit",),
    "decides which connections are authenticated": ("net.*.tcp_md5sig*",),
    "lets services answer in networks that they are kept out of": ("net.*_l3mdev_accept",),
    "lets clients choose the route of answers": ("net.*.tcp_fwmark_accept",),
    "widens what all users may choose, and stays so": ("net.*.tcp_allowed_congestion_control",),
    "lets any user take the ports of services": ("net.*.ip_unprivileged_port_start",),
    "lets services use addresses of other hosts": ("net.*.ip_nonlocal_bind",),
    "lets packets pass that IPsec would refuse": ("net.*.disable_policy",),
    "sends packets without encryption that IPsec would encrypt": ("net.*.disable_xfrm",),
    "decides what becomes of packets that IPsec would encrypt": ("net.core.xfrm_*",),
    "decides whether a firewall sees the packets of containers": ("net.bridge.*",),
    "opens ports in a firewall as clients ask for it": ("net.netfilter.nf_conntrack_helper",),
    "lets a firewall take strange packets for known ones": ("net.netfilter.nf_conntrack_*_loose",),
    "lets a firewall take forged packets for known ones": (
        "net.netfilter.nf_conntrack_*_be_liberal",
    ),
    "lets a firewall take forged resets": ("net.netfilter.nf_conntrack_*_ignore_invalid_rst",),
    "hides signs of an attack, or floods the log": (
        *("net.netfilter.nf_conntrack_log_*", "net.netfilter.nf_log*", "net.*.log_martians"),
    ),
    "cuts a host off whose network has another packet size": ("net.ipv6.*.mtu",),
    "turns the host into a router": ("net.ipv4.ip_forward", "net.*.*forwarding*"),
    "without it a SYN flood takes the host down": ("net.ipv4.tcp_syncookies",),
    "changes how the host answers the network's diagnosis": ("net.ipv4.icmp_echo_ignore_*",),
    "protects against forged source addresses": ("net.*.rp_filter",),
    "lets others change the host's routes": ("net.*.*_redirects", "net.*.accept_ra*"),
    "lets others choose the route of packets": ("net.*.accept_source_route",),
    "weakens the check of source addresses": ("net.*.accept_local",),
    "exposes services that listen on loopback only": ("net.*.route_localnet",),
    "takes addresses from the host": ("net.*.disable_ipv6",),
    "changes who answers for an address": ("net.*.arp_*", "net.*.proxy_arp*"),
}
DENIED: dict[str, str] = {
    pattern: why for why, patterns in _DENIED_SINCE.items() for pattern in patterns
}
"""Keys (glob patterns) that no configuration file can bring into a space, and why.

This list is code, not data: a file that a user edits must not be able to shorten it.
"""

PAIRS = (
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
)
"""Pairs of keys: the kernel sets one to zero when the other is written (mm/page-writeback.c,
mm/util.c). guard.sh knows them as well."""
PARTNERS: Mapping[str, str] = dict(PAIRS) | {second: first for first, second in PAIRS}


def zeroed(values: Mapping[str, str]) -> dict[str, str]:
    """Return the partners of keys that are set, with the zero that the kernel gives them."""
    return {PARTNERS[k]: "0" for k, value in values.items() if k in PARTNERS and value != "0"}


def denied(key: str) -> str | None:
    """Return why a key must not be tuned, or None when no pattern of the deny list matches."""
    if permitted.is_directive(key):
        return permitted.denied(key)
    for pattern, reason in DENIED.items():
        if fnmatchcase(key, pattern):
            return reason
    return None


def barred(key: str, by_name: Collection[str] = ()) -> str:
    """Return why a key can't be tuned, such as `on the deny list: ...`; "" when it may be.

    Whatever a key comes from, a catalogue or a plan, is asked this. `by_name` are the directives
    that a study allows by their names.
    """
    if permitted.is_directive(key):
        return permitted.barred(key, by_name)
    if reason := denied(key):
        return f"on the deny list: {reason}"
    if not any(fnmatchcase(key, pattern) for pattern in ALLOWED):
        return "not on the list of keys that may be tuned"
    return ""


@dataclass(frozen=True, kw_only=True)
class Component:
    """One number of a parameter."""

    name: str
    """The name of a vector's component; "" for a plain integer."""
    low: int
    high: int
    """The ends of the range of searches, both included."""
    floor: int | None = None
    ceiling: int | None = None
    """The hard bounds, if any. Beyond them a value can hurt the host, whoever recommends it."""
    own_floor: bool = False
    """The host's own value is a hard bound, too."""

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")
        if self.beyond(self.low) or self.beyond(self.high):
            raise ValueError(f"the range leaves its hard bounds, {self.floor} to {self.ceiling}")

    def beyond(self, number: int) -> str:
        """Return which hard bound a number is beyond, such as `below 1024`, or ""."""
        if self.floor is not None and number < self.floor:
            return f"below {self.floor}"
        if self.ceiling is not None and number > self.ceiling:
            return f"above {self.ceiling}"
        return ""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One tunable of the kernel or of nginx.

    Raises ValueError when the fields don't fit together or the key is denied.
    """

    key: str
    kind: Kind
    unit: str
    scope: Scope
    risk: Risk
    mechanism: Annotated[str, MinLen(1)]
    """The mechanism, in a sentence."""
    document: Annotated[str, MinLen(1)]
    """The document that defines it."""
    components: tuple[Component, ...] = ()
    """The numbers of an `integer`, which has one, or of a `vector`."""
    choices: tuple[Choice, ...] = ()
    """The values of a `boolean` or `choice`, as the kernel prints them."""
    scale: Scale = "linear"
    choices_from: str | None = None
    """A key that lists the choices that a host has."""
    choices_from_in_namespace: str | None = None
    """A key that lists the choices of a host's namespaces."""
    choices_module: str = ""
    """The module that brings a choice; * stands for the choice's name."""
    ram_fraction: Annotated[float, Interval(gt=0, lt=1)] | None = None
    """The part of the host's memory that bounds it, for units of memory."""
    presence: Presence = UNKNOWN
    effect: str = ""
    """The immediate effect of writing it, even its own value."""
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

    @property
    def numbers(self) -> Mapping[str, Component]:
        """The components by name: the key, with the component in brackets where it has a name."""
        return {f"{self.key}[{c.name}]" if c.name else self.key: c for c in self.components}

    def beyond(self, value: str) -> str:
        """Return which hard bound a value is beyond, such as `512 is below 1024`, or ""."""
        for part, component in zip(value.split(), self.components, strict=False):
            if is_integer(part) and (bound := component.beyond(int(part))):
                return f"{part} is {bound}"
        return ""

    def unfit(self, value: str) -> str:
        """Return why this can't be a value of it, or ""."""
        if not self.is_numeric:
            offered = ", ".join(self.choices)
            return "" if value in self.choices else f"not offered: {value!r} is none of {offered}"
        # Nothing else is a blank to the kernel, and a leading 0 begins an octal number there.
        parts = normalised(value).split(" ")
        if len(parts) != len(self.components) or not all(map(_is_plain, parts)):
            return f"malformed: {value!r} is not {len(self.components)} whole number(s)"
        beyond = self.beyond(value)
        return f"beyond a hard bound: {beyond}" if beyond else ""


def is_integer(text: str) -> bool:
    """Return whether this is a whole number in decimal digits that 64 bits may have."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 20


def _is_plain(text: str) -> bool:
    """Return whether this is a whole number as the kernel prints and reads it."""
    return is_integer(text) and text == str(int(text))


_BLANKS = re.compile(r"[ \t\n]+")

MEMORY_UNITS: dict[str, int] = {"bytes": 1, "KiB": 1024, "pages": 4096}
"""Bytes in one unit of memory. A host with other pages says so itself."""


def normalised(value: str) -> str:
    """Return a sysctl value with single blanks: the kernel separates vectors by tabs.

    Nothing else counts as a blank: what a value holds beyond that must read back as it was written.
    """
    if value.isalnum():
        return value  # as nearly all are
    return " ".join(part for part in _BLANKS.split(value) if part)
