"""contest: the host's own values, baselines and the tuned configuration against each other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from intop.domain.baseline import HOST, TUNED, Fitted
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.multi_arm import Contest, Contestant
from intop.domain.rounds import (
    Arms,
    first_problem,
    latest_series,
    p99_by_round,
    paired,
    planned_arms,
    planned_rounds,
)
from intop.domain.stats import bonferroni, geometric_interval, paired_ratio
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.testbed import Testbed
from intop.stages.baselines import chosen_baselines, fit, try_out
from intop.stages.blocks import InRounds, is_finished
from intop.stages.pilot import timed


class MultiArm(InRounds[Contest]):
    """The host's own values, baselines and the tuned configuration in interleaved rounds.

    Entrants are the host's own values ("default"), the named baselines (or all), and, once there
    is a verdict, its configuration ("tuned"). What the kernel does not take of a baseline is left
    out of it. One that fails all the same has failed, and the others go on. `again` plans a new
    series of rounds, unless the last one is the same and not finished yet; earlier ones stay in
    the store.
    Raises UsageError for an unknown name, or when the campaign's contest was planned otherwise.
    """

    name = "contest"
    description = "published sets of values against each other"
    command = "contest"
    result_type = Contest
    of_its_own = True
    ends_by_failures = False
    ends_by_overload = False

    def __init__(
        self,
        task: Task,
        names: Sequence[str] = (),
        *,
        rounds: int | None = None,
        reference: str = HOST,
        again: bool = False,
    ) -> None:
        self._entry = entry = _Entry.of(task, names)
        entry.check_reference(reference)
        self._reference = reference
        self.rounds = rounds or task.context.study.budget.judge_pairs
        before = task.store.plan(task.subject, self.name)
        self.series, planned = latest_series(before)
        differences = _differences(entry, planned, rounds) if planned else []
        if planned and again and (differences or is_finished(task, self.name, planned)):
            self.series, planned, differences = self.series + 1, [], []
        if differences:
            raise UsageError(
                f"{task.title}: this campaign's contest was planned otherwise (then against "
                "now):\n  "
                + "\n  ".join(differences)
                + "\nAsk for the same to go on with it, or measure a new one with: intop contest "
                "--again"
            )
        if entry.verdict is None:
            task.context.progress.say(
                f"{task.title}: there is no verdict yet, so the contest is without a tuned "
                f"configuration (intop tune finds one)"
            )
        self.start = planned[0].index if planned else len(before)
        super().__init__(timed(task))

    def arms(self, testbed: Testbed) -> Arms:
        try_out(self.task, testbed, chosen_baselines(self.task.context.study, self._entry.names))
        return self._entry.arms()

    def result(self, trials: Sequence[Trial]) -> Contest:
        level = self.budget.level
        return _judged(self._entry, trials, self._reference, level)


def contest(
    task: Task,
    names: Sequence[str] = (),
    *,
    rounds: int | None = None,
    reference: str = HOST,
    again: bool = False,
) -> Contest:
    """Measure all entrants, and judge them against the reference. Raises what `MultiArm` does."""
    return execute(MultiArm(task, names, rounds=rounds, reference=reference, again=again))


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """Who takes part."""

    task: Task
    names: tuple[str, ...]
    verdict: Verdict | None

    @classmethod
    def of(cls, task: Task, names: Sequence[str]) -> "_Entry":
        chosen = chosen_baselines(task.context.study, names)
        verdict = task.store.get(task.subject, Verdict)
        return cls(task=task, names=tuple(b.name for b in chosen), verdict=verdict)

    @property
    def everybody(self) -> tuple[str, ...]:
        """All names, whether they are measured or equal to the host's own values."""
        return (HOST, *self.names, *((TUNED,) if self.verdict else ()))

    def check_reference(self, reference: str) -> None:
        """Raises UsageError for one that takes no part."""
        if reference not in self.everybody:
            raise UsageError(
                f"{self.task.title}: {reference} is no entrant of this contest, so it can't be "
                f"its default; there are {', '.join(self.everybody)}"
            )

    def fitted(self) -> dict[str, Fitted]:
        """The baselines on the host, which must have been probed."""
        chosen = chosen_baselines(self.task.context.study, self.names)
        return {baseline.name: fit(self.task, baseline) for baseline in chosen}

    def arms(self) -> dict[str, Configuration]:
        """What is measured: a baseline that changes nothing here is not measured apart."""
        arms = {HOST: DEFAULT}
        for name, found in self.fitted().items():
            if not found.configuration.is_default:
                arms[name] = found.configuration
        if self.verdict is not None:
            arms[TUNED] = self.verdict.configuration
        return arms

    def contestants(self) -> list[Contestant]:
        """All of them, with nothing measured."""
        host = Contestant(
            name=HOST,
            title="the host's own values",
            configuration=DEFAULT,
            keys=0,
            already=0,
            left_out={},
        )
        baselines = [
            Contestant(
                name=name,
                title=found.baseline.title,
                configuration=found.configuration,
                keys=len(found.baseline.values),
                already=len(found.already),
                left_out=dict(found.left_out),
                same_as=HOST if found.configuration.is_default else "",
            )
            for name, found in self.fitted().items()
        ]
        if self.verdict is None:
            return [host, *baselines]
        tuned = Contestant(
            name=TUNED,
            title=f"this campaign's configuration ({self.verdict.origin})",
            configuration=self.verdict.configuration,
            keys=len(self.verdict.configuration.values),
            already=0,
            left_out={},
        )
        return [host, *baselines, tuned]


