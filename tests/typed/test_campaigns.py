"""Commands that need a campaign, and what they say without one."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders.campaigns import just_begun
from builders.results import VERDICT
from builders.testbeds import probe_of
from intop.store import Subject, opened
from kit.commands import intop

SOMAXCONN, RMEM = VERDICT.configuration.values


@pytest.mark.parametrize(
    ("finished", "state"), [(False, "which is not finished"), (True, "which is finished")]
)
def test_tune_does_not_mix_campaigns_without_being_told(
    study: Path, finished: bool, state: str
) -> None:
    just_begun(study, finished=finished)
    done = intop("tune", "-c", study)
    assert (done.returncode, done.stdout) == (2, "")
    assert "mine.db has a campaign of mine from 20" in done.stderr
    assert f"{state}. Say --resume to go on with it, or --new to start anew" in done.stderr


@pytest.mark.parametrize(("option", "campaigns"), [("--resume", 1), ("--new", 2)])
def test_tune_goes_on_or_starts_anew_as_told(study: Path, option: str, campaigns: int) -> None:
    just_begun(study)
    done = intop("tune", "-c", study, option)
    # It gets as far as the lab, which is not up.
    assert done.returncode == 1
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
        assert latest.id == 1


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
    just_begun(study)
    done = intop(command, "-c", study)
    assert (done.returncode, done.stdout) == (1, "")
    assert next_command in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["contest", "nosuch"], "there is no baseline nosuch; there are kernel-6.1, openeuler"),
        (["contest", "--default", "tuned"], "tuned is no entrant of this contest"),
        (["verify", "--default", "nosuch"], "there is no baseline nosuch; there are kernel-6.1"),
        (["sweep", "nosuch"], "there is no baseline nosuch; there are kernel-6.1"),
        (["sweep", "--over", "file", "--points", "/a b"], "--points: a path begins with / and has"),
        (["sweep", "--points", "0"], "--points: 0 is not in 0.01x to 100x of what the workload"),
    ],
)
def test_an_unknown_baseline_is_2_and_names_what_there_is(
    study: Path, words: list[str], message: str
) -> None:
    just_begun(study)
    done = intop(*words, "-c", study)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_of_figures_that_cant_be_made_is_2(study: Path) -> None:
    just_begun(study)
    done = intop("train", "--figures", "/dev/null/x", "-c", study)
    assert (done.returncode, done.stdout) == (2, "")
    assert "intop: the folder of --figures can't be made" in done.stderr


@pytest.mark.parametrize(
    ("ratio_low", "code", "message", "error"),
    [
        (2.2, 1, "ERROR  lab t-cli is not up", ""),
        (0.9, 3, "x86: no verdict is a gain: there is nothing", "undecided, more pairs"),
    ],
)
def test_plan_says_by_its_exit_code_what_there_is_to_do(
    study: Path, ratio_low: float, code: int, message: str, error: str
) -> None:
    just_begun(study)
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.latest("mine")
        assert campaign is not None
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.put(subject, probe_of({SOMAXCONN: "4096", RMEM: "4096 131072 6291456"}))
        store.put(subject, replace(VERDICT, ratio_low=ratio_low))
    done = intop("plan", "-c", study)
    assert done.returncode == code
    assert error in done.stderr if error else not done.stderr
    assert message in done.stdout
