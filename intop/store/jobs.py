"""Jobs and leases in the store: each trial is measured by one worker at a time, and counts once.

A claim is one statement, so it is atomic on both databases; PostgreSQL skips the rows that others
are claiming. A trial is stored in the transaction that ends its job, and only by whoever holds the
job's newest token. A result that comes later is kept as evidence (`late_trial`) and counts for
nothing.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.dialects import postgresql, sqlite

from intop.domain.job import Job, JobStatus, Kind, Lease, Request, Spot, WorkerStatus
from intop.domain.trial import PlannedTrial, Trial
from intop.store.clock import StoreClock
from intop.store.rows import Subject, about, as_written, key_of, now, planned_of, values_of
from intop.store.schema import (
    campaign_table,
    job_table,
    late_trial_table,
    planned_table,
    trial_table,
    worker_table,
)

_REQUEST = TypeAdapter(Request)
_SPOTS = TypeAdapter(tuple[Spot, ...])

_IS_FREE = sa.or_(
    job_table.c.state == "offered",
    sa.and_(job_table.c.state == "claimed", job_table.c.lease_until < StoreClock()),
)


class Jobs:
    """The jobs of an open store. Every method is a transaction of its own."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    # -- who asks ----------------------------------------------------------------------------------

    def offer(
        self,
        subject: Subject,
        stage: str,
        planned: PlannedTrial,
        *,
        attempt: int,
        replica: int,
        request: Request,
    ) -> int:
        """Offer a trial to whoever serves a replica, and return the job's number.

        A job of the same attempt that somebody holds goes on. Any other begins again.
        """
        place = _place(subject, stage, planned)
        values = self._values(subject, replica, "trial", request) | {
            "planned_id": place,
            "attempt": attempt,
        }
        with self._engine.begin() as connection:
            insert = self._insert(job_table).values(values)
            again = {name: insert.excluded[name] for name in ("replica", "request", "state")}
            free = sa.or_(job_table.c.state == "failed", _IS_FREE)
            connection.execute(
                insert.on_conflict_do_update(
                    index_elements=["planned_id", "attempt"],
                    set_=again | {"answer": "", "problem": ""},
                    where=free,
                )
            )
            wanted = job_table.c.planned_id == place, job_table.c.attempt == attempt
            found: int = connection.execute(sa.select(job_table.c.id).where(*wanted)).scalar_one()
            return found

    def ask(self, subject: Subject, replica: int, kind: Kind, request: Request) -> int:
        """Ask a replica something that is no trial, and return the job's number."""
        values = self._values(subject, replica, kind, request)
        with self._engine.begin() as connection:
            made = job_table.insert().values(values).returning(job_table.c.id)
            found: int = connection.execute(made).scalar_one()
            return found

    def status(self, job: int) -> JobStatus | None:
        """How far a job is; None once it is gone, as that of a trial which is stored."""
        columns = (job_table.c[name] for name in ("state", "answer", "problem", "worker"))
        query = sa.select(*columns, _IS_FREE.label("is_free")).where(job_table.c.id == job)
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        return JobStatus(
            state=row.state,
            answer=row.answer,
            problem=row.problem,
            worker=row.worker,
            is_free=bool(row.is_free),
        )

    def move(self, job: int, replica: int) -> bool:
        """Give a job that nobody holds to another replica. Says whether it could."""
        update = job_table.update().where(job_table.c.id == job, _IS_FREE)
        with self._engine.begin() as connection:
            done = connection.execute(update.values(replica=replica, state="offered"))
            return done.rowcount == 1

    def withdraw(self, job: int) -> None:
        """Take back a job, unless somebody holds it."""
        held = sa.and_(job_table.c.state == "claimed", job_table.c.lease_until >= StoreClock())
        with self._engine.begin() as connection:
            connection.execute(job_table.delete().where(job_table.c.id == job, ~held))

    # -- who measures ------------------------------------------------------------------------------

    def take(
        self,
        subject: Subject,
        stage: str,
        planned: PlannedTrial,
        *,
        attempt: int,
        request: Request,
        worker: str,
        lease_s: float,
    ) -> Lease:
        """A lease on a trial for a process that asks and measures itself.

        It holds the replica by the guard on its host, so whoever had the lease before has lost it.
        """
        place = _place(subject, stage, planned)
        values = self._values(subject, 0, "trial", request) | {
            "planned_id": place,
            "attempt": attempt,
            "state": "claimed",
            "worker": worker,
            "token": 1,
            "lease_until": StoreClock() + lease_s,
        }
        with self._engine.begin() as connection:
            insert = self._insert(job_table).values(values)
            taken = {name: insert.excluded[name] for name in ("state", "worker", "lease_until")}
            row = connection.execute(
                insert.on_conflict_do_update(
                    index_elements=["planned_id", "attempt"],
                    set_=taken | {"token": job_table.c.token + 1},
                ).returning(job_table.c.id, job_table.c.token)
            ).one()
        job = Job(
            id=row.id,
            kind="trial",
            campaign_id=subject.campaign.id,
            spot=Spot(study=subject.campaign.study, arch=subject.arch, replica=0),
            workload=subject.workload,
            request=request,
            stage=stage,
            planned=planned,
            attempt=attempt,
        )
        return Lease(job=job, worker=worker, token=row.token)

    def next(self, spots: Iterable[Spot]) -> Job | None:
        """The job that has waited longest on one of these replicas; nobody claims it by that."""
        wanted = sa.or_(sa.false(), *(_on(spot) for spot in spots))
        with self._engine.connect() as connection:
            row = connection.execute(self._found().where(wanted, _IS_FREE).limit(1)).first()
        return None if row is None else _job_of(row)

    def claim(
        self, spot: Spot, campaign_id: int, workload: str, *, worker: str, lease_s: float
    ) -> Lease | None:
        """Claim the job of a campaign that has waited longest on a replica; None without one."""
        waiting = (
            sa.select(job_table.c.id)
            .join(campaign_table, campaign_table.c.id == job_table.c.campaign_id)
            .where(
                _on(spot),
                job_table.c.campaign_id == campaign_id,
                job_table.c.workload == workload,
                _IS_FREE,
            )
            .order_by(job_table.c.id)
            .limit(1)
            .with_for_update(of=job_table, skip_locked=True)
        )
        update = (
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
        with self._engine.begin() as connection:
            claimed = connection.execute(update).first()
            if claimed is None:
                return None
            row = connection.execute(self._found().where(job_table.c.id == claimed.id)).one()
        return Lease(job=_job_of(row), worker=worker, token=claimed.token)

    def renew(self, lease: Lease, lease_s: float) -> bool:
        """Hold a job for longer. Says whether it is still this worker's."""
        update = job_table.update().where(*_held_by(lease), job_table.c.state == "claimed")
        with self._engine.begin() as connection:
            done = connection.execute(update.values(lease_until=StoreClock() + lease_s))
            return done.rowcount == 1

    def complete(self, lease: Lease, trial: Trial) -> bool:
        """Store a trial and end its job, both or neither.

        Returns False where the lease was lost to somebody else: the trial is kept as evidence, and
        counts for nothing. The same trial may be stored twice, by a caller who was not told of the
        first time; it counts once.
        """
        with self._engine.begin() as connection:
            ended = job_table.delete().where(*_held_by(lease)).returning(job_table.c.planned_id)
            planned_id = connection.execute(ended).scalar()
            if planned_id is not None:
                row = {"planned_id": planned_id} | values_of(trial)
                connection.execute(trial_table.insert().values(row))
                return True
            return self._is_stored(connection, lease, trial) or self._keep(connection, lease, trial)

    def answer(self, lease: Lease, text: str) -> None:
        """End a job that is a question; without a word if somebody else has it by now."""
        self._end(lease, "done", text)

    def fail(self, lease: Lease, why: str) -> None:
        """End a job that nobody can do as it stands."""
        self._end(lease, "failed", why)

    def release(self, lease: Lease, problem: str = "") -> None:
        """Give a job back, for somebody else."""
        update = job_table.update().where(*_held_by(lease), job_table.c.state == "claimed")
        with self._engine.begin() as connection:
            connection.execute(update.values(state="offered", problem=problem))

    def note(self, job: Job, problem: str) -> None:
        """Say what keeps a worker from a job that it has not claimed."""
        update = job_table.update().where(job_table.c.id == job.id, _IS_FREE)
        with self._engine.begin() as connection:
            connection.execute(update.values(problem=problem))

    # -- workers -----------------------------------------------------------------------------------

    def beat(self, worker: WorkerStatus) -> None:
        """A worker's sign of life; `silent_s` has no meaning here."""
        values = {
            "name": worker.name,
            "started_at": worker.started_at,
            "heard_at": StoreClock(),
            "doing": worker.doing,
            "reach": json.dumps([asdict(spot) for spot in worker.reach]),
            "trials": worker.trials,
            "failures": worker.failures,
        }
        insert = self._insert(worker_table).values(values)
        changed = {name: insert.excluded[name] for name in values if name != "name"}
        with self._engine.begin() as connection:
            connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_=changed))

    def workers(self) -> list[WorkerStatus]:
        """All workers that were ever heard of, the latest first."""
        silent = (StoreClock() - worker_table.c.heard_at).label("silent_s")
        query = sa.select(worker_table, silent).order_by(worker_table.c.heard_at.desc())
        found: list[WorkerStatus] = []
        with self._engine.connect() as connection:
            for row in connection.execute(query):
                with as_written(f"worker {row.name}"):
                    found.append(
                        WorkerStatus(
                            name=row.name,
                            started_at=row.started_at,
                            silent_s=max(0.0, row.silent_s),
                            doing=row.doing,
                            reach=_SPOTS.validate_json(row.reach),
                            trials=row.trials,
                            failures=row.failures,
                        )
                    )
        return found

    def forget(self, worker: str) -> None:
        """Remove a worker that has ended."""
        with self._engine.begin() as connection:
            connection.execute(worker_table.delete().where(worker_table.c.name == worker))

    def waiting(self) -> dict[int, tuple[int, int]]:
        """By campaign, how many jobs are free and how many are held."""
        is_free = sa.case((_IS_FREE, 1), else_=0)
        query = sa.select(job_table.c.campaign_id, sa.func.sum(is_free), sa.func.count()).where(
            job_table.c.state.in_(("offered", "claimed"))
        )
        with self._engine.connect() as connection:
            rows = connection.execute(query.group_by(job_table.c.campaign_id)).all()
        return {campaign: (int(free), int(count - free)) for campaign, free, count in rows}

    def late(self, subject: Subject) -> list[tuple[str, str]]:
        """Who brought a result too late, and when, the first one first."""
        query = (
            sa.select(late_trial_table.c.worker, late_trial_table.c.stored_at)
            .join(planned_table, planned_table.c.id == late_trial_table.c.planned_id)
            .where(*about(planned_table, subject))
            .order_by(late_trial_table.c.id)
        )
        with self._engine.connect() as connection:
            return [(row.worker, row.stored_at) for row in connection.execute(query)]

    # -- parts -------------------------------------------------------------------------------------

    def _insert(self, table: sa.Table) -> Any:
        """An insert that can say what to do where the row is there already."""
        of = postgresql if self._engine.dialect.name == "postgresql" else sqlite
        return of.insert(table)

    def _values(
        self, subject: Subject, replica: int, kind: str, request: Request
    ) -> dict[str, Any]:
        return {
            **key_of(subject),
            "replica": replica,
            "kind": kind,
            "request": json.dumps(_REQUEST.dump_python(request)),
            "state": "offered",
        }

    def _found(self) -> "sa.Select[Any]":
        """Jobs with their places in plans, in the order in which they were offered."""
        own = [column for column in planned_table.c if column.name not in ("id", *_SUBJECT)]
        return (
            sa.select(job_table, campaign_table.c.study, *own)
            .join(campaign_table, campaign_table.c.id == job_table.c.campaign_id)
            .outerjoin(planned_table, planned_table.c.id == job_table.c.planned_id)
            .order_by(job_table.c.id)
        )

    def _end(self, lease: Lease, state: str, answer: str) -> None:
        update = job_table.update().where(*_held_by(lease))
        with self._engine.begin() as connection:
            connection.execute(update.values(state=state, answer=answer))

    def _is_stored(self, connection: sa.Connection, lease: Lease, trial: Trial) -> bool:
        """Whether it was this very trial that ended the job."""
        same = ("started_at", "seconds", "seed", "replica")
        query = (
            sa.select(trial_table.c.id)
            .join(planned_table, planned_table.c.id == trial_table.c.planned_id)
            .where(
                *_of_place(lease.job),
                trial_table.c.attempt == trial.attempt,
                *(trial_table.c[name] == getattr(trial, name) for name in same),
            )
        )
        return connection.execute(query).first() is not None

    def _keep(self, connection: sa.Connection, lease: Lease, trial: Trial) -> bool:
        """Keep a result that came too late. Returns False."""
        place = sa.select(planned_table.c.id).where(*_of_place(lease.job)).scalar_subquery()
        connection.execute(
            late_trial_table.insert().values(
                planned_id=place,
                attempt=trial.attempt,
                worker=lease.worker,
                token=lease.token,
                stored_at=now(),
                document=json.dumps(values_of(trial)),
            )
        )
        return False


