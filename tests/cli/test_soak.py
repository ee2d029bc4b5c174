"""`intop soak`: what is printed, and how it ends."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders.testbeds import FakeTestbed
from intop.domain.host_state import Answer, Rollback, RolledBack
from intop.errors import UsageError
from intop.inspect import host_states
from intop.soak import command as soak_command

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def soak(on_testbed: Call) -> Call:
    """The command, on a task whose blocks are made up."""
    return partial(on_testbed, "soak")


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that were asked to be given back."""
    asked: list[str] = []

    def roll_back(addresses: Any, _: Any, *, force: bool) -> list[Answer[Rollback]]:
        assert not force
        asked.extend(address.name for address in addresses)
        done = RolledBack(outcome="restored")
        return [Answer(name=a.name, folder="/x", result=Rollback(done=done)) for a in addresses]

    hosts = [SimpleNamespace(name=name) for name in ("lb", "other")]
    monkeypatch.setattr(host_states, "tuned_hosts", lambda *_: (hosts, []))
    monkeypatch.setattr(host_states, "roll_back", roll_back)
    monkeypatch.setattr(soak_command, "connecting", lambda _: None)
    return asked


def test_it_is_printed_and_drawn(soak: Call, tmp_path: Path) -> None:
    code, out, _ = soak("--hours", "0.1", "--block-s", "60", "--figures", tmp_path)
    assert code == 0
    assert "x86 slt: soak of" in out
    assert (tmp_path / "x86-slt-soak.svg").is_file()


def test_json_has_every_block(soak: Call) -> None:
    code, out, _ = soak("--hours", "0.1", "--json")
    result = json.loads(out)["x86 slt"]
    assert (code, result["planned"], len(result["blocks"]), result["leak"]) == (
        0,
        6,
        6,
        "not known",
    )


def test_a_broken_limit_keeps_what_is_applied_unless_it_is_told_otherwise(
    soak: Call, given_back: list[str]
) -> None:
    words = ("--hours", "0.1", "--limit-ms", "1")
    code, out, _ = soak(*words)
    assert (code, given_back) == (3, [])
    assert "ended early, P99 above 1.00 ms in 3 blocks in a row" in out
    code, _, err = soak(*words, "--on-limit", "roll-back")
    assert (code, given_back) == (3, ["lb"])
    assert "lb: " in err


def test_within_its_limits_nothing_is_given_back(soak: Call, given_back: list[str]) -> None:
    code, _, _ = soak("--hours", "0.1", "--limit-ms", "99", "--on-limit", "roll-back")
    assert (code, given_back) == (0, [])


def test_a_rate_that_leaves_connections_idle_is_refused(soak: Call, testbed: FakeTestbed) -> None:
    with pytest.raises(UsageError, match=r"--rate: at 0\.1 requests/s"):
        soak("--rate", "0.1")
    assert testbed.measured == []
