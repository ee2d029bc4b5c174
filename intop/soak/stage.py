"""soak: hours of constant load on what is applied, in blocks without a pause between them."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from intop.config.study import Study
from intop.config.workload import load_problem
from intop.domain.campaign_status import Place
from intop.domain.configuration import DEFAULT
from intop.domain.rounds import latest_series
from intop.domain.soak import Limits, Soak, SoakBlock
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.workload import Workload
from intop.errors import UsageError
from intop.run.context import Task
from intop.run.effort import RETRIED_AT_MOST, Span
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.stage import Batch, Expected, SoFar, Stage
from intop.run.testbed import Testbed
from intop.soak.trends import block_of, broken_by, pauses_of, restarts_of, trends_of

BLOCK_S = 60


@dataclass(frozen=True, kw_only=True)
class SoakRequest:
    """A soak that is asked for."""

    hours: float = 1.0
    block_s: int = BLOCK_S
    rate_rps: float | None = None
    """None for the workload's."""
    limits: Limits = field(default_factory=Limits)
    replica: int = 1
    """The number of the load balancer, from 1 on."""

    @property
    def blocks(self) -> int:
        """The number of blocks that it takes."""
        return max(1, math.ceil(round(self.hours * 3600 / self.block_s, 6)))

    def check(self, study: Study, arch: str, workload: Workload) -> None:
        """Raises UsageError for what can't be measured there."""
        count = len(study.clusters[arch])
        if self.replica > count:
            raise UsageError(f"--replica {self.replica}: {study.path} has {count} of {arch}")
        if self.rate_rps and workload.connections / self.rate_rps >= workload.timeout_s:
            raise UsageError(
                f"--rate: at {self.rate_rps:g} requests/s {workload.connections} connections are "
                f"idle for longer than timeout_s ({workload.timeout_s})"
            )
        rate_rps = workload.rate_rps if self.rate_rps is None else self.rate_rps
        if problem := load_problem(replace(workload, rate_rps=rate_rps, duration_s=self.block_s)):
            raise UsageError(f"--rate: {problem}")


class SoakApplied(Stage[Soak]):
    """Blocks of load on a load balancer as it is, until the time is over or a limit is broken.

    An unfinished soak of the same length on the same applied values goes on, a finished one is read
    from the store; others, and `again`, are a further series.
    """

    name = "soak"
    description = "hours of constant load on what is applied"
    command = "soak"
    result_type = Soak
    is_apart = True
    ends_by_failures = False
    ends_by_overload = False
    observes = True

    def __init__(self, task: Task, request: SoakRequest, *, again: bool = False) -> None:
        # Each block has its own duration: no pilot has to find one.
        super().__init__(replace(task, workload=replace(task.workload, duration_s=request.block_s)))
        self.request = request
        self.rate_rps = request.rate_rps or task.workload.rate_rps
        self.again = again
        self.series = 0
        """The series of the plan, once it is known."""
        self._known: dict[int, SoakBlock] = {}
        """Blocks by the index of their trials: computing one reads its histogram."""

    def ask(self, so_far: SoFar) -> Batch | None:
        if not self.series:
            self.series = self._series(so_far)
        planned = [p for p in so_far.plan if p.series == self.series]
        if not planned:
            plan = self._plan(len(so_far.plan), so_far.testbed().applied)
            return Batch(plan[:1], later=plan[1:])
        trials = [t for t in so_far.trials if t.planned.series == self.series]
        return None if self._is_over(planned, trials) else Batch([planned[len(trials)]])

    def result(self, trials: Sequence[Trial]) -> Soak:
        mine = [t for t in trials if t.planned.series == self.series]
        blocks = self._blocks(mine)
        request = self.request
        broken, count = broken_by(blocks, request.limits)
        if broken:
            blocks = blocks[:count]
        warmup_s = float(self.task.workload.warmup_s)
        pause_s, interruptions = pauses_of(blocks, warmup_s + request.block_s)
        return Soak(
            applied=mine[0].planned.arm,
            host=mine[0].replica,
            rate_rps=self.rate_rps,
            block_s=request.block_s,
            warmup_s=warmup_s,
            planned=request.blocks,
            limits=request.limits,
            level=self.budget.level,
            blocks=tuple(blocks),
            trends=trends_of(
                blocks, planned_s=request.blocks * request.block_s, level=self.budget.level
            ),
            broken=broken,
            pause_s=pause_s,
            interruptions=interruptions,
            restarts=restarts_of(blocks),
            changed=tuple(mine[0].conditions.differences(mine[len(blocks) - 1].conditions)),
        )

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        request = prospect.requested(SoakRequest) or SoakRequest()
        seconds = request.blocks * request.block_s
        time = Span(likely_s=seconds, most_s=RETRIED_AT_MOST * seconds)
        return Expected(trials=request.blocks, time=time)

    @classmethod
    def is_through(cls, prospect: Prospect, places: Sequence[Place]) -> bool:
        return prospect.covers(Soak, places)

    # -- plan ------------------------------------------------------------------------------------

    def _series(self, so_far: SoFar) -> int:
        """Return the latest series if it is this soak, else a further one."""
        latest, planned = latest_series(so_far.plan)
        if not planned:
            return latest
        testbed = so_far.testbed()
        wanted = self._plan(planned[0].index, testbed.applied, latest)
        trials = [t for t in so_far.trials if t.planned.series == latest]
        is_here = not trials or trials[-1].replica == testbed.name
        is_this = planned == wanted and is_here
        if is_this and not (self.again and self._is_over(planned, trials)):
            return latest
        self.task.context.progress.say(
            f"{self.task.title}: another soak than the one before: it begins with its first block"
        )
        return latest + 1

    def _plan(self, start: int, applied: str, series: int | None = None) -> list[PlannedTrial]:
        return [
            PlannedTrial(
                index=start + number,
                role="soak",
                configuration=DEFAULT,
                arm=applied,
                round=number + 1,
                series=series or self.series,
                duration_s=self.request.block_s,
                rate_rps=self.rate_rps,
            )
            for number in range(self.request.blocks)
        ]

    def _is_over(self, planned: Sequence[PlannedTrial], trials: Sequence[Trial]) -> bool:
        broken, _ = broken_by(self._blocks(trials), self.request.limits)
        return len(trials) == len(planned) or bool(broken)

    def _blocks(self, trials: Sequence[Trial]) -> list[SoakBlock]:
        for trial in trials:
            if trial.planned.index not in self._known:
                begin = datetime.fromisoformat(trials[0].started_at)
                self._known[trial.planned.index] = block_of(trial, begin)
        return [self._known[trial.planned.index] for trial in trials]


def soak(task: Task, request: SoakRequest, *, again: bool = False) -> Soak:
    """Soak one load balancer. Raises what `check`, `cluster_testbed` and `execute` do."""
    context = task.context
    request.check(context.study, task.subject.arch, task.workload)
    if context.testbeds is None:
        number = request.replica - 1
        context = replace(context, testbeds=lambda of: _one_replica(of, number))
    return execute(SoakApplied(replace(task, context=context), request, again=again))


@contextmanager
def _one_replica(task: Task, number: int) -> Iterator[tuple[Testbed, ...]]:
    """Yield a load balancer with what is applied there, whatever the campaign has measured."""
    from intop.run.opening import cluster_testbed

    task.check_ready()
    with cluster_testbed(task, number, originals=True, alone=True) as ready:
        yield (ready,)
