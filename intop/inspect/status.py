"""The progress of a campaign by its store alone: no host is asked, and nothing is written.

It may be asked while another process measures.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from intop.config.study import Study
from intop.domain.across import Across, about
from intop.domain.campaign_status import (
    Best,
    CampaignStatus,
    Place,
    StageStatus,
    State,
    SubjectStatus,
    lowest,
    pace_s,
)
from intop.domain.histogram import Statistic
from intop.domain.job import CampaignProgress, Fleet
from intop.domain.pilot import Pilot
from intop.domain.refined import Decisions, Refined
from intop.domain.soak import Soak
from intop.domain.sweep import Sweeps, winners_sweeps
from intop.domain.training import Training
from intop.domain.trial import Conditions
from intop.domain.workload import Workload
from intop.run import effort, registry
from intop.run.effort import Span
from intop.run.prospect import Prospect
from intop.run.stage import AnyStage, Expected
from intop.store import Campaign, Store, Subject, shown

AHEAD: tuple[State, ...] = ("begun", "to come")
PACED = ("screen", "collect", "refine")
"""Stages whose trials all have the duration of the workload."""


def campaign_status(
    study: Study,
    store: Store | None,
    archs: Iterable[str],
    workloads: Sequence[Workload],
    *,
    new: bool = False,
    asked: Collection[str] = (),
    now: datetime | None = None,
) -> CampaignStatus:
    """The study's latest campaign, or what a `new` one would be, by these parts of the study.

    It has the stages of `tune` and those that are `asked` for.
    """
    campaign = None if store is None or new else store.latest(study.name)
    known = [
        _Known.of(study, store, campaign, arch, workload, asked)
        for arch in archs
        for workload in workloads
    ]
    subjects = tuple(subject.status() for subject in known)
    if campaign is None:
        return CampaignStatus(
            study=study.name, store=shown(study.store), campaign=None, subjects=subjects
        )
    stored = max((at for subject in known for at in subject.stored_at()), default=None)
    silent_s = (
        None if stored is None else max(0.0, ((now or datetime.now(UTC)) - stored).total_seconds())
    )
    return CampaignStatus(
        study=study.name,
        store=shown(study.store),
        campaign=campaign.id,
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
        subjects=subjects,
        stored_at="" if stored is None else stored.isoformat(timespec="seconds"),
        silent_s=silent_s,
        trials=sum(p.attempts for subject in known for p in subject.places),
        activities={} if store is None else store.activities.of(campaign),
    )


def _have_duration(conditions: Iterable[Conditions], workload: Workload) -> bool:
    """Return whether trials are as long as the study's; True before its pilot."""
    if workload.duration_s is None:
        return True
    return all(each.duration_s == workload.counted_s for each in conditions)


def is_begun(study: Study, store: Store | None, arch: str) -> bool:
    """Return whether the study's latest campaign has plans of an architecture."""
    campaign = None if store is None else store.latest(study.name)
    return store is not None and campaign is not None and not store.is_empty(campaign, arch)


