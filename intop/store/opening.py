"""Opening a store: looked at before anything is written to it, then brought up to date."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from intop.errors import IntopError, UsageError
from intop.store.schema import HEAD, KNOWN, VERSION_TABLE, metadata
from intop.store.store import Store

OLD_VERSION_TABLE, OLD_VERSIONS = "meta", (None, 1, 2)
"""Of stores from before migrations."""
BEFORE_MIGRATIONS = "before migrations"
RENAMED = {"arm"}
"""Columns that had another name in the first version."""

_MIGRATING = Lock()
"""Alembic has one environment for all threads."""


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """The store at a URL or in an SQLite file; made when it is missing, updated when it is old.

    Nothing is written before it is clear that the database is a store. Raises UsageError when it
    can't be opened, belongs to another program, or was made by a later intop.
    """
    _looked_at(url)
    with _connected(url) as engine:
        with _asked(engine, url) as connection:
            if connection.dialect.name == "sqlite":
                # Of several programs that open a new store, one makes its tables.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            if _version(connection, url) != HEAD:
                _migrate(connection)
                connection.commit()
        yield Store(engine)


@contextmanager
def opened_to_read(url: str) -> Iterator[Store | None]:
    """The store as it is, None where there is none yet; nothing is made, changed or locked.

    Others may write meanwhile. Raises UsageError when it can't be opened, belongs to another
    program, or another version of intop has made it.
    """
    if not (found := _looked_at(url)):
        yield None
        return
    with _connected(url, _to_read) as engine:
        if found == BEFORE_MIGRATIONS or found in KNOWN[:-1]:
            raise UsageError(
                f"the store {_shown(url)} was made by an earlier intop: any stage brings it up to "
                f"date; this command only reads it"
            )
        yield Store(engine)


def is_begun(url: str) -> bool:
    """Whether there is a store, also one of an earlier intop. Nothing is written.

    Raises UsageError where `opened` does.
    """
    return bool(_looked_at(url))


def _looked_at(url: str) -> str:
    """What `_version` finds, "" where there is no database yet. No byte of any file changes.

    Raises what `_version` does.
    """
    if not _is_there(url):
        return ""
    with _connected(url, _to_look) as engine, _asked(engine, url) as connection:
        return _version(connection, url)


def _is_there(url: str) -> bool:
    """Whether there is a database to look at: a server's is, a file may not be made yet."""
    if "://" not in url:
        return Path(url).expanduser().exists()
    try:
        parsed = sa.make_url(url)
    except (SQLAlchemyError, ValueError):
        return False  # which opening it says, without its password
    path = _file_of(parsed)
    return parsed.get_backend_name() != "sqlite" or (path is not None and path.is_file())


def _file_of(url: sa.URL) -> Path | None:
    """The file of an SQLite URL, None for a database in memory."""
    name = url.database or ""
    if name.startswith("file:") and url.query.get("uri"):
        # As SQLite reads it: file:x, file:/x and file:///x, with %20 and its like.
        name = unquote(name.removeprefix("file:"))
        name = name.removeprefix("//") if name.startswith("///") else name
    return Path(name) if name not in ("", ":memory:") else None


@contextmanager
def _connected(url: str, to_read: Callable[[Path], sa.URL] | None = None) -> Iterator[sa.Engine]:
    """An engine for as long as it is used. Raises IntopError for what fails then.

    `to_read` makes the URL by which an SQLite file is read only.
    """
    engine = _engine(url, to_read)
    try:
        yield engine
    except SQLAlchemyError as error:
        raise IntopError(f"the store {_shown(url)}: {str(error).splitlines()[0]}") from error
    finally:
        engine.dispose()


@contextmanager
def _asked(engine: sa.Engine, url: str) -> Iterator[sa.Connection]:
    """A connection to find out what a database is. Raises UsageError where that can't be."""
    try:
        with engine.connect() as connection:
            yield connection
    except (SQLAlchemyError, TypeError, ValueError) as error:  # the latter for a URL's options
        raise UsageError(
            f"the store {_shown(url)} can't be opened: {str(error).splitlines()[0]}"
        ) from error


