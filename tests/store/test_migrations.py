"""Stores of earlier versions are brought up to date, and nothing in them is lost."""

import json
import sqlite3
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from campaigns import as_before_migrations, before, sql, with_labels
from findings import VERDICT
from intop.domain.histogram import Histogram
from intop.domain.job import Request
from intop.domain.search import Search
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.store import Store, Subject, opened, opened_to_read, opening
from intop.store.engine import engine_of
from intop.store.kinds import KINDS
from intop.store.schema import HEAD, KNOWN, VERSION_TABLE, metadata
from stored import FAILED, JUDGED, MADE, PLAN, SEARCH, TUNED, WORKLOAD, begun, kept, tables, trial


def test_a_store_of_a_later_intop_is_refused_and_left_as_it_is(path: Path) -> None:
    with opened(str(path)):
        pass
    sql(path, f"update {VERSION_TABLE} set version_num = '0099'")
    sql(path, "pragma journal_mode = delete")
    before = path.read_bytes()
    told = rf"intop\.db has schema 0099, and this intop knows {HEAD} at most: name anoth"
    for way in (opened, opened_to_read):
        with pytest.raises(UsageError, match=told), way(str(path)):
            pytest.fail("must not open")
    assert before == path.read_bytes()


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_from_before_migrations_is_taken_over(path: Path, version: int) -> None:
    with opened(str(path)) as store:
        subject = kept(store, trial())
        store.put(subject, SEARCH)
    made = tables(path)
    as_before_migrations(path, version)
    if version == 1:
        for column in ("replica", "p99_above_ms"):
            sql(path, f"alter table trial drop column {column}")
    with (
        pytest.raises(UsageError, match="made by an earlier intop: any stage brings it up to date"),
        opened_to_read(str(path)),
    ):
        pytest.fail("must not open")
    for _ in range(2):
        with opened(str(path)) as store:
            (found,) = store.trials(subject, "collect")
            assert SEARCH == store.get(subject, Search)
            assert ["search"] == list(store.results(subject))
    assert ("" if version == 1 else "lb", None) == (found.replica, found.pruned_above_ms)
    with opened_to_read(str(path)) as reading:
        assert reading is not None
        assert SEARCH == reading.get(subject, Search)
    if version == 2:
        assert made == tables(path)


LABELLED: list[tuple[str, PlannedTrial, str]] = [
    (stage, PlannedTrial(role="finalist", configuration=TUNED, **coordinates), label)
    for stage, coordinates, label in (
        ("collect", {"index": 0}, ""),
        ("collect", {"index": 1, "arm": "random 1"}, ": random 1"),
        ("pilot", {"index": 9, "duration_s": 14}, "10: 14 s"),
        ("refine", {"index": 0}, ""),
        ("refine", {"index": 12, "step": 3, "reason": "promise"}, "3.12: promise"),
        ("judge", {"index": 0, "arm": "candidate 1", "round": 1}, "1: candidate 1"),
        ("contest", {"index": 0, "arm": "a.b: 1", "round": 12}, "12: a.b: 1"),
        ("contest", {"index": 1, "arm": "tuned", "round": 3, "series": 2}, "2.3: tuned"),
        ("explain", {"index": 7, "arm": "only a.b, c", "round": 1, "series": 11},
         "11.1: only a.b, c"),
    )
]  # fmt: skip
"""Places of plans, with the labels that they had before they had coordinates."""


@pytest.mark.parametrize("has_migrations", [True, False])
def test_a_store_with_labels_gets_the_coordinates_that_they_stand_for(
    path: Path, has_migrations: bool
) -> None:
    plans: dict[str, list[PlannedTrial]] = {}
    for stage, planned, _ in LABELLED:
        plans.setdefault(stage, []).append(planned)
    with opened(str(path)) as store:
        subject = begun(store)
        for stage, plan in plans.items():
            store.write_plan(subject, stage, plan)
        store.put(subject, JUDGED)
    if has_migrations:
        with sqlite3.connect(path) as connection:
            with_labels(connection)
            connection.execute(f"update {VERSION_TABLE} set version_num = '0002'")
    else:
        as_before_migrations(path, 2)
    labels = sql(path, "select label from planned order by id")
    ((document,),) = sql(path, "select document from result")
    assert [label for _, _, label in LABELLED] == [label for (label,) in labels]
    assert ["RFR", "candidate 1", "LightGBM"] == [
        m["side"] for m in json.loads(document)["models"]["models"]
    ]
    with opened(str(path)) as store:
        assert plans == {stage: store.plan(subject, stage) for stage in plans}
        assert JUDGED == store.get(subject, Verdict)