@dataclass(frozen=True, kw_only=True)
class _Known:
    """The records of the store about one architecture under one workload."""

    prospect: Prospect
    asked: Collection[str]
    duration_s: int | None
    judged_by: Statistic = "P99"
    """The latency that the campaign's trials are judged by."""
    measured: Sequence[tuple[int, Sequence[Place]]] = ()
    """Trials of this campaign and of the one before it, which tell the pace."""
    refined: Refined | None = None
    decisions: Decisions | None = None
    sweeps: Sweeps | None = None
    soak: Soak | None = None
    across: Across | None = None

    @classmethod
    def of(
        cls,
        study: Study,
        store: Store | None,
        campaign: Campaign | None,
        arch: str,
        workload: Workload,
        asked: Collection[str],
    ) -> "_Known":
        new = Prospect(study=study, workload=workload, arch=arch)
        about = cls(
            prospect=new,
            asked=asked,
            duration_s=workload.duration_s,
            judged_by=workload.judged_by,
        )
        latest = None if store is None else store.latest(study.name)
        if store is None or latest is None:
            return about
        subject = Subject(campaign=campaign or latest, arch=arch, workload=workload.name)
        prospect = Prospect.of(study, workload, subject, store)
        conditions = tuple(store.conditions(subject, *PACED).values())
        if campaign is None:
            as_long = _have_duration(conditions, workload)
            return replace(
                about,
                prospect=replace(new, training=prospect.training),
                measured=[(latest.id, prospect.stored)] if as_long else [],
            )
        earlier = [replace(subject, campaign=c) for c in store.earlier(campaign)[-1:]]
        before = [
            (s.campaign.id, store.places(s))
            for s in earlier
            if _have_duration(store.conditions(s, *PACED).values(), workload)
        ]
        trained = [prospect.training, *(store.get(previous, Training) for previous in earlier)]
        pilot = store.get(subject, Pilot) if workload.duration_s is None else None
        return replace(
            about,
            prospect=replace(
                prospect,
                training=next((training for training in trained if training is not None), None),
            ),
            measured=[(campaign.id, prospect.stored), *before],
            refined=store.get(subject, Refined),
            decisions=store.get(subject, Decisions),
            sweeps=store.get(subject, Sweeps),
            soak=store.get(subject, Soak),
            across=store.get(subject, Across),
            judged_by=conditions[0].judged_by if conditions else workload.judged_by,
            duration_s=pilot.duration_s if pilot else workload.duration_s,
        )

    @property
    def places(self) -> Sequence[Place]:
        """The places of all plans of this campaign."""
        return self.prospect.stored

    def stored_at(self) -> list[datetime]:
        """The times at which trials ended and results were stored."""
        ends = [place.ended for place in self.places]
        return [end for end in ends if end is not None] + [
            datetime.fromisoformat(at) for at in self.prospect.kinds.values()
        ]

    def status(self) -> SubjectStatus:
        """Return the whole status."""
        verdict = self.prospect.verdict
        pace, measured_in = self._pace()
        trial = self._by_file() if pace is None else Span(likely_s=pace, most_s=pace)
        return SubjectStatus(
            arch=self.prospect.arch,
            workload=self.prospect.workload.name,
            stages=self._stages(trial),
            trial_s=None if trial is None else trial.likely_s,
            measured_in=measured_in,
            awaits_pilot=pace is None and self.duration_s is None,
            best=self._best(),
            verdict=verdict,
            sweeps=winners_sweeps(self.sweeps, verdict),
            soak=self.soak,
            across=about(self.across, verdict),
        )

    def _pace(self) -> tuple[float | None, int | None]:
        """Return a trial's time and the campaign that tells it: this one, else the one before."""
        for campaign, places in self.measured:
            own = [place for place in places if not self._has_its_own_duration(place)]
            if (pace := pace_s(own)) is not None:
                return pace, campaign
        return None, None

    def _has_its_own_duration(self, place: Place) -> bool:
        """Return whether a trial may be longer or shorter than those of most stages."""
        is_longer = self.prospect.budget.judge_duration_s is not None and place.stage == "judge"
        is_longer |= place.role == "soak"
        stage = registry.stage(place.stage)
        return is_longer or stage.prepares or stage.name in ("across", "canary")

    def _by_file(self) -> Span | None:
        """Return the time of a trial on the replicas together, as long as none was measured."""
        share = 1 / self.prospect.replicas
        reckoned = self.prospect.reckoned_trial(self.duration_s)
        return None if reckoned is None else reckoned.of(share, share)

    def _stages(self, trial: Span | None) -> tuple[StageStatus, ...]:
        """Return the stages of `tune` in this study, then others that were begun by themselves."""
        of_tune = [stage for stage in registry.of_tune() if self._belongs(stage)]
        done = [stage.is_done(self.prospect) for stage in of_tune]
        begun = [n for n, stage in enumerate(of_tune) if done[n] or self._of(stage)]
        last = max(begun, default=-1)
        statuses: list[StageStatus] = []
        is_held = False  # hosts are, from one stage that measures to the next
        for n, stage in enumerate(of_tune):
            state: State = "to come" if n > last else "begun" if n in begun else "left out"
            if done[n]:
                state = "done"
            elif stage.is_idle(self.prospect):
                state = "left out"
            statuses.append(self._stage(stage, state, trial, is_held=is_held))
            if state in AHEAD:
                is_held = stage.measures
        for stage in registry.own({place.stage for place in self.places}):
            if stage.is_listed and (places := self._of(stage)):
                state = "done" if stage.is_through(self.prospect, places) else "begun"
                statuses.append(self._stage(stage, state, trial))
        return tuple(statuses)

    def _of(self, stage: type[AnyStage]) -> Sequence[Place]:
        """Return the plan of a stage; of one of its own only the latest series."""
        places = self.prospect.places(stage.name)
        if not registry.is_own(stage.name):
            return places
        latest = max((place.series for place in places), default=1)
        return [place for place in places if place.series == latest]

    def _belongs(self, stage: type[AnyStage]) -> bool:
        """Return whether `tune` has this stage in this study."""
        begun = bool(self._of(stage)) or self.prospect.has(stage.result_type)
        return stage.is_wanted(self.prospect) or begun or stage.name in self.asked

    def _stage(
        self, stage: type[AnyStage], state: State, trial: Span | None, *, is_held: bool = False
    ) -> StageStatus:
        is_ahead = state in AHEAD
        places = self._of(stage)
        prospect = self.prospect
        if registry.is_own(stage.name):
            prospect = replace(prospect, stored=places)
        expected = stage.expected(prospect) if is_ahead else Expected()
        if not stage.measures:
            return replace(StageStatus(name=stage.name, state=state), **_seconds(expected.time))
        is_once = stage.measures_once or stage.observes
        retries = 0 if is_once else self.prospect.budget.retries
        done = sum(place.is_done(retries) for place in places)
        trials = expected.trials if is_ahead else done
        likely = trials if expected.likely is None else expected.likely
        most = trials if expected.most is None else expected.most
        span = expected.time
        if span is None and trial is not None:
            span = trial.of(max(0, likely - done), max(0, most - done))
        if span is not None and is_ahead and not done:
            kind = self.prospect.kind
            span = span.plus(effort.HELD_STAGE_S if is_held else effort.STAGE_S[kind])
        status = StageStatus(
            name=stage.name,
            state=state,
            trials=trials,
            bound=expected.bound,
            done=done,
            disturbed=sum(place.disturbed for place in places),
            failed=sum(place.status == "failed" for place in places),
        )
        return replace(status, **_seconds(span))

    def _best(self) -> Best | None:
        """The best known by the models of a refinement, else the lowest that was measured."""
        best = lowest(place for place in self.places if registry.stage(place.stage).explores)
        known = self.refined.best if self.refined else None
        if known is None and self.decisions and self.decisions.made:
            known = self.decisions.made[-1].best
        if best is None:
            return None
        best = replace(best, judged_by=self.judged_by)
        if known is None:
            return best
        return replace(
            best,
            configuration=known.configuration,
            judged_ms=known.judged_ms,
            trials=known.trials,
            by_models=True,
        )


def _seconds(span: Span | None) -> dict[str, Any]:
    """The fields of a stage that say how long it takes."""
    if span is None:
        return {"left_s": None, "most_s": None}
    return {"left_s": span.likely_s, "most_s": span.most_s}


def fleet(url: str, store: Store | None) -> Fleet:
    """Return the campaigns and workers of a store; none where there is no store yet."""
    if store is None:
        return Fleet(store=shown(url), campaigns=(), workers=())
    counts, jobs = store.counts(), store.jobs.waiting()
    campaigns: list[CampaignProgress] = []
    for campaign in store.campaigns():
        planned, measured = counts.get(campaign.id, (0, 0))
        waiting, held = jobs.get(campaign.id, (0, 0))
        campaigns.append(
            CampaignProgress(
                campaign=campaign.id,
                study=campaign.study,
                started_at=campaign.started_at,
                finished_at=campaign.finished_at,
                planned=planned,
                measured=measured,
                waiting=waiting,
                held=held,
            )
        )
    return Fleet(store=shown(url), campaigns=tuple(campaigns), workers=tuple(store.workers.all()))
