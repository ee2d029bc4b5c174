"""A store that is something else, or in which somebody else has written: one clear error."""

import json
import os
import shutil
import sqlite3
import zlib
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.campaigns import sql
from builders.results import VERDICT
from builders.trials import CONDITIONS, METRICS, trial
from intop.domain.configuration import Configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.errors import IntopError, UsageError
from intop.store import Store, Subject, is_begun, opened, opened_to_read
from intop.store.schema import VERSION_TABLE

COUNTED = '{"lb": {"at": [1.0], "growth": {"Tcp.x": [2]}, "levels": {}, "unread": []}}'


def packed_json(text: str) -> bytes:
    """As `store.packed_counters` packs it."""
    return zlib.compress(text.encode())


PACKED = packed_json(COUNTED)
NAN = json.dumps({"lb": asdict(METRICS) | {"cpu": float("nan")}})
PLAN = [PlannedTrial(index=0, role="design", configuration=Configuration({"net.core.x": "1"}))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one plan, one trial and one result."""
    made = tmp_path / "intop.db"
    with opened(str(made)) as store:
        campaign = store.begin("study", seed=1, tool_version="0.1.0")
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.write_plan(subject, "collect", PLAN)
        store.add(subject, trial(PLAN[0].configuration))
        store.put(subject, VERDICT)
    return made


def read_all(store: Store) -> tuple[list[Trial], Verdict | None]:
    campaign = store.latest("study")
    assert campaign is not None
    subject = Subject(campaign=campaign, arch="x86", workload="slt")
    store.plan(subject, "collect")
    return store.trials(subject), store.get(subject, Verdict)


def test_the_untouched_store_is_read(path: Path) -> None:
    """Else all that is refused below may have been refused for something else."""
    with opened(str(path)) as store:
        assert ([trial(PLAN[0].configuration)], VERDICT) == read_all(store)


@pytest.mark.parametrize(
    ("table", "column", "value", "named"),
    [
        ("campaign", "seed", "many", "campaign 1"),
        ("planned", "configuration", "[1]", "plan of collect"),
        ("planned", "configuration", '{"net.core.x": 7}', "plan of collect"),
        ("planned", "configuration", "{" * 100_000, "plan of collect"),
        ("planned", "configuration", "[" * 100_000, "plan of collect"),
        ("planned", "role", "boss", "plan of collect"),
        ("trial", "status", "\x1b[2J", "trial 1"),
        ("trial", "seconds", "nan?", "trial 1"),
        ("trial", "histogram", "SElTVEZBQUFB", "trial 1"),
        ("trial", "histogram", b"HISTFAAA", "trial 1"),
        ("trial", "histogram", 5, "trial 1"),
        ("trial", "histogram", 2**62, "trial 1"),
        ("trial", "histogram", "\x00", "trial 1"),
        ("trial", "errors", "null", "trial 1"),
        ("trial", "errors", '{"connect": "none"}', "trial 1"),
        ("trial", "errors", '{"connect": 1e400}', "trial 1"),
        ("trial", "metrics", "[]", "trial 1"),
        ("trial", "metrics", NAN, "trial 1"),
        ("trial", "metrics", '{"lb": {"cpu": 1}}', "trial 1"),
        ("trial", "counters", "no bytes", "trial 1"),
        ("trial", "counters", b"not packed", "trial 1"),
        ("trial", "counters", PACKED[:-8], "trial 1"),
        ("trial", "counters", packed_json('{"lb": {"at": [1]}}'), "trial 1"),
        ("trial", "counters", packed_json(COUNTED.replace("[2]", '["2"]')), "trial 1"),
        ("trial", "counters", packed_json(COUNTED.replace("[2]", "[2, 3]")), "trial 1"),
        ("trial", "counters", packed_json(COUNTED.replace("[2]", "[NaN]")), "trial 1"),
        ("trial", "counters", packed_json("[" * 100_000), "trial 1"),
        ("trial", "conditions", "{}", "trial 1"),
        ("trial", "conditions", json.dumps(asdict(CONDITIONS) | {"altitude": 1}), "trial 1"),
        ("trial", "conditions", json.dumps(asdict(CONDITIONS) | {"rate_rps": "x"}), "trial 1"),
        ("result", "document", "{}", "result verdict of campaign 1"),
        ("result", "document", "", "result verdict of campaign 1"),
        ("result", "document", '{"pairs": "\\ud800"}', "result verdict of campaign 1"),
    ],
    ids=lambda value: str(value)[:30].replace("\x1b", "").replace("\x00", ""),
)
def test_what_nobody_of_us_wrote_is_named(
    path: Path, table: str, column: str, value: str | bytes | int, named: str
) -> None:
    sql(path, f"update {table} set {column} = ?", value)
    with (
        pytest.raises(IntopError, match=rf"^the store's {named} is not as this intop writes it: "),
        opened(str(path)) as store,
    ):
        read_all(store)


PLACES = {
    "trial": "status histogram errors metrics counters conditions detail seconds attempt",
    "planned": "configuration arm round series step reason duration_s rate_rps",
    "result": "document",
    "campaign": "started_at",
}
COLUMNS = [(table, column) for table, columns in PLACES.items() for column in columns.split()]


def test_any_row_is_read_or_named(path: Path) -> None:
    """Bytes that are no text included, which SQLite stores as they come."""
    json_like = st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=4,
    ).map(json.dumps)
    anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | json_like
    anything_else = st.binary(max_size=20) | st.integers(-(2**63), 2**63 - 1) | st.floats()

    with sqlite3.connect(path, isolation_level=None) as connection, opened(str(path)) as store:

        @given(st.sampled_from(COLUMNS), anything | anything_else)
        def one(place: tuple[str, str], value: object) -> None:
            table, column = place
            ((before,),) = connection.execute(f"select {column} from {table}").fetchall()
            try:
                connection.execute(f"update {table} set {column} = ?", (value,))
            except sqlite3.IntegrityError:  # NaN is null to SQLite
                return
            try:
                trials, _ = read_all(store)
            except IntopError:
                pass
            else:
                assert all(isinstance(result, Trial) for result in trials)
            finally:
                connection.execute(f"update {table} set {column} = ?", (before,))

        one()
    connection.close()


def test_text_in_rows_is_data(path: Path) -> None:
    """Quotes and statements in names do nothing in the database."""
    evil = "'; drop table trial; --\x00\x1b[2J"
    with opened(str(path)) as store:
        campaign = store.begin(evil, seed=1, tool_version=evil)
        assert campaign == store.latest(evil)
        subject = Subject(campaign=campaign, arch=evil, workload=evil)
        store.write_plan(subject, "collect", PLAN)
        store.add(subject, trial(PLAN[0].configuration))
        assert len(store.trials(subject)) == 1


# Something else than a store ----------------------------------------------------------------------


def not_opened(url: str) -> str:
    with pytest.raises(UsageError) as caught, opened(url):
        pytest.fail("must not open")
    assert len(str(caught.value)) < 500
    return str(caught.value)


def test_a_store_that_was_cut_off_is_named(path: Path) -> None:
    sql(path, "pragma wal_checkpoint(truncate)")
    whole = path.read_bytes()
    for length in (10, 100, 4096, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:length])
        with pytest.raises(IntopError, match=r"the store .*intop\.db"), opened(str(path)) as store:
            read_all(store)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_no_store(tmp_path: Path, kind: str) -> None:
    made = tmp_path / "odd.db"
    if kind == "pipe":
        os.mkfifo(made)
    else:
        made.mkdir()
    assert "odd.db can't be opened" in not_opened(str(made))


@pytest.mark.parametrize(
    "schema",
    [
        "create table bookmarks (id integer)",
        "create table trial (id integer, patient text)",
    ],
)
def test_another_programs_database_is_not_written_to(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "other.db"
    sql(path, schema)
    assert "is the database of another program: name another store" in not_opened(str(path))
    made = schema.replace("create table", "CREATE TABLE")
    assert [(made,)] == sql(path, "select sql from sqlite_master")


def contents(folder: Path) -> dict[str, bytes]:
    """By name; -shm is the index of a -wal that anybody who reads it makes again."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith("-shm")}


def of_another_program(folder: Path, mode: str, *, killed: bool) -> Path:
    """A database of some size, as it is closed, or as a kill leaves it while it is written to."""
    made, path = folder / "made.db", folder / "there" / "other.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute(f"pragma journal_mode = {mode}")
        connection.execute("pragma cache_size = 2")
        connection.execute("create table bookmarks (id integer, place text)")
        if killed:
            connection.execute("begin" if mode == "delete" else "select 1")
            rows = [(n, "x" * 100) for n in range(500)]
            connection.executemany("insert into bookmarks values (?, ?)", rows)
            for end in ("", "-wal", "-journal"):
                if (left := Path(f"{made}{end}")).exists():
                    shutil.copy(left, f"{path}{end}")
    if not killed:
        shutil.copy(made, path)
    return path


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("url", ["{}", "sqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_no_byte_of_another_programs_database_changes(
    tmp_path: Path, mode: str, killed: bool, url: str
) -> None:
    path = of_another_program(tmp_path, mode, killed=killed)
    before = contents(path.parent)
    assert killed == (len(before) == 2)
    assert "is the database of another program" in not_opened(url.format(path))
    assert before == contents(path.parent)
    for way in (is_begun, lambda where: opened_to_read(where).__enter__()):
        with pytest.raises(UsageError, match="is the database of another program"):
            way(url.format(path))
    assert before == contents(path.parent)


def test_a_store_is_opened_by_any_way_of_writing_its_name(path: Path) -> None:
    for url in (f"sqlite:///{path}", f"sqlite:///file:{path}?uri=true"):
        with opened(url) as store, opened_to_read(url) as read:
            assert read is not None
            assert store.latest("study") == read.latest("study") is not None


@pytest.mark.parametrize("version", ["x", "100", -1, 1.5, None, b"\xff"])
def test_a_store_with_an_odd_version_is_refused(path: Path, version: object) -> None:
    sql(path, f"drop table {VERSION_TABLE}")
    sql(path, f"create table {VERSION_TABLE} (version_num)")
    sql(path, f"insert into {VERSION_TABLE} values (?)", version)
    assert "name another store in [study]" in not_opened(str(path))
    sql(path, f"delete from {VERSION_TABLE}")
    assert "name another store in [study]" in not_opened(str(path))


@pytest.mark.parametrize("name", ["a?b=c.db", "a%20b.db", "a'b.db", "a;b.db", "a b.db", "#.db"])
def test_a_files_name_is_no_url(tmp_path: Path, name: str) -> None:
    with opened(str(tmp_path / name)) as store:
        store.begin("study", seed=1, tool_version="0.1.0")
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("query", ["timeout=long", "uri=true&mode=nosuch"])
def test_the_options_of_a_url_are_checked(tmp_path: Path, query: str) -> None:
    assert "x.db" in not_opened(f"sqlite:///file:{tmp_path}/x.db?{query}")
