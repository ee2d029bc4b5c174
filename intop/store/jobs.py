"""Jobs and leases in the store: each trial is measured by one worker at a time, and counts once.

A claim is one statement, so it is atomic on both databases; PostgreSQL skips the rows that others
are claiming. A trial is stored in the transaction that ends its job, and only by whoever holds the
job's newest token. A result that comes later is kept as evidence (`late_trial`) and counts for
nothing.
"""

import json
from base64 import b64encode
from collections.abc import Iterable
from types import UnionType
from typing import Any

import sqlalchemy as sa

from intop.domain.job import Job, JobSettings, JobStatus, Kind, Lease, Opened, Refusal, Spot
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import StoredRowError, UnreadableJobError
from intop.store.documents import document_of, read_document
from intop.store.rows import (
    Subject,
    about,
    as_written,
    key_of,
    now,
    place_in_plan,
    planned_of,
    values_of,
)
from intop.store.schema import (
    campaign_table,
    job_table,
    late_trial_table,
    planned_table,
    trial_table,
)
from intop.store.session import Session, StoreClock, as_inserted

_ANSWERS: dict[str, type[Opened | Refusal]] = {"open": Opened, "refusal": Refusal}
"""The answer to each kind of question."""

_HAS_RUN_OUT = sa.and_(job_table.c.state == "claimed", job_table.c.lease_until < StoreClock())
_IS_FREE = sa.or_(job_table.c.state == "offered", _HAS_RUN_OUT)
_MOST_CLAIMS = 2**31 - 1
_IS_CLAIMABLE = sa.and_(_IS_FREE, job_table.c.token < _MOST_CLAIMS)
"""A token that somebody else has made larger than its column could not grow any more."""
_IS_HELD = sa.and_(job_table.c.state == "claimed", job_table.c.lease_until >= StoreClock())

ATTEMPT = ("planned_id", "attempt")
"""The key of jobs and of trials: there is one of each."""

_OF_WHOM = ("campaign_id", "arch", "workload", "kind")
"""The columns that follow from a place of a plan; a row with other values is not ours."""

NO_REPLICA = -1
"""The place of a trial that the process which asks for it measures itself: no worker's."""


