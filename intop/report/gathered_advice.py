"""report --advice: what all verdicts of some stores say. Touches no host, decodes no trial."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from intop.domain.explanation import Explanation
from intop.domain.multi_arm import Contest, Crosswise
from intop.domain.probing import Probe
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.errors import ResultMissingError
from intop.report.advice import SITUATION, Advice, Change, JudgedSet, JudgedWinner, Situation
from intop.report.evidence import (
    Case,
    Evidence,
    Source,
    TrialRow,
    directions,
    effect,
    evidence_of,
)
from intop.store import Store, Subject, opened_to_read, shown

STAGES = ("judge", "explain", "contest", "transfer")
"""Stages whose trials the advice rests on."""


def gather_advice(
    stores: Sequence[str], arch: str | None = None, workload: str | None = None
) -> Advice:
    """Return the advice of all verdicts and contests in these stores.

    With `arch` and `workload` only of those. Raises ResultMissingError where there are none, and
    UsageError for what is no store.
    """
    cases: list[Case] = []
    for number, url in enumerate(stores, start=1):
        name = _name(url, number) if len(stores) > 1 else ""
        with opened_to_read(url) as store:
            if store is None:
                raise ResultMissingError(f"there is no store {shown(url)} yet. Run: intop tune")
            for subject in store.subjects_with(Verdict, Contest, Crosswise):
                if arch in (None, subject.arch) and workload in (None, subject.workload):
                    cases += _cases(store, subject, name)
    if not cases:
        raise ResultMissingError(
            "no verdict and no contest is stored, and nothing else is advice. Run: intop tune"
        )
    return advice(cases)


def _name(url: str, number: int) -> str:
    """A store's name, without what may be a password."""
    return f"store {number}" if "://" in url else Path(url).stem


def _cases(store: Store, subject: Subject, name: str) -> Iterator[Case]:
    """Return the case of a subject; none where its trials are not stored."""
    if not (conditions := store.conditions(subject, *STAGES)):
        return
    campaign = subject.campaign
    verdict, explanation = store.get(subject, Verdict), store.get(subject, Explanation)
    if verdict is None or (explanation and explanation.winner != verdict.configuration):
        explanation = None  # of another winner
    probe, crosswise = store.get(subject, Probe), store.get(subject, Crosswise)
    contests = (store.get(subject, Contest), crosswise.contest if crosswise else None)
    yield Case(
        source=Source(
            store=name,
            study=campaign.study,
            campaign=campaign.id,
            started_at=campaign.started_at,
            arch=subject.arch,
            workload=subject.workload,
        ),
        conditions=conditions.get("judge") or list(conditions.values())[-1],
        verdict=verdict,
        explanation=explanation,
        contests=tuple(contest for contest in contests if contest is not None),
        defaults={} if probe is None else probe.values,
        trials=tuple(_rows(store, subject)),
    )


def _rows(store: Store, subject: Subject) -> Iterator[TrialRow]:
    """The trials of these stages, without those that were never made."""
    places = {(place.stage, place.index): place for place in store.places(subject, *STAGES)}
    for stage in STAGES:
        for planned in store.plan(subject, stage):
            place = places[stage, planned.index]
            if place.status is not None:
                yield TrialRow(
                    stage=stage,
                    index=planned.index,
                    arm=planned.arm,
                    round=planned.round,
                    status=place.status,
                    judged_ms=place.judged_ms,
                    started_at=place.started_at,
                )


def advice(cases: Sequence[Case]) -> Advice:
    """Return what the cases show, in the order of their campaigns."""
    by_situation: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        place = tuple(getattr(case.conditions, name) for name in SITUATION)
        by_situation.setdefault(place, []).append(case)
    numbered = list(enumerate(by_situation.values(), start=1))
    number_of = {id(case): number for number, own in numbered for case in own}
    changes: dict[tuple[int, tuple[str, ...], str], list[Evidence]] = {}
    levels: list[tuple[Interval, float]] = []
    for case in cases:
        for keys, evidence, level in evidence_of(case):
            direction = directions(evidence.before, evidence.after)
            changes.setdefault((number_of[id(case)], keys, direction), []).append(evidence)
            ratios = (evidence.judged, evidence.alone, evidence.left_out, evidence.missed)
            levels += [(ratio, level) for ratio in ratios if ratio is not None]
    listed = (
        Change(keys=keys, direction=direction, situation=number, evidence=tuple(own))
        for (number, keys, direction), own in changes.items()
    )
    winners = (_winner(case, number_of[id(case)]) for case in cases)
    return Advice(
        situations=tuple(_situation(number, own) for number, own in numbered),
        verdicts=tuple(winner for winner in winners if winner is not None),
        changes=tuple(sorted(listed, key=_order)),
        sets=tuple(chosen for case in cases for chosen in _sets(case, number_of[id(case)])),
        trials=tuple((case.source, case.trials) for case in cases if case.trials),
        intervals=len(levels),
        called=sum(effect(ratio) != "not shown" for ratio, _ in levels),
        by_chance=sum(1 - level for _, level in levels),
    )


def _situation(number: int, cases: Sequence[Case]) -> Situation:
    return Situation(
        number=number,
        conditions=cases[-1].conditions,
        studies=tuple(dict.fromkeys(case.source.study for case in cases)),
        campaigns=len({(case.source.store, case.source.campaign) for case in cases}),
    )


def _winner(case: Case, situation: int) -> JudgedWinner | None:
    if case.verdict is None:
        return None
    return JudgedWinner(
        source=case.source,
        situation=situation,
        verdict=case.verdict,
        is_explained=case.explanation is not None,
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
