"""Replicas that can't be trusted any more while a stage is measured: found, and set aside."""

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
"""Whose latency is watched. P99 of a short trial scatters too much for it."""


@dataclass(frozen=True, kw_only=True)
class Distrusted:
    """A replica that is to be set aside: why, and the places of the trials that it has spoiled.

    `disturbs` is the replica that its load makes slower, empty where it has drifted itself.
    """

    replica: str
    why: str
    spoiled: tuple[int, ...]
    disturbs: str = ""


def distrusted(stage: Stage[Any], made: Mapping[int, Trial]) -> Distrusted | None:
    """The replica that has drifted or disturbs another one, by a stage's trials so far."""
    found = stage.task.store.get(stage.task.subject, Agreement)
    if stage.is_apart or stage.stays_on_replicas or found is None or len(found.in_use) < 2:
        return None
    names = [found.replicas[n].name for n in found.in_use]
    defaults = {name: _defaults(made, name) for name in names}
    return _drifted(defaults, made) or _disturbing(defaults, made)


def set_aside(
    stage: Stage[Any], replica: Distrusted, plan: Sequence[PlannedTrial], made: dict[int, Trial]
) -> None:
    """Measure on the other replicas from now on, and again what this one has spoiled.

    That includes all arms of a round that is not over: the rest of it is measured elsewhere. These
    trials become disturbed, in the store and in `made`. Those without attempts left are left out,
    as any that is disturbed so often.
    """
    task, store = stage.task, stage.task.store
    retries = task.context.study.budget.retries
    spoiled = _with_their_rounds(replica.spoiled, plan, made)
    last = sum(made[index].attempt >= retries for index in spoiled)
    for index in spoiled:
        store.disturb(task.subject, made[index], replica.why)
        made[index] = replace(made[index], status="disturbed", detail=replica.why)
    found = store.get(task.subject, Agreement)
    if found is not None:
        store.put(task.subject, found.without(replica.replica, disturbs=replica.disturbs))
    task.context.progress.say(
        f"{task.title}: {replica.why}. {replica.replica} is set aside, and what it has spoiled "
        f"({len(spoiled)} trials) is measured again on the others"
        + (f", except for {last} that have no attempt left (retries)" if last else "")
        + ". Find out what is wrong there; --new begins with all replicas"
    )


def _with_their_rounds(
    spoiled: Collection[int], plan: Iterable[PlannedTrial], made: Mapping[int, Trial]
) -> tuple[int, ...]:
    """The spoiled trials, and the other usable ones of rounds that are not over, by index."""
    not_over = {p.block for p in plan if p.block and (p.index in spoiled or p.index not in made)}
    beside = _places(trial for trial in made.values() if trial.planned.block in not_over)
    return tuple(sorted({*spoiled, *beside}))


def _drifted(defaults: Mapping[str, list[Trial]], made: Mapping[int, Trial]) -> Distrusted | None:
    latencies = {
        name: [t.percentile_ms(PERCENTILE) for t in trials] for name, trials in defaults.items()
    }
    drift = replica_drift(latencies)
    if drift is None:
        return None
    since = defaults[drift.replica][drift.first].started_at
    why = (
        f"{drift.replica} has drifted: since {since} the default's P50 is {drift.ratio:.2f} times "
        "what it was, against the other replicas"
    )
    mine = (t for t in made.values() if t.replica == drift.replica and t.started_at >= since)
    return Distrusted(replica=drift.replica, why=why, spoiled=_places(mine))


def _disturbing(
    defaults: Mapping[str, list[Trial]], made: Mapping[int, Trial]
) -> Distrusted | None:
    sentinels = {
        name: [Sentinel(latency_ms=t.percentile_ms(PERCENTILE), span=_span(t)) for t in trials]
        for name, trials in defaults.items()
    }
    loads = {name: [_span(t) for t in made.values() if t.replica == name] for name in defaults}
    found = replica_disturbance(sentinels, loads)
    if found is None:
        return None
    why = (
        f"{found.replica} disturbs {found.disturbed}: the default's P50 there is {found.ratio} "
        f"times as high while {found.replica} has load"
    )
    beside = (
        t
        for t in made.values()
        if t.replica == found.disturbed and shared(_span(t), loads[found.replica]) > 0
    )
    return Distrusted(
        replica=found.replica, why=why, spoiled=_places(beside), disturbs=found.disturbed
    )


def _defaults(made: Mapping[int, Trial], replica: str) -> list[Trial]:
    """A replica's usable trials of the default under the workload's own load, in order."""
    return [
        trial
        for _, trial in sorted(made.items())
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
