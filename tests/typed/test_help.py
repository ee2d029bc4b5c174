"""What every command says of itself, and how it ends when it is interrupted."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from intop import __version__
from intop.cli import cli
from intop.learn.searching.search import ALGORITHMS
from kit.commands import intop, ran

ROOT = Path(__file__).parents[2]
HEAVY = ["numpy", "pandas", "scipy", "sklearn", "optuna", "paramiko", "sqlalchemy", "pydantic"]


HEAVY += ["rich", "catboost", "lightgbm", "xgboost", "deap", "hdrh", "joblib", "jinja2"]


HEAVY += ["matplotlib"]


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = list(commands(cli))

IDS = [" ".join(path) or "intop" for path, _ in COMMANDS]


@pytest.mark.parametrize(
    ("path", "command"), COMMANDS, ids=[" ".join(p) or "-" for p, _ in COMMANDS]
)
def test_every_command_has_a_help_text_with_examples(
    path: tuple[str, ...], command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli([*path, "--help"], standalone_mode=False) == 0
    text = capsys.readouterr().out
    assert command.help
    assert "Examples:\n  intop " in text
    assert f"intop {' '.join(path)}".strip() in text.partition("Examples:")[2]


@pytest.mark.parametrize(
    ("path", "command"), COMMANDS, ids=[" ".join(p) or "-" for p, _ in COMMANDS]
)
def test_every_option_is_explained(path: tuple[str, ...], command: click.Command) -> None:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{' '.join(path)} {parameter.name}"


def test_the_commands_are_those_of_the_design() -> None:
    design = {
        "lab",
        "doctor",
        "screen",
        "collect",
        "refine",
        "train",
        "search",
        "verify",
        "compare",
        "tune",
        "contest",
        "explain",
        "pilot",
        "plan",
        "status",
        "rollback",
    }
    assert design <= set(cli.commands)
    lab = cli.commands["lab"]
    assert isinstance(lab, click.Group)
    assert set(lab.commands) == {"up", "status", "down"}


def test_help_imports_no_heavy_library() -> None:
    script = (
        "import json, sys\n"
        "from intop.cli import cli\n"
        "cli(['--help'], standalone_mode=False)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), "
        "file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=60,
    )
    assert "Examples:" in done.stdout
    assert [name for name in HEAVY if name in json.loads(done.stderr)] == []


def test_every_algorithm_can_be_asked_for() -> None:
    (option,) = (p for p in cli.commands["search"].params if p.name == "algorithm")
    assert isinstance(option.type, click.Choice)
    assert list(ALGORITHMS) == list(option.type.choices)


def test_the_version_is_said() -> None:
    done = intop("--version")
    assert (done.returncode, done.stdout) == (0, f"intop, version {__version__}\n")


def test_without_a_command_it_says_what_there_is() -> None:
    done = intop()
    assert (done.returncode, done.stdout) == (2, "")
    assert "\nStart:\n" in done.stderr


def test_a_reader_that_has_heard_enough_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    script = "from intop.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "tune", "--help"],
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lab", "up"], "nothing is left of lab t-cli"),
        (["status"], "nothing was changed"),
        (["collect", "--dry-run"], "nothing was written"),
        (["collect"], "The hosts are as they were found"),
    ],
    ids=["lab up", "status", "dry run", "collect"],
)
def test_ctrl_c_is_130_and_one_line(study: Path, words: list[str], message: str) -> None:
    stop = "import os, signal\nfrom intop.lab import cluster\n"
    stop += "def stop(*_):\n    os.kill(os.getpid(), signal.SIGINT)\n"
    stop += "cluster.up = cluster.down = cluster.cluster = stop"
    done = intop(*words, "-c", study, before=stop)
    assert (done.returncode, done.stdout) == (130, "")
    lines = [line for line in done.stderr.splitlines() if line != "lab t-cli: starting"]
    assert len(lines) == 1
    assert lines[0].startswith("intop: stopped")
    assert message in lines[0]


def test_ctrl_c_at_a_question_promises_nothing(tmp_path: Path) -> None:
    terminal = "import sys\nsys.stdin.isatty = sys.stderr.isatty = lambda: True\n"
    stop = "import os, signal\nimport click.termui\n"
    stop += "def stop(*_):\n    os.kill(os.getpid(), signal.SIGINT)\n"
    stop += "click.termui.visible_prompt_func = stop"
    done = intop("init", "-o", tmp_path / "new.toml", before=f"{terminal}{stop}")
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "intop: stopped"


def test_a_signal_while_python_ends_is_no_traceback() -> None:
    script = "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGTERM)\n"
    script += "from intop.cli import main; main()"
    # Not forked: that ends without what is registered.
    done = ran(sys.executable, "-c", script, "--version", cwd=ROOT)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")
