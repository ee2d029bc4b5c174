"""A store of an earlier version is brought up to date, whole or not at all; no other one is."""

import lzma
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from builders.campaigns import sql
from builders.next_migration import NUMBER, as_python, with_next_migration
from builders.results import SOAK, VERDICT
from builders.stored import SEARCH, kept, rows, trial
from intop.errors import UsageError
from intop.features import result_types
from intop.store import is_begun, opened, opened_to_read, opening
from intop.store.engine import engine_of
from intop.store.schema import HEAD, KNOWN, VERSION_TABLE, metadata
from kit.commands import ran

RECORDED = Path(__file__).parents[1] / "data" / "campaign" / "killed-collect.db.xz"
"""A store as intop 0.1.0 makes it."""
TRIALS = [trial(), trial(attempt=1, status="pruned", pruned_above_ms=450.5)]


@pytest.mark.parametrize("number", ["0099", "0014", ""])
def test_a_store_of_a_version_that_is_not_known_is_refused_and_left_as_it_is(
    path: Path, number: str
) -> None:
    with opened(str(path)):
        pass
    sql(path, f"update {VERSION_TABLE} set version_num = ?", number)
    sql(path, "pragma journal_mode = delete")
    before = path.read_bytes()
    known = ", ".join(KNOWN)
    message = rf"intop\.db has schema {number}, and this intop knows only {known}: name another"
    for way in (opened, opened_to_read):
        with pytest.raises(UsageError, match=message), way(str(path)):
            pytest.fail("must not open")
    assert before == path.read_bytes()


@pytest.fixture
def migrating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """From then on intop has another migration, which ends with this line."""

    def give(end: str) -> None:
        for name, value in with_next_migration(tmp_path, end).items():
            monkeypatch.setattr(opening, name, value)

    return give


def test_a_store_one_migration_behind_is_brought_up_to_date_with_all_that_is_in_it(
    url: str, migrating: Callable[[str], None]
) -> None:
    with opened(url) as store:
        subject = kept(store, *TRIALS)
        store.put(subject, SEARCH)
    migrating("pass")
    assert is_begun(url)
    with (
        pytest.raises(UsageError, match="made by an earlier intop: any stage brings it up to date"),
        opened_to_read(url),
    ):
        pytest.fail("must not open")
    for _ in range(2):
        with opened(url) as store:
            assert store.trials(subject) == TRIALS
            assert store.get(subject, type(SEARCH)) == SEARCH
    assert rows(url, "select weather from trial") == [("dry",), ("dry",)]
    assert rows(url, f"select version_num from {VERSION_TABLE}") == [(NUMBER,)]
    with opened_to_read(url) as reading:
        assert reading is not None
        assert reading.trials(subject) == TRIALS


@pytest.mark.parametrize("is_new", [True, False])
def test_a_migration_that_fails_leaves_a_store_as_it_was(
    url: str, migrating: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    if not is_new:
        with opened(url) as store:
            subject = kept(store, *TRIALS)
    migrating('raise ValueError("it rains")')
    for _ in range(2):
        with pytest.raises(UsageError, match="can't be opened: it rains"), opened(url):
            pytest.fail("must not open")
    monkeypatch.undo()
    assert is_new is not is_begun(url)
    with opened(url) as store:
        assert is_new or store.trials(subject) == TRIALS


OPENED = """
import sys
sys.path[:0] = {paths!r}
{before}
with opening.opened(sys.argv[1]):
    pass
"""


@pytest.mark.parametrize("is_new", [True, False])
def test_a_kill_within_a_migration_leaves_a_store_as_it_was(
    url: str, tmp_path: Path, is_new: bool
) -> None:
    if not is_new:
        with opened(url) as store:
            subject = kept(store, *TRIALS)
    killed = as_python(with_next_migration(tmp_path, "os.kill(os.getpid(), 9)"))
    script = OPENED.format(paths=[p for p in sys.path if p], before=killed)
    done = ran(sys.executable, "-c", script, url)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert is_new is not is_begun(url)
    with opened(url) as store:
        assert is_new or store.trials(subject) == TRIALS


def test_a_new_store_has_todays_tables(url: str) -> None:
    assert_has_todays_tables(url)


def test_a_store_of_the_first_release_has_todays_tables_once_it_is_opened(path: Path) -> None:
    """Else a change of the schema would lack its migration."""
    with lzma.open(RECORDED) as packed:
        path.write_bytes(packed.read())
    assert_has_todays_tables(str(path))


def test_what_was_called_p99_is_the_judged_latency_once_a_store_is_opened(path: Path) -> None:
    with opened(str(path)) as store:
        subject = kept(store, *TRIALS)
        store.put(subject, SEARCH)
        store.put(subject, VERDICT)
        store.put(subject, SOAK)
    # As the migration before it left a store.
    sql(path, "alter table trial rename column judged_ms to p99_ms")
    for new, old in (
        ("default_ms", "default_p99_ms"),
        ("tuned_ms", "tuned_p99_ms"),
        ("predicted_ms", "predicted_p99_ms"),
        ("judged_ms", "p99_ms"),
    ):
        sql(path, "update result set document = replace(document, ?, ?)", f'"{new}":', f'"{old}":')
    sql(path, f"update {VERSION_TABLE} set version_num = '0101'")
    with opened(str(path)) as store:
        assert store.trials(subject) == TRIALS
        assert store.get(subject, type(SEARCH)) == SEARCH
        assert store.get(subject, type(VERDICT)) == VERDICT
        assert store.get(subject, type(SOAK)) == SOAK


def assert_has_todays_tables(url: str) -> None:
    with opened(url):
        pass
    engine = engine_of(url, "read")
    with engine.connect() as connection:
        migrated = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(migrated, metadata) == []
        assert migrated.get_current_revision() == HEAD
    engine.dispose()


def test_the_migrations_that_are_known_are_all_there() -> None:
    scripts = ScriptDirectory(str(opening.MIGRATIONS))
    assert list(KNOWN) == [s.revision for s in scripts.walk_revisions()][::-1]


RELEASED = (
    *("across", "agreement", "compromise", "contest", "crosswise", "decisions", "explanation"),
    *("front", "mediation", "pilot", "probe", "promised", "ranking", "refined", "refusals"),
    *("rollout", "search", "soak", "sweeps", "training", "verdict"),
)
"""What results are called in stores of intop 0.1.0."""


def test_every_result_that_is_stored_has_a_name_which_stays() -> None:
    assert len(result_types()) == len(set(result_types().values()))
    assert set(RELEASED) - set(result_types()) == set()
