"""pilot: how long a trial has to be, measured on the default before all else."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from intop.campaign.pilot.duration import chosen, stalled, tried_duration
from intop.campaign.pilot.view import sentence
from intop.domain.concurrency import kept_connections
from intop.domain.configuration import DEFAULT
from intop.domain.pilot import Pilot, TriedDuration, durations
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IncomparableError, IntopError, UsageError
from intop.run.context import Task
from intop.run.effort import Span
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.stage import Batch, Expected, SoFar, Stage


class FindDuration(Stage[Pilot]):
    """The default in trials of several durations, the shortest first, until one of them will do.

    Where the file has a duration, that one is measured before them. The plan grows by a rung of the
    ladder at a time. Raises UsageError where the budget has no room for one duration, IntopError
    where too few trials of one could be measured.
    """

    name = "pilot"
    description = "how long a trial is to be"
    command = "pilot"
    result_type = Pilot
    prepares = True
    is_apart = True

    def __init__(self, task: Task) -> None:
        budget = task.context.study.budget
        self.given = task.workload.duration_s
        try:
            self.ladder = durations(
                task.workload.rate_rps, budget.pilot_max_s, task.workload.judged_by
            )
        except ValueError as error:
            raise UsageError(
                f"{task.title}: {error}. Raise pilot_max_s in [budget] of "
                f"{task.context.study.path}, or set duration_s in [workload.{task.workload.name}]"
            ) from error
        super().__init__(replace(_of(task, self.ladder[0]), tries_durations=True))
        self._tried: dict[int, TriedDuration] = {}

    def ask(self, so_far: SoFar) -> Batch | None:
        measured = {t.planned.index for t in so_far.trials}
        for duration_s in self._rungs():
            own = [p for p in so_far.plan if p.duration_s == duration_s]
            if not own:
                return Batch(
                    [self._place(len(so_far.plan) + n, duration_s) for n in range(self._count)]
                )
            is_last = own[-1].index == so_far.plan[-1].index
            # A rung that another one follows in the plan has ended.
            if is_last and not measured.issuperset(p.index for p in own):
                return Batch(own)
            self._try(duration_s, so_far.trials)
        return None

    def result(self, trials: Sequence[Trial]) -> Pilot:
        for duration_s in self._rungs():
            self._try(duration_s, trials)
        pilot = chosen(
            list(self._tried.values()),
            shortest_s=self.ladder[0],
            wanted=self.budget.pilot_resolution,
            pairs=self.budget.judge_pairs,
            level=self.budget.level,
            given_s=self.given,
        )
        judged_by = trials[0].conditions.judged_by
        connections = kept_connections(self.task.workload)
        return replace(pilot, judged_by=judged_by, connections=connections)

    def _rungs(self) -> Iterator[int]:
        """Return the durations (s) to try, each chosen by the results of those before it."""
        if self.given is not None and self.given <= self.budget.pilot_max_s:
            yield self.given
        for count, duration_s in enumerate(self.ladder, start=1):
            if duration_s != self.given:
                yield duration_s
            rungs = [self._tried[d] for d in self.ladder[:count]]
            if rungs[-1].resolution <= self.budget.pilot_resolution or stalled(rungs):
                return

    @property
    def _count(self) -> int:
        return self.budget.pilot_trials

    def _place(self, index: int, duration_s: int) -> PlannedTrial:
        return PlannedTrial(
            index=index, role="sentinel", configuration=DEFAULT, duration_s=duration_s
        )

    def _try(self, duration_s: int, trials: Sequence[Trial]) -> None:
        if duration_s in self._tried:
            return
        own = [t for t in trials if t.planned.duration_s == duration_s]
        try:
            self._tried[duration_s] = tried_duration(
                duration_s,
                [t for t in own if t.usable],
                pairs=self.budget.judge_pairs,
                wanted=self.budget.pilot_resolution,
                level=self.budget.level,
                look_count=self.budget.judge_looks,
            )
        except ValueError as error:
            why = next((t.detail for t in own if not t.usable), "")
            raise IntopError(
                f"{self.task.title}: pilot: {error}, a spread takes two: {why}\n"
                f"Try again in a campaign of its own with --new, or set duration_s in "
                f"[workload.{self.task.workload.name}]"
            ) from error

    @classmethod
    def is_wanted(cls, prospect: Prospect) -> bool:
        return prospect.workload.duration_s is None

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """Return its trials: likely two of the durations beside the first one, and all at most."""
        budget, load = prospect.budget, prospect.workload
        places = prospect.places(cls.name)
        trials = max(len(places), budget.pilot_trials)
        left = trials - sum(place.is_done(budget.retries) for place in places)
        try:
            ladder = durations(load.rate_rps, budget.pilot_max_s, load.judged_by)
        except ValueError:
            return Expected(trials=trials, bound="at least", time=Span(likely_s=0.0, most_s=0.0))
        rungs = [prospect.trial(duration_s) for duration_s in ladder]
        share = left / prospect.replicas
        time = Span(
            likely_s=share * sum(rung.likely_s for rung in rungs[:3]),
            most_s=share * sum(rung.most_s for rung in rungs),
        )
        return Expected(trials=trials, bound="at least", time=time)


def timed(task: Task) -> Task:
    """Return the task with the duration of its trials, from the file or from a pilot.

    A pilot that was not made yet is made now. Raises IncomparableError where the campaign has
    trials of a duration that is no longer in the file.
    """
    if task.workload.duration_s is not None:
        return task
    stored = task.store.get(task.subject, Pilot)
    if stored is None:
        _check_untimed(task)
        task.context.progress.say(
            f"{task.title}: pilot comes first: it finds how long a trial must be, since "
            f"[workload.{task.workload.name}] has no duration_s"
        )
        stored = pilot(task)
        task.context.progress.say(f"{task.title}: pilot: {sentence(stored)}")
        _warn_of_others(task, stored)
    return _of(task, stored.duration_s)


def pilot(task: Task) -> Pilot:
    """Return the campaign's pilot, which is made if there is none yet.

    A stored pilot stands, since the campaign's trials have its duration. A duration in the file
    stands, too, and the pilot says what it is worth. Raises what `FindDuration` does.
    """
    stored = task.store.get(task.subject, Pilot) or execute(FindDuration(task))
    return replace(stored, given_s=task.workload.duration_s)


def _of(task: Task, duration_s: int) -> Task:
    return replace(task, workload=replace(task.workload, duration_s=duration_s))


def _warn_of_others(task: Task, ours: Pilot) -> None:
    """Warn before a campaign is measured that can't be compared with another architecture's."""
    for arch in task.context.study.clusters:
        theirs = task.store.get(replace(task.subject, arch=arch), Pilot)
        if theirs is not None and theirs.duration_s != ours.duration_s:
            task.context.progress.say(
                f"{task.title}: the pilot of {arch} chose {theirs.duration_s} s, and intop compare "
                f"needs the same on both sides: set duration_s = "
                f"{max(theirs.duration_s, ours.duration_s)} in [workload.{task.workload.name}] of "
                f"{task.context.study.path} and begin again with --new, if they are to be compared"
            )


def _check_untimed(task: Task) -> None:
    """Raises IncomparableError where there are trials that no pilot chose a duration for."""
    stored = task.store.trials(task.subject)
    durations = {t.conditions.duration_s for t in stored if t.planned.duration_s is None}
    if durations:
        before = ", ".join(map(str, sorted(durations)))
        raise IncomparableError(
            f"{task.title}: this campaign's trials are of {before} s, and "
            f"{task.context.study.path} no longer says so: set duration_s = {max(durations)} in "
            f"[workload.{task.workload.name}], or start again with --new"
        )
