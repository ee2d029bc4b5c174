"""What benchmarks on a lab have in common: a campaign with one thing to tune, and fixed plans."""

from collections.abc import Callable, Sequence

from intop.config.study import Study
from intop.domain.trial import PlannedTrial, Trial
from intop.hosts import ssh
from intop.hosts.host import Connect
from intop.report.progress import LineProgress
from intop.run import registry
from intop.run.campaigns import new
from intop.run.context import Context, Task
from intop.run.executor import execute
from intop.run.stage import Batch, SoFar, Stage
from intop.run.testbed import Testbed
from intop.store import Store

Plan = Sequence[PlannedTrial] | Callable[[Testbed], Sequence[PlannedTrial]]
"""Trials, or what makes them once there is a testbed to ask."""


def begun(store: Store, study: Study, connect: Connect = ssh.connect) -> Task:
    """A campaign of its own, of a study with one architecture and one workload."""
    context = Context(
        study=study,
        store=store,
        campaign=new(store, study),
        connect=connect,
        progress=LineProgress(),
        archs=tuple(study.clusters),
        workloads=tuple(study.workloads.values()),
    )
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
    return execute(FixedPlan(task, name, plan, ends_by_failures=ends_by_failures), on=on)
