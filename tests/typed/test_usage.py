"""Bad usage, wrong files, and labs that are not up."""

from pathlib import Path

import pytest

from builders.campaigns import just_begun
from kit.commands import intop

NO_TABLE = ["--data", "no.csv", "--target", "y"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["colect"], "Did you mean one of: 'collect'"),
        (["screen", "--sample", "9"], "Did you mean '--samples'?"),
        (["screen", "--arch", "riscv"], "'riscv' is not one of 'x86', 'arm'"),
        (["screen", "--samples", "3"], "3 is not in the range"),
        (["compare", "x86"], "intop: two sides are compared, not 1"),
        (["compare", "x86", "x86"], "intop: x86 can't be compared with itself"),
        (
            ["compare", "x86", "arm", "--json", "--markdown"],
            "intop: --json and --markdown exclude each other",
        ),
        (["report", "--serve", "--json"], "intop: --serve takes --config, --arch and --port only"),
        (["tune", "--new", "--resume"], "intop: --new and --resume exclude each other"),
        (["status", "--sudo"], "intop: --sudo belongs to --host"),
        (["rollback", "--state-dir", "/x"], "intop: --state-dir belongs to --host"),
        (["lab", "down", "--all", "--arch", "x86"], "intop: --all and --arch exclude each other"),
        (
            ["status", "--host", "lb", "--arch", "x86"],
            "--host names the hosts itself: leave --arch out",
        ),
        (["status", "--host", "lb", "--config", "x.toml"], "x.toml: no such file"),
        (["status", "--host", "lb", "--sudo=ask"], "there is no terminal to ask at"),
        (["train", "--target", "y"], "intop: --target belongs to --data"),
        (["train", "--arch", "x86", "--ignore", "y"], "intop: --ignore belongs to --data"),
        (["train", "--data", "no.csv"], "intop: --data needs --target COLUMN"),
        (["train", *NO_TABLE, "--arch", "x86"], "--arch and --workload are for exported trials"),
        (
            ["train", *NO_TABLE, "--models", "m"],
            "--data needs no study: leave --config and --models",
        ),
        (["train", *NO_TABLE, "--family", "cat"], "intop: --family cat: there are DNN, SVR,"),
        (["train", *NO_TABLE], "intop: no.csv: can't be read: No such file or directory"),
        (["train", "--data", "/", "--target", "y"], "File '/' is a directory"),
    ],
)
def test_bad_usage_is_2_and_told_on_stderr(words: list[str], message: str) -> None:
    done = intop(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["doctor"],
        ["lab", "up"],
        ["lab", "status", "--json"],
        ["lab", "down"],
        ["pilot"],
        ["screen", "--json"],
        ["collect"],
        ["train"],
        ["search"],
        ["verify"],
        ["contest"],
        ["explain"],
        ["compare", "x86", "arm"],
        ["tune"],
        ["status", "--json"],
        ["rollback"],
    ],
    ids=" ".join,
)
def test_a_wrong_file_is_2_with_every_mistake_on_stderr_and_nothing_on_stdout(
    study: Path, words: list[str]
) -> None:
    study.write_text(study.read_text().replace("100", "'x'").replace('lab = "t-cli"', "lab = 5"))
    done = intop(*words, "-c", study)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{study}:6: workload.slt.rate_rps: input should be a valid number" in done.stderr
    assert f"{study}:12: cluster.x86.lab: input should be a valid string" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_2(tmp_path: Path) -> None:
    done = intop("doctor", "-c", tmp_path / "nosuch.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nosuch.toml: no such file. Write one: intop init" in done.stderr


def test_an_unknown_architecture_in_the_file_is_2_and_names_what_there_is(study: Path) -> None:
    study.write_text(study.read_text().replace("[cluster.x86]", "[cluster.riscv]"))
    done = intop("tune", "-c", study)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cluster.riscv" in done.stderr
    assert "input should be 'x86', 'arm', 'native' or 'other' (got 'riscv')" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["screen", "--arch", "arm"], "has no cluster for arm; it has x86. Add [cluster.arm]"),
        (["screen", "--workload", "dlt"], "has no [workload.dlt]; it has slt"),
        (["doctor", "--arch", "arm"], "has no cluster for arm; it has x86"),
        (["status", "--arch", "arm"], "has no cluster for arm; it has x86"),
        (["rollback", "--arch", "arm"], "has no cluster for arm; it has x86"),
        (["lab", "up", "--arch", "arm"], "has no cluster for arm; it has x86"),
    ],
)
def test_what_the_file_does_not_have_is_2_and_names_what_it_has(
    study: Path, words: list[str], message: str
) -> None:
    done = intop(*words, "-c", study)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_file_can_be_named_in_the_environment(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTOP_CONFIG", str(study))
    assert f"{study} has no cluster for arm" in intop("doctor", "--arch", "arm").stderr


def test_without_root_the_lab_says_in_one_sentence_what_to_do(study: Path) -> None:
    for verb in ("up", "status", "down"):
        done = intop("lab", verb, "-c", study, before="import os; os.geteuid = lambda: 65534")
        assert (done.returncode, done.stdout.replace("lab t-cli: starting\n", "")) == (1, "")
        message = done.stderr.removeprefix("lab t-cli: starting\n")
        assert message.startswith("intop: ")
        assert "root" in message
        assert len(message.splitlines()) == 1


def test_a_lab_that_is_not_up_says_how_to_start_it(study: Path) -> None:
    done = intop("screen", "-c", study)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        f"intop: x86 slt: lab t-cli is not up. Run: intop lab up --arch x86 -c {study}"
        in done.stderr
    )
    assert (
        "intop: lab t-cli is not up: start it with intop lab up"
        in intop("tune", "-c", study).stderr
    )