@pytest.mark.parametrize(
    ("stage", "label"),
    [("judge", "candidate 1"), ("judge", "one: candidate 1"), ("refine", "3: promise"),
     ("pilot", "1: long"), ("contest", b"\xff: tuned")],
)  # fmt: skip
def test_a_store_with_a_label_that_nobody_of_us_wrote_is_left_as_it_is(
    path: Path, stage: str, label: str | bytes
) -> None:
    with opened(str(path)) as store:
        store.write_plan(begun(store), stage, PLAN[1:2])
    as_before_migrations(path, 2)
    sql(path, "update planned set label = ?", label)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"intop\.db can't be opened"), opened(str(path)):
            pytest.fail("must not open")
    assert [(label,)] == sql(path, "select label from planned")


ANSWERED, TIMED_OUT = ((1000, 980), (50_000, 20)), 2_000_895
"""As an intop before 0005 kept them, and the bucket of the timeout of 2 s."""


def before_0005(path: Path, *trials: Trial) -> None:
    """A store that an intop wrote which had no failures in histograms."""
    with opened(str(path)) as store:
        kept(store, *trials)
    before(path, "0004")


def test_failures_go_into_histograms_and_p99_stays_what_it_was(path: Path) -> None:
    answered = Histogram.from_pairs(ANSWERED)
    whole = answered.merge(Histogram.from_pairs([(TIMED_OUT, 11)]))
    errors = {"connect": 4, "timeout": 7, "read": 0}
    one = trial(histogram=answered, errors=errors)
    before_0005(path, one, trial(attempt=1, errors={"timeout": 0}), replace(FAILED, attempt=2))
    # What an intop before it judged by, and kept for people with an SQL prompt.
    sql(path, "update trial set p99_ms = ? where attempt = 0", whole.percentile_ms(99))
    for _ in range(2):
        with opened(str(path)) as store:
            campaign = store.latest("study")
            assert campaign is not None
            subject = Subject(campaign=campaign, arch="x86", workload="slt")
            found, without, failed = store.trials(subject)
        assert replace(one, histogram=whole, received_mb_s=None) == found
        assert (1011, errors) == (whole.total, found.errors)
        assert MADE.histogram == without.histogram
        assert None is failed.histogram
    ((stored,),) = sql(path, "select p99_ms from trial where attempt = 0")
    assert stored == found.p99_ms == 2000.895


def test_failures_count_as_the_timeout_of_their_own_trial(path: Path) -> None:
    conditions = replace(MADE.conditions, timeout_s=600)
    before_0005(path, trial(conditions=conditions, errors={"timeout": 1}))
    with opened(str(path)) as store:
        campaign = store.latest("study")
        assert campaign is not None
        (found,) = store.trials(Subject(campaign=campaign, arch="x86", workload="slt"))
    assert found.histogram is not None
    assert 600_000 <= found.histogram.max_ms < 600_600


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("errors", "null"),
        ("errors", "5"),
        ("errors", '{"timeout": "many"}'),
        ("errors", '{"timeout": -5}'),
        ("errors", '{"timeout": 0.5}'),
        ("errors", '{"timeout": 1e400}'),
        ("errors", '{"timeout": ' + "[" * 100_000),
        ("errors", "no JSON"),
        ("errors", b"\xff"),
        ("conditions", "{}"),
        ("conditions", "[]"),
        ("conditions", '{"timeout_s": "long"}'),
        ("conditions", '{"timeout_s": -1}'),
        ("histogram", "SElTVEZBQUFB"),
        ("histogram", ""),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_store_with_a_trial_that_nobody_of_us_wrote_is_left_as_it_is(
    path: Path, column: str, value: str | bytes
) -> None:
    before_0005(path, trial())
    sql(path, f"update trial set {column} = ?", value)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"intop\.db can't be opened"), opened(str(path)):
            pytest.fail("must not open")
    assert [(value,)] == sql(path, f"select {column} from trial")
    assert [("0004",)] == sql(path, f"select version_num from {VERSION_TABLE}")


