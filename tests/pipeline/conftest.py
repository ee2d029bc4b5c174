"""A small real study: an embedded lab, a configuration file, and the command line on it."""

import platform
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from fakes import FakeBench
from intop.config.study import load_study
from intop.report.progress import LineProgress
from intop.resources import shipped
from intop.run.campaigns import new
from intop.run.context import Context, Task
from intop.store import Subject, opened
from studies import RUN, Study, wait_for

STUDY = """
[study]
name = "small"
store = "small.db"

{clusters}

[workload.slt]
rate_rps = 300
connections = 32
threads = 2
duration_s = 1
warmup_s = 0

[workload.dlt]
rate_rps = 150
connections = 32
threads = 2
duration_s = 1
warmup_s = 0

[budget]
screen_trials = 8
keep = 6
collect_trials = 8
replicate_trials = 2
refine_trials = 2
sentinel_every = 4
folds = 2
repeats = 1
tuning_trials = 1
population = 40
generations = 10
finalists = 2
pick_rounds = 1
judge_pairs = 3
explain_rounds = 0
agree_rounds = 3
max_foreign_cpu = 1    # the machine that runs the tests may have other work,
max_steal = 0.99       # and so may those beside it
"""


@pytest.fixture(scope="session", name="wait_for")
def _wait_for() -> Callable[[Callable[[], bool], str], None]:
    return wait_for


@pytest.fixture(scope="session")
def study_class() -> type[Study]:
    return Study


@pytest.fixture
def make_study(tmp_path: Path) -> Iterator[Callable[..., Study]]:
    """Studies with labs of their own, which are up, and down after the test."""
    made: list[Study] = []

    def make(*archs: str, replicas: int = 1) -> Study:
        places = [(arch, f"{letter}-{arch}{RUN}") for arch in archs for letter in "tuv"[:replicas]]
        labs = tuple(lab for _, lab in places)
        machine = platform.machine()
        clusters = "\n".join(
            f'[[cluster.{arch}]]\nlab = "{lab}"\nmachines = ["{machine}"]\n'
            "link = { rate_mbit = 300 }\n"
            for arch, lab in places
        )
        (tmp_path / "intop.toml").write_text(STUDY.format(clusters=clusters))
        study = Study(tmp_path, labs)
        made.append(study)
        study.run("lab", "up")
        return study

    yield make
    for study in made:
        study.run("lab", "down")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[FakeBench]:
    """A task of the lab's study whose trials are made up."""
    told = StringIO()
    study = load_study(shipped("configs") / "lab.toml")
    study = replace(study, clusters={arch: c[:1] for arch, c in study.clusters.items()})
    with opened(str(tmp_path / "store.db")) as store:
        context = Context(
            study=study,
            store=store,
            campaign=new(store, study),
            connect=lambda address: pytest.fail(f"connects to {address}"),
            progress=LineProgress(told),
            archs=("x86",),
            workloads=(study.workloads["slt"],),
            testbeds=lambda _: nullcontext((fake,)),
        )
        subject = Subject(campaign=context.campaign, arch="x86", workload="slt")
        task = Task(context=context, subject=subject, workload=study.workloads["slt"])
        fake = FakeBench(task, told=told)
        yield fake
