"""Running programs: what a failure says."""

import os
from pathlib import Path

import pytest

from intop.errors import LabError
from intop.lab import commands


def test_without_root_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="run the same command again with sudo"):
        commands.require_root()


def test_all_missing_programs_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"ip", "tc", "sysctl", "setsid", "sshd", "wrk2", "luajit"}
    monkeypatch.setattr(commands, "find_program", lambda name: name if name in there else None)
    with pytest.raises(LabError) as caught:
        commands.require_programs()
    assert str(caught.value) == (
        "the embedded cluster needs ssh-keygen, nginx: apt-get install -y nginx openssh-client"
    )


def test_one_of_the_load_tools_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"ip", "tc", "sysctl", "setsid", "sshd", "ssh-keygen", "nginx", "wrk"}
    monkeypatch.setattr(commands, "find_program", lambda name: name if name in there else None)
    with pytest.raises(LabError, match=r"needs luajit or wrk2: apt-get install -y luajit$"):
        commands.require_programs()
    for tool in ("luajit", "wrk2"):
        there.add(tool)
        commands.require_programs()
        there.remove(tool)


def test_a_failure_names_the_command_and_what_it_said() -> None:
    with pytest.raises(LabError, match=r"sh -c .*: exit code 3: broken"):
        commands.run(["sh", "-c", "echo broken >&2; exit 3"])


def test_a_missing_program_and_a_silent_one_are_errors() -> None:
    with pytest.raises(LabError, match="intop-no-such-program"):
        commands.run(["intop-no-such-program"])
    with pytest.raises(LabError, match="timed out"):
        commands.run(["sleep", "5"], timeout_s=0.05)


def test_a_program_sees_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTOP_TEST_SECRET", "secret")
    assert "SECRET" not in commands.run(["env"])


def test_a_server_that_does_not_start_shows_its_log(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"exit code 1\n  log: no socket"):
        commands.start(["sh", "-c", "echo no socket; exit 1"], log=tmp_path / "log")


def test_waiting_ends_with_the_last_problem() -> None:
    answers = iter(["not yet", None])
    commands.wait_until(lambda: next(answers), limit_s=1)
    with pytest.raises(LabError, match=r"never \(waited 0.05 s\)"):
        commands.wait_until(lambda: "never", limit_s=0.05)
