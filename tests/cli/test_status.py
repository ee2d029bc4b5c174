"""`intop status` of a campaign, beside its hosts and by itself."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.campaigns import begun
from intop.cli import cli
from intop.errors import UsageError

Call = Callable[..., tuple[int, str, str]]


def test_it_is_told_beside_the_hosts(study: Path, call: Call) -> None:
    begun(study.parent, ["ok", "ok", "failed"])
    code, out, err = call("status", "-c", study)
    assert (code, err) == (1, "")  # the lab isn't up
    assert out.startswith("lab t-cli is not up")
    assert "campaign 1 of mine in " in out
    assert "x86 slt: screen, 3 of 8 trials" in out
    assert "best so far, not a verdict: P99 9.0 ms (1 trial), the default's 10.0 ms (1)" in out
    assert "the lowest of 1 configuration, which is the luckiest one" in out


def test_it_can_be_asked_without_any_host(
    study: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from intop.cli import status

    monkeypatch.setattr(status, "connecting", lambda _: pytest.fail("connects"))
    begun(study.parent, ["ok"])
    code, out, _ = call("status", "--campaign", "-c", study)
    assert (code, "nobody seems to be at work; go on with: intop tune" in out) == (0, True)
    assert "not up" not in out
    result = json.loads(call("status", "--campaign", "--json", "-c", study)[1])
    assert (result["campaign"], result["trials"]) == (1, 1)
    (screen, *_) = result["subjects"][0]["stages"]
    assert (screen["name"], screen["left"]) == ("screen", 7)


def test_before_there_is_one_it_says_how_to_begin(study: Path, call: Call) -> None:
    code, out, _ = call("status", "--campaign", "-c", study)
    assert (code, f"no campaign of mine in {study.parent}/mine.db yet: intop" in out) == (1, True)
    assert not (study.parent / "mine.db").exists()


def test_a_store_that_cannot_be_read_hides_no_host(study: Path, call: Call) -> None:
    (study.parent / "mine.db").write_text("something else " * 100)
    _, out, err = call("status", "-c", study)
    assert "lab t-cli is not up" in out
    assert err.startswith("intop: the store ")
    with pytest.raises(UsageError, match=r"the store .* can't be opened"):
        call("status", "--campaign", "-c", study)


def test_named_hosts_have_no_campaign(study: Path) -> None:
    with pytest.raises(UsageError, match="--campaign asks no host"):
        cli(["status", "--campaign", "--host", "lb"], standalone_mode=False)
