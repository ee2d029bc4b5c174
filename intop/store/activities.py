"""The processes at work on the campaigns of a store, each with its last sign of life."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from intop import process
from intop.domain.activity import SILENCE_S, Activity
from intop.store.rows import Campaign, Subject, about, key_of, now
from intop.store.schema import activity_table
from intop.store.session import Session, StoreClock, as_inserted

_SUBJECT = ("campaign_id", "arch", "workload")
_SILENT = (StoreClock() - activity_table.c.heard_at).label("silent_s")


class Activities:
    """The activities of an open store. Every method is a transaction of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def take(self, subject: Subject, stage: str) -> Activity | None:
        """Note that this process works on a subject. Return another one's activity instead.

        A process that is silent or known to be gone is replaced.
        """
        mine = process.identity()
        values = key_of(subject) | {
            "process": process.title(),
            "identity": mine,
            "stage": stage,
            "since": now(),
            "heard_at": StoreClock(),
        }
        changed = as_inserted(*(name for name in values if name not in _SUBJECT))
        query = sa.select(activity_table, _SILENT).where(*about(activity_table, subject))

        def work(connection: sa.Connection) -> sa.Row[Any]:
            there = connection.execute(query).first()
            gone = there.identity if there is not None and process.is_gone(there.identity) else mine
            insert = self._session.insert(activity_table).values(values)
            connection.execute(
                insert.on_conflict_do_update(
                    index_elements=_SUBJECT,
                    set_=changed,
                    where=sa.or_(activity_table.c.identity.in_((mine, gone)), SILENCE_S <= _SILENT),
                )
            )
            return connection.execute(query).one()

        row = self._session.write(work)
        return None if row.identity == mine else _activity(row)

    def renew(self, subject: Subject, stage: str) -> None:
        """Store a sign of life of this process, unless another one has replaced it."""
        update = activity_table.update().where(*_own(subject))
        self._session.change(update.values(stage=stage, heard_at=StoreClock()))

    def end(self, subject: Subject) -> None:
        """Forget this process, unless the store is away: then it counts as silent."""
        self._session.attempt(activity_table.delete().where(*_own(subject)))

    def of(self, campaign: Campaign) -> dict[str, Activity]:
        """Return the activities on a campaign by architecture and workload, such as `x86 slt`."""
        query = sa.select(activity_table, _SILENT)
        rows = self._session.rows(query.where(activity_table.c.campaign_id == campaign.id))
        return {f"{row.arch} {row.workload}": _activity(row) for row in rows}


def _own(subject: Subject) -> Sequence[sa.ColumnElement[bool]]:
    return (*about(activity_table, subject), activity_table.c.identity == process.identity())


def _activity(row: sa.Row[Any]) -> Activity:
    return Activity(
        process=row.process,
        stage=row.stage,
        since=row.since,
        silent_s=max(0.0, row.silent_s),
        is_gone=process.is_gone(row.identity),
    )
