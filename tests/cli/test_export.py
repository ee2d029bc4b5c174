"""`intop export`: streams, files and exit codes."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builders.campaigns import LOAD
from builders.results import CAUSES, COSTLY, DOUBTED, VERDICT
from builders.testbeds import probe_of
from intop import __version__
from intop.cli import cli
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.store import Subject, opened

STUDY = (
    LOAD
    + """\
[cluster.x86]
url = "http://192.0.2.20"
nginx_restart = "true"
static_paths = ["/"]
dynamic_path = "/d"
load_generator = {{ hostname = "192.0.2.10", state_dir = "/tmp/load" }}
load_balancer = {{ hostname = "192.0.2.20", user = "admin", sudo = "ask" }}
backends = [{{ hostname = "192.0.2.31" }}]
"""
)
DEFAULTS = {"net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "4096 131072 6291456"}
Export = Callable[..., str]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Of a cluster that nobody can reach, with passwords that nobody is there to type."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(folder=tmp_path))
    return path


@pytest.fixture
def export(study: Path, capsys: pytest.CaptureFixture[str]) -> Export:
    """What stands on stdout."""

    def run(*words: object) -> str:
        cli(["export", "-c", str(study), *map(str, words)], standalone_mode=False)
        return capsys.readouterr().out

    return run


def judge(study: Path, verdict: Verdict) -> None:
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.begin("mine", seed=1, tool_version=__version__)
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.put(subject, probe_of(DEFAULTS))
        store.put(subject, verdict)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("sysctl", "net.ipv4.tcp_rmem = 4096 8192 65536"),
        ("tuned", "net.ipv4.tcp_rmem=4096 8192 65536"),
        ("ansible", '      "net.ipv4.tcp_rmem": "4096 8192 65536"'),
        ("json", '    "net.ipv4.tcp_rmem": "4096 8192 65536"'),
    ],
)
def test_each_format_goes_to_stdout_or_to_a_file_which_only_its_like_replaces(
    study: Path, export: Export, form: str, line: str
) -> None:
    judge(study, VERDICT)
    text = export("--format", form)
    assert line in text.splitlines()
    output = study.parent / "mine"
    file = output / "tuned.conf" if form == "tuned" else output
    for _ in range(2):
        assert export("--format", form, "--output", output) == ""
        assert line in file.read_text().splitlines()
    file.write_text("theirs")
    with pytest.raises(
        UsageError, match=r"was not written by intop\. Name another, or say --force"
    ):
        export("--format", form, "--output", output)
    assert file.read_text() == "theirs"
    export("--format", form, "--output", output, "--force")
    assert line in file.read_text().splitlines()
    assert list(study.parent.rglob(".mine*")) + list(study.parent.rglob(".tuned*")) == []


def test_a_profile_builds_on_another_and_json_does_not(study: Path, export: Export) -> None:
    judge(study, VERDICT)
    assert "include=balanced" in export("--format", "tuned", "--include", "balanced").splitlines()
    with pytest.raises(UsageError, match="--include is for --format tuned"):
        export("--format", "json", "--include", "balanced")


@pytest.mark.parametrize("name", ["no/such/folder/file", "."])
def test_what_can_not_be_written_is_named(study: Path, export: Export, name: str) -> None:
    judge(study, VERDICT)
    with pytest.raises(UsageError, match=r"can't be written: .*--output PATH"):
        export("--format", "json", "--output", study.parent / name, "--force")


def test_what_is_no_file_is_never_replaced(study: Path, export: Export) -> None:
    judge(study, VERDICT)
    pipe = study.parent / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="it is no file"):
        export("--format", "json", "--output", pipe, "--force")
    assert pipe.is_fifo()


def test_without_a_gain_it_is_3_and_the_defaults_are_kept(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(study, replace(VERDICT, ratio_low=0.9))
    with pytest.raises(SystemExit) as ended:
        cli(["export", "-c", str(study), "--format", "json"], standalone_mode=False)
    assert ended.value.code == 3
    out, message = capsys.readouterr()
    assert out == ""
    assert "x86 slt: undecided" in message
    assert "there is nothing to export" in message


def test_what_costs_too_much_is_3_and_with_a_word_it_is_written_down(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(study, COSTLY)
    words = ["export", "-c", str(study), "--format", "sysctl"]
    with pytest.raises(SystemExit) as ended:
        cli(words, standalone_mode=False)
    assert ended.value.code == 3
    out, message = capsys.readouterr()
    assert out == ""
    assert "no gain: it costs CPU" in message
    assert "--accept-costs" in message
    cli([*words, "--accept-costs"], standalone_mode=False)
    out, message = capsys.readouterr()
    costs = "CPU is higher by 12 points (9 to 15; accepted: 5)"
    assert f"# It costs: {costs}.\n" in out
    assert f"x86 slt: {costs}\n" in message


def test_what_is_in_doubt_is_written_and_said(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge(study, DOUBTED)
    cli(["export", "-c", str(study), "--format", "sysctl"], standalone_mode=False)
    out, message = capsys.readouterr()
    assert "# In doubt: CPU may be higher by up to 8 points.\n" in out
    assert "x86 slt: CPU may be higher by up to 8 points\n" in message


def test_the_reason_is_written(study: Path, export: Export) -> None:
    judge(study, replace(VERDICT, causes=CAUSES))
    message = " ".join(export("--format", "sysctl").replace("\n# ", " ").split())
    assert "Why: less of syn-backlog (TcpExt.ListenDrops 51.2 to 0 a trial)." in message


def test_a_later_campaign_is_the_one(study: Path, export: Export) -> None:
    judge(study, VERDICT)
    judge(study, replace(VERDICT, ratio=9.0))
    assert json.loads(export("--format", "json"))["verdict"]["ratio"] == 9.0


def test_a_key_that_the_study_no_longer_has_is_named(study: Path, export: Export) -> None:
    judge(study, VERDICT)
    text = study.read_text().replace("[study]", '[study]\nparameters = ["net.core.*"]')
    study.write_text(text)
    with pytest.raises(UsageError, match=r"x86 slt: .*tcp_rmem.*\[study\]"):
        export("--format", "json")
