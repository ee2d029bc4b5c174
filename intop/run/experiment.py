"""The base of all experiments: cells in rounds, and the series that they go on with.

A plan has a series for each time that an experiment was begun. This module alone decides which one
is asked for again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from intop.domain.rounds import differences, latest_series, of_series
from intop.domain.trial import PlannedTrial
from intop.errors import UsageError
from intop.run.measuring import is_settled
from intop.run.rounds import InRounds

R = TypeVar("R")


class Experiment(InRounds[R]):
    """Arms under loads in interleaved rounds, which are no part of `tune`.

    What fails is a result.
    """

    ends_by_failures = False
    ends_by_overload = False
    looks_back: ClassVar[bool] = False
    """Whether it goes on with any earlier series that is the same, not only with the last one."""
    measures_all: ClassVar[str] = ""
    """The message where another one was planned before."""

    def is_same(self, planned: Sequence[PlannedTrial]) -> bool:
        """Return whether a planned series, if there is any, is what is asked for."""
        return bool(planned) and not differences(planned, self.cells(), self.rounds)

    def is_finished(self, planned: Sequence[PlannedTrial]) -> bool:
        """Return whether all places of a series have their trials; an empty one is not finished."""
        trials = {trial.planned.index: trial for trial in self.task.trials(self.name)}
        settled = (is_settled(self, trials.get(place.index), trials) for place in planned)
        return bool(planned) and all(settled)

    def go_on(self, *, again: bool = False) -> None:
        """Go on with a planned series that is the same, else begin a further one.

        One that is finished is measured in a further one, if that is wanted `again`.
        """
        plan = self.task.store.plan(self.task.subject, self.name)
        latest, _ = latest_series(plan)
        numbers = range(latest, 0 if self.looks_back else latest - 1, -1)
        planned = next(filter(self.is_same, (of_series(plan, n) for n in numbers)), [])
        if planned and not (again and self.is_finished(planned)):
            self.series, self.start = planned[0].series, planned[0].index
            return
        if plan and not planned:
            self.task.context.progress.say(f"{self.task.title}: {self.measures_all}")
        self.series, self.start = latest + bool(plan), len(plan)


def go_on_together(
    stages: Sequence[Experiment[Any]], rounds: int | None, *, again: bool, command: str
) -> None:
    """Let experiments on several machines go on with the same series, or begin a further one.

    So one that was killed between two machines goes on with the second. Any number of `rounds` will
    do where that is None. Raises UsageError where another experiment is planned, unless it is
    measured `again`.
    """
    plans = [stage.task.store.plan(stage.task.subject, stage.name) for stage in stages]
    number = max(latest_series(plan)[0] for plan in plans)
    current = [of_series(plan, number) for plan in plans]
    both = list(zip(stages, current, strict=True))
    lines = {
        stage.task.title: differences(planned, stage.cells(), rounds)
        for stage, planned in both
        if planned
    }
    is_other = any(lines.values())
    if again and (is_other or all(stage.is_finished(planned) for stage, planned in both)):
        number, current = number + 1, [[] for _ in stages]
    elif is_other:
        raise UsageError(_planned_otherwise(lines, len(stages) > 1, stages[0].name, command))
    for stage, plan, planned in zip(stages, plans, current, strict=True):
        stage.series, stage.start = number, planned[0].index if planned else len(plan)


def _planned_otherwise(
    lines: Mapping[str, Sequence[str]], are_several: bool, name: str, command: str
) -> str:
    """Return the refusal. Its lines name their machines where these are several."""
    heading = "" if are_several else f"{next(iter(lines))}: "
    titled = [
        f"{title}: {line}" if are_several else line for title, own in lines.items() for line in own
    ]
    return (
        f"{heading}this campaign's {name} was planned otherwise (then against now):\n  "
        + "\n  ".join(titled)
        + "\nAsk for the same to go on with it, or measure a new one with: "
        f"intop {command} --again"
    )
