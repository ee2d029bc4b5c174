"""Transactions on a PostgreSQL that is restarted, and by a network that loses connections."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError

from builders.stored import PLAN, WORKLOAD, begun, kept, trial
from intop.domain.job import JobSettings
from intop.errors import IntopError
from intop.store import Store, opened, session
from intop.store.schema import campaign_table
from kit.cut_postgres import Cut, Loss, cut_between
from kit.postgres import Server, running


@pytest.fixture
def cut(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cut]:
    folder = tmp_path_factory.mktemp("cut")
    with cut_between(postgres_server.database(), folder) as made:
        yield made


@pytest.mark.parametrize("losses", [["answer"], ["command"], ["command", "command", "answer"]])
def test_what_a_lost_commit_wrote_is_there_once(cut: Cut, losses: list[Loss]) -> None:
    """Where it was carried out, and where it was not."""
    with opened(cut.url) as store:
        cut.losses += losses
        subject = begun(store)
        assert cut.losses == []
        assert len(store.campaigns()) == 1
        cut.losses += losses
        store.write_plan(subject, "collect", PLAN)
        assert cut.losses == []
        made = [trial(), trial(attempt=1)]
        for one in made:
            cut.losses += losses
            store.add(subject, one)
            assert cut.losses == []
        assert store.plan(subject, "collect") == PLAN
        assert made == store.trials(subject)


def test_a_second_trial_of_an_attempt_is_refused_after_a_lost_answer(cut: Cut) -> None:
    with opened(cut.url) as store:
        subject = kept(store, trial())
        cut.losses += ["answer"]
        store.add(subject, trial(attempt=1))
        assert cut.losses == []
        with pytest.raises(IntegrityError):
            store.add(subject, trial(attempt=1))


def test_a_session_that_the_server_ends_is_begun_again(postgres_server: Server) -> None:
    message: list[str] = []
    with opened(postgres_server.database(), message.append) as store:
        subject = kept(store)
        end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = "
        for attempt in range(3):
            postgres_server.sql(end + "'intop'")
            store.add(subject, trial(attempt=attempt))
            postgres_server.sql(end + "'intop'")
            assert attempt + 1 == len(store.trials(subject))
    assert message == [], "nobody waits for what is over at once"


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """One that is restarted, which the tests of other modules would not like."""
    with running() as server:
        yield server


@pytest.mark.parametrize("restart", [Server.restart, Server.crash, Server.kill_a_session])
def test_trials_are_added_once_while_the_server_is_restarted(
    own_server: Server, restart: Callable[[Server], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that never comes back fails the test, and not each of forty trials after 300 s.
    monkeypatch.setattr(session, "PATIENCE_S", 60)
    url = own_server.database()
    message: list[str] = []
    with opened(url, message.append) as store, ThreadPoolExecutor(4) as pool:
        subject = kept(store)

        def add(attempt: int) -> None:
            store.add(subject, trial(attempt=attempt))

        try:
            for turn in range(3):
                adding = [pool.submit(add, 40 * turn + n) for n in range(40)]
                adding[5].result(60)
                restart(own_server)
                for one in adding:
                    one.result(60)
        finally:
            pool.shutdown(cancel_futures=True)
        assert list(range(120)) == sorted(t.attempt for t in store.trials(subject))


def test_a_transaction_whose_id_a_crash_took_back_was_not_committed(own_server: Server) -> None:
    with opened(own_server.database()) as store:
        to_come = session._Ticket("4000000000", process=1, statistics="2026", lsn="0/0")
        assert not store.session._is_committed(to_come)


def test_who_waits_for_a_server_says_so_and_when_it_is_back(own_server: Server) -> None:
    message: list[str] = []

    def say(text: str) -> None:
        message.append(text)
        if len(message) == 1:
            own_server.start()

    with opened(own_server.database(), say) as store:
        subject = kept(store)
        own_server.stop()
        store.add(subject, trial())
        assert [trial()] == store.trials(subject)
    waits, answers = message
    assert waits.startswith("the store does not answer, waiting up to 300 s: ")
    assert answers.startswith("the store answers again after ")


def test_who_ends_does_not_wait_for_a_server(own_server: Server) -> None:
    message: list[str] = []
    with opened(own_server.database(), message.append) as store:
        subject = begun(store)
        store.write_plan(subject, "collect", PLAN)
        lease = store.jobs.take(
            subject,
            "collect",
            PLAN[0],
            attempt=0,
            request=JobSettings(workload=WORKLOAD, tunes=("kernel",)),
            worker="one",
            lease_s=60,
        )
        own_server.stop()
        store.jobs.release(lease)
        store.jobs.drop(lease)
        store.workers.ended("one")
        own_server.start()
        assert message == []
        assert {subject.campaign.id: (0, 1)} == store.jobs.waiting()  # until its lease runs out
        store.jobs.drop(lease)
        assert store.jobs.waiting() == {}


def test_a_server_that_stays_away_is_one_clear_error(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PATIENCE_S", 0.2)
    url = own_server.database()
    with opened(url) as store:
        subject = kept(store)
    with_password = url.replace("intop@", "intop:s3cret@")

    def add_without_server() -> None:
        with opened(with_password) as store:
            own_server.stop()
            store.add(subject, trial())

    with pytest.raises(IntopError, match=r"^the store postgresql.*: .*connection") as caught:
        add_without_server()
    own_server.start()
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_who_ends_does_not_wait_for_a_locked_file_and_hears_of_all_else(tmp_path: Path) -> None:
    path = tmp_path / "intop.db"
    change = campaign_table.update().values(seed=2)
    with opened(str(path)) as store, closing(sqlite3.connect(path)) as other:
        begun(store)
        with store.session.connected() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 50")
        other.execute("BEGIN IMMEDIATE")
        store.session.attempt(change)
        other.rollback()
        assert [one.seed for one in store.campaigns()] == [7]
        store.session.attempt(change)
        assert [one.seed for one in store.campaigns()] == [2]
        with pytest.raises(OperationalError, match="no such table"):
            store.session.attempt(sa.text("delete from elsewhere"))


def test_nothing_of_work_that_fails_is_kept(store: Store) -> None:
    def work(connection: sa.Connection) -> None:
        values = {"study": "x", "started_at": "", "seed": 1, "tool_version": ""}
        connection.execute(campaign_table.insert().values(values))
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        store.session.write(work)
    assert store.campaigns() == []
