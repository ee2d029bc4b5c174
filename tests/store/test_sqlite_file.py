"""An SQLite file that is removed or replaced while a store is open."""

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from builders.stored import begun, kept, trial
from intop.errors import IntopError
from intop.store import Store, Subject, opened, opened_to_read
from intop.store.sqlite_file import MovedError


def removed(path: Path) -> None:
    path.unlink()


def all_removed(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def folder_moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def folder_removed(path: Path) -> None:
    shutil.rmtree(path.parent)


def replaced(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)


def replaced_by_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nothing"))


def log_removed(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def index_removed(path: Path) -> None:
    path.with_name(f"{path.name}-shm").unlink()


Loss = Callable[[Path], None]
LOSSES: list[tuple[Loss, str]] = [
    (removed, "the store's file {} was removed"),
    (all_removed, "the store's file {} was removed"),
    (moved, "the store's file {} was removed"),
    (folder_moved, "the store's file {} was removed"),
    (folder_removed, "the store's file {} was removed"),
    (replaced, "the store's file {} was replaced by another file"),
    (replaced_by_a_link, "the store's file {} was removed"),
    (log_removed, "its write-ahead log {}-wal was removed"),
    (index_removed, "the index of its log {}-shm was removed"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "study").mkdir()
    return tmp_path / "study" / "the store.db"


def refused(path: Path, work: Callable[[Store], object]) -> str:
    """The message that ends work with a store."""

    def whole() -> None:
        with opened(str(path)) as store:
            work(store)

    with pytest.raises(IntopError) as caught:
        whole()
    return str(caught.value)


def lost_between(path: Path, loss: Loss) -> tuple[Subject, str]:
    """A loss between the second and the third of three trials, and the message."""
    subjects: list[Subject] = []

    def work(store: Store) -> None:
        subjects.append(kept(store, trial(), trial(attempt=1)))
        loss(path)
        store.add(subjects[0], trial(attempt=2))
        pytest.fail("the trial counts as kept")

    message = refused(path, work)
    return subjects[0], message


def lost_after(path: Path, loss: Loss) -> tuple[Subject, str]:
    """A loss after the last of two trials, and the message."""
    subjects: list[Subject] = []

    def work(store: Store) -> None:
        subjects.append(kept(store, trial(), trial(attempt=1)))
        loss(path)

    message = refused(path, work)
    return subjects[0], message


def saved_by(message: str) -> Path:
    """The file that a message names."""
    (place,) = re.findall(r"All measurements, with the last one, are in (.*\.saved)\. ", message)
    return Path(place)


def attempts(url: str, subject: Subject) -> list[int]:
    with opened_to_read(url) as store:
        assert store is not None
        return [made.attempt for made in store.trials(subject)]


@pytest.mark.parametrize(("loss", "expected"), LOSSES)
def test_a_trial_after_a_loss_is_saved_with_all_before_it_and_named(
    path: Path, loss: Loss, expected: str
) -> None:
    subject, message = lost_between(path, loss)
    assert f"{expected.format(path)} while intop had it open" in message
    assert len(message.splitlines()) == 1
    saved = saved_by(message)
    assert saved.stat().st_mode & 0o777 == 0o600
    if path.parent.is_dir():
        assert path.parent == saved.parent
    try:
        assert attempts(str(saved), subject) == [0, 1, 2]
        with closing(sqlite3.connect(saved)) as connection:
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    finally:
        saved.unlink()


@pytest.mark.parametrize(("loss", "expected"), LOSSES)
def test_a_loss_after_the_last_trial_is_found_at_the_end(
    path: Path, loss: Loss, expected: str
) -> None:
    subject, message = lost_after(path, loss)
    assert f"{expected.format(path)} while intop had it open" in message
    saved = saved_by(message)
    assert attempts(str(saved), subject) == [0, 1]
    saved.unlink()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_loss_is_found_where_work_ends_otherwise(path: Path, error: type[BaseException]) -> None:
    def work(store: Store) -> None:
        kept(store, trial())
        path.unlink()
        raise error

    assert "was removed" in refused(path, work)


@pytest.mark.parametrize("loss", [removed, all_removed, replaced, log_removed])
def test_the_command_of_the_message_brings_the_store_back(path: Path, loss: Loss) -> None:
    subject, message = lost_between(path, loss)
    command = message.partition("To go on with them: ")[2]
    assert {"rm", "-f", "&&", "mv", str(path)} <= set(shlex.split(command))
    subprocess.run(["sh", "-c", command], check=True, stdin=subprocess.DEVNULL)
    with opened(str(path)) as store:
        store.add(subject, trial(attempt=3))
    assert attempts(str(path), subject) == [0, 1, 2, 3]


def test_each_writer_after_a_loss_is_told_and_one_file_has_all(path: Path) -> None:
    messages: list[str] = []
    subjects: list[Subject] = []

    def work(store: Store) -> None:
        subjects.append(kept(store, trial()))
        path.unlink()
        for attempt in (1, 2):
            with pytest.raises(MovedError, match="was removed") as each:
                store.add(subjects[0], trial(attempt=attempt))
            messages.append(str(each.value))

    messages.append(refused(path, work))
    (saved,) = {saved_by(message) for message in messages}
    assert [saved] == list(path.parent.glob("*.saved"))
    assert attempts(str(saved), subjects[0]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("lost", "expected"),
    [("link.db", "the store's file"), ("study/the store.db-wal", "its write-ahead log")],
)
def test_a_store_behind_a_link_has_its_log_beside_the_target(
    path: Path, lost: str, expected: str
) -> None:
    with opened(str(path)):
        pass
    link = path.parent.parent / "link.db"
    link.symlink_to(path)
    subject, message = lost_after(link, lambda _: (link.parent / lost).unlink())
    assert expected in message
    assert attempts(str(saved_by(message)), subject) == [0, 1]


def test_no_new_file_comes_to_be_where_one_was_removed(path: Path) -> None:
    def work(store: Store) -> None:
        begun(store)
        with store.session.connected():
            path.unlink()
            store.campaigns()  # by a second connection

    assert "was removed" in refused(path, work)
    assert not path.exists()


def test_what_can_t_be_saved_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(path.parent))
    _, message = lost_after(path, folder_removed)
    assert re.search(r"measured can't be saved beside it: .*No such file", message)


def test_a_store_that_stays_is_no_loss(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a path that was relative to another folder, nor a link to the file."""
    monkeypatch.chdir(path.parent)
    (path.parent / "link.db").symlink_to(path)
    for name in (path.name, "link.db"):
        with opened(name) as store, opened(name) as other:
            subject = kept(store, trial(attempt=len(name)))
            os.chdir("/")
            kept(other, trial())
            store.add(subject, trial(attempt=99))
        os.chdir(path.parent)
    assert not list(path.parent.glob("*.saved"))
