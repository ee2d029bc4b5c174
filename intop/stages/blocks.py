"""The old base of stages in rounds, until all of them are experiments."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from intop.domain.rounds import Arms
from intop.domain.trial import PlannedTrial
from intop.run.context import Task
from intop.run.rounds import blocks
from intop.run.stage import Batch, SoFar, Stage
from intop.run.testbed import Testbed

R = TypeVar("R")


class InRounds(Stage[R]):
    """A stage that measures its arms in a number of rounds that is known before."""

    rounds: int
    series: int = 1

    @abstractmethod
    def arms(self, testbed: Testbed) -> Arms:
        """What is measured on it."""

    def ask(self, so_far: SoFar) -> Batch | None:
        if so_far.plan:
            return so_far.unfinished
        arms = self.arms(so_far.testbed())
        plan = blocks(self.task, self.name, arms, self.rounds, series=self.series, start=self.start)
        return Batch(plan)


def is_finished(task: Task, stage: str, planned: Sequence[PlannedTrial]) -> bool:
    """Whether all of these have a trial; no plan is never finished."""
    made = {t.planned.index for t in task.trials(stage)}
    return bool(planned) and made.issuperset(p.index for p in planned)