class Jobs:
    """The jobs of an open store. Every method is a transaction of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # -- who asks ----------------------------------------------------------------------------------

    def offer(
        self,
        subject: Subject,
        stage: str,
        planned: PlannedTrial,
        *,
        attempt: int,
        replica: int,
        request: JobSettings,
    ) -> int:
        """Offer a trial to whoever serves a replica, and return the job's number.

        A job of the same attempt that somebody holds goes on. Any other begins again.
        """
        place = place_in_plan(key_of(subject), stage, planned.index)
        insert = self._session.insert(job_table).values(
            **_values(subject, replica, "trial", request), planned_id=place, attempt=attempt
        )
        again = as_inserted(*_OF_WHOM, "replica", "request", "state")
        offered = insert.on_conflict_do_update(
            index_elements=ATTEMPT,
            set_=again | {"answer": "", "problem": ""},
            where=~_IS_HELD,
        )
        wanted = job_table.c.planned_id == place, job_table.c.attempt == attempt

        def work(connection: sa.Connection) -> int:
            connection.execute(offered)
            number: int = connection.execute(sa.select(job_table.c.id).where(*wanted)).scalar_one()
            return number

        return self._session.write(work)

    def ask(self, subject: Subject, replica: int, kind: Kind, request: JobSettings) -> int:
        """Ask a replica something that is no trial, and return the job's number."""
        insert = job_table.insert().values(_values(subject, replica, kind, request))

        def work(connection: sa.Connection) -> int:
            number: int = connection.execute(insert.returning(job_table.c.id)).scalar_one()
            return number

        return self._session.write(work)

    def status(self, job: int) -> JobStatus | None:
        """Return how far a job is; None once it is gone, as a trial's is that is stored."""
        columns = (job_table.c[n] for n in ("kind", "state", "answer", "problem", "replica"))
        query = sa.select(*columns, _IS_FREE.label("is_free")).where(job_table.c.id == job)
        row = self._session.first(query)
        if row is None:
            return None
        is_done = row.state == "done"
        with as_written(f"job {job}"):
            answer = read_document(_ANSWERS[row.kind], row.answer) if is_done else None
        return JobStatus(
            state=row.state,
            answer=answer,
            why="" if is_done else row.answer,
            problem=row.problem,
            is_free=bool(row.is_free),
            replica=row.replica,
        )

    def move(self, job: int, replica: int) -> bool:
        """Give a job that nobody holds to another replica. Return whether it could."""
        update = job_table.update().where(job_table.c.id == job, _IS_FREE)
        return bool(self._session.change(update.values(replica=replica, state="offered")))

    def withdraw(self, job: int) -> None:
        """Take back a job, unless somebody holds it."""
        self._session.change(job_table.delete().where(job_table.c.id == job, ~_IS_HELD))

    def waiting(self) -> dict[int, tuple[int, int]]:
        """Return how many jobs are free and how many are held, by campaign."""
        is_free = sa.case((_IS_FREE, 1), else_=0)
        query = (
            sa.select(
                job_table.c.campaign_id,
                sa.func.sum(is_free).label("free"),
                sa.func.count().label("open"),
            )
            .where(job_table.c.state.in_(("offered", "claimed")))
            .group_by(job_table.c.campaign_id)
        )
        rows = self._session.rows(query)
        return {row.campaign_id: (int(row.free), int(row.open - row.free)) for row in rows}

    # -- who measures ------------------------------------------------------------------------------

    def take(
        self,
        subject: Subject,
        stage: str,
        planned: PlannedTrial,
        *,
        attempt: int,
        request: JobSettings,
        worker: str,
        lease_s: float,
    ) -> Lease:
        """Return a lease on a trial, for a process that asks and measures itself.

        It holds the replica by the guard on its host, so whoever had the lease before has lost it.
        """
        insert = self._session.insert(job_table).values(
            **_values(subject, NO_REPLICA, "trial", request)
            | {"state": "claimed", "worker": worker, "lease_until": StoreClock() + lease_s},
            planned_id=place_in_plan(key_of(subject), stage, planned.index),
            attempt=attempt,
            token=1,
        )
        taken = as_inserted(*_OF_WHOM, "replica", "state", "worker", "lease_until")
        taking = insert.on_conflict_do_update(
            index_elements=ATTEMPT, set_=taken | {"token": job_table.c.token + 1}
        ).returning(job_table.c.id, job_table.c.token)
        # Taken twice, the second lease counts, which is the one that is returned.
        row = self._session.write(lambda connection: connection.execute(taking).one(), once=False)
        job = Job(
            id=row.id,
            kind="trial",
            campaign_id=subject.campaign.id,
            spot=Spot(study=subject.campaign.study, arch=subject.arch, replica=NO_REPLICA),
            workload=subject.workload,
            request=request,
            stage=stage,
            planned=planned,
            attempt=attempt,
        )
        return Lease(job=job, worker=worker, token=row.token)

    def next(self, spots: Iterable[Spot]) -> Job | None:
        """Return the job that has waited longest on one of these replicas, without claiming it.

        Raises UnreadableJobError for a row that is none: whoever asks again after `reject` gets the
        one behind it.
        """
        wanted = sa.or_(sa.false(), *map(_on, spots))
        row = self._session.first(_jobs().where(wanted, _IS_CLAIMABLE).limit(1))
        return None if row is None else _job_of(row)

    def claim(
        self, spot: Spot, campaign_id: int, workload: str, *, worker: str, lease_s: float
    ) -> Lease | None:
        """Claim the job of a campaign that has waited longest on a replica; None without one.

        Raises UnreadableJobError as `next` does, and nothing is claimed then.
        """
        waiting = (
            sa.select(job_table.c.id)
            .join(campaign_table, campaign_table.c.id == job_table.c.campaign_id)
            .where(
                _on(spot),
                job_table.c.campaign_id == campaign_id,
                job_table.c.workload == workload,
                _IS_CLAIMABLE,
            )
            .order_by(job_table.c.id)
            .limit(1)
            .with_for_update(of=job_table, skip_locked=True)
        )
        claiming = (
            job_table.update()
            .where(job_table.c.id == waiting.scalar_subquery())
            .values(
                state="claimed",
                worker=worker,
                problem="",
                token=job_table.c.token + 1,
                lease_until=StoreClock() + lease_s,
            )
            .returning(job_table.c.id, job_table.c.token)
        )

        def work(connection: sa.Connection) -> Lease | None:
            claimed = connection.execute(claiming).first()
            if claimed is None:
                return None
            row = connection.execute(_jobs().where(job_table.c.id == claimed.id)).one()
            return Lease(job=_job_of(row), worker=worker, token=claimed.token)

        return self._session.write(work)

    def renew(self, lease: Lease, lease_s: float) -> bool:
        """Hold a job for longer. Return whether it is still this worker's."""
        update = job_table.update().where(*_held_by(lease), job_table.c.state == "claimed")
        return bool(self._session.change(update.values(lease_until=StoreClock() + lease_s)))

    def complete(self, lease: Lease, trial: Trial) -> bool:
        """Store a trial and end its job, both or neither.

        Returns False where the lease was lost to somebody else, or this attempt was stored before
        the lease was taken: the trial is kept as evidence, and counts for nothing.
        """
        ending = job_table.delete().where(*_held_by(lease)).returning(job_table.c.planned_id)
        values = values_of(trial)
        insert = self._session.insert(trial_table).on_conflict_do_nothing(index_elements=ATTEMPT)
        storing = insert.returning(trial_table.c.id)

        def work(connection: sa.Connection) -> bool:
            planned_id = connection.execute(ending).scalar()
            if planned_id is not None:
                row = storing.values(planned_id=planned_id, **values)
                if connection.execute(row).first() is not None:
                    return True
            connection.execute(late_trial_table.insert().values(_evidence(lease, values)))
            return False

        return self._session.write(work)

    def answer(self, lease: Lease, answer: Opened | Refusal) -> None:
        """End a job that is a question. Nothing happens where somebody else has it by now."""
        self._end(lease, "done", document_of(answer))

    def fail(self, lease: Lease, why: str) -> None:
        """End a job that nobody can do as it stands."""
        self._end(lease, "failed", why)

    def reject(self, job: int, why: str) -> None:
        """End a job, by its number, that nobody can do and nobody has claimed."""
        update = job_table.update().where(job_table.c.id == job, _IS_FREE)
        self._session.change(update.values(state="failed", answer=why))

    def release(self, lease: Lease, problem: str = "") -> None:
        """Leave a job to somebody else, unless the store is away: then its lease runs out."""
        update = job_table.update().where(*_held_by(lease), job_table.c.state == "claimed")
        self._session.attempt(update.values(state="offered", problem=problem))

    def drop(self, lease: Lease) -> None:
        """End a job that nobody else shall do, unless the store is away.

        Its process asks for it again once it goes on.
        """
        mine = job_table.delete().where(*_held_by(lease), job_table.c.state == "claimed")
        self._session.attempt(mine)

    def note(self, job: Job, problem: str) -> None:
        """Note what keeps a worker from a job that it has not claimed."""
        update = job_table.update().where(job_table.c.id == job.id, _IS_FREE)
        self._session.change(update.values(problem=problem))

    def late(self, subject: Subject) -> list[tuple[str, str]]:
        """Return who brought a result too late, and when, the first one first."""
        query = (
            sa.select(late_trial_table.c.worker, late_trial_table.c.stored_at)
            .join(planned_table, planned_table.c.id == late_trial_table.c.planned_id)
            .where(*about(planned_table, subject))
            .order_by(late_trial_table.c.id)
        )
        return [(row.worker, row.stored_at) for row in self._session.rows(query)]

    def _end(self, lease: Lease, state: str, answer: str) -> None:
        update = job_table.update().where(*_held_by(lease))
        self._session.change(update.values(state=state, answer=answer))


