"""report --advice: what all verdicts of some stores say. Touches no host, decodes no trial."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from intop.domain.advice import Advice, advice
from intop.domain.evidence import Case, Source, TrialRow
from intop.domain.explanation import Explanation
from intop.domain.multi_arm import Contest
from intop.domain.probing import Probe
from intop.domain.transfer import Crosswise
from intop.domain.verdict import Verdict
from intop.errors import ResultMissingError
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
                raise ResultMissingError(f"there is no store {shown(url)} yet: intop tune")
            for subject in store.subjects_with(Verdict, Contest, Crosswise):
                if arch in (None, subject.arch) and workload in (None, subject.workload):
                    cases += _cases(store, subject, name)
    if not cases:
        raise ResultMissingError(
            "no verdict and no contest is stored, and nothing else is advice: intop tune"
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
                    p99_ms=place.p99_ms,
                    started_at=place.started_at,
                )
