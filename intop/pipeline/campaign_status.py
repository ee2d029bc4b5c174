"""How far a campaign is, by its store alone: no host is asked, and nothing is written.

It may be asked while another process measures.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from intop.config.study import Study
from intop.domain import effort
from intop.domain.agreement import Agreement
from intop.domain.campaign_status import (
    Best,
    Bound,
    CampaignStatus,
    Place,
    StageStatus,
    State,
    SubjectStatus,
    expected,
    is_at_work,
    likely_and_most,
    lowest,
    pace_s,
)
from intop.domain.cluster import LabSpec
from intop.domain.duration import durations
from intop.domain.effort import Kind, Span
from intop.domain.explanation import Explanation
from intop.domain.refined import Decisions, Refined
from intop.domain.results import Pilot, Ranking, Search, Training, Verdict
from intop.domain.trial import PREPARING, STAGES, Stage
from intop.domain.workload import Workload
from intop.hosts.load import calibration_of
from intop.learn.parallel import processes
from intop.store import Campaign, Store, Subject
from intop.store.kinds import KINDS

RESULT: Mapping[str, type] = {
    "pilot": Pilot,
    "replicas": Agreement,
    "screen": Ranking,
    "refine": Refined,
    "train": Training,
    "search": Search,
    "judge": Verdict,
    "explain": Explanation,
}
"""What a stage stores when it is done."""

MEASURED: Mapping[str, Stage] = {name: name for name in STAGES}
COMPUTED = ("train", "search")
TUNED: tuple[str, ...] = (*STAGES[:5], *COMPUTED, *STAGES[5:8])
"""The stages of `tune`, in its order."""

BY_THEMSELVES: tuple[Stage, ...] = ("transfer", "contest")
"""Those that are measured when they are asked for."""

EXPLORING: tuple[Stage, ...] = ("screen", "collect", "refine")


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
    subjects = tuple(one.status() for one in known)
    if campaign is None:
        return CampaignStatus(study=study.name, store=study.store, campaign=None, subjects=subjects)
    stored = max((at for one in known for at in one.stored_at()), default=None)
    silent_s = (
        None if stored is None else max(0.0, ((now or datetime.now(UTC)) - stored).total_seconds())
    )
    usual_s = max((p.seconds for one in known for p in one.places[-3:]), default=0.0)
    return CampaignStatus(
        study=study.name,
        store=study.store,
        campaign=campaign.id,
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
        subjects=subjects,
        stored_at="" if stored is None else stored.isoformat(timespec="seconds"),
        silent_s=silent_s,
        trials=sum(p.attempts for one in known for p in one.places),
        is_at_work=(
            campaign.finished_at is None and silent_s is not None and is_at_work(silent_s, usual_s)
        ),
    )


def is_begun(study: Study, store: Store | None, arch: str) -> bool:
    """Whether the study's latest campaign has plans of an architecture."""
    campaign = None if store is None else store.latest(study.name)
    return store is not None and campaign is not None and not store.is_empty(campaign, arch)


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What the store says of one architecture under one workload."""

    study: Study
    workload: Workload
    arch: str
    asked: Collection[str]
    duration_s: int | None
    places: Sequence[Place] = ()
    measured: Sequence[tuple[int, Sequence[Place]]] = ()
    results: Mapping[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    refined: Refined | None = None
    decisions: Decisions | None = None
    training: Training | None = None

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
        about = cls(
            study=study,
            workload=workload,
            arch=arch,
            asked=asked,
            duration_s=workload.duration_s,
        )
        latest = None if store is None else store.latest(study.name)
        if store is None or latest is None:
            return about
        if campaign is None:
            subject = Subject(campaign=latest, arch=arch, workload=workload.name)
            return replace(
                about,
                measured=[(latest.id, store.places(subject))],
                training=store.get(subject, Training),
            )
        subject = Subject(campaign=campaign, arch=arch, workload=workload.name)
        places = store.places(subject)
        earlier = [replace(subject, campaign=c) for c in store.earlier(campaign)[-1:]]
        before = [(one.campaign.id, store.places(one)) for one in earlier]
        trained = [store.get(one, Training) for one in (subject, *earlier)]
        pilot = store.get(subject, Pilot) if workload.duration_s is None else None
        return replace(
            about,
            places=places,
            measured=[(campaign.id, places), *before],
            results=store.results(subject),
            verdict=store.get(subject, Verdict),
            refined=store.get(subject, Refined),
            decisions=store.get(subject, Decisions),
            training=next((one for one in trained if one is not None), None),
            duration_s=pilot.duration_s if pilot else workload.duration_s,
        )

    def stored_at(self) -> list[datetime]:
        """When trials ended and results were stored."""
        ends = [place.ended for place in self.places]
        return [end for end in ends if end is not None] + [
            datetime.fromisoformat(at) for at in self.results.values()
        ]

    def status(self) -> SubjectStatus:
        """All of it."""
        pace, measured_in = self._pace()
        trial = self._by_file() if pace is None else Span(likely_s=pace, most_s=pace)
        return SubjectStatus(
            arch=self.arch,
            workload=self.workload.name,
            stages=self._stages(trial),
            trial_s=None if trial is None else trial.likely_s,
            measured_in=measured_in,
            best=self._best(),
            verdict=self.verdict,
        )

    @property
    def _replicas(self) -> int:
        """How many of the cluster's replicas are in use, or would be if they agree."""
        used = sum(p.stage == "screen" and p.role == "baseline" for p in self.places)
        return used or len(self.study.clusters[self.arch])

    def _pace(self) -> tuple[float | None, int | None]:
        """What a trial takes, and the campaign that says so: this one, else the one before it."""
        for campaign, places in self.measured:
            own = [place for place in places if place.stage not in PREPARING]
            if (pace := pace_s(own)) is not None:
                return pace, campaign
        return None, None

    @property
    def _kind(self) -> Kind:
        replica = self.study.clusters[self.arch][0]
        if not isinstance(replica, LabSpec):
            return "own"
        return "guest" if replica.kind == "vm" else "lab"

    def _by_file(self) -> Span | None:
        """A trial on the replicas together, as long as none was measured; None before the pilot."""
        if self.duration_s is None:
            return None
        return self._trial(self.duration_s).of(1 / self._replicas, 1 / self._replicas)

    def _trial(self, duration_s: float) -> Span:
        """A trial on one replica, by wrk in a lab, and with wrk2's calibration on hosts."""
        load = self.workload
        before = (
            calibration_of(load.connections, load.threads) if self._kind == "own" else load.warmup_s
        )
        # Both tools take whole seconds.
        run_s = math.ceil(before + duration_s)
        return effort.trial(self._kind, run_s, load.rate_rps, self.study.budget)

    def _pilot(self, left: int) -> Span:
        """Two of the durations beside the first one, and all of them, in trials still to come."""
        budget = self.study.budget
        try:
            ladder = durations(self.workload.rate_rps, budget.pilot_max_s)
        except ValueError:
            return Span(likely_s=0.0, most_s=0.0)
        rungs = [self._trial(duration_s) for duration_s in ladder]
        share = left / self._replicas
        return Span(
            likely_s=share * sum(rung.likely_s for rung in rungs[:3]),
            most_s=share * sum(rung.most_s for rung in rungs),
        )

    def _computing(self, name: str) -> Span:
        """What training and search take: as long as before, where that is known."""
        budget = self.study.budget
        if name == "search":
            return effort.search(budget)
        if self.training is not None:
            seconds = sum(error.seconds for error in self.training.errors) / processes()
            return Span(likely_s=seconds, most_s=1.5 * seconds)
        return effort.training(budget.collect_trials + budget.refine_trials, budget, processes())

    def _stages(self, trial: Span | None) -> tuple[StageStatus, ...]:
        """Those of `tune` that the study has, then others that were begun by themselves."""
        names = [name for name in TUNED if self._belongs(name)]
        done = [self._is_done(name) for name in names]
        begun = [n for n, name in enumerate(names) if done[n] or self._of(name)]
        last = max(begun, default=-1)
        found: list[StageStatus] = []
        for n, name in enumerate(names):
            state: State = "to come" if n > last else "begun" if n in begun else "left out"
            if done[n]:
                state = "done"
            elif name == "explain" and self.verdict and self.verdict.outcome != "gain":
                state = "left out"
            found.append(self._stage(name, state, trial))
        for name in BY_THEMSELVES:
            if places := self._of(name):
                complete = all(self._has_trial(place) for place in places)
                found.append(self._stage(name, "done" if complete else "begun", trial))
        return tuple(found)

    def _of(self, name: str) -> list[Place]:
        return [place for place in self.places if place.stage == name]

    def _has_trial(self, place: Place) -> bool:
        return place.is_done(self.study.budget.retries)

    def _belongs(self, name: str) -> bool:
        """Whether `tune` has this stage in this study."""
        budget = self.study.budget
        wanted = {
            "pilot": self.workload.duration_s is None,
            "replicas": len(self.study.clusters[self.arch]) > 1,
            "refine": budget.refine_trials > 0,
            "explain": budget.explain_rounds > 0,
        }
        begun = bool(self._of(name)) or self._has_result(name)
        return wanted.get(name, True) or begun or name in self.asked

    def _has_result(self, name: str) -> bool:
        return name in RESULT and KINDS[RESULT[name]] in self.results

    def _is_done(self, name: str) -> bool:
        if self._has_result(name):
            return True
        if name == "pick":
            return bool(self._of("judge")) or self._has_result("judge")
        if name != "collect":
            return False
        # It stores no result: what is measured, and what has begun after it, tell.
        places = self._of(name)
        wanted, _ = expected("collect", places, self.study.budget, replicas=self._replicas)
        whole = bool(places) and all(self._has_trial(place) for place in places)
        after = bool(self._of("refine")) or self._has_result("train")
        return whole and (after or len(places) >= wanted)

    def _stage(self, name: str, state: State, trial: Span | None) -> StageStatus:
        stage = MEASURED.get(name)
        is_ahead = state in ("begun", "to come")
        if stage is None:
            span = self._computing(name) if is_ahead else None
            return replace(StageStatus(name=name, state=state), **_seconds(span))
        places = self._of(name)
        made = [place for place in places if self._has_trial(place)]
        trials = likely = most = len(made)
        bound: Bound = ""
        if is_ahead:
            winner = len(self.verdict.configuration.values) if self.verdict else 0
            budget = self.study.budget
            trials, bound = expected(stage, places, budget, replicas=self._replicas, winner=winner)
            likely, most = likely_and_most(stage, places, budget, trials, winner)
        left = [max(0, count - len(made)) for count in (likely, most)]
        span = None if trial is None else trial.of(left[0], left[1])
        if name == "pilot":
            span = self._pilot(left[0])
        if span is not None and is_ahead and not made:
            span = span.plus(effort.STAGE_S[self._kind])
        found = StageStatus(
            name=name,
            state=state,
            trials=trials,
            bound=bound,
            done=len(made),
            disturbed=sum(place.disturbed for place in places),
            failed=sum(place.status == "failed" for place in places),
        )
        return replace(found, **_seconds(span))

    def _best(self) -> Best | None:
        """The best known by the models of a refinement, else the lowest that was measured."""
        found = lowest(place for place in self.places if place.stage in EXPLORING)
        known = self.refined.best if self.refined else None
        if known is None and self.decisions and self.decisions.made:
            known = self.decisions.made[-1].best
        if found is None or known is None:
            return found
        return replace(
            found,
            configuration=known.configuration,
            p99_ms=known.p99_ms,
            trials=known.trials,
            by_models=True,
        )


def _seconds(span: Span | None) -> dict[str, Any]:
    """The fields of a stage that say how long it takes."""
    if span is None:
        return {"left_s": None, "most_s": None}
    return {"left_s": span.likely_s, "most_s": span.most_s}
