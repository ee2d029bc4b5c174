"""A process at work on one architecture under one workload of a campaign."""

from dataclasses import dataclass
from typing import ClassVar

from intop.domain.job import LEASE_S

SILENCE_S = 3 * LEASE_S
"""Seconds without a sign of life after which a process counts as gone."""


@dataclass(frozen=True, kw_only=True)
class Activity:
    """The last sign of life of a process."""

    ALSO_IN_JSON: ClassVar = ("is_alive",)

    process: str
    """Such as `root@controller (process 812)`."""
    stage: str
    """Its stage at that time."""
    since: str
    """The time at which it began (UTC, ISO 8601)."""
    silent_s: float
    """Seconds since that sign."""
    is_gone: bool = False
    """Whether the process is known to have ended without a word, since it ran on this machine."""

    @property
    def is_alive(self) -> bool:
        """Whether it still counts as at work."""
        return not self.is_gone and self.silent_s < SILENCE_S
