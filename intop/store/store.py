"""The store of campaigns, plans, trials and results."""

from collections.abc import Collection, Iterable
from itertools import groupby
from typing import Any, TypeVar

import sqlalchemy as sa

from intop.domain.campaign_status import Place
from intop.domain.histogram import Histogram
from intop.domain.trial import Conditions, Outline, PlannedTrial, Trial
from intop.features import result_name
from intop.store.activities import Activities
from intop.store.documents import document_of, read_document
from intop.store.jobs import Jobs
from intop.store.rows import (
    COORDINATES,
    OUTLINED,
    Campaign,
    Subject,
    about,
    as_written,
    campaign_of,
    check_instant,
    conditions_of,
    key_of,
    now,
    outline_of,
    place_in_plan,
    place_of,
    planned_of,
    trial_of,
    values_of,
)
from intop.store.schema import campaign_table, planned_table, result_table, trial_table
from intop.store.searches import StoredSearches
from intop.store.session import Session
from intop.store.workers import Workers

T = TypeVar("T")


def trial_rows(
    subject: Subject, stages: Collection[str] = (), names: Collection[str] = ()
) -> "sa.Select[tuple[Any, ...]]":
    """Return the query for attempts at the trials of these stages (none: all), as measured.

    Each row has its place in the plan, its number as `trial_id`, and the columns of these `names`
    (none: all).
    """
    kept = [c for c in trial_table.c if c.name != "id" and (not names or c.name in names)]
    query = (
        sa.select(planned_table, trial_table.c.id.label("trial_id"), *kept)
        .join(trial_table, trial_table.c.planned_id == planned_table.c.id)
        .where(*about(planned_table, subject))
        .order_by(trial_table.c.id)
    )
    return query.where(planned_table.c.stage.in_(stages)) if stages else query


