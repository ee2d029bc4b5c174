"""A process that tells others what it works on."""

import time
from pathlib import Path

import pytest

from builders.stored import begun
from intop import process
from intop.domain.activity import Activity
from intop.errors import AtWorkError
from intop.run.at_work import AtWork
from intop.store import Store, Subject, opened
from intop.store.schema import activity_table


def activities(store: Store, subject: Subject) -> dict[str, Activity]:
    return store.activities.of(subject.campaign)


def test_the_stage_under_way_is_told_until_the_work_ends(tmp_path: Path) -> None:
    with opened(str(tmp_path / "intop.db")) as store:
        first = begun(store)
        second = Subject(campaign=first.campaign, arch="arm", workload="slt")
        with AtWork(store) as at_work:
            assert activities(store, first) == {}
            at_work.begin(first, "screen")
            at_work.begin(first, "collect")
            assert activities(store, first)["x86 slt"].stage == "collect"
            at_work.begin(second, "screen")
            assert set(activities(store, first)) == {"arm slt"}
        assert activities(store, first) == {}


def test_life_is_shown_again_and_again(tmp_path: Path) -> None:
    with opened(str(tmp_path / "intop.db")) as store, AtWork(store, renew_s=0.05) as at_work:
        subject = begun(store)
        at_work.begin(subject, "train")
        store.session.change(activity_table.update().values(heard_at=0.0))
        deadline = time.monotonic() + 60
        while not activities(store, subject)["x86 slt"].is_alive:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_sign_of_life_that_fails_is_said_once_and_ends_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    tries: list[str] = []

    def fails(_: Subject, stage: str) -> None:
        tries.append(stage)
        raise OSError("postgresql://me:secret@db/intop is away\nand more of it")

    with opened(str(tmp_path / "intop.db")) as store:
        with AtWork(store, say=heard.append, renew_s=0.01) as at_work:
            monkeypatch.setattr(store.activities, "renew", fails)
            at_work.begin(begun(store), "train")
            deadline = time.monotonic() + 60
            while len(tries) < 3:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        (line,) = heard
    assert "does not take the sign of life" in line
    assert "is away. After 1 min 30 s of silence" in line
    assert "secret" not in line
    assert "and more" not in line


def test_a_second_process_is_refused_with_the_name_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(str(tmp_path / "intop.db")) as store, AtWork(store) as at_work:
        subject = begun(store)
        at_work.begin(subject, "train")
        title = process.title()
        monkeypatch.setattr(process, "identity", lambda: "elsewhere/1/1")
        with AtWork(store) as second, pytest.raises(AtWorkError) as refusal:
            second.begin(subject, "train")
        assert f"x86 slt: campaign 1 is at work: {title} is at train" in str(refusal.value)
        assert str(refusal.value).endswith("Run: intop progress")
        assert activities(store, subject)["x86 slt"].process == title
