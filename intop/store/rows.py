"""Rows of the store to what they mean, and back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from intop.domain.campaign_status import Place
from intop.domain.configuration import Configuration
from intop.domain.histogram import Histogram
from intop.domain.trial import Conditions, Outline, PlannedTrial, Trial
from intop.errors import StoredRowError
from intop.store.documents import adapted
from intop.store.packed_counters import packed, unpacked
from intop.store.schema import planned_table

COORDINATES = (
    *("arm", "round", "series", "step", "reason"),
    *("duration_s", "rate_rps", "connections", "closed_loop", "path", "other_workload"),
)
"""The columns that say where in its stage a trial belongs, called as in `PlannedTrial`."""

AS_THEY_ARE = (
    *("attempt", "status", "detail", "started_at", "seconds", "seed", "tool_version"),
    *("achieved_rps", "received_mb_s", "replica", "pruned_above_ms"),
)
"""The columns of a trial that hold what its fields of the same names do."""

OUTLINED = (*("attempt", "status", "detail", "started_at", "seconds", "tool_version", "replica"),)
"""The columns that a trial's outline has, too."""

LONGEST_S = 1e6
"""No trial takes eleven days."""


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """One run of a study, which may take several sittings."""

    id: int
    study: str
    started_at: str
    finished_at: str | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The subject of a plan, a trial or a result."""

    campaign: Campaign
    arch: str
    workload: str


def key_of(subject: Subject) -> dict[str, object]:
    """Return the columns that name a row's subject."""
    return {"campaign_id": subject.campaign.id, "arch": subject.arch, "workload": subject.workload}


def about(table: sa.Table, subject: Subject) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions that select the rows about a subject."""
    return tuple(table.c[name] == value for name, value in key_of(subject).items())


def place_in_plan(key: Mapping[str, object], stage: str, position: int) -> "sa.ScalarSelect[int]":
    """Return the subquery for the number of a planned trial's row; `key` is as by `key_of`."""
    values = {**key, "stage": stage, "position": position}
    wanted = (planned_table.c[name] == value for name, value in values.items())
    return sa.select(planned_table.c.id).where(*wanted).scalar_subquery()


@contextmanager
def as_written(what: str) -> Iterator[None]:
    """Name what can't be read: somebody else has written there, or another version of intop."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        reason = ": ".join([*map(str, first["loc"]), first["msg"]]) if first else str(error)
        raise StoredRowError(
            f"the store's {what} is not as this intop writes it: {' '.join(reason.split())[:300]}. "
            f"Bring back a copy of the store, or start anew with another one in [study]"
        ) from error


def loaded(text: str) -> Any:
    """Read JSON as we write it. Raises ValueError, also for NaN and its like."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no number")

    return json.loads(text, parse_constant=refuse)


def campaign_of(row: Any) -> Campaign:
    """Return a campaign. Raises StoredRowError for a row that no intop writes."""
    with as_written(f"campaign {row.id}"):
        return adapted(Campaign, {f.name: getattr(row, f.name) for f in fields(Campaign)})


def planned_of(row: Any) -> PlannedTrial:
    """Return a place of a plan. Raises ValueError for a row that no intop writes."""
    return adapted(
        PlannedTrial,
        {
            "index": row.position,
            "role": row.role,
            "configuration": configuration_of(row.configuration),
            **{name: getattr(row, name) for name in COORDINATES},
        },
    )


def place_of(attempts: Sequence[Any]) -> Place:
    """Return a place by its attempts, the last one first; without one its row has no trial.

    Raises StoredRowError for a row that no intop writes.
    """
    row = attempts[0]
    measured = [attempt for attempt in attempts if attempt.attempt is not None]
    with as_written(f"plan of {row.stage}"):
        values = {
            "stage": row.stage,
            "index": row.position,
            "role": row.role,
            "configuration": configuration_of(row.configuration),
            "series": row.series,
            "attempts": len(measured),
            "disturbed": sum(attempt.status == "disturbed" for attempt in measured),
        }
        if measured:
            names = ("status", "started_at", "seconds", "judged_ms", "replica")
            values |= {name: getattr(row, name) for name in names}
            check_instant(row.started_at)
            if not 0 <= row.seconds < LONGEST_S or not (row.judged_ms is None or row.judged_ms > 0):
                raise ValueError(f"{row.seconds} s, latency {row.judged_ms} ms")
        return adapted(Place, values)


def check_instant(text: str) -> None:
    """Raises ValueError for what is no time with its zone."""
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(f"{text} has no time zone")


@lru_cache(maxsize=1024)
def configuration_of(text: str) -> Configuration:
    """Return a configuration by its column: the default, replicates and arms of rounds come often.

    Raises ValueError or TypeError for what no intop writes.
    """
    return Configuration.from_json(text)


@lru_cache(maxsize=64)
def conditions_of(text: str) -> Conditions:
    """Return the conditions of a trial, which nearly all trials of a campaign have in common.

    Raises ValueError or TypeError for what no intop writes.
    """
    values = loaded(text)
    if unknown := set(values) - {field.name for field in fields(Conditions)}:
        # Left out, trials of other conditions would look alike.
        raise ValueError(f"unknown conditions {', '.join(sorted(unknown))}")
    return adapted(Conditions, values)


def trial_of(row: Any) -> Trial:
    """Return a trial with its place. Raises StoredRowError for a row that no intop writes."""
    with as_written(f"trial {row.trial_id}"):
        return adapted(
            Trial,
            {
                "planned": planned_of(row),
                "stage": row.stage,
                "conditions": conditions_of(row.conditions),
                "histogram": None if row.histogram is None else Histogram.from_bytes(row.histogram),
                "errors": loaded(row.errors),
                "metrics": loaded(row.metrics),
                "counters": unpacked(row.counters),
                **{name: getattr(row, name) for name in AS_THEY_ARE},
            },
        )


def values_of(trial: Trial) -> dict[str, Any]:
    """Return the columns of a trial's row, without its place."""
    return {
        **{name: getattr(trial, name) for name in AS_THEY_ARE},
        "judged_ms": trial.judged_ms if trial.histogram is not None else None,
        "histogram": None if trial.histogram is None else trial.histogram.to_bytes(),
        "errors": json.dumps(dict(trial.errors)),
        # Their fields are plain values, which `asdict` would copy one by one.
        "metrics": json.dumps({name: vars(m) for name, m in trial.metrics.items()}),
        "conditions": json.dumps(vars(trial.conditions)),
        "counters": packed(trial.counters),
    }


def outline_of(row: Any) -> Outline:
    """Return a trial without what is large. Raises StoredRowError as `trial_of` does."""
    with as_written(f"trial {row.trial_id}"):
        return adapted(
            Outline,
            {
                "planned": planned_of(row),
                "stage": row.stage,
                "conditions": conditions_of(row.conditions),
                "measured_ms": row.judged_ms,
                **{name: getattr(row, name) for name in OUTLINED},
            },
        )


def now() -> str:
    """Return the time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