def test_what_was_stopped_before_its_end_is_pruned_and_the_rest_stays_overloaded(
    path: Path,
) -> None:
    with opened(str(path)) as store:
        subject = begun(store)
        store.write_plan(subject, "collect", PLAN)
        store.add(subject, trial(status="pruned", pruned_above_ms=450.5))
        store.add(subject, trial(attempt=1, status="overloaded"))
    as_before_migrations(path, 2)
    with sqlite3.connect(path) as connection:
        statuses = connection.execute("select distinct status from trial").fetchall()
    connection.close()
    assert [("overloaded",)] == statuses
    with opened(str(path)) as store:
        assert [("pruned", 450.5), ("overloaded", None)] == [
            (t.status, t.pruned_above_ms) for t in store.trials(subject, "collect")
        ]


def test_plans_of_before_have_no_load_of_their_own(path: Path) -> None:
    with opened(str(path)) as store:
        subject = begun(store)
        store.write_plan(subject, "judge", PLAN)
    before(path, "0004")
    with opened(str(path)) as store:
        none = {"rate_rps": None, "connections": None, "closed_loop": False, "path": ""}
        bare = [replace(p, **none, other_workload="") for p in PLAN]  # type: ignore[arg-type]
        assert bare == store.plan(subject, "judge")
        store.write_plan(subject, "sweep", PLAN)
        assert PLAN == store.plan(subject, "sweep")


def test_trials_at_other_rates_are_those_of_a_sweep(path: Path) -> None:
    plan = [
        replace(p, connections=None, closed_loop=False, path="", other_workload="") for p in PLAN
    ]
    with opened(str(path)) as store:
        subject = begun(store)
        store.write_plan(subject, "rates", plan)
        store.add(subject, replace(trial(), planned=plan[0], stage="rates"))
        store.put(subject, VERDICT)
    sql(path, "update result set kind = 'rate_sweep'")
    before(path, "0007")
    with opened(str(path)) as store:
        assert plan == store.plan(subject, "sweep")
        assert [("sweep", 75.5)] == [
            (t.stage, t.planned.rate_rps) for t in store.trials(subject, "sweep")
        ]
        assert {} == store.results(subject)


def test_jobs_of_before_keep_their_numbers_and_none_is_given_again(path: Path) -> None:
    def offered(store: Store, n: int) -> int:
        request = Request(workload=WORKLOAD, tunes=("kernel",))
        return store.jobs.offer(subject, "judge", PLAN[n], attempt=0, replica=0, request=request)

    with opened(str(path)) as store:
        subject = begun(store)
        store.write_plan(subject, "judge", PLAN)
        numbers = [offered(store, n) for n in range(2)]
    made, rows = tables(path)["job"], sql(path, "select * from job")
    before(path, "0013")
    assert made != tables(path)["job"]
    with opened(str(path)) as store:
        assert (made, rows) == (tables(path)["job"], sql(path, "select * from job"))
        store.jobs.withdraw(numbers[1])
        assert offered(store, 1) > numbers[1]


def test_the_tables_are_those_that_the_migrations_make(url: str) -> None:
    with opened(url):
        pass
    engine = engine_of(url, "read")
    with engine.connect() as connection:
        migrated = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert [] == compare_metadata(migrated, metadata)
        assert HEAD == migrated.get_current_revision()
    engine.dispose()
    folder = Path(opening.__file__).with_name("migrations")
    scripts = ScriptDirectory(str(folder))
    assert list(KNOWN) == [s.revision for s in scripts.walk_revisions()][::-1]


def test_every_result_that_is_stored_has_a_name(path: Path) -> None:
    assert len(KINDS) == len(set(KINDS.values()))
    migration = import_module("intop.store.migrations.versions.v0002_kinds_of_results")
    later = {"across", "mediation", "promised", "soak", "sweeps"}
    gone = {"searches"}
    assert {name.lower() for name in migration.KINDS} - gone == set(KINDS.values()) - later
