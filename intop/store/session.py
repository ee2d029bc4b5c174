"""Transactions that outlive a lost connection: each is carried out once.

A server may be restarted, and the network to it cut, at any moment. What was begun is then begun
again, until PATIENCE_S is over. Where the answer to a commit was lost, the server is asked whether
it was done: PostgreSQL keeps that by the transaction's id (pg_xact_status).
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from intop.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")

PATIENCE_S = 300.0
"""Seconds for which a server may be away. What was measured meanwhile waits in memory."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
"""Seconds between two attempts; the first one follows at once, since a pool may have an old
connection."""

PASSING = ("08", "25P03", "40001", "40P01", "53300", "57P")
"""The beginnings of SQLSTATEs that pass: a lost connection, a session that was ended, a conflict of
two transactions, too many connections, a server that stops or starts."""

NEVER_WRITTEN = "22023"
"""The SQLSTATE where a transaction is asked for whose id is still to be given: the server crashed
before anything of the transaction was on disk."""


@dataclass(frozen=True)
class _Ticket:
    """The id of a transaction and the process that served it, by which it is found again.

    A server that crashed may give an id once more, if nothing of its transaction was on disk. So a
    ticket also holds the time from which the server's `statistics` count, which it resets after a
    crash of itself or of one of its processes, and how far the log was (`lsn`).
    """

    transaction: str
    process: int
    statistics: str
    lsn: str


class _UnsettledError(SQLAlchemyError):
    """The server itself does not know yet how a transaction ends."""


class Session:
    """A way to a database, for any number of threads. `say` hears of waiting for the server.

    `file` is that of an SQLite database which is written to.
    """

    def __init__(
        self,
        engine: sa.Engine,
        say: Callable[[str], None] = lambda _: None,
        file: SqliteFile | None = None,
    ) -> None:
        self._engine = engine
        self._say = say
        self._file = file

    @property
    def dialect(self) -> str:
        """The database: sqlite or postgresql."""
        return self._engine.dialect.name

    def insert(self, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
        """An insert that can say what to do where the row is there already (ON CONFLICT)."""
        if self.dialect == "postgresql":
            from sqlalchemy.dialects import postgresql

            return postgresql.insert(table)
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)

    def rows(self, query: sa.Executable) -> Sequence[sa.Row[Any]]:
        """Return all rows of a query. Raises what `read` does."""
        return self.read(lambda connection: connection.execute(query).all())

    def first(self, query: sa.Executable) -> sa.Row[Any] | None:
        """Return the first row of a query. Raises what `read` does."""
        return self.read(lambda connection: connection.execute(query).first())

    def change(self, statement: sa.Executable) -> int:
        """Carry out a statement. Return how many rows it changed. Raises what `write` does."""
        return self.write(lambda connection: connection.execute(statement).rowcount)

    def attempt(self, statement: sa.Executable) -> None:
        """Carry out a statement, or leave it undone where the server does not answer now.

        It is for what time settles, too, as a lease that runs out: whoever ends can't wait.
        """
        try:
            with self._engine.begin() as connection:
                connection.execute(statement)
        except DBAPIError as error:
            if not (passes(error) or _is_locked(error)):
                raise

    @contextmanager
    def connected(self) -> Iterator[sa.Connection]:
        """Connect for what is no single transaction; a lost connection is an error."""
        with self._engine.connect() as connection:
            yield connection

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Return the result of `work`, which only reads. It may be called several times.

        Raises SQLAlchemyError for what does not pass, or lasts longer than PATIENCE_S.
        """
        waiting = _Waiting(self._say)
        while True:
            try:
                with self._engine.connect() as connection:
                    result = work(connection)
            except DBAPIError as error:
                waiting.wait(error)
            else:
                waiting.end()
                return result

    def write(self, work: Callable[[sa.Connection], T], *, once: bool = True) -> T:
        """Return the result of `work`, in one transaction that is committed once.

        `work` may be called several times, and only the last of them counts. Without `once` the
        server is not asked after a lost answer, which saves a round trip: then the transaction may
        be committed twice. Raises SQLAlchemyError for what does not pass, or lasts longer than
        PATIENCE_S: then nobody knows whether the transaction was committed. Raises MovedError where
        it was committed to an SQLite file that is no longer in its place.
        """
        waiting = _Waiting(self._say)
        ticket: _Ticket | None = None
        while True:
            try:
                if ticket is None or not self._is_committed(ticket):
                    ticket = None
                    with self._engine.connect() as connection:
                        with connection.begin():
                            result = work(connection)
                            ticket = self._ticket(connection) if once else None
                        self._check_file(connection)
            except (DBAPIError, _UnsettledError) as error:
                waiting.wait(error)
            else:
                waiting.end()
                return result

    def check_file(self) -> None:
        """Raises MovedError where an SQLite file is no longer in its place."""
        if self._file is not None:
            with self._engine.connect() as connection:
                self._file.check(connection)

    def _check_file(self, connection: sa.Connection) -> None:
        # Not before the commit: the file could be removed between the two.
        if self._file is not None:
            self._file.check(connection)

    def _ticket(self, connection: sa.Connection) -> _Ticket | None:
        """Return a transaction's ticket; None without writes, and for SQLite, which loses none."""
        if self.dialect != "postgresql":
            return None
        transaction, process, statistics, lsn = connection.exec_driver_sql(_ASKED).one()
        return None if transaction is None else _Ticket(transaction, process, statistics, lsn)

    def _is_committed(self, ticket: _Ticket) -> bool:
        """Raises _UnsettledError where the other end is still at it, having been told to stop."""
        known = {"transaction": ticket.transaction, "process": ticket.process}
        with self._engine.connect() as connection:
            if connection.scalar(_IS_LOST, {"since": ticket.statistics, "lsn": ticket.lsn}):
                return False
            try:
                status = connection.scalar(_STATUS, known)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", "") != NEVER_WRITTEN:
                    raise
                return False
            if status == "in progress":
                # It waits for a commit that is lost on its way, and what it has locked waits, too.
                connection.execute(_END, known)
                raise _UnsettledError(f"transaction {ticket.transaction} has not ended yet")
        return bool(status == "committed")


