"""`intop progress`: the campaign by its store, without a host."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.campaigns import begun
from intop.command import passwords
from intop.errors import UsageError
from intop.store import opened

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "connecting", lambda _: pytest.fail("connects"))


def test_it_shows_stages_and_the_best_so_far(study: Path, call: Call) -> None:
    begun(study.parent, ["ok", "ok", "failed"])
    code, out, err = call("progress", "-c", study)
    assert (code, err) == (0, "")
    assert out.startswith("campaign 1 of mine in ")
    assert "nobody is at work. Run: intop tune --resume" in out
    assert "x86 slt: screen, 3 of 8 trials" in out
    assert "best so far, not a verdict: P99 9.0 ms (1 trial), the default's 10.0 ms (1)" in out
    assert "the lowest of 1 configuration, which is the luckiest one" in out
    result = json.loads(call("progress", "--json", "-c", study)[1])
    assert (result["campaign"], result["trials"], result["is_at_work"]) == (1, 3, False)
    (screen, *_) = result["subjects"][0]["stages"]
    assert (screen["name"], screen["left"]) == ("screen", 5)


def test_who_is_at_work_is_named(study: Path, call: Call) -> None:
    _, subject = begun(study.parent, ["ok"])
    with opened(str(study.parent / "mine.db")) as store:
        store.activities.take(subject, "screen")
        out = call("progress", "-c", study)[1]
    assert ") at x86 slt screen since 20" in out
    assert "at work: " in out
    assert "nobody" not in out


def test_before_there_is_one_it_says_how_to_begin(study: Path, call: Call) -> None:
    code, out, _ = call("progress", "-c", study)
    assert (code, f"no campaign of mine in {study.parent}/mine.db yet. Run: intop" in out) == (
        1,
        True,
    )
    assert not (study.parent / "mine.db").exists()


def test_a_store_that_cannot_be_read_is_named(study: Path, call: Call) -> None:
    (study.parent / "mine.db").write_text("something else " * 100)
    with pytest.raises(UsageError, match=r"the store .* can't be opened"):
        call("progress", "-c", study)


def test_the_whole_store_has_no_architecture(study: Path, call: Call) -> None:
    begun(study.parent, ["ok"])
    assert "mine" in call("progress", "--all", "-c", study)[1]
    with pytest.raises(UsageError, match="leave --arch out"):
        call("progress", "--all", "--arch", "x86", "-c", study)
