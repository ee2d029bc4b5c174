"""The size of a store on disk, and how to win back what it no longer needs."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from intop.domain.upkeep import Vacuumed
from intop.store.engine import file_of, parsed_url, shown
from intop.store.schema import metadata
from intop.store.store import Store


def size(store: Store, url: str) -> int:
    """Bytes on disk: of an SQLite file with its log, or of the store's tables in PostgreSQL."""
    if store.session.dialect == "sqlite":
        path = file_of(parsed_url(url))
        files = [] if path is None else [path, path.with_name(f"{path.name}-wal")]
        return sum(file.stat().st_size for file in files if file.exists())
    each = sa.func.pg_total_relation_size
    query = sa.select(*(each(sa.cast(name, postgresql.REGCLASS)) for name in metadata.tables))
    return sum(store.session.read(lambda connection: connection.execute(query).one()))


def vacuum(store: Store, url: str) -> Vacuumed:
    """Give free space back to the system, and let the database look at its tables for plans.

    SQLite writes its file anew, which takes as much free space for a moment, and nobody else may be
    at work. PostgreSQL gives back what is free at the end of its tables, while others work.
    Raises SQLAlchemyError where the database refuses.
    """
    before = size(store, url)
    is_sqlite = store.session.dialect == "sqlite"
    with store.session.connected() as connection:
        automatic = connection.execution_options(isolation_level="AUTOCOMMIT")
        if is_sqlite:
            for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)", "ANALYZE"):
                automatic.exec_driver_sql(statement)
        else:
            for name in metadata.tables:
                automatic.exec_driver_sql(f"VACUUM (ANALYZE) {name}")
    return Vacuumed(store=shown(url), before=before, after=size(store, url))