_ASKED = """
select cast(pg_current_xact_id_if_assigned() as text), pg_backend_pid(),
cast(pg_stat_get_bgwriter_stat_reset_time() as text), cast(pg_current_wal_insert_lsn() as text)
"""
_IS_LOST = sa.text(
    # After a crash the server writes a checkpoint where the log ends that it could recover.
    "select cast(pg_stat_get_bgwriter_stat_reset_time() as text) <> :since "
    "and cast(:lsn as pg_lsn) > (select checkpoint_lsn from pg_control_checkpoint())"
)
_STATUS = sa.text("select pg_xact_status(cast(:transaction as xid8))")
_END = sa.text(
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where pid = :process and backend_xid = cast(cast(:transaction as xid8) as xid)"
)


def as_inserted(*names: str) -> dict[str, Any]:
    """Return inserted values for these columns, which ON CONFLICT writes over the existing row.

    Cheaper than `Insert.excluded`, which builds all columns of the table for every statement.
    """
    return {name: sa.literal_column(f"excluded.{name}") for name in names}


class StoreClock(FunctionElement[float]):
    """The database's own clock, by which leases run out: workers' clocks may differ.

    Seconds since 1970, UTC.
    """

    type = sa.Float()
    inherit_cache = True


@compiles(StoreClock, "sqlite")
def _sqlite_clock(_element: StoreClock, _compiler: Any, **_: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(StoreClock, "postgresql")
def _postgresql_clock(_element: StoreClock, _compiler: Any, **_: Any) -> str:
    # now() stands still within a transaction.
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"


class _Waiting:
    """Waits between the attempts at one transaction, longer each time."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since: float | None = None
        self._attempts = 0

    def wait(self, error: DBAPIError | _UnsettledError) -> None:
        """Raises the error itself where it does not pass, or has lasted for too long."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        is_passing = isinstance(error, _UnsettledError) or passes(error)
        if not is_passing or now - self._since > PATIENCE_S:
            raise error
        self._attempts += 1
        if self._attempts == 1:
            return
        if self._attempts == 2:
            reason = str(error).splitlines()[0]
            self._say(f"the store does not answer, waiting up to {PATIENCE_S:.0f} s: {reason}")
        longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (self._attempts - 2))
        # Many clients of a server that comes back shall not all come at once.
        time.sleep(random.uniform(longest / 2, longest))

    def end(self) -> None:
        """Tell the user that it is over, where they heard of it."""
        if self._since is not None and self._attempts > 1:
            self._say(f"the store answers again after {time.monotonic() - self._since:.0f} s")


def _is_locked(error: DBAPIError) -> bool:
    """Whether others have held an SQLite file for as long as was waited for it."""
    return str(getattr(error.orig, "sqlite_errorname", "")).startswith("SQLITE_BUSY")


def passes(error: DBAPIError) -> bool:
    """Whether a database's error may be gone when the same is tried again."""
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", "")  # SQLite has none, and has waited already
    if state is None:  # while it connects, libpq has no code for what failed
        return isinstance(error, OperationalError)
    return str(state).startswith(PASSING)
