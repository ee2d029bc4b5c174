"""Histories: one architecture under one workload, campaign by campaign."""

from dataclasses import dataclass

from intop.domain.comparison import Contrast, Latency
from intop.domain.trial import Conditions
from intop.domain.verdict import Verdict
from intop.words import shared


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The measurements of one campaign."""

    campaign: int
    started_at: str
    """The start of the campaign, UTC in ISO 8601."""
    conditions: Conditions
    default: Latency
    """The latency of the pairs that the verdict rests on. Before there is a verdict, that of all
    trials of the default."""
    tuned: Latency | None = None
    """The latency of the pairs that the verdict rests on, None before there is one."""
    verdict: Verdict | None = None

    @property
    def reference(self) -> str:
        """The name of the default, or of the baseline that stands for it."""
        return self.verdict.reference if self.verdict else "default"


@dataclass(frozen=True, kw_only=True)
class Step:
    """The step from one campaign to the next."""

    incomparable: tuple[str, ...]
    """Differences of the load, or of what is called the default. With any of them there is no
    contrast."""
    changed: tuple[str, ...]
    """Other differences."""
    default: Contrast | None
    """The later campaign against the earlier one. So is `tuned`."""
    tuned: Contrast | None


@dataclass(frozen=True, kw_only=True)
class History:
    """The campaigns of a study, with the steps between them."""

    study: str
    arch: str
    workload: str
    level: float
    """The level of each interval for itself."""
    moments: tuple[Moment, ...]
    """The oldest first."""
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        """The title, such as `x86 slt`."""
        return f"{self.arch} {self.workload}"

    @property
    def judged_by(self) -> str:
        """The latency that its campaigns are judged by."""
        return shared((moment.conditions.judged_by for moment in self.moments), "latency")
