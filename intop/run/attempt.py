"""One attempt at a trial: the load that is sent, what came of it, and the record of both."""

import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from intop.domain.trial import Conditions, PlannedTrial, Trial
from intop.domain.workload import Workload
from intop.hosts.measure import Measurement
from intop.run.loads import Sent
from intop.run.validity import Validity
from intop.version import __version__

if TYPE_CHECKING:
    from intop.domain.recording import Slots

UNCOUNTED = 0.005
"""The share of requests that wrk2 may leave out without a word: half of those that make P99."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt at a planned trial of a stage, with its load."""

    planned: PlannedTrial
    stage: str
    number: int
    """0 for the first attempt."""
    sent: Sent
    workload: Workload
    """The load: its workload's, with what the planned trial has of its own."""
    seed: int
    slots: "Slots | None"
    """The requests of recorded arrivals; None for others."""
    prune_above_ms: float | None
    started: datetime
    started_s: float
    """The time at which it began, by a clock that nobody sets."""

    def conditions(self, own: Conditions) -> Conditions:
        """Return the testbed's own conditions with those of this load."""
        if self.planned.other_workload:
            own = replace(own, **self.sent.conditions)
        load = self.workload
        return replace(
            own,
            duration_s=load.counted_s,
            rate_rps=load.due_rps,
            connections=load.connections,
            traffic=load.traffic,
            paths=load.only_path or own.paths,
        )


@dataclass(kw_only=True)
class Outcome:
    """The outcome of an attempt, filled in step by step."""

    validity: Validity = field(default_factory=lambda: Validity("ok"))
    unsettled: str = ""
    """The quantities that had not settled when the load began."""
    unknown: str = ""
    """The quantities of which nobody knows whether they had."""
    measurement: Measurement | None = None
    """None where something went wrong."""

    @property
    def detail(self) -> str:
        """The reason for the status, and what else is to be known.

        A failed trial leaves out what is unknown: it would look like the reason.
        """
        unknown = "" if self.validity.detail else self.unknown
        parts = (self.validity.detail, self.unsettled, unknown, _uncounted(self.measurement))
        return "; ".join(filter(None, parts))

    @property
    def measured(self) -> dict[str, Any]:
        """The fields of a trial that only a measurement fills."""
        if self.measurement is None:
            return {}
        result = self.measurement.result
        return {
            "histogram": result.histogram,
            "achieved_rps": result.achieved_rps,
            "received_mb_s": result.received_mb_s,
            "errors": result.errors,
            "metrics": self.measurement.metrics,
            "counters": self.measurement.counters,
        }

    @property
    def is_stopped(self) -> bool:
        """Whether the load was stopped before its end."""
        return self.measurement is not None and self.measurement.result.stopped_after_s is not None


def record(attempt: Attempt, outcome: Outcome, conditions: Conditions, replica: str) -> Trial:
    """Return the trial that an attempt on a replica has become.

    `conditions` are the testbed's own, without those of the load.
    """
    return Trial(
        planned=attempt.planned,
        stage=attempt.stage,
        attempt=attempt.number,
        status=outcome.validity.status,
        detail=outcome.detail,
        conditions=attempt.conditions(conditions),
        started_at=attempt.started.isoformat(timespec="seconds"),
        seconds=time.monotonic() - attempt.started_s,
        seed=attempt.seed,
        tool_version=__version__,
        replica=replica,
        pruned_above_ms=attempt.prune_above_ms if outcome.is_stopped else None,
        **outcome.measured,
    )


def pruned(stopped_after_s: float | None, planned_s: float, limit_ms: float | None) -> str:
    """Return why a trial was pruned; "" where it was not."""
    if stopped_after_s is None or limit_ms is None:
        return ""
    return (
        f"pruned after {stopped_after_s:.1f} of {planned_s:g} s: its latency is certainly above "
        f"{limit_ms:.0f} ms (prune_factor x the default's)"
    )


def load_words(planned: PlannedTrial) -> str:
    """Return what shares a load: the round of all its arms, else the trial alone.

    The seeds of loads depend on these words, so a campaign that has begun needs the same ones.
    """
    if planned.round is not None:
        return f"{planned.round}" if planned.series == 1 else f"{planned.series}.{planned.round}"
    if planned.step is not None:
        return f"{planned.step}.{planned.index}"
    if planned.duration_s is not None:
        return f"{planned.index + 1}"
    return f"trial {planned.index}"


def _uncounted(measurement: Measurement | None) -> str:
    """Return what the load tool left out of its histogram; "" within a rounding error."""
    if measurement is None:
        return ""
    result = measurement.result
    if result.uncounted <= UNCOUNTED * (result.requests + result.uncounted):
        return ""
    return (
        f"wrk2 counts nothing that is unanswered at the end: {result.uncounted} requests were due "
        'and are in no figure (load_tool = "engine" counts them)'
    )