def with_an_optional_lab(study: Path) -> None:
    """Besides the one that the campaign begins with."""
    text = study.read_text() + '\n[cluster.arm]\nlab = "t-cli2"\nkind = "vm"\noptional = true\n'
    study.write_text(text)


@pytest.mark.parametrize("command", ["doctor", "pilot", "screen", "collect", "tune"])
def test_an_optional_lab_that_is_not_up_is_left_out_and_named(study: Path, command: str) -> None:
    with_an_optional_lab(study)
    done = intop(command, "-c", study)
    assert done.returncode == 1
    message, wanted = done.stderr.splitlines()[0], done.stderr.splitlines()[-1]
    assert f"arm is optional in {study} and left out: lab t-cli2 is not up" in message
    assert "lab t-cli is not up" in wanted  # the other one has to be there


def test_an_optional_lab_is_not_left_out_when_asked_for_or_begun(study: Path) -> None:
    with_an_optional_lab(study)
    assert "left out" not in intop("screen", "--arch", "arm", "-c", study).stderr
    just_begun(study, arch="arm")
    done = intop("tune", "-c", study, "--resume")
    assert "left out" not in done.stderr
    assert done.returncode == 1


NO_EMULATION = """
from types import SimpleNamespace
from intop.errors import LabError
from intop.lab import cluster

def up(spec, say):
    if spec.kind == "vm":
        raise LabError("no QEMU here")
    return SimpleNamespace(url="http://192.0.2.1", link="unshaped", emulation="")

cluster.up = up
"""


def test_what_this_machine_cannot_emulate_is_left_out_unless_asked_for(study: Path) -> None:
    with_an_optional_lab(study)
    done = intop("lab", "up", "-c", study, before=NO_EMULATION)
    assert done.returncode == 0
    assert "lab t-cli is up" in done.stderr
    assert f"arm is optional in {study} and left out: no QEMU here" in done.stderr
    done = intop("lab", "up", "--arch", "arm", "-c", study, before=NO_EMULATION)
    assert done.returncode == 1
    assert done.stderr.endswith("intop: no QEMU here\n")