class Store:
    """An open database. Every method is a transaction of its own.

    It may be used by several threads. A method waits while a server is away, see `Session`.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.jobs = Jobs(session)
        self.workers = Workers(session)
        self.activities = Activities(session)

    def latest(self, study: str) -> Campaign | None:
        """Return the newest campaign of a study."""
        query = campaign_table.select().where(campaign_table.c.study == study)
        query = query.order_by(campaign_table.c.id.desc()).limit(1)
        row = self.session.first(query)
        return None if row is None else campaign_of(row)

    def earlier(self, campaign: Campaign) -> list[Campaign]:
        """Return the campaigns of the same study before this one, the oldest first."""
        return [c for c in self.campaigns() if c.study == campaign.study and c.id < campaign.id]

    def campaigns(self) -> list[Campaign]:
        """Return all campaigns of all studies, the oldest first."""
        rows = self.session.rows(campaign_table.select().order_by(campaign_table.c.id))
        return [campaign_of(row) for row in rows]

    def counts(self) -> dict[int, tuple[int, int]]:
        """Return how many places are planned and how many of them have a trial, by campaign."""
        of = planned_table.c.campaign_id
        first = sa.and_(trial_table.c.planned_id == planned_table.c.id, trial_table.c.attempt == 0)
        query = (
            sa.select(
                of,
                sa.func.count().label("planned"),
                sa.func.count(trial_table.c.id).label("measured"),
            )
            .select_from(planned_table.outerjoin(trial_table, first))
            .group_by(of)
        )
        rows = self.session.rows(query)
        return {row.campaign_id: (row.planned, row.measured) for row in rows}

    def subjects(self, campaign: Campaign) -> list[Subject]:
        """Return the subjects of a campaign's plans, in the order in which they began."""
        of = (planned_table.c.arch, planned_table.c.workload)
        query = sa.select(*of).where(planned_table.c.campaign_id == campaign.id)
        rows = self.session.rows(query.group_by(*of).order_by(sa.func.min(planned_table.c.id)))
        return [Subject(campaign=campaign, arch=r.arch, workload=r.workload) for r in rows]

    def subjects_with(self, *kinds: type) -> list[Subject]:
        """Return the subjects with a result of one of these types, the oldest campaign first."""
        of = (result_table.c.campaign_id, result_table.c.arch, result_table.c.workload)
        names = [_name(kind) for kind in kinds]
        query = sa.select(*of).where(result_table.c.kind.in_(names)).group_by(*of)
        campaigns = {campaign.id: campaign for campaign in self.campaigns()}
        rows = self.session.rows(query.order_by(of[0], sa.func.min(result_table.c.id)))
        return [
            Subject(campaign=campaigns[row.campaign_id], arch=row.arch, workload=row.workload)
            for row in rows
        ]

    def begin(self, study: str, *, seed: int, tool_version: str) -> Campaign:
        """Begin a new campaign of a study."""
        values = {"study": study, "started_at": now(), "seed": seed, "tool_version": tool_version}
        # Its own row: another process may begin one at the same time.
        insert = campaign_table.insert().values(values).returning(campaign_table)
        return self.session.write(lambda connection: campaign_of(connection.execute(insert).one()))

    def is_empty(self, campaign: Campaign, arch: str | None = None) -> bool:
        """Whether nothing was even planned in a campaign, for one architecture or at all."""
        query = sa.select(planned_table.c.id).where(planned_table.c.campaign_id == campaign.id)
        if arch is not None:
            query = query.where(planned_table.c.arch == arch)
        return not self.session.rows(query.limit(1))

    def finish(self, campaign: Campaign) -> None:
        """Note that a campaign has all that it was to have."""
        update = campaign_table.update().where(campaign_table.c.id == campaign.id)
        self.session.change(update.values(finished_at=now()))

    def plan(self, subject: Subject, stage: str) -> list[PlannedTrial]:
        """Return a stage's plan, in the order of measurement; empty when there is none yet."""
        query = planned_table.select().where(
            *about(planned_table, subject), planned_table.c.stage == stage
        )
        rows = self.session.rows(query.order_by(planned_table.c.position))
        with as_written(f"plan of {stage}"):
            return [planned_of(row) for row in rows]

    def planned(self, subject: Subject) -> dict[str, int]:
        """Return how many places each plan has, by stage."""
        stage = planned_table.c.stage
        query = sa.select(stage, sa.func.count().label("places")).where(
            *about(planned_table, subject)
        )
        return {row.stage: row.places for row in self.session.rows(query.group_by(stage))}

    def write_plan(self, subject: Subject, stage: str, plan: Iterable[PlannedTrial]) -> None:
        """Store a stage's plan, all of it or nothing."""
        rows = [
            {
                **key_of(subject),
                "stage": stage,
                "position": p.index,
                "role": p.role,
                "configuration": p.configuration.to_json(),
                **{name: getattr(p, name) for name in COORDINATES},
            }
            for p in plan
        ]
        self.session.write(lambda connection: connection.execute(planned_table.insert(), rows))

    def add(self, subject: Subject, trial: Trial) -> None:
        """Store one trial. It is on disk when this returns."""
        place = place_in_plan(key_of(subject), trial.stage, trial.planned.index)
        values = {"planned_id": place} | values_of(trial)
        self.session.change(trial_table.insert().values(values))

    def disturb(self, subject: Subject, trial: Trial, why: str) -> None:
        """Note that a stored trial was disturbed, as was only seen later."""
        place = place_in_plan(key_of(subject), trial.stage, trial.planned.index)
        update = trial_table.update().where(
            trial_table.c.planned_id == place,
            trial_table.c.attempt == trial.attempt,
        )
        self.session.change(update.values(status="disturbed", detail=why))

    def trials(self, subject: Subject, *stages: str) -> list[Trial]:
        """Return all attempts at the trials of these stages (default: all), as measured."""
        return [trial_of(row) for row in self.session.rows(trial_rows(subject, stages))]

    def attempt(self, subject: Subject, stage: str, index: int, attempt: int) -> Trial | None:
        """Return an attempt at the trial of a place; None where it is not stored."""
        query = trial_rows(subject, (stage,)).where(
            planned_table.c.position == index, trial_table.c.attempt == attempt
        )
        row = self.session.first(query)
        return None if row is None else trial_of(row)

    def outlines(self, subject: Subject, *stages: str) -> list[Outline]:
        """Return trials without what is large, in a fraction of the time."""
        query = trial_rows(subject, stages, (*OUTLINED, "judged_ms", "conditions"))
        return [outline_of(row) for row in self.session.rows(query)]

    def latencies(self, subject: Subject, *stages: str) -> dict[tuple[str, int, int], Histogram]:
        """Return the histograms of these stages' trials by stage, place in the plan and attempt."""
        latencies: dict[tuple[str, int, int], Histogram] = {}
        for row in self.session.rows(trial_rows(subject, stages, ("attempt", "histogram"))):
            if row.histogram is not None:
                with as_written(f"trial {row.trial_id}"):
                    place = row.stage, row.position, row.attempt
                    latencies[place] = Histogram.from_bytes(row.histogram)
        return latencies

    def campaign(self, number: int) -> Campaign:
        """Return the campaign of this number. Raises LookupError where there is none."""
        query = campaign_table.select().where(campaign_table.c.id == number)
        row = self.session.first(query)
        if row is None:
            raise LookupError(f"the store has no campaign {number}")
        return campaign_of(row)

    def conditions(self, subject: Subject, *stages: str) -> dict[str, Conditions]:
        """Return the conditions of the last trial of each of these stages (default: all).

        In the order of these trials. It is quick, since no trial is decoded.
        """
        last = (
            sa.select(sa.func.max(trial_table.c.id))
            .join(planned_table, trial_table.c.planned_id == planned_table.c.id)
            .where(*about(planned_table, subject))
            .group_by(planned_table.c.stage)
        )
        if stages:
            last = last.where(planned_table.c.stage.in_(stages))
        query = (
            sa.select(planned_table.c.stage, trial_table.c.id, trial_table.c.conditions)
            .join(planned_table, trial_table.c.planned_id == planned_table.c.id)
            .where(trial_table.c.id.in_(last))
            .order_by(trial_table.c.id)
        )
        conditions: dict[str, Conditions] = {}
        for row in self.session.rows(query):
            with as_written(f"trial {row.id}"):
                conditions[row.stage] = conditions_of(row.conditions)
        return conditions

    def places(self, subject: Subject, *stages: str) -> list[Place]:
        """Return the plans of these stages (default: all) with the outcome of each trial.

        In the order of measurement. It is quick, since no histogram is decoded.
        """
        last = trial_table.c.attempt.desc()
        columns = ("attempt", "status", "started_at", "seconds", "judged_ms", "replica")
        query = (
            sa.select(planned_table, *(trial_table.c[name] for name in columns))
            .outerjoin(trial_table, trial_table.c.planned_id == planned_table.c.id)
            .where(*about(planned_table, subject))
            .order_by(planned_table.c.id, last)
        )
        if stages:
            query = query.where(planned_table.c.stage.in_(stages))
        by_place = groupby(self.session.rows(query), lambda row: row.id)
        return [place_of(list(attempts)) for _, attempts in by_place]

    def results(self, subject: Subject) -> dict[str, str]:
        """Return when each kind of result was stored (UTC, ISO 8601)."""
        query = sa.select(result_table.c.kind, result_table.c.created_at).where(
            *about(result_table, subject)
        )
        instants = {row.kind: row.created_at for row in self.session.rows(query)}
        for kind, at in instants.items():
            with as_written(f"result {kind}"):
                check_instant(at)
        return instants

    def put(self, subject: Subject, result: object) -> None:
        """Store a result, a dataclass; a later one of the same type replaces it."""
        kind = _name(type(result))
        insert = self.session.insert
        values = {
            **key_of(subject),
            "kind": kind,
            "created_at": now(),
            "document": document_of(result),
        }
        self.session.change(
            insert(result_table)
            .values(values)
            .on_conflict_do_update(
                index_elements=[*key_of(subject), "kind"],
                set_={name: values[name] for name in ("created_at", "document")},
            )
        )

    def get(self, subject: Subject, kind: type[T]) -> T | None:
        """Return the result of a type, or None."""
        query = sa.select(result_table.c.document).where(
            *about(result_table, subject), result_table.c.kind == _name(kind)
        )
        text = self.session.read(lambda connection: connection.scalar(query))
        if text is None:
            return None
        with as_written(f"result {_name(kind)} of campaign {subject.campaign.id}"):
            return read_document(kind, text)

    def searches(self, subject: Subject) -> StoredSearches:
        """Return the searches for hyper-parameters of a subject's latest training."""
        return StoredSearches(self.session, subject)


def _name(kind: type) -> str:
    """Return the stored name of a type of result. Raises TypeError for any other type."""
    name = result_name(kind)
    if name is None:
        raise TypeError(f"{kind.__name__} is no result of a feature")
    return name
