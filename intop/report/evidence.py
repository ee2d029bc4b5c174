"""One campaign's measurements of each change of a key: the evidence of advice."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from intop.domain.baseline import HOST
from intop.domain.explanation import Explanation
from intop.domain.multi_arm import Contest
from intop.domain.stats import Interval
from intop.domain.trial import Conditions, Status
from intop.domain.verdict import Verdict, outcome_of

Outcome = Literal["helped", "hurt", "not shown", "not measured"]
"""The outcome of a change, by the interval of latency without it / with it: above 1 it helped."""
OUTCOMES: Mapping[str, Outcome] = {
    "gain": "helped",
    "worse": "hurt",
    "no significant gain": "not shown",
}

_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?: -?\d+(?:\.\d+)?)*")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A place in a store: a campaign's workload on an architecture."""

    store: str
    """Empty where there is only one store."""
    study: str
    campaign: int
    started_at: str
    arch: str
    workload: str

    @property
    def title(self) -> str:
        """The title, such as `lab 3, x86 slt`."""
        store = f"{self.store}: " if self.store else ""
        return f"{store}{self.study} {self.campaign}, {self.arch} {self.workload}"


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """The last attempt at a trial."""

    stage: str
    index: int
    arm: str
    round: int | None
    status: Status
    judged_ms: float | None
    started_at: str
    """UTC in ISO 8601."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """The results of one campaign on one architecture under one workload."""

    source: Source
    conditions: Conditions
    verdict: Verdict | None
    explanation: Explanation | None = None
    """The explanation of the verdict's winner."""
    contests: tuple[Contest, ...] = ()
    defaults: Mapping[str, str]
    """The host's own values by key."""
    trials: tuple[TrialRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One campaign's ratios of latency for one change, above 1 where it helps.

    `alone`, `left_out` and `missed` are as in `Contribution`.
    """

    ALSO_IN_JSON: ClassVar = ("outcome_by_itself", "outcome_beside_others")

    source: Source
    before: tuple[str, ...]
    after: tuple[str, ...]
    verdict: str = ""
    """The verdict on the winner with the change, in short; "" without a winner."""
    is_gain: bool | None = None
    """Whether that verdict is a gain; None without a winner."""
    judged: Interval | None = None
    """The change by itself against the default, in rounds of a verdict or a contest."""
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
    """Yield each change of a case: its keys, the evidence, and the intervals' level."""
    if case.explanation is not None and case.verdict is not None:
        yield from _explained(case, case.verdict, case.explanation)
    elif case.verdict is not None:
        yield from _unexplained(case, case.verdict)
    for contest in case.contests:
        for contestant in contest.contestants:
            values = contestant.configuration.values
            if contestant.ratio is None or len(values) != 1 or contest.reference != HOST:
                continue
            ((key, value),) = values.items()
            evidence = Evidence(
                source=case.source,
                before=(case.defaults.get(key, ""),),
                after=(value,),
                judged=contestant.ratio,
            )
            yield (key,), evidence, contest.ratio_level


def _explained(
    case: Case, verdict: Verdict, explanation: Explanation
) -> Iterator[tuple[tuple[str, ...], Evidence, float]]:
    """Yield the winner's changes. A set of one change has nothing of it beside others."""
    is_single = len(explanation.contributions) == 1
    kept = [change for change in explanation.contributions if change.is_kept]
    for change in explanation.contributions:
        is_smallest = kept == [change]
        decisive = verdict if is_single else explanation.verdict if is_smallest else None
        evidence = Evidence(
            source=case.source,
            before=change.before,
            after=change.after,
            verdict=_in_short(verdict),
            is_gain=verdict.is_gain,
            judged=None if decisive is None else _ratio(decisive),
            alone=change.alone,
            left_out=None if is_single else change.left_out,
            missed=None if is_smallest else change.missed,
        )
        yield change.keys, evidence, explanation.level


def _unexplained(case: Case, verdict: Verdict) -> Iterator[tuple[tuple[str, ...], Evidence, float]]:
    """Yield the winner's keys. Against a baseline its changed values are not known."""
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
    """Return how a value was moved: raised, lowered, changed (several numbers), or set to a text.

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
    """Return how several keys were moved together, once where all are alike."""
    moves = [direction(*pair) for pair in zip(before, after, strict=True)]
    return moves[0] if len(set(moves)) == 1 else " + ".join(moves)


def _ratio(verdict: Verdict) -> Interval:
    return Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)


def effect(ratio: Interval | None) -> Outcome:
    """Return the outcome of a ratio of latency without a change / with it."""
    return "not measured" if ratio is None else OUTCOMES[outcome_of(ratio, 0)]
