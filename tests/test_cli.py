"""The command line, as a user and as a program meet it: texts, streams and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest

from campaigns import LAB
from commands import intop, ran
from fakes import probe_of
from intop import __version__
from intop.cli import cli, rollback
from intop.domain.answer import Answer
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.host_state import HostState
from intop.domain.trial import PlannedTrial
from intop.learn.searching.search import ALGORITHMS
from intop.store import Subject, opened
from samples import CONDITIONS, VERDICT, importance, ranking, trial

ROOT = Path(__file__).parents[1]
HEAVY = ["numpy", "pandas", "scipy", "sklearn", "optuna", "paramiko", "sqlalchemy", "pydantic"]
HEAVY += ["rich", "catboost", "lightgbm", "xgboost", "deap", "hdrh", "joblib", "jinja2"]
HEAVY += ["matplotlib"]

SOMAXCONN, RMEM = VERDICT.configuration.values


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


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(LAB.format(folder=tmp_path))
    return path


# Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "command"), COMMANDS, ids=[" ".join(p) or "-" for p, _ in COMMANDS]
)
def test_every_command_has_a_help_text_with_examples(
    path: tuple[str, ...], command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == cli([*path, "--help"], standalone_mode=False)
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
    assert {"up", "status", "down"} == set(lab.commands)


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
    assert [] == [name for name in HEAVY if name in json.loads(done.stderr)]


def test_every_algorithm_can_be_asked_for() -> None:
    (option,) = (p for p in cli.commands["search"].params if p.name == "algorithm")
    assert isinstance(option.type, click.Choice)
    assert list(ALGORITHMS) == list(option.type.choices)


def test_the_version_is_said() -> None:
    done = intop("--version")
    assert (0, f"intop, version {__version__}\n") == (done.returncode, done.stdout)


def test_without_a_command_it_says_what_there_is() -> None:
    done = intop()
    assert (2, "") == (done.returncode, done.stdout)
    assert "Commands:" in done.stderr


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
    assert (1, b"") == (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["lab", "up"], "nothing is left of lab t-cli"),
        (["status"], "nothing was changed"),
        (["collect", "--dry-run"], "nothing was written"),
        (["collect"], "The hosts are as they were found"),
    ],
    ids=["lab up", "status", "dry run", "collect"],
)
def test_ctrl_c_is_130_and_one_line(study: Path, words: list[str], told: str) -> None:
    stop = "import os, signal\nfrom intop.lab import cluster\n"
    stop += "def stop(*_):\n    os.kill(os.getpid(), signal.SIGINT)\n"
    stop += "cluster.up = cluster.down = cluster.cluster = stop"
    done = intop(*words, "-c", study, before=stop)
    assert (130, "") == (done.returncode, done.stdout)
    lines = [line for line in done.stderr.splitlines() if line != "lab t-cli: starting"]
    assert 1 == len(lines)
    assert lines[0].startswith("intop: stopped")
    assert told in lines[0]


def test_a_signal_while_python_ends_is_no_traceback() -> None:
    script = "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGTERM)\n"
    script += "from intop.cli import main; main()"
    # Not forked: that ends without what is registered.
    done = ran(sys.executable, "-c", script, "--version", cwd=ROOT)
    assert (-signal.SIGTERM, "") == (done.returncode, done.stderr)


# Bad usage and wrong files ------------------------------------------------------------------------

NO_TABLE = ["--data", "no.csv", "--target", "y"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["colect"], "Did you mean one of: 'collect'"),
        (["screen", "--sample", "9"], "Did you mean '--samples'?"),
        (["screen", "--arch", "riscv"], "'riscv' is not one of 'x86', 'arm'"),
        (["screen", "--samples", "3"], "3 is not in the range"),
        (["compare", "x86"], "Missing argument"),
        (["compare", "x86", "x86"], "intop: x86 can't be compared with itself"),
        (
            ["compare", "x86", "arm", "--json", "--markdown"],
            "intop: --json and --markdown exclude each other",
        ),
        (["tune", "--new", "--resume"], "intop: --new and --resume exclude each other"),
        (["status", "--sudo"], "intop: --sudo belongs to --host"),
        (["rollback", "--state-dir", "/x"], "intop: --state-dir belongs to --host"),
        (["lab", "down", "--all", "--arch", "x86"], "intop: --all and --arch exclude each other"),
        (["rollback", "--yes"], "intop: --yes belongs to --force"),
        (["status", "--host", "lb", "--arch", "x86"], "leave --config and --arch out"),
        (["status", "--host", "lb", "--config", "x.toml"], "leave --config and --arch out"),
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
def test_bad_usage_is_2_and_told_on_stderr(words: list[str], told: str) -> None:
    done = intop(*words)
    assert (2, "") == (done.returncode, done.stdout)
    assert told in done.stderr
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
    assert (2, "") == (done.returncode, done.stdout)
    assert f"{study}:6: workload.slt.rate_rps: input should be a valid number" in done.stderr
    assert f"{study}:12: cluster.x86.lab: input should be a valid string" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_2(tmp_path: Path) -> None:
    done = intop("doctor", "-c", tmp_path / "nosuch.toml")
    assert (2, "") == (done.returncode, done.stdout)
    assert "nosuch.toml: can't be read: No such file or directory. Begin with a " in done.stderr
    assert "cluster.example.toml" in done.stderr


def test_an_unknown_architecture_in_the_file_is_2_and_names_what_there_is(study: Path) -> None:
    study.write_text(study.read_text().replace("[cluster.x86]", "[cluster.riscv]"))
    done = intop("tune", "-c", study)
    assert (2, "") == (done.returncode, done.stdout)
    assert "cluster.riscv" in done.stderr
    assert "input should be 'x86', 'arm', 'native' or 'other' (got 'riscv')" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
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
    study: Path, words: list[str], told: str
) -> None:
    done = intop(*words, "-c", study)
    assert (2, "") == (done.returncode, done.stdout)
    assert told in done.stderr


def test_the_file_can_be_named_in_the_environment(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTOP_CONFIG", str(study))
    assert f"{study} has no cluster for arm" in intop("doctor", "--arch", "arm").stderr


def test_without_root_the_lab_says_in_one_sentence_what_to_do(study: Path) -> None:
    for verb in ("up", "status", "down"):
        done = intop("lab", verb, "-c", study, before="import os; os.geteuid = lambda: 65534")
        assert (1, "") == (done.returncode, done.stdout.replace("lab t-cli: starting\n", ""))
        told = done.stderr.removeprefix("lab t-cli: starting\n")
        assert told.startswith("intop: ")
        assert "root" in told
        assert 1 == len(told.splitlines())


def test_a_lab_that_is_not_up_says_how_to_start_it(study: Path) -> None:
    done = intop("screen", "-c", study)
    assert (1, "") == (done.returncode, done.stdout)
    assert f"intop: x86 slt: lab t-cli is not up: intop lab up --arch x86 -c {study}" in done.stderr
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
    assert 1 == done.returncode
    told, wanted = done.stderr.splitlines()[0], done.stderr.splitlines()[-1]
    assert f"arm is optional in {study} and left out: lab t-cli2 is not up" in told
    assert "lab t-cli is not up" in wanted  # the other one has to be there


def test_an_optional_lab_is_not_left_out_when_asked_for_or_begun(study: Path) -> None:
    with_an_optional_lab(study)
    assert "left out" not in intop("screen", "--arch", "arm", "-c", study).stderr
    begun(study, arch="arm")
    done = intop("tune", "-c", study, "--resume")
    assert "left out" not in done.stderr
    assert 1 == done.returncode


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
    assert 0 == done.returncode
    assert "lab t-cli is up" in done.stderr
    assert f"arm is optional in {study} and left out: no QEMU here" in done.stderr
    done = intop("lab", "up", "--arch", "arm", "-c", study, before=NO_EMULATION)
    assert 1 == done.returncode
    assert done.stderr.endswith("intop: no QEMU here\n")


# status and rollback ------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["status", "rollback"])
def test_a_lab_that_is_not_up_can_be_neither_asked_nor_given_back(study: Path, verb: str) -> None:
    done = intop(verb, "-c", study)
    assert (1, "") == (done.returncode, done.stderr)
    assert "lab t-cli is not up: start it with intop lab up" in done.stdout
    (answer,) = json.loads(intop(verb, "-c", study, "--json").stdout)
    assert ("lab t-cli", None) == (answer["name"], answer["said"])
    assert not (study.parent / "mine.db").exists()


@pytest.mark.parametrize("verb", ["status", "rollback"])
def test_an_optional_lab_that_is_not_up_has_nothing_to_be_given_back(
    study: Path, verb: str
) -> None:
    study.write_text(study.read_text() + "optional = true\n")
    done = intop(verb, "-c", study)
    assert (0, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert f"x86 is optional in {study} and left out: lab t-cli is not up" in done.stderr


@pytest.mark.parametrize("verb", ["status", "rollback"])
def test_a_host_that_cannot_be_reached_is_named_and_the_exit_code_is_1(
    study: Path, verb: str
) -> None:
    """The study is not even read: it is wrong."""
    study.write_text("nonsense")
    words = ("--host", "root@127.0.0.1:1", "--host", "root@127.0.0.1:2")
    done = intop(verb, *words, before=f"import os; os.environ['INTOP_CONFIG'] = {str(study)!r}")
    assert (1, "") == (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    assert ["127.0.0.1:1: ", "127.0.0.1:2: "] == [line[:13] for line in lines]


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
    found = [Answer(name="lb", said=state), Answer[HostState](name="gone", error="gone: gone")]
    ended = None
    try:
        rollback._confirm(found)
    except SystemExit as error:
        ended = error.code
    assert code == ended
    assert bool(state.holder) == ("lb: held by root@elsewhere (process 8)" in stderr.getvalue())
    assert (code == 1) == ("nothing was changed" in stderr.getvalue())


# Campaigns ----------------------------------------------------------------------------------------


def begun(study: Path, *, arch: str = "x86", finished: bool = False) -> None:
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.begin("mine", seed=1, tool_version=__version__)
        subject = Subject(campaign=campaign, arch=arch, workload="slt")
        baseline = PlannedTrial(index=0, role="baseline", configuration=DEFAULT)
        store.write_plan(subject, "screen", [baseline])
        if finished:
            store.finish(campaign)


@pytest.mark.parametrize(
    ("finished", "state"), [(False, "which is not finished"), (True, "which is finished")]
)
def test_tune_does_not_mix_campaigns_without_being_told(
    study: Path, finished: bool, state: str
) -> None:
    begun(study, finished=finished)
    done = intop("tune", "-c", study)
    assert (2, "") == (done.returncode, done.stdout)
    assert "mine.db has a campaign of mine from 20" in done.stderr
    assert f"{state}. Say --resume to go on with it, or --new to start anew" in done.stderr


@pytest.mark.parametrize(("option", "campaigns"), [("--resume", 1), ("--new", 2)])
def test_tune_goes_on_or_starts_anew_as_told(study: Path, option: str, campaigns: int) -> None:
    begun(study)
    done = intop("tune", "-c", study, option)
    # It gets as far as the lab, which is not up.
    assert 1 == done.returncode
    assert "lab t-cli is not up" in done.stderr
    with opened(str(study.parent / "mine.db")) as store:
        latest = store.latest("mine")
        assert latest is not None
        assert campaigns == latest.id


@pytest.mark.parametrize("option", [(), ("--new",)])
def test_a_campaign_in_which_nothing_was_planned_is_used(
    study: Path, option: tuple[str, ...]
) -> None:
    for _ in range(2):
        assert "is not up" in intop("tune", "-c", study, *option).stderr
    with opened(str(study.parent / "mine.db")) as store:
        latest = store.latest("mine")
        assert latest is not None
        assert 1 == latest.id


@pytest.mark.parametrize(
    ("command", "next_command"),
    [
        ("refine", "intop collect --arch x86 --workload slt"),
        ("train", "intop collect --arch x86 --workload slt"),
        ("search", "intop train --arch x86 --workload slt"),
        ("verify", "intop search --arch x86 --workload slt"),
    ],
)
def test_a_stage_without_the_one_before_it_is_1_and_names_that(
    study: Path, command: str, next_command: str
) -> None:
    begun(study)
    done = intop(command, "-c", study)
    assert (1, "") == (done.returncode, done.stdout)
    assert next_command in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["contest", "nosuch"], "there is no baseline nosuch; there are kernel-6.1, openeuler"),
        (["contest", "--default", "tuned"], "tuned is no entrant of this contest"),
        (["verify", "--default", "nosuch"], "there is no baseline nosuch; there are kernel-6.1"),
        (["sweep", "nosuch"], "there is no baseline nosuch; there are kernel-6.1"),
        (["sweep", "--points", "0"], "--points: 0 is not in 0.01x to 100x of what the workload"),
    ],
)
def test_an_unknown_baseline_is_2_and_names_what_there_is(
    study: Path, words: list[str], told: str
) -> None:
    begun(study)
    done = intop(*words, "-c", study)
    assert (2, "") == (done.returncode, done.stdout)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_of_figures_that_cant_be_made_is_2(study: Path) -> None:
    begun(study)
    done = intop("train", "--figures", "/dev/null/x", "-c", study)
    assert (2, "") == (done.returncode, done.stdout)
    assert "intop: the folder of --figures can't be made" in done.stderr


# plan ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio_low", "code", "told"),
    [(2.2, 1, "ERROR  lab t-cli is not up"), (0.9, 3, "x86: no gain: keep the defaults")],
)
def test_plan_says_by_its_exit_code_what_there_is_to_do(
    study: Path, ratio_low: float, code: int, told: str
) -> None:
    begun(study)
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.latest("mine")
        assert campaign is not None
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.put(subject, probe_of({SOMAXCONN: "4096", RMEM: "4096 131072 6291456"}))
        store.put(subject, replace(VERDICT, ratio_low=ratio_low))
    done = intop("plan", "-c", study)
    assert (code, "") == (done.returncode, done.stderr)
    assert told in done.stdout


# compare ------------------------------------------------------------------------------------------


def measured(study: Path, *archs: str, **arm_changes: Any) -> None:
    """A campaign with three trials of each architecture."""
    machines = {"x86": "x86_64", "arm": "aarch64"}
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.begin("mine", seed=1, tool_version=__version__)
        for arch in archs:
            subject = Subject(campaign=campaign, arch=arch, workload="slt")
            changes = arm_changes if arch == "arm" else {}
            conditions = replace(CONDITIONS, arch=arch, machine=machines[arch], **changes)
            three = [DEFAULT, Configuration({"net.core.somaxconn": "64"}), DEFAULT]
            made = [
                trial(c, 1000 * (9 - n), index=n, conditions=conditions)
                for n, c in enumerate(three)
            ]
            store.write_plan(subject, "collect", [one.planned for one in made])
            for one in made:
                store.add(subject, one)
            store.put(subject, probe_of({}))


def ranked(study: Path, *archs: str) -> None:
    """The same screening of each architecture, in the latest campaign."""
    keys = ("net.core.somaxconn", "vm.swappiness", "fs.file-max")
    shares = [importance(key, 0.5 - n / 10) for n, key in enumerate(keys)]
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.latest("mine")
        assert campaign is not None
        for arch in archs:
            subject = Subject(campaign=campaign, arch=arch, workload="slt")
            store.put(subject, ranking(*shares, chosen=keys[:1]))


@pytest.mark.parametrize(
    ("archs", "missing"), [((), ("x86", "arm")), (("x86",), ("arm",)), (("arm",), ("x86",))]
)
def test_compare_without_trials_is_1_and_names_the_architecture_and_the_next_command(
    study: Path, archs: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    measured(study, *archs)
    done = intop("compare", "x86", "arm", "-c", study)
    assert (1, "") == (done.returncode, done.stdout)
    lines = done.stderr.removeprefix("intop: ").splitlines()
    for arch, line in zip(missing, lines, strict=True):
        assert line.startswith(f"{arch} slt: nothing to compare (0 usable trials")
        assert f"intop collect --arch {arch} --workload slt" in line


def test_compare_lays_two_architectures_side_by_side(study: Path) -> None:
    measured(study, "x86", "arm")
    ranked(study, "x86", "arm")
    folder = study.parent / "new" / "figures"
    done = intop("compare", "x86", "arm", "-c", study, "--figures", folder)
    assert 0 == done.returncode, done.stderr
    assert "x86 and arm: measured P99 in ms" in done.stdout
    assert "aarch64" in done.stdout
    assert "not verified" in done.stdout
    assert f"drawn: {folder}/x86-and-arm-slt-agreement.svg" in done.stderr
    assert (folder / "x86-and-arm-slt-agreement.svg").read_text().startswith("<svg")


def test_compare_goes_on_without_a_workload_that_is_not_measured(study: Path) -> None:
    text = LAB.format(folder=study.parent)
    load = text[text.index("[workload.slt]") : text.index("[cluster")]
    study.write_text(text + load.replace("slt", "dlt"))
    measured(study, "x86", "arm")
    done = intop("compare", "x86", "arm", "-c", study)
    assert 0 == done.returncode, done.stderr
    told = " ".join(done.stdout.split())
    assert "Not compared: arm dlt: nothing to compare" in told
    assert "intop collect --arch arm --workload dlt" in told
    done = intop("compare", "x86", "arm", "-c", study, "--workload", "dlt")
    assert (1, "") == (done.returncode, done.stdout)


@pytest.mark.parametrize("form", [(), ("--json",), ("--markdown",)])
def test_compare_refuses_other_loads_by_name(study: Path, form: tuple[str, ...]) -> None:
    measured(study, "x86", "arm", rate_rps=50.0)
    done = intop("compare", "x86", "arm", "-c", study, *form)
    assert (1, "") == (done.returncode, done.stdout)
    assert "slt: rate_rps: 100.0 against 50.0" in done.stderr
    assert "--force" in done.stderr
    done = intop("compare", "x86", "arm", "-c", study, "--force", *form)
    assert 0 == done.returncode, done.stderr
    assert "rate_rps: 100.0 against 50.0" in done.stdout


def test_compare_for_programs(study: Path) -> None:
    measured(study, "x86", "arm")
    done = intop("compare", "x86", "arm", "-c", study, "--json")
    found = json.loads(done.stdout)
    (one,) = found["comparisons"]
    assert ("slt", []) == (one["workload"], found["missing"])
    assert ["x86", "arm"] == [side["arch"] for side in one["sides"]]
    assert [3, 3] == [side["trials"] for side in one["sides"]]
    assert "not separated" == one["default"]["outcome"]


def test_collected_replicates_and_their_noise_for_programs(study: Path) -> None:
    study.write_text(study.read_text() + "\n[budget]\nreplicate_trials = 1\n")
    measured(study, "x86")
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.latest("mine")
        assert campaign is not None
        again = trial(Configuration({"net.core.somaxconn": "64"}), 4000, index=3)
        again = replace(again, planned=replace(again.planned, role="replicate"))
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.write_plan(subject, "collect", [again.planned])
        store.add(subject, again)
    done = intop("collect", "-c", study, "--json")
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)["x86 slt"]
    assert (1, 1, 1) == (
        found["replicates"],
        found["noise"]["freedom"],
        found["default_noise"]["freedom"],
    )
    assert 0 < found["noise"]["low"] < found["noise"]["sd"] < found["noise"]["high"]
    assert ["design"] * 3 + ["replicate"] == [t["role"] for t in found["trials"]]
    told = intop("collect", "-c", study).stdout
    assert "1 of these trials are replicates" in told
    assert "noise of configurations: a trial's P99 scatters by" in told


def test_compare_as_markdown(study: Path) -> None:
    measured(study, "x86", "arm")
    done = intop("compare", "x86", "arm", "-c", study, "--markdown")
    assert done.stdout.startswith("# x86 and arm, side by side\n")
    assert "| workload | P99 | x86 | arm | arm - x86 | arm / x86 |\n" in done.stdout


def test_compare_writes_a_page_with_its_figures_beside_it(study: Path) -> None:
    measured(study, "x86", "arm")
    page, figures = study.parent / "page.md", study.parent / "images" / "compare"
    words = ("compare", "x86", "arm", "-c", study, "--output", page, "--figures", figures)
    done = intop(*words, "--markdown")
    assert (0, "") == (done.returncode, done.stdout), done.stderr
    assert f"written: {page}" in done.stderr
    text = page.read_text()
    places = re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE)
    assert ["images/compare/x86-and-arm-p99.svg"] == places
    assert all((page.parent / place).is_file() for place in places)
    done = intop(*words)
    assert (2, "") == (done.returncode, done.stdout)
    assert "--output is for the page of --markdown" in done.stderr
    done = intop(*words[:-3], figures / "none" / "page.md", "--markdown")
    assert 2 == done.returncode
    assert "can't be written" in done.stderr


# Foreign tables -----------------------------------------------------------------------------------

QUICK = ["--family", "svr", "--folds", 2, "--trials", 1]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs whose time is that of the size, and threefold in one mode; one of them failed."""
    path = tmp_path / "runs.csv"
    rows = [
        f"{mode},{(3 if mode == 'slow' else 1) * 2**n},w{n % 2},{2**n}kb"
        for n in range(20)
        for mode in ("slow", "fast")
    ]
    path.write_text("\n".join(["mode,ms,worker,size", *rows, "fast,-1,w0,3kb"]))
    return path


