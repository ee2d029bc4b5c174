"""Is a store sound? Its database, the references between its tables, and every row in them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sqlalchemy as sa

from intop.domain.upkeep import Amounts, Checked
from intop.errors import IntopError
from intop.store.kinds import KINDS
from intop.store.rows import Campaign, Subject, as_written, trial_of
from intop.store.schema import (
    campaign_table,
    job_table,
    late_trial_table,
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
    """Everything in a store, called `name`, is looked at, and nothing is changed.

    `begin` hears how many trials there are, `step` of each one that was read.
    """
    amounts = Amounts(
        plans=_count(store, planned_table),
        trials=_count(store, trial_table),
        results=_count(store, result_table),
    )
    begin(amounts.trials)
    problems = [*_of_database(store), *_orphans(store)]
    campaigns, unread = _campaigns(store)
    problems += unread
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
    """What SQLite says of its file. A server checks its own pages."""
    if store.session.dialect != "sqlite":
        return
    asked = "PRAGMA integrity_check"
    for (said,) in store.session.rows(sa.text(asked)):
        if said != "ok":
            yield f"SQLite: {said}"


def _orphans(store: Store) -> Iterator[str]:
    """Rows that belong to none. A program that checks no references may have left them."""
    for table, column, parent in PARENTS:
        query = (
            sa.select(table.c.id)
            .outerjoin(parent, column == parent.c.id)
            .where(parent.c.id.is_(None))
            .order_by(table.c.id)
        )
        for (number,) in store.session.rows(query):
            yield f"{table.name} {number} belongs to no {parent.name}"


def _campaigns(store: Store) -> tuple[list[Campaign], list[str]]:
    try:
        return store.campaigns(), []
    except IntopError as error:
        return [], [str(error)]


def _of_subject(store: Store, subject: Subject, step: Callable[[], None]) -> Iterator[str]:
    where = f"campaign {subject.campaign.id}, {subject.arch} {subject.workload}"
    for stage in store.planned(subject):
        # A stage at a time: all histograms of a campaign need not be in memory at once.
        for row in store.session.rows(trial_rows(subject, [stage])):
            step()
            if problem := _of_trial(row):
                yield f"{where}: {problem}"
        if problem := _said(partial(store.plan, subject, stage)):
            yield f"{where}: {problem}"
    for kind in KINDS:
        if problem := _said(partial(store.get, subject, kind)):
            yield f"{where}: {problem}"
    try:
        unknown = sorted(set(store.results(subject)) - set(KINDS.values()))
    except IntopError as error:
        yield f"{where}: {error}"
    else:
        yield from (f"{where}: {name} is no result of this intop" for name in unknown)


def _of_trial(row: Any) -> str:
    """What is wrong with one, or nothing."""

    def read() -> None:
        with as_written(f"trial {row.trial_id}"):
            trial = trial_of(row)
            p99_ms = None if trial.histogram is None else trial.p99_ms
            if row.p99_ms != p99_ms:
                raise ValueError(f"its P99 is {p99_ms} ms, and the column has {row.p99_ms}")

    return _said(read)


def _said(read: Callable[[], object]) -> str:
    """The error of reading something, or nothing."""
    try:
        read()
    except IntopError as error:
        return str(error)
    return ""
