"""The searches of trainings: their tries and how they ended, a row each."""

from collections.abc import Sequence

import sqlalchemy as sa

from intop.domain.training import FinishedSearch, SearchRecord, Try
from intop.store.documents import document_of, read_document
from intop.store.rows import Subject, about, as_written, key_of
from intop.store.schema import search_table
from intop.store.session import Session

END = -1
"""The number of the row that says how a search ended."""


class StoredSearches:
    """The records of one subject's training (`domain.training.SearchRecords`).

    Several processes may add to it: a row is written once, and every one of them would write the
    same. Whoever begins another training of the subject deletes the rows of the earlier one.
    """

    def __init__(self, session: Session, subject: Subject) -> None:
        self._session = session
        self._subject = subject
        self._last = 0

    def new(self, fingerprint: str) -> list[SearchRecord]:
        """Return all records that this object has not given yet, in the order of their addition."""
        query = search_table.select().where(
            *about(search_table, self._subject),
            search_table.c.fingerprint == fingerprint,
            search_table.c.id > self._last,
        )
        rows = self._session.rows(query.order_by(search_table.c.id))
        if rows:
            self._last = rows[-1].id
        return [_record_of(row) for row in rows]

    def add(self, fingerprint: str, records: Sequence[SearchRecord]) -> None:
        """Keep records. Those that somebody has added already are left as they are."""
        earlier = search_table.delete().where(
            *about(search_table, self._subject), search_table.c.fingerprint != fingerprint
        )
        rows = [key_of(self._subject) | _values(fingerprint, record) for record in records]
        insert = self._session.insert(search_table).on_conflict_do_nothing()

        def work(connection: sa.Connection) -> None:
            connection.execute(earlier)
            for row in rows:
                connection.execute(insert.values(row))

        self._session.write(work)


def _values(fingerprint: str, record: SearchRecord) -> dict[str, object]:
    return {
        "fingerprint": fingerprint,
        "family": record.family,
        "fold": record.fold,
        "number": record.known.number if isinstance(record.known, Try) else END,
        "document": document_of(record.known),
    }


def _record_of(row: sa.Row[tuple[object, ...]]) -> SearchRecord:
    kind: type[FinishedSearch | Try] = FinishedSearch if row.number == END else Try
    with as_written(f"search {row.id}"):
        known = read_document(kind, row.document)
        return SearchRecord(family=row.family, fold=row.fold, known=known)
