"""An SQLite file that must stay where it is for as long as a store is open.

A program keeps the file that it has opened, also after its name is gone: what is committed then is
lost with the program. So after each commit the file at the path must still be the one that was
opened, and its write-ahead log, too. If it is not, all that was committed is saved beside it.
"""

import os
import shlex
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from intop.store.engine import file_of

Identity = tuple[int, int]


class MovedError(SQLAlchemyError):
    """A store's file was removed or replaced while it was open."""


class SqliteFile:
    """The file of an engine that has connected, and where its content was saved, if it was."""

    def __init__(self, engine: sa.Engine, path: Path) -> None:
        self._path = path.absolute()
        # SQLite has them beside the file that a link leads to.
        beside = os.path.realpath(path)
        self._main = {str(self._path): "the store's file"}
        self._logs = {
            f"{beside}-wal": "its write-ahead log",
            f"{beside}-shm": "the index of its log",
        }
        self._opened: dict[str, Identity] = {}
        self._saved: Path | None = None
        self._saving = Lock()
        _change(self._main, self._opened)
        # What SQLite would open now is another file, or a new one.
        sa.event.listen(engine, "do_connect", self._before_connecting)
        # Before its first transaction, so that a loss in that one shows.
        sa.event.listen(engine, "checkout", self._know_logs)

    @classmethod
    def of(cls, engine: sa.Engine) -> "SqliteFile | None":
        """Return the engine's file; None for a server, and for a database in memory."""
        path = file_of(engine.url)
        return None if path is None else cls(engine, path)

    def check(self, connection: sa.Connection) -> None:
        """Raises MovedError where the file is no longer in its place, after saving its content.

        Nothing may be uncommitted on the connection.
        """
        # SQLite itself removes a log that nobody has open: each connection has the one of its time.
        logs: dict[str, Identity] = connection.info.setdefault("logs", {})
        if change := _change(self._main, self._opened) or _change(self._logs, logs):
            raise MovedError(f"{change}. {self._rescue(connection)}")

    def _know_logs(self, _connection: object, record: Any, _proxy: object) -> None:
        if "logs" not in record.info:
            _change(self._logs, record.info.setdefault("logs", {}))

    def _before_connecting(self, *_: object) -> None:
        if change := _change(self._main, self._opened):
            raise MovedError(change)

    def _rescue(self, connection: sa.Connection) -> str:
        """Save what was committed; return where. A later copy has all of an earlier one."""
        with self._saving:
            problem: Exception | None = None
            for folder in self._folders():
                try:
                    saved = _copied(connection, folder, self._path.name)
                    if self._saved is not None:
                        saved = saved.replace(self._saved)
                except (OSError, sqlite3.Error) as error:
                    problem = problem or error
                    continue
                self._saved = saved
                there = shlex.join(["rm", "-f", *self._main, *self._logs])
                return (
                    f"All measurements, with the last one, are in {saved}. To go on with them: "
                    f"{there} && {shlex.join(['mv', str(saved), str(self._path)])}"
                )
        return f"What was measured can't be saved beside it: {problem}"

    def _folders(self) -> Iterator[Path]:
        """Yield where to save: in the file's own folder, else where temporary files go."""
        yield self._path.parent if self._saved is None else self._saved.parent
        yield Path(tempfile.gettempdir())


def _change(files: Mapping[str, str], known: dict[str, Identity]) -> str:
    """Return what was removed or replaced of the files since it was known, or "".

    What was not known yet is from now on.
    """
    for file, what in files.items():
        try:
            status = Path(file).stat()
        except OSError:
            identity = None
        else:
            identity = status.st_dev, status.st_ino
        if file not in known and identity is not None:
            known[file] = identity
        elif known.get(file) != identity:
            how = "removed" if identity is None else "replaced by another file"
            return f"{what} {file} was {how} while intop had it open"
    return ""


def _copied(connection: sa.Connection, folder: Path, name: str) -> Path:
    """Return a new file with the content of an open database. Raises OSError and sqlite3.Error."""
    number, text = tempfile.mkstemp(prefix=f"{name}.", suffix=".saved", dir=folder)
    os.close(number)
    source = cast(sqlite3.Connection, connection.connection.dbapi_connection)
    try:
        with closing(sqlite3.connect(text)) as target:
            source.backup(target)
    except BaseException:
        Path(text).unlink(missing_ok=True)
        raise
    return Path(text)
