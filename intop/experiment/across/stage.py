"""across: a configuration and the default under all workloads of a study, in the same rounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from intop.campaign.baselines import both_sides, chosen_baselines, fit, try_out
from intop.campaign.pilot.stage import timed
from intop.domain.across import WINNER, Across, AcrossByName, UnderWorkload
from intop.domain.baseline import HOST, Baseline
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.rounds import (
    Arms,
    Cells,
    cell,
    failures,
    first_problem,
    paired,
    shuffled,
    usable_by_round,
)
from intop.domain.sides import judged
from intop.domain.stats import bonferroni
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Pairwise, Verdict
from intop.domain.workload import Workload
from intop.errors import ResultMissingError, UsageError
from intop.run import prerequisites
from intop.run.context import Task
from intop.run.experiment import Experiment
from intop.run.prospect import Prospect
from intop.run.stage import Expected
from intop.run.testbed import Testbed

TIMEOUT = "timeout"
"""The name that load tools give a request without an answer in time, among a trial's errors."""


@dataclass(frozen=True, kw_only=True)
class AcrossRequest:
    """A configuration and the workloads to measure it under."""

    workloads: tuple[Workload, ...] = ()
    """The workloads; without any, all of the study's."""
    configuration: str = WINNER
    """The verdict's, or the name of a baseline."""
    rounds: int | None = None
    """Measurements of both sides under each workload; None: as for a verdict."""
    again: bool = False
    """Whether it is measured again where it is finished."""


