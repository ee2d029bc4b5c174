"""compare and export, as they are typed."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.campaigns import LAB
from builders.testbeds import probe_of
from builders.trials import CONDITIONS, importance, ranking, trial
from intop import __version__
from intop.domain.configuration import DEFAULT, Configuration
from intop.store import Subject, opened
from kit.commands import intop


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


def test_compare_without_trials_is_1_and_names_the_architecture_and_the_next_command(
    study: Path,
) -> None:
    measured(study, "arm")
    done = intop("compare", "x86", "arm", "-c", study)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.removeprefix("intop: ").splitlines()
    assert line.startswith("x86 slt: nothing to compare (0 usable trials")
    assert "intop collect --arch x86 --workload slt" in line


@pytest.mark.parametrize("archs", [(), ("x86",)])
def test_an_architecture_without_trials_and_without_a_cluster_is_no_side(
    study: Path, archs: tuple[str, ...]
) -> None:
    measured(study, *archs)
    done = intop("compare", "x86", "arm", "-c", study)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{study} has no cluster for arm, and campaign 1 has no trials of it" in done.stderr
    assert ("campaign:1,x86 slt" in done.stderr) == bool(archs)


def test_compare_lays_two_architectures_side_by_side(study: Path) -> None:
    measured(study, "x86", "arm")
    ranked(study, "x86", "arm")
    folder = study.parent / "new" / "figures"
    done = intop("compare", "x86", "arm", "-c", study, "--figures", folder)
    assert done.returncode == 0, done.stderr
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
    assert done.returncode == 0, done.stderr
    message = " ".join(done.stdout.split())
    assert "Not compared: arm dlt: nothing to compare" in message
    assert "intop collect --arch arm --workload dlt" in message
    done = intop("compare", "x86", "arm", "-c", study, "--workload", "dlt")
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("form", [(), ("--json",), ("--markdown",)])
def test_compare_refuses_other_loads_by_name(study: Path, form: tuple[str, ...]) -> None:
    measured(study, "x86", "arm", rate_rps=50.0)
    done = intop("compare", "x86", "arm", "-c", study, *form)
    assert (done.returncode, done.stdout) == (1, "")
    assert "slt: rate_rps: 100.0 against 50.0" in done.stderr
    assert "--force" in done.stderr
    done = intop("compare", "x86", "arm", "-c", study, "--force", *form)
    assert done.returncode == 0, done.stderr
    assert "rate_rps: 100.0 against 50.0" in done.stdout


def test_compare_for_programs(study: Path) -> None:
    measured(study, "x86", "arm")
    done = intop("compare", "x86", "arm", "-c", study, "--json")
    result = json.loads(done.stdout)
    (one,) = result["comparisons"]
    assert (one["workload"], result["missing"]) == ("slt", [])
    assert [side["arch"] for side in one["sides"]] == ["x86", "arm"]
    assert [side["trials"] for side in one["sides"]] == [3, 3]
    assert one["default"]["outcome"] == "not separated"


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
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["x86 slt"]
    assert (
        result["replicates"],
        result["noise"]["freedom"],
        result["default_noise"]["freedom"],
    ) == (1, 1, 1)
    assert 0 < result["noise"]["low"] < result["noise"]["sd"] < result["noise"]["high"]
    assert [t["role"] for t in result["trials"]] == ["design"] * 3 + ["replicate"]
    message = intop("collect", "-c", study).stdout
    assert "1 of these trials are replicates" in message
    assert "noise of configurations: a trial scatters by" in message


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
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"written: {page}" in done.stderr
    text = page.read_text()
    places = re.findall(r"^!\[.+\]\((.+)\)$", text, re.MULTILINE)
    assert places == ["images/compare/x86-and-arm-p99.svg"]
    assert all((page.parent / place).is_file() for place in places)
    done = intop(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--output is for the page of --markdown" in done.stderr
    done = intop(*words[:-3], figures / "none" / "page.md", "--markdown")
    assert done.returncode == 2
    assert "can't be written" in done.stderr
