"""The stored parts of one architecture and workload, by which stages say what is left."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeVar

from intop.config.study import Study
from intop.domain.campaign_status import Place
from intop.domain.cluster import LabSpec
from intop.domain.overload import is_doubted
from intop.domain.pilot import durations
from intop.domain.training import Training
from intop.domain.trial import PlannedTrial
from intop.domain.verdict import Verdict
from intop.domain.workload import Budget, Workload
from intop.features import result_name
from intop.run import effort
from intop.run.effort import Kind, Span
from intop.store import Store, Subject

R = TypeVar("R")

ROUNDED = timedelta(seconds=2)
"""Times in the store are in whole seconds."""

LIKELY_RUNG = 2
"""The duration that a pilot likely chooses: the third of those that it may try, or the last."""


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """A study's architecture and workload, and the trials and results of it so far."""

    study: Study
    workload: Workload
    arch: str
    stored: Sequence[Place] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The results in the store, with when they were stored (UTC in ISO 8601)."""
    verdict: Verdict | None = None
    training: Training | None = None
    """It may be an earlier campaign's, which says how long a training takes."""
    request: object = None
    """The request of a command to a stage of its own, such as a sweep over connections."""

    @classmethod
    def of(cls, study: Study, workload: Workload, subject: Subject, store: Store) -> "Prospect":
        """Return the prospect of a campaign."""
        return cls(
            study=study,
            workload=workload,
            arch=subject.arch,
            stored=store.places(subject),
            kinds=store.results(subject),
            verdict=store.get(subject, Verdict),
            training=store.get(subject, Training),
        )

    @property
    def budget(self) -> Budget:
        """The study's."""
        return self.study.budget

    @cached_property
    def _by_stage(self) -> Mapping[str, Sequence[Place]]:
        by_stage: dict[str, list[Place]] = {}
        for place in self.stored:
            by_stage.setdefault(place.stage, []).append(place)
        return by_stage

    def places(self, stage: str) -> Sequence[Place]:
        """Return a stage's plan."""
        return self._by_stage.get(stage, ())

    def requested(self, kind: type[R]) -> R | None:
        """Return the request if it is of this kind."""
        return self.request if isinstance(self.request, kind) else None

    def has(self, result: type) -> bool:
        """Whether a result of this type is stored."""
        return result_name(result) in self.kinds

    def covers(self, result: type, places: Iterable[Place]) -> bool:
        """Whether a stored result came after the trials of these places.

        A stage that may end before its plan does is through then.
        """
        stored = self.kinds.get(result_name(result) or "")
        if stored is None:
            return False
        at = datetime.fromisoformat(stored) + ROUNDED
        return all(place.ended is None or place.ended <= at for place in places)

    def is_measured(self, places: Iterable[Place], *, ends_by_overload: bool = False) -> bool:
        """Whether all of these have their trials, none of which is measured again.

        A default that ended its stage is: by a failure, or by an overload if the stage
        `ends_by_overload` (see `measuring.is_settled`).
        """
        planned = tuple(places)
        if not all(place.is_done(self.budget.retries) for place in planned):
            return False
        defaults = [place for place in planned if place.configuration.is_default]
        if any(place.status == "failed" for place in defaults):
            return False
        return not (ends_by_overload and any(_is_doubted(place, defaults) for place in defaults))

    @property
    def replicas(self) -> int:
        """The number of replicas in use, or of all while their agreement is unknown."""
        used = sum(p.stage == "screen" and p.role == "baseline" for p in self.stored)
        return used or len(self.study.clusters[self.arch])

    @property
    def kind(self) -> Kind:
        """The place of the load balancer."""
        replica = self.study.clusters[self.arch][0]
        if not isinstance(replica, LabSpec):
            return "own"
        return "lab" if replica.kind == "namespaces" else "guest"

    def trial(self, duration_s: float) -> Span:
        """Return the time of a trial on one replica, with wrk2's calibration if it is named."""
        from intop.hosts.load.wrk2 import calibration_s

        load = self.workload
        is_wrk2 = self.study.load_tool == "wrk2"
        before = calibration_s(load.connections, load.threads) if is_wrk2 else load.warmup_s
        run_s = math.ceil(before + duration_s)  # wrk2 takes whole seconds
        return effort.trial(self.kind, run_s, load.rate_rps, self.budget)

    def reckoned_trial(self, duration_s: float | None) -> Span | None:
        """Return the time of a trial on one replica; without a duration, by those of a pilot.

        None where a pilot finds no duration short enough.
        """
        if duration_s is not None:
            return self.trial(duration_s)
        try:
            load = self.workload
            ladder = durations(load.rate_rps, self.budget.pilot_max_s, load.judged_by)
        except ValueError:
            return None
        likely = self.trial(ladder[min(LIKELY_RUNG, len(ladder) - 1)])
        return Span(likely_s=likely.likely_s, most_s=self.trial(ladder[-1]).most_s)


def _is_doubted(place: Place, defaults: Iterable[Place]) -> bool:
    """Whether this default ended its stage."""
    before = {
        p.index: p.status
        for p in defaults
        if p.usable and p.status is not None and p.replica == place.replica
    }
    return is_doubted(place.index, before)


def designed(configurations: int, every: int, replicas: int) -> int:
    """Return the trials of a plan, with the default before all and after every few."""
    return replicas + configurations + replicas * (configurations // (every * replicas))


def roles(places: Sequence[Place | PlannedTrial]) -> list[str]:
    """Return the role of each place."""
    return [place.role for place in places]
