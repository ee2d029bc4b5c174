"""A store's URL, or the name of its SQLite file, to an engine that reaches the database."""

import os
import sqlite3
import time
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from intop.errors import UsageError
from intop.masking import masked, masked_url, secrets_of

Access = Literal["write", "read", "look"]
"""The access to a store. Who only looks finds out whose a database is, and recovers nothing that a
kill has left."""

PSYCOPG = "postgresql+psycopg"
SILENT_S = 10
"""A connection on which nothing has come for so long is asked whether the other end is there."""
PROBES, PROBE_S = 3, 5
"""The number of questions without an answer, and seconds between them, after which the connection
counts as lost."""
LOG_LIMIT_S = 10.0
"""Seconds for which others may keep an SQLite file from getting its write-ahead log."""
ABANDONED_S = 60
"""PostgreSQL ends a session that is idle within a transaction for so long, with its locks."""


def engine_of(url: str, access: Access) -> sa.Engine:
    """Return an engine, which has not connected yet, of a URL that `files.check_name` lets pass.

    Raises UsageError for options that it can't have, and where psycopg is missing.
    """
    parsed = parsed_url(url)
    if access != "write" and (path := file_of(parsed)):
        parsed = _to_look(path) if access == "look" else _to_read(path)
    try:
        if parsed.drivername == PSYCOPG:
            return _postgresql(parsed, access)
        engine = sa.create_engine(parsed)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the store {shown(url)} needs psycopg, which is not installed: "
            f"pip install 'intop[postgresql]'"
        ) from error
    except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
        raise UsageError(f"{shown(url)} is no store: {reason(error, url)}") from error
    sa.event.listen(engine, "connect", _careful if access == "write" else _patient)
    return engine


def is_there(url: str) -> bool:
    """Whether there is a database to look at: a server's is, a file may not be made yet."""
    path = file_of(parsed_url(url))
    return path is None or path.exists()


def shown(url: str) -> str:
    """Return the URL without its secrets."""
    return masked_url(url)


def reason(error: Exception, url: str) -> str:
    """Return the first line of an error, without the secrets of the URL."""
    return masked(f"{error or type(error).__name__}".splitlines()[0], secrets_of(url))


def parsed_url(url: str) -> sa.URL:
    """Return a store as a URL. Raises what SQLAlchemy does for what is none."""
    if "://" not in url:
        # Not parsed: a file's name may have a question mark.
        return sa.URL.create("sqlite", database=str(Path(url).expanduser()))
    parsed = sa.make_url(url)
    is_plain = parsed.drivername in ("postgresql", "postgres")  # as PostgreSQL's own programs do
    return parsed.set(drivername=PSYCOPG) if is_plain else parsed


def file_of(url: sa.URL) -> Path | None:
    """Return the file of an SQLite URL, None for a database in memory and for any other URL."""
    if url.get_backend_name() != "sqlite":
        return None
    name = url.database or ""
    if name.startswith("file:") and url.query.get("uri"):
        # As SQLite reads it: file:x, file:/x and file:///x, with %20 and its like.
        name = unquote(name.removeprefix("file:"))
        name = name.removeprefix("//") if name.startswith("///") else name
    return Path(name) if name not in ("", ":memory:") else None


# PostgreSQL ---------------------------------------------------------------------------------------


def _postgresql(url: sa.URL, access: Access) -> sa.Engine:
    """READ COMMITTED is enough: unique keys decide who is first, and one statement reads.

    What the URL itself says, such as ?connect_timeout=60, holds.
    """
    options = {
        "application_name": "intop",
        "connect_timeout": SILENT_S,
        "keepalives_idle": SILENT_S,
        "keepalives_interval": PROBE_S,
        "keepalives_count": PROBES,
        "tcp_user_timeout": 1000 * (SILENT_S + PROBES * PROBE_S),
    }
    engine = sa.create_engine(
        url,
        isolation_level="READ COMMITTED",
        connect_args={name: value for name, value in options.items() if name not in url.query},
        execution_options={} if access == "write" else {"postgresql_readonly": True},
    )
    sa.event.listen(engine, "connect", _watched)
    return engine


def _watched(connection: Any, _record: object) -> None:
    """The server notices, too, that we are gone, and lets go what we had locked."""
    settings = {
        "idle_in_transaction_session_timeout": f"{ABANDONED_S}s",
        "tcp_keepalives_idle": SILENT_S,
        "tcp_keepalives_interval": PROBE_S,
        "tcp_keepalives_count": PROBES,
        "tcp_user_timeout": f"{SILENT_S + PROBES * PROBE_S}s",
    }
    connection.autocommit = True
    connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in settings.items()))
    connection.autocommit = False


# SQLite -------------------------------------------------------------------------------------------


def _to_look(path: Path) -> sa.URL:
    """Return the URL that opens an SQLite file to see whose it is.

    A journal is left by a program that was killed, or is at work: SQLite would restore the file by
    it, which is for that program to do. The names of its tables are seen without.
    """
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists() and journal.stat().st_size:
        query = {"uri": "true", "mode": "ro", "immutable": "1"}
        return sa.URL.create("sqlite", database=path.absolute().as_uri(), query=query)
    return _to_read(path)


def _to_read(path: Path) -> sa.URL:
    """Return the URL that opens an SQLite file without writing to it.

    The files of a write-ahead log are there while somebody has it open, or since a kill. Where
    there are none, SQLite makes them even to read, and takes them away again where it may write.
    """
    uri = path.absolute().as_uri()
    query = {"uri": "true", "mode": "ro"}
    if not path.with_name(f"{path.name}-wal").exists():
        query |= {"mode": "rw"} if os.access(path.parent, os.W_OK) else {"immutable": "1"}
    return sa.URL.create("sqlite", database=uri, query=query)


def _text(raw: bytes) -> str:
    r"""Return the text of a column. What is no UTF-8 there reads as \xff.

    So the row is refused by its number, and not the whole query.
    """
    return raw.decode(errors="backslashreplace")


def _patient(connection: Any, _record: object) -> None:
    """Wait for a writer, and refuse to write."""
    connection.text_factory = _text
    connection.execute("PRAGMA busy_timeout = 10000")
    connection.execute("PRAGMA query_only = ON")


def _careful(connection: Any, _record: object) -> None:
    """Check references, keep every commit through a power cut, wait for a reader."""
    connection.text_factory = _text
    connection.execute("PRAGMA busy_timeout = 10000")
    connection.execute("PRAGMA foreign_keys = ON")
    _with_log(connection)
    connection.execute("PRAGMA synchronous = FULL")


def _with_log(connection: sqlite3.Connection) -> None:
    """Have a write-ahead log. SQLite itself does not wait here for a program that does the same."""
    deadline = time.monotonic() + LOG_LIMIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
