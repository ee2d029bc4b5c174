"""Opening a store: looked at before anything is written to it, then brought up to date."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from intop.errors import IntopError, UsageError
from intop.masking import masked, secrets_of
from intop.store.engine import Access, engine_of, is_there, reason, shown
from intop.store.files import check_name, of_disk
from intop.store.schema import HEAD, KNOWN, VERSION_TABLE, metadata
from intop.store.session import Session
from intop.store.sqlite_file import SqliteFile
from intop.store.store import Store

MIGRATIONS = Path(__file__).with_name("migrations")

_ALONE = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "SELECT pg_advisory_xact_lock(hashtext('intop_version'))",
}
"""Locks that let one program at a time look for the tables and make them, until its transaction
ends."""

_MIGRATING = Lock()
"""Alembic has one environment for all threads."""


@contextmanager
def opened(
    url: str, say: Callable[[str], None] = lambda _: None, *, in_memory: bool = False
) -> Iterator[Store]:
    """Open the store at a URL or in an SQLite file; it is made when missing, updated when old.

    Nothing is written before it is clear that the database is a store. `say` hears of it while a
    server does not answer. A store `in_memory` is lost at the end, which has to be asked for.
    Raises UsageError when it can't be opened, belongs to another program, or was made by a later
    intop, IntopError where its file was removed or replaced meanwhile.
    """
    if not in_memory:
        _looked_at(url)
    with _connected(url, "write") as engine:
        with _asked(engine, url) as connection:
            # Of several programs that open a new store, one makes its tables.
            connection.exec_driver_sql(_ALONE[connection.dialect.name])
            version = _version(connection, url)
            if version != HEAD:
                _bring_up_to_date(connection, is_new=not version)
                connection.commit()
        session = Session(engine, _discreet(say, url), SqliteFile.of(engine))
        try:
            yield Store(session)
        finally:
            session.check_file()


@contextmanager
def opened_to_read(url: str, say: Callable[[str], None] = lambda _: None) -> Iterator[Store | None]:
    """Open the store as it is, None where there is none yet; nothing is made, changed or locked.

    Others may write meanwhile. `say` hears of it while a server does not answer. Raises UsageError
    when it can't be opened, belongs to another program, or another version of intop has made it.
    """
    if not (version := _looked_at(url)):
        yield None
        return
    with _connected(url, "read") as engine:
        if version != HEAD:
            raise UsageError(
                f"the store {shown(url)} was made by an earlier intop: any stage brings it up to "
                f"date; this command only reads it"
            )
        yield Store(Session(engine, _discreet(say, url)))


def is_begun(url: str) -> bool:
    """Whether there is a store, also one of an earlier intop. Nothing is written.

    Raises UsageError where `opened` does.
    """
    return bool(_looked_at(url))


def _looked_at(url: str) -> str:
    """Return the migration of a store, "" where there is none yet. No byte of any file changes.

    Raises what `check_name` and `_version` do.
    """
    check_name(url)
    if not is_there(url):
        return ""
    with _connected(url, "look") as engine, _asked(engine, url) as connection:
        return _version(connection, url)


@contextmanager
def _connected(url: str, access: Access) -> Iterator[sa.Engine]:
    """Keep an engine for as long as it is used. Raises IntopError for what fails then."""
    engine = engine_of(url, access)
    try:
        yield engine
    except SQLAlchemyError as error:
        raise IntopError(f"the store {shown(url)}: {_reason(error, url)}") from error
    finally:
        engine.dispose()


@contextmanager
def _asked(engine: sa.Engine, url: str) -> Iterator[sa.Connection]:
    """Connect to find out what a database is. Raises UsageError where that can't be."""
    try:
        with engine.connect() as connection:
            yield connection
    except (SQLAlchemyError, TypeError, ValueError) as error:  # the latter for a URL's options
        raise UsageError(
            f"the store {shown(url)} can't be opened: {_reason(error, url)}"
        ) from error


def _reason(error: Exception, url: str) -> str:
    """Return the words of a database, and of the disk of an SQLite file."""
    return f"{reason(error, url)}{of_disk(error, url)}"


def _discreet(say: Callable[[str], None], url: str) -> Callable[[str], None]:
    """Return `say` without the URL's secrets, which a driver's error may quote."""
    return lambda text: say(masked(text, secrets_of(url)))


def _version(connection: sa.Connection, url: str) -> str:
    """Return the migration that a store is at; "" where its tables are still to be made.

    Raises UsageError for the database of another program, and for a store that no migration of
    this intop leads on from.
    """
    tables = set(sa.inspect(connection).get_table_names())
    if VERSION_TABLE in tables:
        column = sa.column("version_num", sa.String)
        number = connection.scalar(sa.select(column).select_from(sa.table(VERSION_TABLE)))
        if number is None or number not in KNOWN:
            raise UsageError(
                f"the store {shown(url)} has schema {number}, and this intop knows only "
                f"{', '.join(KNOWN)}: name another store in [study]"
            )
        return number
    # A server's database may be shared, a file is not.
    if tables and (connection.dialect.name == "sqlite" or tables & set(metadata.tables)):
        raise UsageError(
            f"the store {shown(url)} is the database of another program: "
            f"name another store in [study]"
        )
    return ""


def _bring_up_to_date(connection: sa.Connection, *, is_new: bool) -> None:
    """Make the tables of a new store, or migrate those of an earlier intop.

    Raises SQLAlchemyError, and leaves the store as it was.
    """
    # A tenth of a second, which a store that is up to date need not wait for.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _MIGRATING:
        if is_new:
            metadata.create_all(connection)
            command.stamp(config, "head")
        else:
            command.upgrade(config, "head")
