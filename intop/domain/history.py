"""Histories: one architecture under one workload, campaign by campaign."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from intop.domain.comparison import LOAD, Contrast, Latency, contrast
from intop.domain.trial import Conditions
from intop.domain.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The measurements of one campaign."""

    campaign: int
    started_at: str
    """Of the campaign, UTC in ISO 8601."""
    conditions: Conditions
    default: Latency
    """Of the pairs that the verdict rests on. Before there is one, of all trials of the default."""
    tuned: Latency | None = None
    """Of the pairs that the verdict rests on, None before there is one."""
    verdict: Verdict | None = None

    @property
    def reference(self) -> str:
        """The name of the default, or of the baseline that stands for it."""
        return self.verdict.reference if self.verdict else "default"


@dataclass(frozen=True, kw_only=True)
class Step:
    """From one campaign to the next."""

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
        """Such as `x86 slt`."""
        return f"{self.arch} {self.workload}"


def history(
    study: str, arch: str, workload: str, moments: Sequence[Moment], *, level: float
) -> History:
    """Return the steps between some moments, which are in the order of their campaigns."""
    return History(
        study=study,
        arch=arch,
        workload=workload,
        level=level,
        moments=tuple(moments),
        steps=tuple(_step(earlier, later, level) for earlier, later in pairwise(moments)),
    )


def _step(earlier: Moment, later: Moment, level: float) -> Step:
    incomparable = earlier.conditions.differences(later.conditions, LOAD)
    if earlier.reference != later.reference:
        incomparable.append(f"default: {earlier.reference} against {later.reference}")
    others = [f.name for f in fields(Conditions) if f.name not in LOAD]
    is_comparable = not incomparable
    return Step(
        incomparable=tuple(incomparable),
        changed=tuple(earlier.conditions.differences(later.conditions, others)),
        default=contrast(earlier.default, later.default, level) if is_comparable else None,
        tuned=(
            contrast(earlier.tuned, later.tuned, level)
            if is_comparable and earlier.tuned and later.tuned
            else None
        ),
    )
