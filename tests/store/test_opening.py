"""Opening a store: a file or a URL, ours or somebody else's."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from intop.errors import UsageError
from intop.store import Store, opened
from stored import PLAN, begun, trial


def test_opening_again_keeps_what_is_there(path: Path) -> None:
    for expected in (1, 2):
        with opened(str(path)) as store:
            assert expected == begun(store).campaign.id


def test_threads_may_make_stores_at_the_same_time(tmp_path: Path) -> None:
    def made(number: int) -> int:
        with opened(str(tmp_path / f"{number % 16}.db")) as store:
            return begun(store).campaign.id

    with ThreadPoolExecutor(8) as pool:
        assert [1] * 16 + [2] * 16 == sorted(pool.map(made, range(32)))


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("these are my notes " * 100)
    with pytest.raises(UsageError, match=r"intop\.db can't be opened"), opened(str(path)):
        pytest.fail("must not open")
    assert path.read_text().startswith("these are my notes")


def test_a_store_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=f"there is no folder {tmp_path}/nosuch"),
        opened(str(tmp_path / "nosuch" / "intop.db")),
    ):
        pytest.fail("must not open")


def test_a_store_can_be_named_by_url(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/by-url.db") as store:
        begun(store)
    assert (tmp_path / "by-url.db").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "nosuch://me:s3cret@db.example/intop",
        "postgresql+nosuch://me:s3cret@db.example/intop",
        "postgresql://me:s3cret@db.example:port/intop",
        "://me:s3cret@db.example",
    ],
)
def test_a_url_that_is_no_store_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(UsageError) as caught, opened(url):
        pytest.fail("must not open")
    assert "s3cret" not in str(caught.value)


def test_a_second_controller_can_read_while_the_first_writes(store: Store, url: str) -> None:
    subject = begun(store)
    with opened(url) as other:
        store.write_plan(subject, "collect", PLAN)
        store.add(subject, trial())
        assert [trial()] == other.trials(subject)
        other.add(subject, trial(planned=PLAN[0]))
    assert 2 == len(store.trials(subject))
