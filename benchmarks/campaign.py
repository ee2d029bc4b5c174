"""What benchmarks on a lab have in common: a campaign with one thing to tune, and fixed plans."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from intop.campaign.verify.judge import Judge
from intop.campaign.verify.pick import Picked
from intop.config.study import Study, load_study
from intop.document.progress import LineProgress, Progress
from intop.domain.cluster import LabSpec
from intop.domain.configuration import Configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.hosts import ssh
from intop.hosts.host import Connect
from intop.inspect.doctor import check_ready
from intop.lab import cluster as lab
from intop.resources import shipped
from intop.run import registry
from intop.run.all_replicas import replicas
from intop.run.campaigns import latest_or_new, new
from intop.run.context import Context, Task
from intop.run.executor import OpenTestbeds, execute
from intop.run.stage import Batch, SoFar, Stage
from intop.run.testbed import Testbed
from intop.store import Campaign, Store

Plan = Sequence[PlannedTrial] | Callable[[Testbed], Sequence[PlannedTrial]]
"""Trials, or what makes them once there is a testbed to ask."""

Opened = Callable[[Task], AbstractContextManager[tuple[Testbed, ...]]]
"""What opens the testbeds of a task."""


def bbr_backends() -> Study:
    """The scenario on which most of what is known of the instrument was measured."""
    return scenario("bbr-backends")


MAIN = "lab"
"""The study of `make run`, which is a scenario, too."""


def scenario(name: str) -> Study:
    """A study of configs/scenarios, or the study of `make run`."""
    configs = shipped("configs")
    return load_study((configs if name == MAIN else configs / "scenarios") / f"{name}.toml")


def begun(
    store: Store,
    study: Study,
    connect: Connect = ssh.connect,
    testbeds: Opened | None = None,
) -> Task:
    """A campaign of its own, of a study with one architecture and one workload."""
    campaign = new(store, study)
    context = context_of(store, study, campaign=campaign, connect=connect, testbeds=testbeds)
    (task,) = context.subjects()
    return task


class FixedPlan(Stage[list[Trial]]):
    """A stage that measures what somebody planned, under the name of a stage that there is."""

    description = "what somebody planned"
    command = ""
    result_type = list

    def __init__(self, task: Task, name: str, plan: Plan, *, ends_by_failures: bool) -> None:
        super().__init__(task)
        self.name = name  # type: ignore[misc]
        self.explores = registry.stage(name).explores  # type: ignore[misc]
        self.ends_by_failures = ends_by_failures  # type: ignore[misc]
        by_overload = ends_by_failures and registry.stage(name).ends_by_overload
        self.ends_by_overload = by_overload  # type: ignore[misc]
        self._plan = plan

    def ask(self, so_far: SoFar) -> Batch | None:
        if so_far.plan:
            return so_far.unfinished
        plan = self._plan(so_far.testbed()) if callable(self._plan) else self._plan
        return Batch(plan) if plan else None

    def result(self, trials: Sequence[Trial]) -> list[Trial]:
        return list(trials)


def measured(
    task: Task, name: str, plan: Plan, *, ends_by_failures: bool = True, on: Sequence[Testbed] = ()
) -> list[Trial]:
    """The last attempts at all trials of a plan, which are measured unless they are stored."""
    stage = FixedPlan(task, name, plan, ends_by_failures=ends_by_failures)
    return execute(stage, on=OpenTestbeds(on) if on else None)


def judged(task: Task, origin: str, configuration: Configuration) -> Verdict:
    """The campaign's verdict on a configuration that nobody had to pick; `origin` names it."""
    return execute(Judge(task, Picked(origin=origin, configuration=configuration, trials=())))


def altered(alter: Callable[[Any], Testbed]) -> Opened:
    """The replicas of a task's cluster (ClusterTestbed), each of them altered."""

    @contextmanager
    def opened(task: Task) -> Iterator[tuple[Testbed, ...]]:
        with replicas(task) as ready:
            yield tuple(map(alter, ready))

    return opened


def context_of(
    store: Store,
    study: Study,
    *,
    campaign: Campaign | None = None,
    connect: Connect = ssh.connect,
    progress: Progress | None = None,
    testbeds: Opened | None = None,
) -> Context:
    """The context of a campaign with all architectures and workloads of its study.

    By default it is the study's latest campaign, or its first one, and progress goes to stderr.
    """
    return Context(
        study=study,
        store=store,
        campaign=campaign or latest_or_new(store, study),
        connect=connect,
        progress=progress or LineProgress(),
        archs=tuple(study.clusters),
        workloads=tuple(study.workloads.values()),
        testbeds=testbeds,
        check_ready=check_ready,
    )


@contextmanager
def labs_up(study: Study) -> Iterator[None]:
    """The labs of a study, which are taken down at the end."""
    specs = [s for specs in study.clusters.values() for s in specs if isinstance(s, LabSpec)]
    try:
        for spec in specs:
            lab.up(spec, lambda message: print(message, file=sys.stderr))
        yield
    finally:
        for spec in specs:
            lab.down(spec.name)
