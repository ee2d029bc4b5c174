"""status and rollback, as they are typed."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from intop.deploy import rollback_command as rollback
from intop.domain.host_state import Answer, HostState
from kit.commands import intop


@pytest.mark.parametrize("verb", ["status", "rollback"])
def test_a_lab_that_is_not_up_can_be_neither_asked_nor_given_back(study: Path, verb: str) -> None:
    done = intop(verb, "-c", study)
    assert (done.returncode, done.stderr) == (1, "")
    assert "lab t-cli is not up: start it with intop lab up" in done.stdout
    (answer,) = json.loads(intop(verb, "-c", study, "--json").stdout)
    assert (answer["name"], answer["result"]) == ("lab t-cli", None)
    assert not (study.parent / "mine.db").exists()


@pytest.mark.parametrize("verb", ["status", "rollback"])
def test_an_optional_lab_that_is_not_up_has_nothing_to_be_given_back(
    study: Path, verb: str
) -> None:
    study.write_text(study.read_text() + "optional = true\n")
    done = intop(verb, "-c", study)
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert f"x86 is optional in {study} and left out: lab t-cli is not up" in done.stderr


@pytest.mark.parametrize("verb", ["status", "rollback"])
def test_a_host_that_cannot_be_reached_is_named_and_the_exit_code_is_1(
    study: Path, verb: str
) -> None:
    """The study is wrong, which keeps nobody from a host."""
    study.write_text("nonsense")
    words = ("--host", "root@127.0.0.1:1", "--host", "root@127.0.0.1:2")
    done = intop(verb, *words, before=f"import os; os.environ['INTOP_CONFIG'] = {str(study)!r}")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{study} can't be read, so --host does without its settings: ")
    lines = done.stdout.splitlines()
    assert [line[:13] for line in lines] == ["127.0.0.1:1: ", "127.0.0.1:2: "]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("state", "typed", "code"),
    [
        (HostState(holder="root@elsewhere (process 8)"), "n\n", 1),
        (HostState(holder="root@elsewhere (process 8)"), "\n", 1),
        (HostState(holder="root@elsewhere (process 8)"), "y\n", None),
        (HostState(), "", None),
    ],
)
def test_a_host_is_taken_from_somebody_only_when_that_is_confirmed(
    state: HostState, typed: str, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", stderr)
    results = [Answer(name="lb", result=state), Answer[HostState](name="gone", error="gone: gone")]
    ended = None
    try:
        rollback._confirm(results)
    except SystemExit as error:
        ended = error.code
    assert code == ended
    assert bool(state.holder) == ("lb: held by root@elsewhere (process 8)" in stderr.getvalue())
    assert (code == 1) == ("nothing was changed" in stderr.getvalue())
