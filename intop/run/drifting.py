"""Replicas that drift away from the others while a stage is measured: found, and set aside."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from intop.domain.agreement import Agreement
from intop.domain.replica_drift import ReplicaDrift, replica_drift
from intop.domain.trial import Trial
from intop.run.stage import Stage

PERCENTILE = 50.0
"""Whose latency is watched. P99 of a short trial scatters too much for it."""


def drifted(stage: Stage[Any], made: Mapping[int, Trial]) -> ReplicaDrift | None:
    """The replica that measures the default otherwise than it did, by a stage's trials so far."""
    found = stage.task.store.get(stage.task.subject, Agreement)
    if stage.is_apart or found is None or len(found.in_use) < 2:
        return None
    names = [found.replicas[n].name for n in found.in_use]
    defaults = _defaults(made)
    return replica_drift(
        {name: [t.percentile_ms(PERCENTILE) for t in defaults.get(name, ())] for name in names}
    )


def set_aside(stage: Stage[Any], drift: ReplicaDrift, made: dict[int, Trial]) -> None:
    """Measure on the other replicas from now on, and again what this one has measured since.

    Trials since the change become disturbed, in the store and in `made`.
    """
    task, store = stage.task, stage.task.store
    since = _defaults(made)[drift.replica][drift.first].started_at
    why = (
        f"{drift.replica} has drifted: since {since} the default's P50 is {drift.ratio:.2f} times "
        "what it was, against the other replicas"
    )
    mine = [
        t
        for t in made.values()
        if t.replica == drift.replica and t.usable and t.started_at >= since
    ]
    for trial in mine:
        store.disturb(task.subject, trial, why)
        made[trial.planned.index] = replace(trial, status="disturbed", detail=why)
    found = store.get(task.subject, Agreement)
    if found is not None:
        store.put(task.subject, found.without(drift.replica))
    task.context.progress.say(
        f"{task.title}: {why}. It is set aside, and what it measured since then ({len(mine)} "
        f"trials) is measured again on the others. Find out what changed there; --new begins with "
        "all replicas"
    )


def _defaults(made: Mapping[int, Trial]) -> dict[str, list[Trial]]:
    """The usable trials of the default under the workload's own load, by replica, in order."""
    found: dict[str, list[Trial]] = {}
    for index in sorted(made):
        trial, planned = made[index], made[index].planned
        own_load = planned.has_its_own_load or planned.other_workload
        if trial.configuration.is_default and trial.usable and not own_load:
            found.setdefault(trial.replica, []).append(trial)
    return found
