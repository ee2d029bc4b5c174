"""The results of a dry run: what a command would do."""

from dataclasses import dataclass
from typing import ClassVar

from intop.domain.campaign_status import StageStatus, SubjectStatus, total_s


@dataclass(frozen=True, kw_only=True)
class Touched:
    """The hosts of one cluster."""

    arch: str
    written: tuple[str, ...] = ()
    """Hosts whose sysctls are written."""
    others: tuple[str, ...] = ()
    """Hosts that only carry load."""
    problem: str = ""
    """The reason why the hosts are unknown, or ""."""


@dataclass(frozen=True, kw_only=True)
class Intended:
    """The measurements of one architecture under one workload."""

    ALSO_IN_JSON: ClassVar = ("left", "left_s")

    subject: SubjectStatus
    stages: tuple[StageStatus, ...]
    keys: tuple[str, ...]
    """Keys that may be written."""
    varied: tuple[str, ...]
    """Keys that get other values than their own."""
    is_probed: bool
    """Whether the host has said which keys it has. Else they are those that the study allows."""
    lacking: tuple[str, ...] = ()
    """Lines about what has to be done before."""
    warnings: tuple[str, ...] = ()
    """Lines about what would measure nothing."""

    @property
    def left(self) -> int:
        """The trials that are left."""
        return sum(stage.left for stage in self.stages)

    @property
    def left_s(self) -> float | None:
        """The likely seconds; None where they are unknown."""
        return total_s(self.stages)[0]

    @property
    def most_s(self) -> float | None:
        """The seconds that it hardly exceeds; None where they are unknown."""
        return total_s(self.stages)[1]


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """The effects that a command would have."""

    study: str
    store: str
    campaign: int | None
    """The campaign that goes on; None where one begins."""
    is_finished: bool
    """Whether `tune` has run all stages of that campaign."""
    hosts: tuple[Touched, ...]
    intended: tuple[Intended, ...]
