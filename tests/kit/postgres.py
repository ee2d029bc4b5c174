"""A real PostgreSQL server in a folder of its own, reached over a unix socket."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

SETTINGS = {
    "listen_addresses": "",
    # A kill loses nothing that the kernel has, and no test cuts the power.
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "50",
    "autovacuum": "off",
}


class Server:
    """One cluster. The user is `postgres` where the tests run as root, which PostgreSQL refuses."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self._settings = SETTINGS | settings
        self._numbers = count()
        self._user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        if self._user:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        self._run("initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--username=intop")
        options = (f"{name} = '{value}'" for name, value in self._settings.items())
        with (self._data / "postgresql.conf").open("a") as file:
            file.write("\n".join([*options, f"unix_socket_directories = '{folder}'", ""]))

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        self._run("pg_ctl", "--wait", "--log", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """`fast` ends sessions, `immediate` is as a crash."""
        self._run("pg_ctl", "--wait", "--mode", mode, "stop")

    def restart(self) -> None:
        self.stop()
        self.start()

    def crash(self) -> None:
        """All of it at once, and it is started again."""
        self.stop("immediate")
        self.start()

    def kill_a_session(self) -> None:
        """The server then ends all others, too, and recovers from its log. Waits for that."""
        others = "backend_type = 'client backend' and pid <> pg_backend_pid()"
        ((process,), *_) = self.sql(f"select pid from pg_stat_activity where {others}")
        with psycopg.connect(host=str(self.folder), user="intop", dbname="postgres") as witness:
            os.kill(int(str(process)), signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                witness.execute("select pg_sleep(60)")
        deadline = time.monotonic() + 60
        while True:
            try:
                self.sql("select 1")
            except psycopg.OperationalError:
                log = (self.folder / "log").read_text()
                assert time.monotonic() < deadline, f"the server does not recover: {log[-3000:]}"
                time.sleep(0.05)
            else:
                return

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+psycopg://intop@/{database}?host={self.folder}"

    def database(self) -> str:
        """The URL of a new database."""
        name = f"store{next(self._numbers)}"
        self.sql(f"create database {name}")
        return self.url(name)

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """What a statement gives, by a connection of its own."""
        with psycopg.connect(
            host=str(self.folder), user="intop", dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *arguments: str) -> None:
        user = {"user": self._user.pw_uid, "group": self._user.pw_gid} if self._user else {}
        # Not by a pipe: what is started in the background would keep it open.
        with (self.folder.with_suffix(".out")).open("w+") as output:
            done = subprocess.run(
                [binaries() / program, "--pgdata", self._data, *arguments],
                cwd=self.folder,
                stdout=output,
                stderr=output,
                timeout=60,
                extra_groups=[] if self._user else None,
                **user,
            )
            output.seek(0)
            assert done.returncode == 0, output.read()


def binaries() -> Path:
    """Debian has no server program on the PATH, and those of several versions side by side."""
    result = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: p.parts[4])
    on_path = shutil.which("postgres")
    if not result and on_path is None:
        pytest.fail("PostgreSQL's server is missing: sh intop/lab/system-packages.sh tests")
    return result[-1].parent if result else Path(str(on_path)).resolve().parent


@contextmanager
def running(**settings: str) -> Iterator[Server]:
    """A server for as long as it is used. Its folder is one that another user can reach.

    What it prints goes beside that folder, to a place that is ours alone.
    """
    place = Path(tempfile.mkdtemp(prefix="intop-postgres-", dir="/tmp"))
    place.chmod(0o711)
    folder = place / "server"
    folder.mkdir(mode=0o700)
    try:
        server = Server(folder, **settings)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(place)
