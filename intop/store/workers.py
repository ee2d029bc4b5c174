"""The workers that were heard of."""

import json
from dataclasses import asdict

import sqlalchemy as sa
from pydantic import TypeAdapter

from intop.domain.job import Spot, WorkerStatus
from intop.store.rows import as_written
from intop.store.schema import worker_table
from intop.store.session import Session, StoreClock, as_inserted

_SPOTS = TypeAdapter(tuple[Spot, ...])


class Workers:
    """The workers of an open store. Every method is a transaction of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def heard(self, worker: WorkerStatus) -> None:
        """Store a worker's sign of life; its `silent_s` has no meaning here."""
        values = {
            "name": worker.name,
            "started_at": worker.started_at,
            "heard_at": StoreClock(),
            "doing": worker.doing,
            "reach": json.dumps([asdict(spot) for spot in worker.reach]),
            "trials": worker.trials,
            "failures": worker.failures,
        }
        insert = self._session.insert(worker_table).values(values)
        changed = as_inserted(*(name for name in values if name != "name"))
        self._session.change(insert.on_conflict_do_update(index_elements=["name"], set_=changed))

    def all(self) -> list[WorkerStatus]:
        """Return all that have not ended by themselves, the one heard last first."""
        silent = (StoreClock() - worker_table.c.heard_at).label("silent_s")
        query = sa.select(worker_table, silent).order_by(worker_table.c.heard_at.desc())
        workers: list[WorkerStatus] = []
        for row in self._session.rows(query):
            with as_written(f"worker {row.name}"):
                workers.append(
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
        return workers

    def ended(self, name: str) -> None:
        """Forget a worker that has ended, unless the store is away: then it counts as silent."""
        self._session.attempt(worker_table.delete().where(worker_table.c.name == name))
