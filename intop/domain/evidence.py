"""What one campaign measured of each change of a key: the evidence of advice."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from intop.domain.baseline import HOST
from intop.domain.explanation import Explanation
from intop.domain.multi_arm import Contest
from intop.domain.stats import Interval
from intop.domain.trial import Conditions, Status
from intop.domain.verdict import Verdict, outcome_of

Outcome = Literal["helped", "hurt", "not shown", "not measured"]
"""Of a change, by an interval of P99 without it / P99 with it: above 1, below 1, or holding 1."""
OUTCOMES: Mapping[str, Outcome] = {
    "gain": "helped",
    "worse": "hurt",
    "no significant gain": "not shown",
}

_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?: -?\d+(?:\.\d+)?)*")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where in which store something stands; `store` is empty where there is only one."""

    store: str
    study: str
    campaign: int
    started_at: str
    arch: str
    workload: str

    @property
    def title(self) -> str:
        """Such as `lab 3, x86 slt`."""
        store = f"{self.store}: " if self.store else ""
        return f"{store}{self.study} {self.campaign}, {self.arch} {self.workload}"


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """The last attempt at a trial that something rests on; `started_at` is UTC in ISO 8601."""

    stage: str
    index: int
    arm: str
    round: int | None
    status: Status
    p99_ms: float | None
    started_at: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """What one campaign found on one architecture under one workload.

    `explanation` is of the verdict's winner. `defaults` are the host's own values by key.
    """

    source: Source
    conditions: Conditions
    verdict: Verdict | None
    explanation: Explanation | None = None
    contests: tuple[Contest, ...] = ()
    defaults: Mapping[str, str]
    trials: tuple[TrialRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What one campaign measured of one change, as ratios of P99 that are above 1 where it helps.

    `verdict` is the winner's that has the change, in short, and `is_gain` whether that is a gain;
    "" and None of what was no winner. `judged` is the change by itself against the default in
    rounds of a verdict or a contest. `alone`, `left_out` and `missed` are as in `Contribution`.
    """

    source: Source
    before: tuple[str, ...]
    after: tuple[str, ...]
    verdict: str = ""
    is_gain: bool | None = None
    judged: Interval | None = None
    alone: Interval | None = None
    left_out: Interval | None = None
    missed: Interval | None = None

    @property
    def by_itself(self) -> Interval | None:
        """The change beside the default. A verdict has more rounds than an explanation."""
        return self.judged or self.alone

    @property
    def beside_others(self) -> Interval | None:
        """The change beside others. The smallest set's trials scatter less than the winner's."""
        return self.missed or self.left_out

    @property
    def outcome_by_itself(self) -> Outcome:
        """Whether it helped where nothing else was changed."""
        return effect(self.by_itself)

    @property
    def outcome_beside_others(self) -> Outcome:
        """Whether it helped where other keys were changed, too."""
        return effect(self.beside_others)


def evidence_of(case: Case) -> Iterator[tuple[tuple[str, ...], Evidence, float]]:
    """Each change of a case by its keys, what was measured of it, and the intervals' level."""
    if case.explanation is not None and case.verdict is not None:
        yield from _explained(case, case.verdict, case.explanation)
    elif case.verdict is not None:
        yield from _unexplained(case, case.verdict)
    for contest in case.contests:
        for one in contest.contestants:
            values = one.configuration.values
            if one.ratio is None or len(values) != 1 or contest.reference != HOST:
                continue
            ((key, value),) = values.items()
            evidence = Evidence(
                source=case.source,
                before=(case.defaults.get(key, ""),),
                after=(value,),
                judged=one.ratio,
            )
            yield (key,), evidence, contest.ratio_level


def _explained(
    case: Case, verdict: Verdict, found: Explanation
) -> Iterator[tuple[tuple[str, ...], Evidence, float]]:
    """The winner's changes. Where a set has one change only, nothing of it is beside others."""
    is_single = len(found.contributions) == 1
    kept = [one for one in found.contributions if one.is_kept]
    for one in found.contributions:
        is_smallest = kept == [one]
        judged = _ratio(verdict) if is_single else _ratio(found.verdict) if is_smallest else None
        evidence = Evidence(
            source=case.source,
            before=one.before,
            after=one.after,
            verdict=_in_short(verdict),
            is_gain=verdict.is_gain,
            judged=judged,
            alone=one.alone,
            left_out=None if is_single else one.left_out,
            missed=None if is_smallest else one.missed,
        )
        yield one.keys, evidence, found.level


def _unexplained(case: Case, verdict: Verdict) -> Iterator[tuple[tuple[str, ...], Evidence, float]]:
    """The winner's keys. Beside a baseline it is not known which of its values it changed."""
    values = {} if verdict.against else verdict.configuration.values
    changed = {key: value for key, value in values.items() if case.defaults.get(key) != value}
    for key, value in changed.items():
        evidence = Evidence(
            source=case.source,
            before=(case.defaults.get(key, ""),),
            after=(value,),
            verdict=_in_short(verdict),
            is_gain=verdict.is_gain,
            judged=_ratio(verdict) if len(changed) == 1 else None,
        )
        yield (key,), evidence, verdict.level


def _in_short(verdict: Verdict) -> str:
    return f"{verdict.short}, against {verdict.against}" if verdict.against else verdict.short


def direction(before: str, after: str) -> str:
    """How a value was moved: raised, lowered, changed (of several numbers), or what it was set to.

    `changed` also where the value before is not known.
    """
    if not before:
        return "changed"
    if not (_NUMBERS.fullmatch(before) and _NUMBERS.fullmatch(after)):
        return f"set to {after}"
    pairs = list(zip(map(float, before.split()), map(float, after.split()), strict=False))
    up, down = any(a < b for a, b in pairs), any(a > b for a, b in pairs)
    return "changed" if up == down else "raised" if up else "lowered"


def directions(before: Sequence[str], after: Sequence[str]) -> str:
    """Of several keys that go together: each one's, where they are not all the same."""
    found = [direction(*pair) for pair in zip(before, after, strict=True)]
    return " + ".join(dict.fromkeys(found) if len(set(found)) == 1 else found)


def _ratio(verdict: Verdict) -> Interval:
    return Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)


def effect(ratio: Interval | None) -> Outcome:
    """What a ratio of P99 without a change / P99 with it says."""
    return "not measured" if ratio is None else OUTCOMES[outcome_of(ratio.low, ratio.high, 0)]
