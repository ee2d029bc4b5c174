"""Each of the store's queries goes by an index, in both databases."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from builders.stored import PLAN, SEARCH, begun, trial
from intop.domain.search import Search
from intop.store import Store, Subject
from intop.store.schema import campaign_table, planned_table, result_table, trial_table

CAMPAIGNS, PLACES = 60, 100
Asked = Callable[[Store, Subject], object]

QUERIES: dict[str, Asked] = {
    "latest": lambda store, _: store.latest("study"),
    "subjects": lambda store, subject: store.subjects(subject.campaign),
    "is_empty": lambda store, subject: store.is_empty(subject.campaign, "x86"),
    "plan": lambda store, subject: store.plan(subject, "collect"),
    "planned": lambda store, subject: store.planned(subject),
    "trials": lambda store, subject: store.trials(subject),
    "trials of a stage": lambda store, subject: store.trials(subject, "collect"),
    "outlines": lambda store, subject: store.outlines(subject),
    "latencies": lambda store, subject: store.latencies(subject, "collect"),
    "places": lambda store, subject: store.places(subject),
    "results": lambda store, subject: store.results(subject),
    "get": lambda store, subject: store.get(subject, Search),
    "add": lambda store, subject: store.add(subject, trial(planned=PLAN[1], stage="collect")),
    "put": lambda store, subject: store.put(subject, SEARCH),
    "finish": lambda store, subject: store.finish(subject.campaign),
}


@pytest.fixture
def filled(store: Store) -> tuple[Store, Subject]:
    """Many campaigns, one of which is asked for."""
    subject = begun(store)
    store.write_plan(subject, "collect", PLAN)
    store.add(subject, trial(attempt=7))

    def fill(connection: sa.Connection) -> None:
        def all_of(table: sa.Table) -> dict[str, Any]:
            row = connection.execute(table.select().order_by(table.c.id.desc())).first()
            assert row is not None
            return row._asdict()

        campaign, place, made = map(all_of, (campaign_table, planned_table, trial_table))
        campaigns = [campaign | {"id": 10 + n, "study": f"study{n}"} for n in range(CAMPAIGNS)]
        plans = [
            place | {"id": 1000 + PLACES * n + at, "campaign_id": 10 + n, "position": at}
            for n in range(CAMPAIGNS)
            for at in range(PLACES)
        ]
        trials = [made | {"id": p["id"], "planned_id": p["id"]} for p in plans]
        results = [
            {"campaign_id": c["id"], "arch": "x86", "workload": "slt", "kind": kind}
            | {"created_at": "2026-01-01T00:00:00+00:00", "document": "{}"}
            for c in campaigns
            for kind in ("search", "verdict", "training", "ranking", "pilot", "probe")
        ]
        for table, rows in (
            (campaign_table, campaigns),
            (planned_table, plans),
            (trial_table, trials),
            (result_table, results),
        ):
            connection.execute(table.insert(), rows)
        connection.exec_driver_sql("analyze")

    store.session.write(fill)
    return store, subject


@pytest.mark.parametrize("name", QUERIES)
def test_no_query_goes_through_a_whole_table(filled: tuple[Store, Subject], name: str) -> None:
    store, subject = filled
    statements: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        statements.append((statement, parameters))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        QUERIES[name](store, subject)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    asked = [s for s in statements if "xact" not in s[0]]
    assert asked
    explain = "EXPLAIN QUERY PLAN " if store.session.dialect == "sqlite" else "EXPLAIN "
    for statement, parameters in asked:
        plan = store.session.read(
            lambda c, s=statement, p=parameters: c.exec_driver_sql(explain + s, p).all()
        )
        text = "\n".join(str(row) for row in plan)
        for table in ("trial", "planned", "result"):  # of campaigns there are few
            for scan in (f"Seq Scan on {table}", f"SCAN {table}"):
                whole = [line for line in text.splitlines() if scan in line]
                assert all("USING" in line for line in whole), text