_SUBJECT = ("campaign_id", "arch", "workload")


def _place(subject: Subject, stage: str, planned: PlannedTrial) -> Any:
    """The row of a place in a plan, as a subquery."""
    return (
        sa.select(planned_table.c.id)
        .where(
            *about(planned_table, subject),
            planned_table.c.stage == stage,
            planned_table.c.position == planned.index,
        )
        .scalar_subquery()
    )


def _of_place(job: Job) -> Collection[sa.ColumnElement[bool]]:
    """The conditions that select the place of a trial's job in its plan. Raises ValueError."""
    if job.planned is None:
        raise ValueError(f"job {job.id} is no trial's")
    return (
        planned_table.c.campaign_id == job.campaign_id,
        planned_table.c.arch == job.spot.arch,
        planned_table.c.workload == job.workload,
        planned_table.c.stage == job.stage,
        planned_table.c.position == job.planned.index,
    )


def _on(spot: Spot) -> sa.ColumnElement[bool]:
    return sa.and_(
        campaign_table.c.study == spot.study,
        job_table.c.arch == spot.arch,
        job_table.c.replica == spot.replica,
    )


def _held_by(lease: Lease) -> Collection[sa.ColumnElement[bool]]:
    return job_table.c.id == lease.job.id, job_table.c.token == lease.token


def _job_of(row: Any) -> Job:
    with as_written(f"job {row.id}"):
        return Job(
            id=row.id,
            kind=row.kind,
            campaign_id=row.campaign_id,
            spot=Spot(study=row.study, arch=row.arch, replica=row.replica),
            workload=row.workload,
            request=_REQUEST.validate_json(row.request),
            stage=row.stage or "",
            planned=None if row.planned_id is None else planned_of(row),
            attempt=row.attempt,
        )
