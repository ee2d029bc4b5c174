"""Advice: what the verdicts of a store say of each change, by situation. Measured, all of it.

A *change* is a key (or several that only go together) with the direction in which a winner moved
it. A *situation* is what trials were measured under: workload, link, load, machine and kernel.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from intop.domain.baseline import HOST
from intop.domain.explanation import Contribution, Explanation
from intop.domain.multi_arm import Contest
from intop.domain.stats import RatioInterval
from intop.domain.trial import Conditions, Status
from intop.domain.verdict import Verdict, outcome_of

ASIDE = (
    *("machine", "load_tool", "script", "threads", "duration_s", "timeout_s"),
    *("nginx_conf", "generator", "backends"),
)
"""Conditions in which the trials of one situation may differ: how it is measured, fingerprints."""
SITUATION = tuple(f.name for f in fields(Conditions) if f.name not in ASIDE)

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
    judged: RatioInterval | None = None
    alone: RatioInterval | None = None
    left_out: RatioInterval | None = None
    missed: RatioInterval | None = None

    @property
    def by_itself(self) -> RatioInterval | None:
        """The change beside the default. A verdict has more rounds than an explanation."""
        return self.judged or self.alone

    @property
    def beside_others(self) -> RatioInterval | None:
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


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many campaigns found what."""

    helped: int
    hurt: int
    not_shown: int
    not_measured: int


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change in one situation, with all that was measured of it."""

    keys: tuple[str, ...]
    direction: str
    situation: int
    evidence: tuple[Evidence, ...]

    @property
    def name(self) -> str:
        """Such as `net.ipv4.tcp_sack lowered`."""
        return f"{' + '.join(self.keys)} {self.direction}"

    @property
    def winners(self) -> int:
        """In how many winners it was."""
        return sum(one.is_gain is not None for one in self.evidence)

    @property
    def gains(self) -> int:
        """In how many winners it was that were judged a gain."""
        return sum(one.is_gain is True for one in self.evidence)

    @property
    def by_itself(self) -> Tally:
        """What it did where nothing else was changed."""
        return _tally(one.outcome_by_itself for one in self.evidence)

    @property
    def beside_others(self) -> Tally:
        """What it did where other keys were changed, too."""
        return _tally(one.outcome_beside_others for one in self.evidence)


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What some cases have in common, by its `number` from 1 on; `conditions` are the latest's."""

    number: int
    conditions: Conditions
    studies: tuple[str, ...]
    campaigns: int


@dataclass(frozen=True, kw_only=True)
class JudgedWinner:
    """A verdict in its situation, and whether its winner's changes were measured one by one."""

    source: Source
    situation: int
    verdict: Verdict
    is_explained: bool


@dataclass(frozen=True, kw_only=True)
class JudgedSet:
    """A set of values in a contest, held against its `reference`. `outcome` as in `Contestant`."""

    source: Source
    situation: int
    name: str
    title: str
    keys: int
    reference: str
    ratio: RatioInterval | None
    outcome: str


@dataclass(frozen=True, kw_only=True)
class Advice:
    """All of it. Of `intervals` of single changes, `called` do not hold 1.

    So many as `by_chance` would not hold it if no change did anything.
    """

    situations: tuple[Situation, ...]
    verdicts: tuple[JudgedWinner, ...]
    changes: tuple[Change, ...]
    sets: tuple[JudgedSet, ...]
    trials: tuple[tuple[Source, tuple[TrialRow, ...]], ...]
    intervals: int
    called: int
    by_chance: float

    def changes_in(self, situation: Situation) -> tuple[Change, ...]:
        """Those that were measured in a situation, in order."""
        return tuple(one for one in self.changes if one.situation == situation.number)


