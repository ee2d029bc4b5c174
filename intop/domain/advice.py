"""Advice: what the verdicts of a store say of each change, by situation. Measured, all of it.

A *change* is a key (or several that only go together) with the direction in which a winner moved
it. A *situation* is what trials were measured under: workload, link, load, machine and kernel.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

from intop.domain.evidence import (
    Case,
    Evidence,
    Outcome,
    Source,
    TrialRow,
    directions,
    effect,
    evidence_of,
)
from intop.domain.stats import Interval
from intop.domain.trial import Conditions
from intop.domain.verdict import Verdict

ASIDE = (
    *("machine", "load_tool", "script", "threads", "duration_s", "timeout_s"),
    *("nginx_conf", "generator", "backends"),
)
"""Conditions in which the trials of one situation may differ: how it is measured, fingerprints."""
SITUATION = tuple(f.name for f in fields(Conditions) if f.name not in ASIDE)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How many measurements found what."""

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
    """A verdict in its situation, and whether it was explained which changes its gain is from."""

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
    ratio: Interval | None
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
    levels: list[tuple[Interval, float]] = []
    for case in cases:
        what = tuple(getattr(case.conditions, name) for name in SITUATION)
        number = numbers.setdefault(what, len(numbers) + 1)
        grouped.setdefault(number, []).append(case)
        for keys, one, level in evidence_of(case):
            place = number, keys, directions(one.before, one.after)
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
    strongest = max((r.value for e in one.evidence for r in (e.by_itself,) if r), default=0.0)
    return (
        one.situation,
        -alone.helped,
        -beside.helped,
        -(alone.hurt + beside.hurt),
        -one.gains,
        -strongest,
        one.name,
    )
