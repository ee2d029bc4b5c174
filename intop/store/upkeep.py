"""Upkeep of a store: is it sound, how large is it, and how to win back what it no longer needs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sqlalchemy as sa

from intop.domain.upkeep import Amounts, Checked, Vacuumed
from intop.errors import IntopError
from intop.features import result_types
from intop.store.engine import file_of, parsed_url, shown
from intop.store.rows import Subject, as_written, trial_of
from intop.store.schema import (
    campaign_table,
    job_table,
    late_trial_table,
    metadata,
    planned_table,
    result_table,
    search_table,
    trial_table,
)
from intop.store.store import Store, trial_rows

MOST_LISTED = 20
"""Problems that are named; where there are more, one of them tells most."""
PARENTS = (
    (planned_table, planned_table.c.campaign_id, campaign_table),
    (trial_table, trial_table.c.planned_id, planned_table),
    (result_table, result_table.c.campaign_id, campaign_table),
    (search_table, search_table.c.campaign_id, campaign_table),
    (job_table, job_table.c.campaign_id, campaign_table),
    (late_trial_table, late_trial_table.c.planned_id, planned_table),
)


def check(
    store: Store, name: str, *, begin: Callable[[int], None], step: Callable[[], None]
) -> Checked:
    """Look at everything in a store, called `name`. Nothing is changed.

    `begin` hears how many trials there are, `step` of each one that was read.
    """
    amounts = Amounts(
        plans=_count(store, planned_table),
        trials=_count(store, trial_table),
        results=_count(store, result_table),
    )
    begin(amounts.trials)
    problems = [*_of_database(store), *_orphans(store)]
    try:
        campaigns = store.campaigns()
    except IntopError as error:
        campaigns = []
        problems.append(str(error))
    for campaign in campaigns:
        for subject in store.subjects(campaign):
            problems += _of_subject(store, subject, step)
    return Checked(
        store=name,
        campaigns=_count(store, campaign_table),
        amounts=amounts,
        problems=tuple(problems[:MOST_LISTED]),
        unlisted=max(0, len(problems) - MOST_LISTED),
    )


def _count(store: Store, table: sa.Table) -> int:
    query = sa.select(sa.func.count()).select_from(table)
    return int(store.session.read(lambda connection: connection.scalar(query)) or 0)


def _of_database(store: Store) -> Iterator[str]:
    """Yield what SQLite finds wrong with its file. A server checks its own pages."""
    if store.session.dialect != "sqlite":
        return
    for (message,) in store.session.rows(sa.text("PRAGMA integrity_check")):
        if message != "ok":
            yield f"SQLite: {message}"


def _orphans(store: Store) -> Iterator[str]:
    """Yield rows without a parent. A program that checks no references may have left them."""
    for table, column, parent in PARENTS:
        query = (
            sa.select(table.c.id)
            .outerjoin(parent, column == parent.c.id)
            .where(parent.c.id.is_(None))
            .order_by(table.c.id)
        )
        for (number,) in store.session.rows(query):
            yield f"{table.name} {number} belongs to no {parent.name}"


def _of_subject(store: Store, subject: Subject, step: Callable[[], None]) -> Iterator[str]:
    where = f"campaign {subject.campaign.id}, {subject.arch} {subject.workload}"
    for stage in store.planned(subject):
        # A stage at a time: all histograms of a campaign need not be in memory at once.
        for row in store.session.rows(trial_rows(subject, [stage])):
            step()
            if problem := _problem(partial(_check_trial, row)):
                yield f"{where}: {problem}"
        if problem := _problem(partial(store.plan, subject, stage)):
            yield f"{where}: {problem}"
    types = result_types()
    for kind in types.values():
        if problem := _problem(partial(store.get, subject, kind)):
            yield f"{where}: {problem}"
    try:
        unknown = sorted(set(store.results(subject)) - set(types))
    except IntopError as error:
        yield f"{where}: {error}"
    else:
        yield from (f"{where}: {name} is no result of this intop" for name in unknown)


def _check_trial(row: Any) -> None:
    """Raises StoredRowError for a trial that no intop writes."""
    trial = trial_of(row)
    judged_ms = None if trial.histogram is None else trial.judged_ms
    with as_written(f"trial {row.trial_id}"):
        if row.judged_ms != judged_ms:
            raise ValueError(f"its latency is {judged_ms} ms, and the column has {row.judged_ms}")


def _problem(read: Callable[[], object]) -> str:
    """Return the error of reading something, or nothing."""
    try:
        read()
    except IntopError as error:
        return str(error)
    return ""


# -- size ----------------------------------------------------------------------------------------


def size(store: Store, url: str) -> int:
    """Return the bytes on disk of an SQLite file with its log, or of the tables in PostgreSQL."""
    if store.session.dialect == "sqlite":
        path = file_of(parsed_url(url))
        files = [] if path is None else [path, path.with_name(f"{path.name}-wal")]
        return sum(file.stat().st_size for file in files if file.exists())
    from sqlalchemy.dialects.postgresql import REGCLASS

    each = sa.func.pg_total_relation_size
    query = sa.select(*(each(sa.cast(name, REGCLASS)) for name in metadata.tables))
    return sum(store.session.read(lambda connection: connection.execute(query).one()))


def vacuum(store: Store, url: str) -> Vacuumed:
    """Return free space to the system, and let the database look at its tables for plans.

    SQLite writes its file anew, which takes as much free space for a moment, and nobody else may be
    at work. PostgreSQL returns what is free at the end of its tables, while others work.
    Raises SQLAlchemyError where the database refuses.
    """
    before = size(store, url)
    is_sqlite = store.session.dialect == "sqlite"
    with store.session.connected() as connection:
        automatic = connection.execution_options(isolation_level="AUTOCOMMIT")
        if is_sqlite:
            for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)", "ANALYZE"):
                automatic.exec_driver_sql(statement)
        else:
            for name in metadata.tables:
                automatic.exec_driver_sql(f"VACUUM (ANALYZE) {name}")
    return Vacuumed(store=shown(url), before=before, after=size(store, url))