class AcrossWorkloads(Experiment[Across]):
    """A configuration and the default under several workloads.

    The configuration is the verdict's (`winner`) or a baseline; the default is the one that the
    verdict was against, else the host's own values. In each round every workload has both once, one
    right after the other. Raises UsageError for a configuration that there is none of,
    ResultMissingError without a verdict, and what a pilot does, for workloads that have none yet.
    """

    name = "across"
    description = "the winner under all workloads"
    command = "across"
    result_type = Across
    is_apart = True
    measures_all = "other workloads, rounds or values than the last time: all of it is measured"

    def __init__(self, task: Task, request: AcrossRequest) -> None:
        super().__init__(timed(task))
        self.configuration = request.configuration
        self.rounds = request.rounds or self.budget.judge_pairs
        workloads = request.workloads or task.context.study.workloads.values()
        self.workloads = {workload.name: self._timed(workload) for workload in workloads}
        verdict = task.store.get(task.subject, Verdict)
        self._verdict = verdict if self.configuration == WINNER else None
        self._baselines = self._chosen_baselines()
        self.go_on(again=request.again)

    def prepare(self, testbed: Testbed) -> None:
        try_out(self.task, testbed, self._baselines)

    def cells(self) -> Cells:
        """Return both arms of each workload, one after the other."""
        return [
            self._cell(workload, name, configuration)
            for workload in self.workloads.values()
            for name, configuration in self._arms().items()
        ]

    def order(self, cells: Cells, rng: Random) -> Cells:
        """Leave the arms of a workload together, so that little drifts between them."""
        pairs = [cells[n : n + 2] for n in range(0, len(cells), 2)]
        return [c for pair in rng.sample(pairs, len(pairs)) for c in shuffled(pair, rng)]

    def order_words(self) -> tuple[str | int, ...]:
        return ("order", self.series)

    def is_same(self, planned: Sequence[PlannedTrial]) -> bool:
        """Return whether a series has these cells, and was measured under today's loads."""
        if not super().is_same(planned):
            return False
        trials = self.task.trials(self.name)
        return all(self._has_its_load(t) for t in trials if t.planned.series == planned[0].series)

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        request = prospect.requested(AcrossRequest) or AcrossRequest()
        each = 2 * len(request.workloads or prospect.study.workloads)
        return Expected(trials=each * prospect.budget.judge_pairs)

    def result(self, trials: Sequence[Trial]) -> Across:
        (reference, _), (name, configuration) = self._arms().items()
        against = "" if reference == HOST else reference
        level, each_level = self.budget.level, bonferroni(self.budget.level, len(self.workloads))
        by_workload: dict[str, list[Trial]] = {workload: [] for workload in self.workloads}
        for trial in self.measured(trials):
            by_workload[self._workload_of(trial.planned)].append(trial)
        judge = partial(
            judged,
            configuration=configuration,
            origin=self.configuration,
            against=against,
            rounds=self.rounds,
            margins=self.task.context.study.guardrails,
            level=level,
            each_level=each_level,
        )

        across = Across(
            name=self.configuration,
            configuration=configuration,
            against=against,
            rounds=self.rounds,
            level=level,
            each_level=each_level,
            workloads=tuple(
                under_workload(workload, own, (reference, name), judge)
                for workload, own in by_workload.items()
            ),
        )
        earlier = self.task.store.get(self.task.subject, AcrossByName) or AcrossByName()
        self.task.store.put(self.task.subject, earlier.with_one(across))
        return across

    def _chosen_baselines(self) -> tuple[Baseline, ...]:
        """Return the baseline that is measured in a winner's place."""
        if self.configuration == HOST:
            raise UsageError(f"{HOST} is what the others are measured against: name another one")
        if self.configuration != WINNER:
            return chosen_baselines(self.task.context.study, (self.configuration,))
        if self._verdict is None:
            # In its own words: the verify that is missing is another one than what was asked.
            raise ResultMissingError(
                str(prerequisites.missing(self.task, "no verdict yet", "verify"))
            )
        return ()

    def _arms(self) -> Arms:
        """Return the default and then the configuration. The host must have been probed.

        Raises UsageError for a baseline that changes nothing.
        """
        if self._verdict is not None:
            return both_sides(self.task, self._verdict)
        (baseline,) = self._baselines
        configuration = fit(self.task, baseline).configuration
        if configuration.is_default:
            raise UsageError(f"{self.task.title}: {baseline.name} changes nothing on this host")
        return {HOST: DEFAULT, baseline.name: configuration}

    def _cell(self, workload: Workload, arm: str, configuration: Configuration) -> PlannedTrial:
        if workload.name == self.task.workload.name:
            return cell(arm, configuration)
        return cell(arm, configuration, duration_s=workload.counted_s, other_workload=workload.name)

    def _timed(self, workload: Workload) -> Workload:
        """Return a workload with the duration of its trials, the file's or its pilot's."""
        subject = replace(self.task.subject, workload=workload.name)
        return timed(replace(self.task, subject=subject, workload=workload)).workload

    def _workload_of(self, planned: PlannedTrial) -> str:
        return planned.other_workload or self.task.workload.name

    def _has_its_load(self, trial: Trial) -> bool:
        """Return whether a trial was measured under what its workload is by now."""
        workload, then = self.workloads[self._workload_of(trial.planned)], trial.conditions
        return (workload.due_rps, workload.connections, workload.traffic, workload.timeout_s) == (
            then.rate_rps,
            then.connections,
            then.traffic,
            then.timeout_s,
        )


def under_workload(
    workload: str,
    trials: Sequence[Trial],
    arms: tuple[str, str],
    judge: Callable[..., Verdict],
) -> UnderWorkload:
    """Return what the trials of both arms, the default first, come to under one workload."""
    default, tuned = ([t for t in trials if t.planned.arm == arm] for arm in arms)
    rounds = usable_by_round(trials)
    before, after = paired(*(rounds.get(arm, {}) for arm in arms))
    failed = failures(default), failures(tuned)
    verdict, problem = None, ""
    if len(before) < 2:
        why = first_problem([*default, *tuned])
        problem = f"{len(before)} pairs could be measured, and it takes two: {why}"
    else:
        verdict = judge(before, after, failures=max(0, failed[1] - failed[0]))
    conditions = trials[0].conditions if trials else None
    return UnderWorkload(
        workload=workload,
        load=f"{conditions.rate_rps:g} requests/s on {conditions.connections} connections"
        if conditions
        else "",
        verdict=verdict,
        timeouts=Pairwise(default=_timeouts(before), tuned=_timeouts(after)),
        trials=len(tuned),
        default_failed=failed[0],
        tuned_failed=failed[1],
        problem=problem,
    )


def _timeouts(trials: Sequence[Trial]) -> int:
    return sum(trial.errors.get(TIMEOUT, 0) for trial in trials)
