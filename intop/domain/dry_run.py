"""What a command would do, found out without writing anything."""

from dataclasses import dataclass

from intop.domain.campaign_status import StageStatus, SubjectStatus, total_s


@dataclass(frozen=True, kw_only=True)
class Touched:
    """The hosts of one cluster: those whose sysctls are written, and those that only carry load.

    `problem` says why they are not known, "" where they are.
    """

    arch: str
    written: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Intended:
    """What is to be measured of one architecture under one workload.

    `keys` may be written, `varied` are those of them that get other values than their own.
    `is_probed` says that the host was asked which it has: else they are those that the study
    allows. `lacking` are lines about what has to be done before, `warnings` about what would
    measure nothing.
    """

    subject: SubjectStatus
    stages: tuple[StageStatus, ...]
    keys: tuple[str, ...]
    varied: tuple[str, ...]
    is_probed: bool
    lacking: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """Trials."""
        return sum(stage.left for stage in self.stages)

    @property
    def left_s(self) -> float | None:
        """Seconds that it likely takes; None where they can't be told."""
        return total_s(self.stages)[0]

    @property
    def most_s(self) -> float | None:
        """Seconds that it hardly exceeds; None where they can't be told."""
        return total_s(self.stages)[1]


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """All that a command would do. `campaign` is the one that goes on, None where one begins.

    It `is_finished` where `tune` has run all of its stages.
    """

    study: str
    store: str
    campaign: int | None
    is_finished: bool
    hosts: tuple[Touched, ...]
    intended: tuple[Intended, ...]
