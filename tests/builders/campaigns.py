"""A small study whose lab isn't up, and campaigns of it as they lie in a store."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.trials import CONDITIONS, trial
from intop import __version__
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial, Status
from intop.store import Campaign, Store, Subject, opened

LOAD = """\
[study]
name = "mine"
store = "{folder}/mine.db"

[workload.slt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 2

"""
LAB = (
    LOAD
    + """\
[cluster.x86]
lab = "t-cli"
machines = ["x86_64", "aarch64"]

"""
)
STUDY = (
    LAB
    + """\
[budget]
screen_trials = 8
collect_trials = 8
refine_trials = 4
sentinel_every = 4
"""
)


def begun(folder: Path, statuses: list[Status], *, planned: int = 8) -> tuple[Campaign, Subject]:
    """A campaign whose screening has so many places, the first of which have been measured."""
    with opened(str(folder / "mine.db")) as store:
        campaign = store.begin("mine", seed=1, tool_version="0.1.0")
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.write_plan(subject, "screen", [place(n) for n in range(planned)])
        for n, status in enumerate(statuses):
            add(store, subject, n, status)
    return campaign, subject


def just_begun(study: Path, *, arch: str = "x86", finished: bool = False) -> None:
    """A campaign of the study in this file with one place in its plan, and no trial."""
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.begin("mine", seed=1, tool_version=__version__)
        subject = Subject(campaign=campaign, arch=arch, workload="slt")
        baseline = PlannedTrial(index=0, role="baseline", configuration=DEFAULT)
        store.write_plan(subject, "screen", [baseline])
        if finished:
            store.finish(campaign)


def place(n: int) -> PlannedTrial:
    """The default first, then configurations of their own."""
    configuration = Configuration({"net.core.somaxconn": str(n)}) if n else DEFAULT
    role = "design" if n else "baseline"
    return PlannedTrial(index=n, role=role, configuration=configuration)


def add(store: Store, subject: Subject, n: int, status: Status = "ok") -> None:
    """A trial of a place: of 9 ms at the second one, and 1 ms less at each of the next eight."""
    made = trial(
        place(n).configuration,
        1000 * (10 - n % 10),
        stage="screen",
        index=n,
        status=status,
        conditions=replace(CONDITIONS, duration_s=2),
    )
    store.add(subject, made)


def sql(path: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows that a statement gives; what it changes in a store is kept."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()
