"""What is wrong in a store is found, and named."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from builders.campaigns import sql
from builders.stored import SEARCH, kept, rows, trial
from intop.domain.upkeep import Amounts, Checked
from intop.store import Store, opened, upkeep


def checked(store: Store) -> Checked:
    steps: list[int] = []
    result = upkeep.check(store, "here", begin=steps.append, step=lambda: steps.append(1))
    assert steps[0] == result.amounts.trials
    return result


def test_a_sound_store_has_no_problem(store: Store) -> None:
    store.put(kept(store, trial(), trial(attempt=1)), SEARCH)
    expected = Amounts(plans=3, trials=2, results=1)
    assert Checked(store="here", campaigns=1, amounts=expected) == checked(store)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update trial set histogram = null", "its latency is None ms, and the column has 50.015"),
        ("update trial set judged_ms = 7", "its latency is 50.015 ms, and the column has 7.0"),
        ("update trial set counters = histogram", "counters can't be unpacked"),
        ("update trial set errors = 'none'", "trial 1 is not as this intop writes it"),
        ("update planned set role = 'boss'", "plan of collect is not as this intop writes it"),
        ("update result set document = '{}'", "result search of campaign 1 is not as"),
        ("update result set kind = 'horoscope'", "horoscope is no result of this intop"),
        ("update result set created_at = 'noon'", "result search is not as this intop writes it"),
        ("update campaign set finished_at = 'x'", ""),
    ],
)
def test_what_nobody_of_us_wrote_is_a_problem(
    store: Store, url: str, statement: str, message: str
) -> None:
    store.put(kept(store, trial()), SEARCH)
    rows(url, statement)
    problems = checked(store).problems
    assert bool(message) == bool(problems)
    assert not message or any(message in problem for problem in problems)


def test_rows_that_belong_to_none_are_named(path: Path) -> None:
    with opened(str(path)) as store:
        store.put(kept(store, trial()), SEARCH)
    sql(path, "delete from planned")  # by a program that checks no references
    sql(path, "update result set campaign_id = 9")
    with opened(str(path)) as store:
        assert checked(store).problems == (
            "trial 1 belongs to no planned",
            "result 1 belongs to no campaign",
        )


def test_pages_that_are_damaged_are_told(path: Path) -> None:
    with opened(str(path)) as store:
        kept(store, *(trial(attempt=n) for n in range(30)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        asked = "select rootpage from sqlite_master where name = 'ix_campaign_study'"
        ((page,),) = connection.execute(asked).fetchall()
        ((length,),) = connection.execute("pragma page_size").fetchall()
    whole = bytearray(path.read_bytes())
    # An index that lacks its only entry: what is asked for by it isn't found.
    whole[(page - 1) * length + 3 : (page - 1) * length + 5] = b"\0\0"
    path.write_bytes(whole)
    with opened(str(path)) as store:
        assert any("ix_campaign_study" in problem for problem in checked(store).problems)


def test_of_many_problems_some_are_listed(store: Store, url: str) -> None:
    kept(store, *(trial(attempt=n) for n in range(30)))
    rows(url, "update trial set errors = ''")
    result = checked(store)
    assert (
        len(result.problems),
        result.unlisted,
    ) == (upkeep.MOST_LISTED, 30 - upkeep.MOST_LISTED)


def test_a_vacuum_gives_space_back_and_loses_nothing(store: Store, url: str) -> None:
    made = [trial(attempt=n, detail="x" * 5000) for n in range(600)]
    subject = kept(store, *made)
    rows(url, "delete from trial where attempt >= 5")
    result = upkeep.vacuum(store, url)
    assert result.after < result.before / 2
    assert made[:5] == store.trials(subject)
