"""Replicas that can't be trusted any more: detected while a stage is measured, and set aside."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from intop.domain.agreement import Agreement
from intop.domain.trial import PlannedTrial, Trial
from intop.run.replica_disturbance import Sentinel, Span, replica_disturbance, shared
from intop.run.replica_drift import replica_drift
from intop.run.stage import Stage

PERCENTILE = 50.0
"""The watched latency. P99 of a short trial scatters too much for it."""


@dataclass(frozen=True, kw_only=True)
class Distrusted:
    """A replica that is to be set aside."""

    replica: str
    why: str
    spoiled: tuple[int, ...]
    """The places of the trials that it has spoiled."""
    disturbs: str = ""
    """The replica that its load makes slower; "" where it has drifted itself."""


def distrusted(stage: Stage[Any], trials: Mapping[int, Trial]) -> Distrusted | None:
    """Return the replica that has drifted or disturbs another, by a stage's trials so far."""
    agreement = stage.task.store.get(stage.task.subject, Agreement)
    if stage.is_apart or stage.stays_on_replicas or agreement is None or len(agreement.in_use) < 2:
        return None
    names = [agreement.replicas[n].name for n in agreement.in_use]
    defaults = {name: _defaults(trials, name) for name in names}
    return _drifted(defaults, trials) or _disturbing(defaults, trials)


def set_aside(
    stage: Stage[Any], replica: Distrusted, plan: Sequence[PlannedTrial], trials: dict[int, Trial]
) -> None:
    """Measure on the other replicas from now on, and again what this one has spoiled.

    That includes all arms of a round that is not over, since the rest of it is measured elsewhere.
    These trials become disturbed, in the store and in `trials`, and have their usual retries.
    """
    task, store = stage.task, stage.task.store
    retries = task.context.study.budget.retries
    spoiled = _with_their_rounds(replica.spoiled, plan, trials)
    last = sum(trials[index].attempt >= retries for index in spoiled)
    for index in spoiled:
        store.disturb(task.subject, trials[index], replica.why)
        trials[index] = replace(trials[index], status="disturbed", detail=replica.why)
    agreement = store.get(task.subject, Agreement)
    if agreement is not None:
        store.put(task.subject, agreement.without(replica.replica, disturbs=replica.disturbs))
    task.context.progress.say(
        f"{task.title}: {replica.why}. {replica.replica} is set aside, and what it has spoiled "
        f"({len(spoiled)} trials) is measured again on the others"
        + (f", except for {last} that have no attempt left (retries)" if last else "")
        + ". Find out what is wrong there; --new begins with all replicas"
    )


def _with_their_rounds(
    spoiled: Collection[int], plan: Iterable[PlannedTrial], trials: Mapping[int, Trial]
) -> tuple[int, ...]:
    """Return the spoiled trials, and the other usable ones of rounds that are not over."""
    not_over = {
        p.series_round
        for p in plan
        if p.series_round and (p.index in spoiled or p.index not in trials)
    }
    beside = _places(trial for trial in trials.values() if trial.planned.series_round in not_over)
    return tuple(sorted({*spoiled, *beside}))


def _drifted(defaults: Mapping[str, list[Trial]], trials: Mapping[int, Trial]) -> Distrusted | None:
    latencies = {name: [t.percentile_ms(PERCENTILE) for t in own] for name, own in defaults.items()}
    drift = replica_drift(latencies)
    if drift is None:
        return None
    since = defaults[drift.replica][drift.first].started_at
    why = (
        f"{drift.replica} has drifted: since {since} the default's P50 is {drift.ratio:.2f} times "
        "what it was, against the other replicas"
    )
    mine = (t for t in trials.values() if t.replica == drift.replica and t.started_at >= since)
    return Distrusted(replica=drift.replica, why=why, spoiled=_places(mine))


def _disturbing(
    defaults: Mapping[str, list[Trial]], trials: Mapping[int, Trial]
) -> Distrusted | None:
    sentinels = {
        name: [Sentinel(latency_ms=t.percentile_ms(PERCENTILE), span=_span(t)) for t in own]
        for name, own in defaults.items()
    }
    loads = {name: [_span(t) for t in trials.values() if t.replica == name] for name in defaults}
    disturbance = replica_disturbance(sentinels, loads)
    if disturbance is None:
        return None
    replica, disturbed = disturbance.replica, disturbance.disturbed
    why = (
        f"{replica} disturbs {disturbed}: the default's P50 there is {disturbance.ratio} "
        f"times as high while {replica} has load"
    )
    beside = (
        t
        for t in trials.values()
        if t.replica == disturbed and shared(_span(t), loads[replica]) > 0
    )
    return Distrusted(replica=replica, why=why, spoiled=_places(beside), disturbs=disturbed)


def _defaults(trials: Mapping[int, Trial], replica: str) -> list[Trial]:
    """Return a replica's usable defaults under the workload's own load, in order."""
    return [
        trial
        for _, trial in sorted(trials.items())
        if trial.replica == replica
        and trial.usable
        and trial.configuration.is_default
        and not (trial.planned.has_its_own_load or trial.planned.other_workload)
    ]


def _places(trials: Iterable[Trial]) -> tuple[int, ...]:
    return tuple(t.planned.index for t in trials if t.usable)


def _span(trial: Trial) -> Span:
    begin = datetime.fromisoformat(trial.started_at).timestamp()
    return begin, begin + trial.seconds
