"""Completion, as the shells ask for it, and once in a real bash at a real terminal."""

import json
import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from intop.cli import cli
from intop.domain.cluster import native_arch, other_arch
from intop.resources import shipped
from kit.commands import ran

ROOT = Path(__file__).parents[2]
HEAVY = {"numpy", "pydantic", "sqlalchemy", "rich", "paramiko", "sklearn", "scipy", "optuna"}


def completed(*words: str) -> list[str]:
    """What there is to go on with after these words, of which the last is not finished."""
    *before, incomplete = words
    result = BashComplete(cli, {}, "intop", "_INTOP_COMPLETE").get_completions(before, incomplete)
    return [item.value if item.type == "plain" else item.type for item in result]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("scr",), ["screen"]),
        (("lab", ""), ["down", "status", "up"]),
        (("search", "--alg"), ["--algorithm"]),
        (("search", "--algorithm", "s"), ["swarm"]),
        (("compare", "x"), ["x86"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("tune", "--dry"), ["--dry-run"]),
        (("contest", "ub"), ["ubuntu-18.04"]),
        (("contest", "ubuntu-18.04", "op"), ["openeuler-25.09"]),
        (("verify", "--default", "ker"), ["kernel-6.1"]),
        (("tune", "--config", "x"), ["file"]),
        (("train", "--models", "x"), ["dir"]),
    ],
    ids=" ".join,
)
def test_commands_options_choices_and_paths_are_completed(
    words: tuple[str, ...], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTOP_CONFIG", str(shipped("configs") / "lab.toml"))
    assert completed(*words) == expected


def test_no_shell_gets_a_name_with_control_characters(folder: Path) -> None:
    (folder / "intop.toml").write_text('[workload.slt]\n[workload."s\\u001b]0;evil\\u0007"]\n')
    assert completed("verify", "--workload", "s") == ["slt"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INTOP_CONFIG", raising=False)
    return tmp_path


def test_values_are_those_of_the_study_in_this_folder(folder: Path) -> None:
    (folder / "intop.toml").write_text("[cluster.arm]\n[[workload.dlt]]\n[cluster.riscv]\n")
    assert completed("tune", "--arch", "") == ["arm"]
    assert completed("tune", "--arch", "x") == []
    assert completed("tune", "--workload", "") == ["dlt"]


def test_values_are_those_of_the_file_that_was_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "x.toml").write_text("[cluster.native]\n[cluster.other]\n[workload.slt]\n")
    expected = [native_arch(), other_arch()]
    assert completed("tune", "-c", "x.toml", "--arch", "") == expected
    monkeypatch.setenv("INTOP_CONFIG", "x.toml")
    assert completed("tune", "--arch", "") == expected


def test_without_a_study_there_are_no_values(folder: Path) -> None:
    assert not list(folder.iterdir())
    assert completed("tune", "--workload", "") == []


def test_baselines_of_the_studys_own_are_completed(folder: Path) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "mine.toml").touch()
    (folder / "intop.toml").write_text('[study]\nbaselines = "own"\n')
    assert completed("contest", "m") == ["mine"]


@pytest.mark.parametrize(
    "text", ["nonsense", "cluster = 5", "\0", "[cluster", "x = " + "[" * 5000, "cluster = [1]"]
)
def test_a_study_that_cannot_be_read_has_no_values(
    folder: Path, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "intop.toml").write_text(text)
    assert [] == completed("tune", "--arch", "") == completed("tune", "--workload", "")
    (folder / "intop.toml").write_bytes(b"\xff")
    assert completed("tune", "--arch", "") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("shell", "says"), [("bash", "complete -o nosort"), ("zsh", "#compdef intop"), ("fish", "-c")]
)
def test_the_script_is_printed(shell: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli(["completion", shell], standalone_mode=False)
    out, err = capsys.readouterr()
    assert err == ""
    assert says in out
    assert "_INTOP_COMPLETE=" + shell in out


BASH = """
source <(intop completion bash)
ask() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _intop_completion intop
    printf '%s ' "${COMPREPLY[@]}"; echo
}
ask intop ro
ask intop tune --arch ''
ask intop lab d
echo "$(type -t _intop_completion) $(complete -p intop)"
"""


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """One in which there is an intop, and nothing of the user's."""
    program = folder / "bin" / "intop"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m intop "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    home = {"HOME": str(folder), "INPUTRC": "/dev/null", "PS1": "$ "}
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "TERM": "dumb", **home}


def test_a_real_bash_completes(folder: Path, environment: dict[str, str]) -> None:
    (folder / "intop.toml").write_text("[cluster.arm]\n")
    done = ran("bash", "--norc", "-c", BASH, env=environment, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    *asked, message = done.stdout.splitlines()
    assert [line.strip() for line in asked] == ["rollback", "arm", "down"]
    assert message.startswith("function complete ")


def test_a_real_bash_completes_paths_at_a_terminal(
    folder: Path, environment: dict[str, str]
) -> None:
    (folder / "some-study.toml").touch()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
    seen = b""

    def wait_for(word: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while word not in seen:
            assert select.select([terminal], [], [], max(0, end - time.monotonic()))[0], seen
            seen += os.read(terminal, 4096)

    try:
        os.write(terminal, b"source <(intop completion bash); echo re''ady\n")
        wait_for(b"\nready")
        os.write(terminal, b"intop doctor --config some-st\t")
        wait_for(b"some-study.toml ")
    finally:
        os.write(terminal, b"\x03exit\n")
        os.close(terminal)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_completion_imports_nothing_heavy(folder: Path) -> None:
    (folder / "intop.toml").write_text("[cluster.arm]\n")
    script = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr))\n"
        "from intop.cli import main; main()"
    )
    asked = {"COMP_WORDS": "intop tune --arch ", "COMP_CWORD": "3", "PYTHONPATH": str(ROOT)}
    asked["_INTOP_COMPLETE"] = "bash_complete"
    done = ran(sys.executable, "-c", script, env={**os.environ, **asked}, cwd=folder)
    assert done.stdout.strip() == "plain,arm"
    assert not HEAVY & {name.partition(".")[0] for name in json.loads(done.stderr)}
