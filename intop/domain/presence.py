"""The kernels that have a key, and why a key that could be there is missing."""

import re
from dataclasses import dataclass

VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")
"""The beginning of a kernel's version; the rest is of no importance here."""


@dataclass(frozen=True, kw_only=True)
class Presence:
    """The kernels that have a key; "" is what is not known.

    Versions are mainline's, such as "5.14". A distribution may have brought a key to an older
    kernel, so they only ever explain what was seen.
    """

    since: str = ""
    """The first kernel with the key."""
    until: str = ""
    """The last kernel with the key."""
    moved_to: str = ""
    """The place where it is now."""
    module: str = ""
    """The module that has to be loaded for it."""
    option: str = ""
    """The option that has to be chosen when the kernel is built."""
    namespaced_since: str = ""
    """The version from which on each network namespace has its own."""
    inert_since: str = ""
    """The version from which on writing it changes nothing."""
    source: str = ""
    """The source of all this."""

    def __post_init__(self) -> None:
        versions = (self.since, self.until, self.namespaced_since, self.inert_since)
        for text in filter(None, versions):
            if not VERSION.fullmatch(text):
                raise ValueError(f"a kernel's version is two numbers such as 5.14, got {text!r}")
        facts = (*versions, self.moved_to, self.module, self.option)
        if any(facts) != bool(self.source):
            raise ValueError("presence needs a source, and something that this says")

    def why_missing(self, kernel: str) -> str:
        """Return why this kernel (`uname -r`) may lack the key, and what to do, or ""."""
        if self.until and _is_after(kernel, self.until):
            return f"none after {self.until} does" + (
                f", and what there may be instead is no sysctl: {self.moved_to}"
                if self.moved_to
                else ""
            )
        if self.since and _is_after(self.since, kernel):
            return f"it came later: with kernel {self.since}"
        if self.module:
            return f"load its module with modprobe {self.module}, if it shall be tuned"
        if self.option:
            return f"it needs one built with {self.option}"
        return ""

    def is_inert(self, kernel: str) -> bool:
        """Whether this kernel has the key for old scripts' sake only."""
        return bool(self.inert_since) and _is_after(kernel, self.inert_since, or_same=True)

    def was_machine_wide(self, kernel: str) -> bool:
        """Whether this kernel is too old to have the key for each network namespace."""
        return bool(self.namespaced_since) and _is_after(self.namespaced_since, kernel)


UNKNOWN = Presence()


def is_before(kernel: str, version: str) -> bool:
    """Whether a kernel (`uname -r`) is older than a version such as 5.14."""
    return _is_after(version, kernel)


def _is_after(version: str, than: str, *, or_same: bool = False) -> bool:
    """Whether a version is later than another; no for what is none."""
    matches = [VERSION.match(text) for text in (version, than)]
    first, second = ([int(n) for n in f[0].split(".")] if f else [] for f in matches)
    return bool(first and second) and (first > second or (or_same and first == second))
