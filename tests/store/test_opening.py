"""Opening a store: a file or a URL, ours or somebody else's."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import pytest
from sqlalchemy.exc import InternalError, OperationalError

from builders.stored import PLAN, begun, kept, rows, trial
from intop.errors import IntopError, UsageError
from intop.store import Store, is_begun, opened, opened_to_read
from kit.postgres import Server


def test_opening_again_keeps_what_is_there(url: str) -> None:
    for expected in (1, 2):
        with opened(url) as store:
            assert begun(store).campaign.id == expected


def test_threads_may_make_stores_at_the_same_time(tmp_path: Path) -> None:
    def made(number: int) -> int:
        with opened(str(tmp_path / f"{number % 16}.db")) as store:
            return begun(store).campaign.id

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(made, range(32))) == [1] * 16 + [2] * 16


OPENED = """
import sys
sys.path[:0] = {paths!r}
from intop.store import opened
print("ready", flush=True)
sys.stdin.readline()
with opened(sys.argv[1]) as store:
    print(store.begin("study", seed=1, tool_version="").id)
"""


def test_of_several_programs_that_open_a_new_store_one_makes_it(url: str) -> None:
    script = OPENED.format(paths=[p for p in sys.path if p])
    programs = [
        subprocess.Popen([sys.executable, "-c", script, url], stdin=PIPE, stdout=PIPE, text=True)
        for _ in range(2)
    ]
    for program in programs:
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        assert program.stdin
        program.stdin.close()
    output = [program.stdout.read() for program in programs if program.stdout]
    assert sorted(output) == ["1\n", "2\n"]
    assert [program.wait(60) for program in programs] == [0, 0]


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("these are my notes " * 100)
    with pytest.raises(UsageError, match=r"intop\.db can't be opened"), opened(str(path)):
        pytest.fail("must not open")
    assert path.read_text().startswith("these are my notes")


def test_a_store_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=f"there is no folder {tmp_path}/nosuch"),
        opened(str(tmp_path / "nosuch" / "intop.db")),
    ):
        pytest.fail("must not open")


def test_a_store_can_be_named_by_url(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/by-url.db") as store:
        begun(store)
    assert (tmp_path / "by-url.db").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "nosuch://me:s3cret@db.example/intop",
        "postgresql+nosuch://me:s3cret@db.example/intop",
        "postgresql://me:s3cret@db.example:port/intop",
        "://me:s3cret@db.example",
    ],
)
def test_a_url_that_is_no_store_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(UsageError) as caught, opened(url):
        pytest.fail("must not open")
    assert "s3cret" not in str(caught.value)


def test_a_second_controller_can_read_while_the_first_writes(store: Store, url: str) -> None:
    subject = begun(store)
    with opened(url) as other:
        store.write_plan(subject, "collect", PLAN)
        store.add(subject, trial())
        assert [trial()] == other.trials(subject)
        other.add(subject, trial(planned=PLAN[0]))
    assert len(store.trials(subject)) == 2


def test_what_only_reads_can_not_write(url: str) -> None:
    with opened_to_read(url) as none:
        assert none is None
    assert not is_begun(url)
    with opened(url) as store:
        subject = kept(store, trial())
    assert is_begun(url)
    with opened_to_read(url) as reading:
        assert reading is not None
        assert [trial()] == reading.trials(subject)
        with pytest.raises((OperationalError, InternalError), match=r"read.?only"):
            reading.add(subject, trial(attempt=1))


def test_a_store_may_be_kept_beside_the_tables_of_other_programs_in_postgresql(
    postgres_server: Server,
) -> None:
    url = postgres_server.database()
    rows(url, "create table bookmarks (id integer)")
    for _ in range(2):
        with opened(url) as store:
            begun(store)
    rows(url, "select * from bookmarks, campaign")


def test_a_table_of_another_program_with_a_name_of_ours_is_left_alone(
    postgres_server: Server,
) -> None:
    url = postgres_server.database()
    rows(url, "create table trial (id integer, patient text)")
    with pytest.raises(UsageError, match="is the database of another program"), opened(url):
        pytest.fail("must not open")
    assert len(rows(url, "select * from pg_tables where schemaname = 'public'")) == 1


@pytest.mark.parametrize("driver", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_postgresql_url_may_be_as_its_own_programs_have_it(
    postgres_server: Server, driver: str
) -> None:
    _, _, place = postgres_server.database().partition("://")
    with opened(f"{driver}://{place}") as store:
        begun(store)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("intop:s3cret@/nosuch?host={folder}", 'database "nosuch" does not exist'),
        ("intop:s3cret@/postgres?host=/nosuch", "No such file or directory"),
        ("intop:s3cret@localhost:1/postgres", "Connection refused"),
        ("nobody:s3cret@/postgres?host={folder}", 'role "nobody" does not exist'),
        ("intop:s3cret@/postgres?host={folder}&nosuch=1", 'invalid connection option "nosuch"'),
    ],
)
def test_a_server_that_can_not_be_reached_is_named_without_a_password(
    postgres_server: Server, place: str, words: str
) -> None:
    url = f"postgresql://{place.format(folder=postgres_server.folder)}"
    with pytest.raises(UsageError, match=rf"can't be opened: .*{words}") as caught, opened(url):
        pytest.fail("must not open")
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_psycopg_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    words = (
        r"^the store postgresql://me:\*\*\*@db/x needs psycopg.*pip install 'intop\[postgresql\]'$"
    )
    with pytest.raises(UsageError, match=words), opened("postgresql://me:s3cret@db/x"):
        pytest.fail("must not open")


def test_a_database_of_another_kind_is_no_store() -> None:
    with pytest.raises(UsageError, match=r"is no store"), opened("mysql://me:s3cret@db/x") as _:
        pytest.fail("must not open")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "has no name: write a file such as intop.db, or a URL"),
        ("  ", "has no name: write a file such as intop.db, or a URL"),
        ("x" * 300, "has too long a name: at most 247 bytes"),
        ("x" * 250, "has too long a name: at most 247 bytes"),
        ("ö" * 150, "has too long a name: at most 247 bytes"),
        ("sqlite:///{folder}/" + "x" * 300, "has too long a name"),
        ("/".join(["folder" * 40] * 3) + "/x.db", "can't be made: there is no folder"),
        ("x" * 300 + "/x.db", "can't be opened: File name too long"),
        ("sqlite://", "is in memory, so all that is measured would be lost"),
        ("sqlite:///:memory:", "is in memory"),
        ("sqlite:///file:x?mode=memory&uri=true", "is in memory"),
        (":memory:", "is in memory"),
        (".", "is a folder: name a file in it"),
        ("/dev/null", "is no file: name another one"),
        ("~nosuchuser/x.db", "there is no user of that home folder"),
        ("postgresql:me@db.example/intop", "is neither a file's name nor a URL"),
        ("host=db.example dbname=intop user=me", "is neither a file's name nor a URL"),
        ("sqlite:intop.db", "is neither a file's name nor a URL"),
        ("a\0b", "its name has a null character"),
        ("intop.db ", "the store 'intop.db ' has a blank at its beginning or end: take it out"),
        (" postgresql://me@db.example/intop", "has a blank at its beginning or end"),
        ("in\ntop.db", "the store's name has the control character U+000A: take it out"),
        ("file:intop.db?mode=ro", "is neither a file's name nor a URL"),
        ("jdbc:sqlite:intop.db", "is neither a file's name nor a URL"),
        ("jdbc:postgresql://db.example/intop", "the store is no URL: write a file such as"),
        ("postgresql://me@db.example:port/intop", "the store is no URL: write a file such as"),
        ("postgresql://a.example:1,b.example:2/intop", "the store is no URL: write a file such"),
        ("sqlite://intop.db", "names no file: write three slashes before its name, such as"),
        ("sqlite+aiosqlite:///intop.db", "is no store: stores are in SQLite or PostgreSQL, by"),
        ("postgresql+psycopg2://db/intop", "is no store: stores are in SQLite or PostgreSQL, by"),
        ("https://db.example/intop.db", "is no store: stores are in SQLite or PostgreSQL, by"),
    ],
)
def test_a_name_that_no_store_can_have_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for ask in (opened, opened_to_read):
        with (
            pytest.raises(UsageError, match=re.escape(message)),
            ask(name.format(folder=tmp_path)),
        ):
            pytest.fail("must not open")
    with pytest.raises(UsageError, match=re.escape(message)):
        is_begun(name.format(folder=tmp_path))
    assert [*tmp_path.iterdir()] == []


def test_a_path_that_is_too_long_for_sqlite_is_refused(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["folder" * 20] * 4)
    folder.mkdir(parents=True)
    with (
        pytest.raises(UsageError, match="is too long for SQLite: at most 504"),
        opened(str(folder / "x.db")),
    ):
        pytest.fail("must not open")


def test_the_longest_names_hold_a_store(tmp_path: Path) -> None:
    """What is refused is what SQLite can't open, and not less."""
    longest = tmp_path / ("x" * 247)
    left = 504 - len(str(tmp_path)) - len("/") - len("/x.db")
    deep = tmp_path / f"{'d' * (left // 2)}/{'d' * (left - left // 2 - 1)}"
    deep.mkdir(parents=True)
    for path in (longest, deep / "x.db"):
        with opened(str(path)) as store:
            begun(store)
    assert len(str(deep / "x.db")) == 504


def test_a_file_system_that_takes_no_files_is_not_called_full(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="/proc is no place for files"), opened("/proc/x.db"):
        pytest.fail("must not open")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", tmp_path], check=True)
    try:
        with (
            pytest.raises(UsageError, match=f"the file system of {tmp_path} is read-only"),
            opened(str(tmp_path / "intop.db")),
        ):
            pytest.fail("must not open")
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


@pytest.mark.parametrize("kind", ["size=1m", "size=1m,nr_inodes=2"])
def test_a_full_disk_is_named(tmp_path: Path, kind: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", kind, "none", tmp_path], check=True)
    try:
        path = tmp_path / "mine.db"
        if "inodes" not in kind:
            path.write_bytes(b"")
            (tmp_path / "full").write_bytes(b"x" * ((1 << 20) - 4096))
            with suppress(OSError), (tmp_path / "full").open("ab", buffering=0) as full:
                while full.write(b"x" * 4096):
                    pass
        with (
            pytest.raises(IntopError, match=rf"the disk is full: .*{tmp_path}") as caught,
            opened(str(path)) as store,
        ):
            begun(store)
        assert "mine.db" in str(caught.value)
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)
