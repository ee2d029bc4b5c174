"""Campaigns go from one database to the other and back, and are the same."""

import lzma
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from builders.stored import PLAN, SEARCH, begun, kept, trial
from intop.domain.upkeep import Copied
from intop.errors import IntopError, UsageError
from intop.store import Campaign, Store, copying, opened, opened_to_read
from intop.store.schema import (
    campaign_table,
    planned_table,
    result_table,
    search_table,
    trial_table,
)
from kit.cut_postgres import cut_between
from kit.postgres import Server

RECORDED = Path(__file__).parents[1] / "data" / "campaign"


def copied(source: Store, target: Store, campaign: Campaign) -> Copied:
    steps: list[int] = []
    return copying.copy_campaign(
        source, target, campaign, begin=steps.append, step=lambda: steps.append(1)
    )


def content(store: Store, campaign: int) -> list[object]:
    """All columns of all rows of a campaign in their order, without the numbers of rows."""

    def read(connection: sa.Connection) -> list[object]:
        query = campaign_table.select().where(campaign_table.c.id == campaign)
        result: list[object] = [tuple(connection.execute(query).one())[1:]]
        for table in (planned_table, result_table, search_table):
            query = table.select().where(table.c.campaign_id == campaign).order_by(table.c.id)
            result += [tuple(row)[2:] for row in connection.execute(query)]
        at = (planned_table.c.arch, planned_table.c.stage, planned_table.c.position)
        query = sa.select(*at, *(c for c in trial_table.c if c.name not in ("id", "planned_id")))
        query = query.join(planned_table).where(planned_table.c.campaign_id == campaign)
        result += [tuple(row) for row in connection.execute(query.order_by(trial_table.c.id))]
        return result

    return store.session.read(read)


def test_the_recorded_campaign_is_the_same_after_a_way_there_and_back(
    tmp_path: Path, postgres_server: Server
) -> None:
    first, last = tmp_path / "first.db", tmp_path / "last.db"
    first.write_bytes(lzma.decompress((RECORDED / "finished.db.xz").read_bytes()))
    with opened(str(first)) as one, opened(postgres_server.database()) as two:
        begun(two)  # so that the numbers are others
        (campaign,) = one.campaigns()
        there = copied(one, two, campaign)
        assert (there.campaign, there.copy, there.was_there) == (1, 2, False)
        assert (there.amounts.plans, there.amounts.trials) == (498, 510)
        expected = content(one, 1)
        assert len(expected) >= 1 + 498 + 510 + there.amounts.results
        assert there.amounts.results > 20
        assert content(two, 2) == expected
        with opened(str(last)) as three:
            back = copied(two, three, two.campaigns()[1])
            assert (back.campaign, back.copy) == (2, 1)
            assert content(three, 1) == expected
            for subject in one.subjects(campaign):
                assert one.trials(subject) == three.trials(subject)


def test_a_campaign_that_is_there_is_left_alone_and_one_that_has_grown_is_refused(
    url: str, tmp_path: Path
) -> None:
    with opened(str(tmp_path / "other.db")) as source, opened(url) as target:
        subject = kept(source, trial())
        source.put(subject, SEARCH)
        assert not copied(source, target, subject.campaign).was_there
        again = copied(source, target, subject.campaign)
        assert (again.was_there, again.copy) == (True, 1)
        source.add(subject, trial(attempt=1))
        message = r"^campaign 1 \(study, begun .*\) is there already as campaign 1, with other rows"
        with pytest.raises(UsageError, match=message):
            copied(source, target, subject.campaign)
        assert len(target.campaigns()) == 1
        assert [trial()] == target.trials(subject)


def test_nothing_of_a_campaign_that_can_not_be_copied_is_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "AT_ONCE", 1)
    with opened(str(tmp_path / "other.db")) as source, opened(url) as target:
        subject = kept(source, *(trial(attempt=n) for n in range(3)))
        steps: list[int] = []

        def step() -> None:
            steps.append(1)
            if len(steps) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            copying.copy_campaign(source, target, subject.campaign, begin=steps.append, step=step)
        assert target.campaigns() == []
        copied(source, target, subject.campaign)
        (there,) = target.campaigns()
        assert len(target.trials(replace(subject, campaign=there))) == 3


def test_what_is_not_the_same_when_it_is_read_back_is_not_kept(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(str(tmp_path / "other.db")) as source, opened(url) as target:
        subject = kept(source, trial())
        without = copying._without
        monkeypatch.setattr(
            copying,
            "_without",
            lambda row, *names: without(row, *names) | ({"seed": 0} if names == ("id",) else {}),
        )
        monkeypatch.setattr(copying, "_digest", lambda connection, _: str(connection.engine.url))
        with pytest.raises(IntopError, match="is not the same when it is read back"):
            copied(source, target, subject.campaign)
        assert target.campaigns() == []


def test_a_copy_is_there_once_although_its_commit_was_lost(
    postgres_server: Server, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    with (
        cut_between(postgres_server.database(), folder) as cut,
        opened(str(tmp_path / "one.db")) as source,
        opened(cut.url) as target,
    ):
        subject = kept(source, trial())
        cut.losses += ["command", "answer"]
        copied(source, target, subject.campaign)
        assert cut.losses == []
        assert len(target.campaigns()) == 1


def test_what_only_reads_is_a_source(url: str, tmp_path: Path) -> None:
    with opened(url) as made:
        subject = kept(made, trial())
    with opened_to_read(url) as source, opened(str(tmp_path / "two.db")) as target:
        assert source is not None
        copied(source, target, subject.campaign)
        assert [trial()] == target.trials(subject)
        with pytest.raises(IntegrityError):
            target.write_plan(subject, "collect", PLAN)