def _values(subject: Subject, replica: int, kind: Kind, request: JobSettings) -> dict[str, Any]:
    """The columns of a job that is offered."""
    return {
        **key_of(subject),
        "replica": replica,
        "kind": kind,
        "request": document_of(request),
        "state": "offered",
    }


def _jobs() -> "sa.Select[Any]":
    """Return the query for jobs with their places in plans, in the order of their offers."""
    known = ("id", "campaign_id", "arch", "workload")
    is_place = [planned_table.c[n] == job_table.c[n] for n in known if n != "id"]
    own = [column for column in planned_table.c if column.name not in known]
    return (
        sa.select(job_table, campaign_table.c.study, *own)
        .join(campaign_table, campaign_table.c.id == job_table.c.campaign_id)
        .outerjoin(planned_table, sa.and_(planned_table.c.id == job_table.c.planned_id, *is_place))
        .order_by(job_table.c.id)
    )


def _evidence(lease: Lease, values: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a result that came too late. Raises ValueError for what is no trial's."""
    job = lease.job
    if job.planned is None:
        raise ValueError(f"job {job.id} is no trial's")
    key = {"campaign_id": job.campaign_id, "arch": job.spot.arch, "workload": job.workload}
    return {
        "planned_id": place_in_plan(key, job.stage, job.planned.index),
        "attempt": job.attempt,
        "worker": lease.worker,
        "token": lease.token,
        "stored_at": now(),
        "document": json.dumps(values, default=lambda data: b64encode(data).decode()),
    }


def _on(spot: Spot) -> sa.ColumnElement[bool]:
    return sa.and_(
        campaign_table.c.study == spot.study,
        job_table.c.arch == spot.arch,
        job_table.c.replica == spot.replica,
    )


def _held_by(lease: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    return job_table.c.id == lease.job.id, job_table.c.token == lease.token


_TYPES: dict[str, type | UnionType] = {"workload": str, "stage": str | None, "attempt": int}
"""Types of columns that SQLite keeps with whatever type somebody has given them."""


def _job_of(row: Any) -> Job:
    try:
        with as_written(f"job {row.id}"):
            for name, kind in _TYPES.items():
                if not isinstance(value := getattr(row, name), kind):
                    raise TypeError(f"{name} is {value!r}")
            return Job(
                id=row.id,
                kind=row.kind,
                campaign_id=row.campaign_id,
                spot=Spot(study=row.study, arch=row.arch, replica=row.replica),
                workload=row.workload,
                request=read_document(JobSettings, row.request),
                stage=row.stage or "",
                planned=None if row.planned_id is None else planned_of(row),
                attempt=row.attempt,
            )
    except StoredRowError as error:
        raise UnreadableJobError(row.id, str(error)) from error
