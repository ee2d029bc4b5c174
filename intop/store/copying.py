"""A campaign from one store into another one: all of it or nothing, and read back."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from intop.domain.upkeep import Amounts, Copied
from intop.errors import IntopError, UsageError
from intop.store.rows import Campaign
from intop.store.schema import (
    campaign_table,
    late_trial_table,
    planned_table,
    result_table,
    search_table,
    trial_table,
)
from intop.store.store import Store

AT_ONCE = 500
"""Rows in memory. A trial has some kilobytes."""
OF_CAMPAIGN, OF_PLACE = (planned_table, result_table, search_table), (trial_table, late_trial_table)
"""The tables that are copied.

Jobs, workers and activities are of the moment: a campaign goes on with others.
"""
IDENTITY = ("study", "started_at", "seed", "tool_version")
"""The columns by which a campaign is known in another store."""


def copy_campaign(
    source: Store,
    target: Store,
    campaign: Campaign,
    *,
    begin: Callable[[int], None],
    step: Callable[[], None],
) -> Copied:
    """Copy a campaign; its rows get ids of the target, in the same order.

    `begin` hears how many trials there are, `step` of each one that is written. Others may measure
    meanwhile: what the source had at one moment is copied. Raises UsageError where the target has
    an earlier state of this campaign, IntopError where what is read back is not what was written.
    """
    with _at_one_moment(source) as there:
        wanted = _digest(there, campaign.id)
        amounts = _amounts(there, campaign.id)

        def work(here: sa.Connection) -> tuple[int, bool]:
            for known in _alike(here, there, campaign.id):
                if _digest(here, known) == wanted:
                    return known, True
                raise UsageError(
                    f"campaign {campaign.id} ({campaign.study}, begun {campaign.started_at}) is "
                    f"there already as campaign {known}, with other rows: nothing of it was "
                    f"copied. Copy it into a store that does not have it"
                )
            begin(amounts.trials)
            copied = _write(there, here, campaign.id, step)
            if _digest(here, copied) != wanted:
                raise IntopError(
                    f"campaign {campaign.id} is not the same when it is read back, so nothing of "
                    f"it was copied"
                )
            return copied, False

        copied, was_there = target.session.write(work)
    return Copied(
        study=campaign.study,
        started_at=campaign.started_at,
        campaign=campaign.id,
        copy=copied,
        was_there=was_there,
        amounts=amounts,
    )


@contextmanager
def _at_one_moment(store: Store) -> Iterator[sa.Connection]:
    """A connection that sees the store as it is at its first query."""
    with store.session.connected() as connection:
        if store.session.dialect == "sqlite":
            connection.exec_driver_sql("BEGIN")
        else:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


def _alike(here: sa.Connection, there: sa.Connection, campaign: int) -> list[int]:
    columns = [campaign_table.c[name] for name in IDENTITY]
    row = there.execute(sa.select(*columns).where(campaign_table.c.id == campaign)).one()
    is_same = [column == value for column, value in zip(columns, row, strict=True)]
    return list(here.scalars(sa.select(campaign_table.c.id).where(*is_same)))


def _write(
    there: sa.Connection, here: sa.Connection, campaign: int, step: Callable[[], None]
) -> int:
    """Return the number of the copy."""
    row = _row(there, campaign)
    insert = campaign_table.insert().values(_without(row, "id")).returning(campaign_table.c.id)
    copy: int = here.execute(insert).scalar_one()
    for table in OF_CAMPAIGN:
        for rows in _parts(there, _of(table, campaign)):
            values = [_without(row, "id") | {"campaign_id": copy} for row in rows]
            here.execute(table.insert(), values)
    # Both have been written in the order of their ids.
    places = dict(zip(_places(there, campaign), _places(here, copy), strict=True))
    for table in OF_PLACE:
        for rows in _parts(there, _of(table, campaign)):
            values = [_without(row, "id") | {"planned_id": places[row.planned_id]} for row in rows]
            here.execute(table.insert(), values)
            for _ in rows if table is trial_table else ():
                step()
    return copy


def _row(connection: sa.Connection, campaign: int) -> "sa.Row[tuple[object, ...]]":
    return connection.execute(campaign_table.select().where(campaign_table.c.id == campaign)).one()


def _of(table: sa.Table, campaign: int) -> "sa.Select[tuple[object, ...]]":
    """Return the query for all rows of a campaign in the order of their ids."""
    query = sa.select(table).order_by(table.c.id)
    if table in OF_PLACE:
        query = query.join(planned_table, table.c.planned_id == planned_table.c.id)
        return query.where(planned_table.c.campaign_id == campaign)
    return query.where(table.c.campaign_id == campaign)


def _parts(
    connection: sa.Connection, query: "sa.Select[tuple[object, ...]]"
) -> "Iterator[list[sa.Row[tuple[object, ...]]]]":
    """Yield some rows at a time: a server sends no more of them, either."""
    streamed = connection.execution_options(stream_results=True, yield_per=AT_ONCE)
    for rows in streamed.execute(query).partitions():
        yield list(rows)


def _without(row: "sa.Row[tuple[object, ...]]", *names: str) -> dict[str, object]:
    return {name: value for name, value in row._asdict().items() if name not in names}


def _places(connection: sa.Connection, campaign: int) -> list[int]:
    query = sa.select(planned_table.c.id).where(planned_table.c.campaign_id == campaign)
    return list(connection.scalars(query.order_by(planned_table.c.id)))


def _amounts(connection: sa.Connection, campaign: int) -> Amounts:
    counts = [
        connection.scalar(sa.select(sa.func.count()).select_from(_of(table, campaign).subquery()))
        for table in (planned_table, trial_table, result_table)
    ]
    plans, trials, results = (int(count or 0) for count in counts)
    return Amounts(plans=plans, trials=trials, results=results)


def _digest(connection: sa.Connection, campaign: int) -> bytes:
    """Return the digest of all that two copies have in common."""
    digest = hashlib.sha256()
    for row in _comparable(connection, campaign):
        digest.update(repr(tuple(row.values())).encode())
    return digest.digest()


def _comparable(connection: sa.Connection, campaign: int) -> Iterator[dict[str, object]]:
    """Yield all rows in their order, without what is another number in each store."""
    yield _without(_row(connection, campaign), "id")
    places = {place: n for n, place in enumerate(_places(connection, campaign))}
    for table in (planned_table, search_table, *OF_PLACE):
        for rows in _parts(connection, _of(table, campaign)):
            for row in rows:
                is_placed = table in OF_PLACE
                place = {"planned_id": places[row.planned_id]} if is_placed else {}
                yield _without(row, "id", "campaign_id") | place
    results = connection.execute(_of(result_table, campaign)).all()
    for row in sorted(results, key=lambda row: (row.arch, row.workload, row.kind)):
        yield _without(row, "id", "campaign_id")
