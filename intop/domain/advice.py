"""Advice: the measured results of each change in the verdicts of a store, by situation.

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
    """The number of measurements by outcome."""

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
        """The number of winners that had it."""
        return sum(evidence.is_gain is not None for evidence in self.evidence)

    @property
    def gains(self) -> int:
        """The number of winners that had it and were judged a gain."""
        return sum(evidence.is_gain is True for evidence in self.evidence)

    @property
    def by_itself(self) -> Tally:
        """The outcomes where nothing else was changed."""
        return _tally(evidence.outcome_by_itself for evidence in self.evidence)

    @property
    def beside_others(self) -> Tally:
        """The outcomes where other keys were changed, too."""
        return _tally(evidence.outcome_beside_others for evidence in self.evidence)


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The situation of some cases."""

    number: int
    """From 1 on."""
    conditions: Conditions
    """Of the latest case."""
    studies: tuple[str, ...]
    campaigns: int


@dataclass(frozen=True, kw_only=True)
class JudgedWinner:
    """A verdict in its situation."""

    source: Source
    situation: int
    verdict: Verdict
    is_explained: bool
    """Whether there is an explanation of its gain."""


@dataclass(frozen=True, kw_only=True)
class JudgedSet:
    """A set of values in a contest, against its `reference`."""

    source: Source
    situation: int
    name: str
    title: str
    keys: int
    reference: str
    ratio: Interval | None
    outcome: str
    """As in `Contestant`."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """All situations, with their verdicts, changes and sets."""

    situations: tuple[Situation, ...]
    verdicts: tuple[JudgedWinner, ...]
    changes: tuple[Change, ...]
    sets: tuple[JudgedSet, ...]
    trials: tuple[tuple[Source, tuple[TrialRow, ...]], ...]
    intervals: int
    """Intervals of single changes."""
    called: int
    """Intervals that do not hold 1."""
    by_chance: float
    """The number that would not hold 1 if no change did anything."""

    def changes_in(self, situation: Situation) -> tuple[Change, ...]:
        """Return the changes that were measured in a situation, in order."""
        return tuple(change for change in self.changes if change.situation == situation.number)


def advice(cases: Sequence[Case]) -> Advice:
    """Return what the cases show, in the order of their campaigns."""
    numbers: dict[tuple[object, ...], int] = {}
    grouped: dict[int, list[Case]] = {}
    changes: dict[tuple[int, tuple[str, ...], str], list[Evidence]] = {}
    levels: list[tuple[Interval, float]] = []
    for case in cases:
        what = tuple(getattr(case.conditions, name) for name in SITUATION)
        number = numbers.setdefault(what, len(numbers) + 1)
        grouped.setdefault(number, []).append(case)
        for keys, evidence, level in evidence_of(case):
            place = number, keys, directions(evidence.before, evidence.after)
            changes.setdefault(place, []).append(evidence)
            ratios = (evidence.judged, evidence.alone, evidence.left_out, evidence.missed)
            levels += [(ratio, level) for ratio in ratios if ratio is not None]
    situation_of = {id(case): number for number, own in grouped.items() for case in own}
    listed = (
        Change(keys=keys, direction=direction, situation=number, evidence=tuple(own))
        for (number, keys, direction), own in changes.items()
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
        changes=tuple(sorted(listed, key=_order)),
        sets=tuple(winner for case in cases for winner in _sets(case, situation_of[id(case)])),
        trials=tuple((case.source, case.trials) for case in cases if case.trials),
        intervals=len(levels),
        called=sum(effect(ratio) != "not shown" for ratio, _ in levels),
        by_chance=sum(1 - level for _, level in levels),
    )


def _sets(case: Case, situation: int) -> Iterator[JudgedSet]:
    for contest in case.contests:
        for contestant in contest.contestants:
            if not (contestant.is_reference or contestant.same_as):
                yield JudgedSet(
                    source=case.source,
                    situation=situation,
                    name=contestant.name,
                    title=contestant.title,
                    keys=len(contestant.configuration.values),
                    reference=contest.reference,
                    ratio=contestant.ratio,
                    outcome=contestant.outcome,
                )


def _tally(outcomes: Iterable[Outcome]) -> Tally:
    listed = list(outcomes)
    return Tally(
        helped=listed.count("helped"),
        hurt=listed.count("hurt"),
        not_shown=listed.count("not shown"),
        not_measured=listed.count("not measured"),
    )


def _order(change: Change) -> tuple[object, ...]:
    """Sort by situation; what most campaigns found to help comes first, then what hurt."""
    alone, beside = change.by_itself, change.beside_others
    strongest = max((r.value for e in change.evidence for r in (e.by_itself,) if r), default=0.0)
    return (
        change.situation,
        -alone.helped,
        -beside.helped,
        -(alone.hurt + beside.hurt),
        -change.gains,
        -strongest,
        change.name,
    )