def _differences(entry: _Entry, planned: Sequence[PlannedTrial], rounds: int | None) -> list[str]:
    """One line for each way in which a contest that is planned is not the one asked for."""
    then, now = planned_arms(planned), entry.arms()
    differences: list[str] = []
    if then.keys() != now.keys():
        differences.append(f"entrants: {_told(then)} against {_told(now)}")
    differences += [
        f"{name}: its values are not those of then"
        for name in now
        if name in then and then[name] != now[name]
    ]
    if rounds not in (None, planned_rounds(planned)):
        differences.append(f"rounds: {planned_rounds(planned)} against {rounds}")
    return differences


def _told(arms: Iterable[str]) -> str:
    return ", ".join(sorted(arms))


def _judged(entry: _Entry, trials: Sequence[Trial], reference: str, level: float) -> Contest:
    contestants = entry.contestants()
    if any(c.name == reference and c.same_as for c in contestants):
        entry.task.context.progress.say(
            f"{entry.task.title}: {reference} changes nothing on this host, so the others are "
            f"judged against the host's own values"
        )
        reference = HOST
    return judged(contestants, trials, reference, level)


def judged(
    contestants: Sequence[Contestant], trials: Sequence[Trial], reference: str, level: float
) -> Contest:
    """The contestants with what their trials say, against the reference, which is one of them."""
    p99 = p99_by_round(trials)
    against = p99.get(reference, {})
    compared = sum(not c.same_as and c.name != reference for c in contestants)
    ratio_level = bonferroni(level, compared)

    def measured(contestant: Contestant) -> Contestant:
        own = p99.get(contestant.name, {})
        before, after = paired(against, own)
        enough = len(before) >= 2 and contestant.name != reference
        mine = [t for t in trials if t.planned.arm == contestant.name]
        return replace(
            contestant,
            is_reference=contestant.name == reference,
            p99_ms=geometric_interval(list(own.values()), level=level) if len(own) >= 2 else None,
            ratio=paired_ratio(before, after, level=ratio_level) if enough else None,
            failures=sum(t.status == "failed" for t in mine),
            detail=first_problem(mine),
        )

    return Contest(
        contestants=tuple(measured(c) for c in contestants),
        reference=reference,
        rounds=planned_rounds([t.planned for t in trials]),
        level=level,
        ratio_level=ratio_level,
    )