def _version(connection: sa.Connection, url: str) -> str:
    """The migration that a store is at; "" for an empty one, also if a kill left a part of it.

    BEFORE_MIGRATIONS for a store of an intop that had none. Raises UsageError for the database of
    another program, and for a store of a later intop.
    """
    tables = set(sa.inspect(connection).get_table_names())
    if VERSION_TABLE in tables:
        found = connection.execute(_first("version_num", VERSION_TABLE)).scalar()
        if found is not None and found not in KNOWN:
            raise _unknown(url, found)
        return found or ""
    if OLD_VERSION_TABLE in tables and "schema_version" in _columns(connection, OLD_VERSION_TABLE):
        old = connection.execute(_first("schema_version", OLD_VERSION_TABLE)).scalar()
        if old not in OLD_VERSIONS:
            raise _unknown(url, old)
        return BEFORE_MIGRATIONS
    ours = tables & set(metadata.tables)
    wrong = OLD_VERSION_TABLE in tables or any(_lacks(connection, name) for name in ours)
    # A server's database may be shared, a file is not.
    if tables and (wrong or (not ours and connection.dialect.name == "sqlite")):
        raise UsageError(
            f"the store {_shown(url)} is the database of another program: "
            f"name another store in [study]"
        )
    return ""


def _first(column: str, table: str) -> "sa.Select[Any]":
    return sa.select(sa.column(column)).select_from(sa.table(table))


def _lacks(connection: sa.Connection, name: str) -> bool:
    """Whether a table lacks columns that each version of ours has had."""
    needed = {
        c.name for c in metadata.tables[name].columns if not c.nullable and not c.server_default
    }
    return not needed - RENAMED <= _columns(connection, name)


def _columns(connection: sa.Connection, table: str) -> set[str]:
    return {column["name"] for column in sa.inspect(connection).get_columns(table)}


def _unknown(url: str, found: object) -> UsageError:
    return UsageError(
        f"the store {_shown(url)} has schema {found}, and this intop knows {HEAD} at most: "
        f"name another store in [study]"
    )


def _migrate(connection: sa.Connection) -> None:
    """Bring a store to the latest schema. Raises SQLAlchemyError, and leaves it as it was."""
    # A tenth of a second, which a store that is up to date need not wait for.
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).with_name("migrations"))
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    with _MIGRATING:
        command.upgrade(config, "head")


def _engine(url: str, to_read: Callable[[Path], sa.URL] | None) -> sa.Engine:
    if "://" not in url:
        folder = Path(url).expanduser().absolute().parent
        if not folder.is_dir():
            raise UsageError(f"the store can't be made: there is no folder {folder}")
    try:
        # A file's name may have a question mark in it; it is no URL.
        parsed = (
            sa.make_url(url)
            if "://" in url
            else sa.URL.create("sqlite", database=str(Path(url).expanduser()))
        )
        if to_read and parsed.get_backend_name() == "sqlite" and (path := _file_of(parsed)):
            parsed = to_read(path)
    except (SQLAlchemyError, ValueError):
        # Not shown: what can't be taken apart may have a password anywhere.
        raise UsageError(
            "the store in [study] is no URL: write such as postgresql+psycopg://user@host/name"
        ) from None
    try:
        engine = sa.create_engine(parsed)
    except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
        raise UsageError(f"{_shown(url)} is no store: {error}") from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _patient if to_read else _careful)
    return engine


def _to_look(path: Path) -> sa.URL:
    """The URL that opens an SQLite file to see whose it is.

    A journal is left by a program that was killed, or is at work: SQLite would give the file back
    by it, which is for that program to do. What its tables are called is seen without.
    """
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists() and journal.stat().st_size:
        query = {"uri": "true", "mode": "ro", "immutable": "1"}
        return sa.URL.create("sqlite", database=path.absolute().as_uri(), query=query)
    return _to_read(path)


def _to_read(path: Path) -> sa.URL:
    """The URL that opens an SQLite file without writing to it.

    The files of a write-ahead log are there while somebody has it open, or since a kill. Where
    there are none, SQLite makes them even to read, and takes them away again where it may write.
    """
    uri = path.absolute().as_uri()
    query = {"uri": "true", "mode": "ro"}
    if not path.with_name(f"{path.name}-wal").exists():
        query |= {"mode": "rw"} if os.access(path.parent, os.W_OK) else {"immutable": "1"}
    return sa.URL.create("sqlite", database=uri, query=query)


def _patient(connection: Any, _record: object) -> None:
    """SQLite: wait for a writer, and refuse to write."""
    connection.execute("PRAGMA busy_timeout = 10000")
    connection.execute("PRAGMA query_only = ON")


def _careful(connection: Any, _record: object) -> None:
    """SQLite: check references, keep every commit through a power cut, wait for a reader."""
    for pragma in ("foreign_keys = ON", "journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA busy_timeout = 10000")


def _shown(url: str) -> str:
    """The URL without its password."""
    return sa.make_url(url).render_as_string() if "://" in url else url