def advice(cases: Sequence[Case]) -> Advice:
    """What the cases say, in the order of their campaigns."""
    numbers: dict[tuple[object, ...], int] = {}
    grouped: dict[int, list[Case]] = {}
    changes: dict[tuple[int, tuple[str, ...], str], list[Evidence]] = {}
    levels: list[tuple[RatioInterval, float]] = []
    for case in cases:
        what = tuple(getattr(case.conditions, name) for name in SITUATION)
        number = numbers.setdefault(what, len(numbers) + 1)
        grouped.setdefault(number, []).append(case)
        for keys, one, level in _evidence(case):
            place = number, keys, _directions(one.before, one.after)
            changes.setdefault(place, []).append(one)
            ratios = (one.judged, one.alone, one.left_out, one.missed)
            levels += [(ratio, level) for ratio in ratios if ratio is not None]
    situation_of = {id(case): number for number, own in grouped.items() for case in own}
    made = (
        Change(keys=keys, direction=direction, situation=number, evidence=tuple(evidence))
        for (number, keys, direction), evidence in changes.items()
    )
    return Advice(
        situations=tuple(
            Situation(
                number=number,
                conditions=own[-1].conditions,
                studies=tuple(dict.fromkeys(case.source.study for case in own)),
                campaigns=len({(c.source.store, c.source.campaign) for c in own}),
            )
            for number, own in grouped.items()
        ),
        verdicts=tuple(
            JudgedWinner(
                source=case.source,
                situation=situation_of[id(case)],
                verdict=case.verdict,
                is_explained=case.explanation is not None,
            )
            for case in cases
            if case.verdict is not None
        ),
        changes=tuple(sorted(made, key=_order)),
        sets=tuple(one for case in cases for one in _sets(case, situation_of[id(case)])),
        trials=tuple((case.source, case.trials) for case in cases if case.trials),
        intervals=len(levels),
        called=sum(effect(ratio) != "not shown" for ratio, _ in levels),
        by_chance=sum(1 - level for _, level in levels),
    )


def _evidence(case: Case) -> Iterator[tuple[tuple[str, ...], Evidence, float]]:
    """Each change by its keys, what was measured of it, and the level of these intervals."""
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
    kept = [one for one in found.contributions if one.is_kept]

    def judged(one: Contribution) -> RatioInterval | None:
        """What the verdicts say of it, where one of them is of this change only."""
        if len(found.contributions) == 1:
            return _ratio(verdict)
        return _ratio(found.verdict) if kept == [one] else None

    for one in found.contributions:
        evidence = Evidence(
            source=case.source,
            before=one.before,
            after=one.after,
            verdict=verdict.short,
            is_gain=verdict.is_gain,
            judged=judged(one),
            alone=one.alone,
            left_out=one.left_out,
            missed=one.missed,
        )
        yield one.keys, evidence, found.level


def _unexplained(case: Case, verdict: Verdict) -> Iterator[tuple[tuple[str, ...], Evidence, float]]:
    """The winner's keys. Beside a baseline it is not known which of its values they changed."""
    before = {} if verdict.against else case.defaults
    values = verdict.configuration.values
    changed = {key: value for key, value in values.items() if before.get(key) != value}
    for key, value in changed.items():
        evidence = Evidence(
            source=case.source,
            before=(before.get(key, ""),),
            after=(value,),
            verdict=verdict.short,
            is_gain=verdict.is_gain,
            judged=_ratio(verdict) if len(changed) == 1 and not verdict.against else None,
        )
        yield (key,), evidence, verdict.level


def _sets(case: Case, situation: int) -> Iterator[JudgedSet]:
    for contest in case.contests:
        for one in contest.contestants:
            if not (one.is_reference or one.same_as):
                yield JudgedSet(
                    source=case.source,
                    situation=situation,
                    name=one.name,
                    title=one.title,
                    keys=len(one.configuration.values),
                    reference=contest.reference,
                    ratio=one.ratio,
                    outcome=one.outcome,
                )


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


def _directions(before: Sequence[str], after: Sequence[str]) -> str:
    """Of several keys that go together: each one's, where they are not all the same."""
    found = [direction(*pair) for pair in zip(before, after, strict=True)]
    return " + ".join(dict.fromkeys(found) if len(set(found)) == 1 else found)


def _ratio(verdict: Verdict) -> RatioInterval:
    return RatioInterval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)


def effect(ratio: RatioInterval | None) -> Outcome:
    """What a ratio of P99 without a change / P99 with it says."""
    return "not measured" if ratio is None else OUTCOMES[outcome_of(ratio.low, ratio.high, 0)]


def _tally(outcomes: Iterable[Outcome]) -> Tally:
    found = list(outcomes)
    return Tally(
        helped=found.count("helped"),
        hurt=found.count("hurt"),
        not_shown=found.count("not shown"),
        not_measured=found.count("not measured"),
    )


def _order(one: Change) -> tuple[object, ...]:
    """By situation; what most campaigns found to help comes first, then what hurt."""
    alone, beside = one.by_itself, one.beside_others
    strongest = max((r.ratio for e in one.evidence for r in (e.by_itself,) if r), default=0.0)
    return (
        one.situation,
        -alone.helped,
        -beside.helped,
        -(alone.hurt + beside.hurt),
        -one.gains,
        -strongest,
        one.name,
    )