def test_a_table_is_fitted_without_a_study_and_nothing_is_left_behind(runs: Path) -> None:
    words = ("--data", runs, "--target", "ms", "--ignore", "worker", "--failed", -1, *QUICK)
    # Not forked: it starts processes of its own, by a library that doesn't work in a forked one.
    done = ran(sys.executable, "-m", "intop", "train", *map(str, words), "--json", cwd=runs.parent)
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert (41, 1, 1) == tuple(found["table"][name] for name in ("rows", "failed", "lost"))
    assert ["mode", "size"] == found["training"]["keys"]
    (error,) = found["training"]["errors"]
    assert "SVR" == error["family"]
    assert 0.9 < error["r2"] <= 1
    assert [runs] == list(runs.parent.iterdir())


def test_people_are_told_what_was_left_out_and_why(runs: Path) -> None:
    unfitted = "from intop.learn import tuning; tuning.train_all = lambda *a, **k: []"
    words = ("--data", runs, "--target", "2", "--failed", -1, *QUICK)
    done = intop("train", *words, before=unfitted)
    assert 0 == done.returncode, done.stderr
    assert "runs.csv ms: 41 rows, 3 variables: 1 numbers (1 on a logarithmic" in done.stdout
    assert "  1 failed trials teach nothing; 1 configurations have no" in done.stdout
    assert "runs.csv ms: error of the models on configurations they have not seen" in done.stdout
    assert f"{runs}: train: 1 steps" in done.stderr


def test_a_wrong_table_is_one_sentence_on_stderr(runs: Path) -> None:
    done = intop("train", "--data", runs, "--target", "ms", *QUICK)
    assert (2, "") == (done.returncode, done.stdout)
    (told,) = done.stderr.splitlines()
    assert told.startswith(f"intop: {runs}:42: column 'ms': the target must be positive, since")


def test_a_stopped_fit_tells_nothing_of_hosts(runs: Path) -> None:
    script = "from intop.cli import main; main()"
    words = ["train", "--data", str(runs), "--target", "2", "--failed", "-1", "--trials", "1000"]
    with subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as going:
        assert going.stderr
        assert ": train: " in going.stderr.readline()
        going.send_signal(signal.SIGINT)
        _, told = going.communicate(timeout=60)
    assert (130, "intop: stopped; of a table nothing is stored\n") == (going.returncode, told)
