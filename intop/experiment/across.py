"""across: a configuration and the default under all workloads of a study, in the same rounds."""

import random
from collections.abc import Sequence
from dataclasses import replace

from intop.domain.across import Across, under_workload
from intop.domain.baseline import HOST, TUNED
from intop.domain.rounds import Arms, latest_series, planned_rounds
from intop.domain.stats import bonferroni
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.domain.workload import Workload
from intop.errors import ResultMissingError, UsageError
from intop.run import prerequisites
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.stage import Batch, SoFar, Stage
from intop.stages.baselines import base_of, chosen_baselines, fit, try_out
from intop.stages.pilot import timed

WINNER = "winner"

_Place = tuple[str, int | None, str, str]
"""What a trial is of, without its round: the workload, its duration, the arm."""


class AcrossWorkloads(Stage[Across]):
    """A configuration and the default under several workloads, in interleaved rounds.

    The configuration is the verdict's (`winner`) or a baseline; the default is the one that the
    verdict was against, else the host's own values. In each round every workload has both once, one
    right after the other. What fails under another workload than the task's is a result. The same
    that was asked for before goes on, or is read from the store; another one, or the same `again`,
    is a further series. Raises UsageError for a configuration that there is none of,
    ResultMissingError without a verdict, and what a pilot does, for workloads that have none yet.
    """

    name = "across"
    description = "the winner under all workloads"
    command = "verify"
    result_type = Across
    of_its_own = True
    is_apart = True
    ends_by_failures = False
    ends_by_overload = False

    def __init__(
        self,
        task: Task,
        workloads: Sequence[Workload],
        *,
        configuration: str = WINNER,
        rounds: int | None = None,
        again: bool = False,
    ) -> None:
        super().__init__(timed(task))
        self.configuration = configuration
        self.rounds = rounds or self.budget.judge_pairs
        self.again = again
        self.series = 0
        """Which one of the plan this is, once that is known."""
        self.workloads = {one.name: self._timed(one) for one in workloads}
        self._verdict = task.store.get(task.subject, Verdict)
        if configuration == WINNER:
            if self._verdict is None:
                # In its own words: the verify that is missing is another one than what was asked.
                why = str(prerequisites.missing(task, "no verdict yet", "verify"))
                raise ResultMissingError(why)
        elif configuration == HOST:
            raise UsageError(f"{HOST} is what the others are measured against: name another one")
        else:
            chosen_baselines(task.context.study, (configuration,))

    def ask(self, so_far: SoFar) -> Batch | None:
        if not self.series:
            self.series = self._series(so_far)
        mine = [p for p in so_far.plan if p.series == self.series]
        if not mine:
            if self.configuration != WINNER:
                named = chosen_baselines(self.task.context.study, (self.configuration,))
                try_out(self.task, so_far.testbed(), named)
            return Batch(self._plan(len(so_far.plan), self.rounds, self.series))
        settled = sum(t.planned.series == self.series for t in so_far.trials)
        return Batch(mine) if settled < len(mine) else None

    def result(self, trials: Sequence[Trial]) -> Across:
        mine = [t for t in trials if t.planned.series == self.series]
        arms = self._arms()
        reference, name = arms
        configuration = arms[name]
        against = "" if reference == HOST else reference
        level, each_level = self.budget.level, bonferroni(self.budget.level, len(self.workloads))

        def side(workload: str, arm: str) -> list[Trial]:
            own = [t for t in mine if self._workload_of(t.planned) == workload]
            return [t for t in own if t.planned.arm == arm]

        return Across(
            name=self.configuration,
            configuration=configuration,
            against=against,
            rounds=self.rounds,
            level=level,
            each_level=each_level,
            workloads=tuple(
                under_workload(
                    workload,
                    side(workload, reference),
                    side(workload, name),
                    configuration,
                    origin=self.configuration,
                    against=against,
                    rounds=self.rounds,
                    margins=self.task.context.study.guardrails,
                    level=level,
                    each_level=each_level,
                )
                for workload in self.workloads
            ),
        )

    # -- plan ------------------------------------------------------------------------------------

    def _arms(self) -> Arms:
        """The default and then the configuration. The host must have been looked at.

        Raises UsageError for a baseline that changes nothing.
        """
        verdict = self._verdict
        against = verdict.against if verdict and self.configuration == WINNER else ""
        default = {against or HOST: base_of(self.task, against)}
        if verdict is not None and self.configuration == WINNER:
            return {**default, TUNED: verdict.configuration}
        (baseline,) = chosen_baselines(self.task.context.study, (self.configuration,))
        found = fit(self.task, baseline).configuration
        if found.is_default:
            raise UsageError(f"{self.task.title}: {baseline.name} changes nothing on this host")
        return {**default, baseline.name: found}

    def _series(self, so_far: SoFar) -> int:
        """The latest series, if it is this one, else a further one."""
        latest, planned = latest_series(so_far.plan)
        if not planned:
            return latest
        made = [t for t in so_far.trials if t.planned.series == latest]
        wanted = {_place(p) for p in self._plan(0, 1, latest)}
        is_same = (
            {_place(p) for p in planned} == wanted
            and planned_rounds(planned) == self.rounds
            and all(map(self._has_its_load, made))
        )
        if is_same and not (self.again and len(made) == len(planned)):
            return latest
        if not is_same:
            self.task.context.progress.say(
                f"{self.task.title}: other workloads, rounds or values than the last time: all of "
                "it is measured"
            )
        return latest + 1

    def _plan(self, start: int, rounds: int, series: int) -> list[PlannedTrial]:
        """Each workload with both arms once a round, in orders of the round's own.

        The arms of a workload follow one another, so that little drifts between them.
        """
        rng = random.Random(self.task.seed(self.name, "order", series))
        workloads, arms = list(self.workloads), self._arms()
        plan: list[PlannedTrial] = []
        for number in range(1, rounds + 1):
            for workload in rng.sample(workloads, len(workloads)):
                is_own = workload == self.task.workload.name
                for arm in rng.sample(list(arms), len(arms)):
                    plan.append(
                        PlannedTrial(
                            index=start + len(plan),
                            role="sentinel" if arms[arm].is_default else "finalist",
                            configuration=arms[arm],
                            arm=arm,
                            round=number,
                            series=series,
                            duration_s=None if is_own else self.workloads[workload].counted_s,
                            other_workload="" if is_own else workload,
                        )
                    )
        return plan

    def _timed(self, workload: Workload) -> Workload:
        """With the duration of its trials, the file's or its pilot's."""
        subject = replace(self.task.subject, workload=workload.name)
        return timed(replace(self.task, subject=subject, workload=workload)).workload

    def _workload_of(self, planned: PlannedTrial) -> str:
        return planned.other_workload or self.task.workload.name

    def _has_its_load(self, trial: Trial) -> bool:
        """Whether a trial was measured under what its workload is by now."""
        workload, then = self.workloads[self._workload_of(trial.planned)], trial.conditions
        return (workload.due_rps, workload.connections, workload.traffic, workload.timeout_s) == (
            then.rate_rps,
            then.connections,
            then.traffic,
            then.timeout_s,
        )


def across(
    task: Task,
    workloads: Sequence[Workload],
    *,
    configuration: str = WINNER,
    rounds: int | None = None,
    again: bool = False,
) -> Across:
    """Measure a configuration in all these workloads. Raises what the stage and `execute` do."""
    return execute(
        AcrossWorkloads(task, workloads, configuration=configuration, rounds=rounds, again=again)
    )


def _place(p: PlannedTrial) -> _Place:
    return p.other_workload, p.duration_s, p.arm, p.configuration.digest
