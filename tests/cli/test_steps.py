"""What a command says that can't do all yet: what is missing, once, as lines to be copied."""

from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from builders.campaigns import LOAD, begun
from builders.next_migration import as_python, with_next_migration
from intop.cli import cli
from intop.command.running import stored_context
from intop.config.study import Study, load_study
from intop.errors import ResultMissingError
from intop.run.prerequisites import command_line, lines
from kit.commands import intop

TWO = (
    LOAD
    + """\
[workload.dlt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 2

[cluster.x86]
lab = "t-stp-x"
machines = ["x86_64", "aarch64"]

[cluster.arm]
lab = "t-stp-a"
machines = ["x86_64", "aarch64"]
"""
)
ALL = [("x86", "slt"), ("x86", "dlt"), ("arm", "slt"), ("arm", "dlt")]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """In the current folder, where no command has to name it."""
    (tmp_path / "intop.toml").write_text(TWO.format(folder=tmp_path))
    monkeypatch.chdir(tmp_path)
    return load_study(Path("intop.toml"))


def lacking(cells: Sequence[tuple[str, str]], why: str = "no models yet") -> list[Exception]:
    return [
        ResultMissingError("", why=why, about=cell, commands=["collect", "train"]) for cell in cells
    ]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (ALL, ["no models yet. Run: intop collect && intop train && intop search"]),
        (
            ALL[:2],
            [
                (
                    "x86: no models yet. Run: intop collect --arch x86 && intop train "
                    "--arch x86 && intop search --arch x86"
                )
            ],
        ),
        (
            ALL[::2],
            [
                (
                    "slt: no models yet. Run: intop collect --workload slt && "
                    "intop train --workload slt && intop search --workload slt"
                )
            ],
        ),
        (
            ALL[2:3],
            [
                (
                    "arm slt: no models yet. Run: intop collect --arch arm --workload slt && "
                    "intop train --arch arm --workload slt && "
                    "intop search --arch arm --workload slt"
                )
            ],
        ),
    ],
    ids=["all", "an architecture", "a workload", "one"],
)
def test_what_is_missing_alike_is_one_line(
    study: Study, cells: list[tuple[str, str]], expected: list[str]
) -> None:
    assert lines(study, lacking(cells), "search") == expected


def test_three_of_four_are_an_architecture_and_one(study: Study) -> None:
    message = lines(study, lacking(ALL[:3]), "search")
    assert [line.partition("no models")[0] for line in message] == ["x86: ", "arm slt: "]


def test_other_reasons_are_lines_apart(study: Study) -> None:
    message = lines(study, [*lacking(ALL[:2]), *lacking(ALL[2:], "too few")], "search")
    assert [line.partition(". Run")[0] for line in message] == [
        "x86: no models yet",
        "arm: too few",
    ]


def test_a_comparison_has_no_arch_of_its_own(study: Study) -> None:
    (line,) = lines(study, lacking(ALL[1:2]), "compare x86 arm")
    assert line.endswith("&& intop compare x86 arm --workload dlt")


def test_a_study_elsewhere_is_named_in_each_command(study: Study, tmp_path: Path) -> None:
    other = tmp_path / "my study.toml"
    other.write_text(TWO.format(folder=tmp_path))
    assert (
        command_line(load_study(other), ["lab up", "train"], "arm", "slt")
        == f"intop lab up --arch arm -c '{other}' && "
        f"intop train --arch arm --workload slt -c '{other}'"
    )


def test_a_study_of_the_environment_is_not_named(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(TWO.format(folder=tmp_path))
    monkeypatch.setenv("INTOP_CONFIG", str(other))
    assert command_line(load_study(other), ["train"]) == "intop train"


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train", "intop lab up && intop collect && intop train"),
        (
            "search --workload dlt",
            (
                "intop lab up && intop collect --workload dlt && intop train --workload dlt && "
                "intop search --workload dlt"
            ),
        ),
        (
            "verify --arch arm",
            (
                "intop lab up --arch arm && intop collect --arch arm && intop train --arch arm && "
                "intop search --arch arm && intop verify --arch arm"
            ),
        ),
        ("compare x86 arm", "intop lab up && intop collect && intop compare x86 arm"),
        ("report", "intop lab up && intop tune && intop report"),
        ("plan", "intop lab up && intop tune && intop plan"),
        ("apply", "intop lab up && intop tune && intop apply"),
        ("export --format json", "intop lab up && intop tune && intop export --format json"),
        (
            "transfer x86 arm --no-measure",
            "intop lab up && intop tune && intop transfer x86 arm --no-measure",
        ),
    ],
)
def test_without_a_campaign_there_is_one_line_to_copy_and_no_file(
    words: str, message: str, tmp_path: Path
) -> None:
    done = intop(*words.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"intop: {tmp_path}/mine.db has no campaign of mine yet. Run: {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["intop.toml"]


@pytest.mark.parametrize("command", ["search --workload dlt", "compare x86 arm", "report", "train"])
def test_in_an_empty_folder_nothing_is_left(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INTOP_CONFIG", raising=False)
    done = intop(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("intop: there is no intop.toml in this folder. Write one: intop init")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize("command", ["pilot", "screen", "collect", "contest"])
def test_without_a_cluster_a_stage_that_measures_leaves_nothing_either(
    command: str, tmp_path: Path
) -> None:
    done = intop(command)
    assert (done.returncode, done.stdout) == (1, "")
    one, other = done.stderr.splitlines()
    assert one.startswith("intop: x86: lab t-stp-x is not up. Run: intop lab up --arch x86 && ")
    assert one.endswith(f"&& intop {command} --arch x86")
    assert other.endswith(f"intop lab up --arch arm && intop {command} --arch arm")
    assert [path.name for path in tmp_path.iterdir()] == ["intop.toml"]


@pytest.mark.usefixtures("study")
def test_what_is_begun_is_told_apart_from_what_is_not(tmp_path: Path) -> None:
    begun(tmp_path, ["ok"] * 8)
    done = intop("verify", "--workload", "slt")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("intop: slt: no candidates yet. Run: intop lab up && intop collect ")


def test_reading_a_campaign_makes_none(study: Study) -> None:
    with (
        click.Context(cli, info_name="train"),
        pytest.raises(ResultMissingError, match="has no campaign of mine"),
        stored_context(None, None, None, writes=True),
    ):
        pytest.fail("there is one")


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train", "nothing is collected yet. Run: intop lab up && intop collect"),
        ("collect", "lab t-stp-x is not up. Run: intop lab up"),
    ],
)
def test_a_stage_brings_a_store_of_an_earlier_intop_up_to_date(
    command: str, message: str, tmp_path: Path
) -> None:
    begun(tmp_path, ["ok"] * 8)
    before = as_python(with_next_migration(tmp_path))
    assert "made by an earlier intop" in intop("progress", before=before).stderr
    done = intop(command, before=before)
    assert done.returncode == 1
    assert message in done.stderr
    assert intop("progress", before=before).stderr == ""
