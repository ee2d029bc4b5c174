"""A history: one architecture under one workload, campaign by campaign."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from intop.domain.comparison import LOAD, Contrast, Latency, contrast
from intop.domain.trial import Conditions
from intop.domain.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What one campaign measured. `started_at` is the campaign's, UTC in ISO 8601.

    `default` and `tuned` are of the pairs that the verdict rests on. Before there is one, `default`
    is of all trials of the default, and `tuned` is None.
    """

    campaign: int
    started_at: str
    conditions: Conditions
    default: Latency
    tuned: Latency | None = None
    verdict: Verdict | None = None

    @property
    def reference(self) -> str:
        """What the default stands for."""
        return self.verdict.reference if self.verdict else "default"


@dataclass(frozen=True, kw_only=True)
class Step:
    """From one campaign to the next. A contrast holds the later one against the earlier one.

    `incomparable` are the differences of the load (or of what is called the default), with which
    there is no contrast. `changed` is what else differs.
    """

    incomparable: tuple[str, ...]
    changed: tuple[str, ...]
    default: Contrast | None
    tuned: Contrast | None


@dataclass(frozen=True, kw_only=True)
class History:
    """The campaigns of a study that measured this, the oldest first, with the steps between them.

    Intervals have `level`, each for itself.
    """

    study: str
    arch: str
    workload: str
    level: float
    moments: tuple[Moment, ...]
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        """Such as `x86 slt`."""
        return f"{self.arch} {self.workload}"


def history(
    study: str, arch: str, workload: str, moments: Sequence[Moment], *, level: float
) -> History:
    """The steps between some moments, which are in the order of their campaigns."""
    return History(
        study=study,
        arch=arch,
        workload=workload,
        level=level,
        moments=tuple(moments),
        steps=tuple(_step(one, other, level) for one, other in pairwise(moments)),
    )


def _step(one: Moment, other: Moment, level: float) -> Step:
    incomparable = one.conditions.differences(other.conditions, LOAD)
    if one.reference != other.reference:
        incomparable.append(f"default: {one.reference} against {other.reference}")
    others = [f.name for f in fields(Conditions) if f.name not in LOAD]
    is_comparable = not incomparable
    return Step(
        incomparable=tuple(incomparable),
        changed=tuple(one.conditions.differences(other.conditions, others)),
        default=contrast(one.default, other.default, level) if is_comparable else None,
        tuned=(
            contrast(one.tuned, other.tuned, level)
            if is_comparable and one.tuned and other.tuned
            else None
        ),
    )
