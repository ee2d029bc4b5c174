"""Stages that measure arms in interleaved rounds."""

from abc import abstractmethod
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from intop.domain.rounds import Arms, Cells, cell, in_rounds, of_series, shuffled
from intop.domain.trial import PlannedTrial, Trial
from intop.run.context import Task
from intop.run.stage import Batch, SoFar, Stage
from intop.run.testbed import Testbed

R = TypeVar("R")


def series_plan(
    task: Task,
    stage: str,
    arms: Arms,
    rounds: int,
    *,
    series: int = 1,
    start: int = 0,
    after: int = 0,
    duration_s: int | None = None,
) -> list[PlannedTrial]:
    """Return the plan of a series in which every arm is measured once a round.

    The load lasts for `duration_s`, or as the workload says. The rest as in `in_rounds`.
    """
    cells = [cell(name, arm, duration_s=duration_s) for name, arm in arms.items()]
    rng = Random(task.seed(stage, *order_words(series)))
    return in_rounds(cells, rounds, rng, series=series, start=start, after=after)


def order_words(series: int) -> tuple[str | int, ...]:
    """Return what the seed of a series' orders is made from."""
    return ("order",) if series == 1 else ("order", series)


class InRounds(Stage[R]):
    """A stage that measures its cells in a number of rounds that is known before."""

    rounds: int
    series: int = 1
    """The one of the plan that it measures; its places begin at `start`."""

    @abstractmethod
    def cells(self) -> Cells:
        """Return what every round has. The host must have been probed."""

    def prepare(self, testbed: Testbed) -> None:
        """Find out on a host what has to be known before the plan is made."""

    def order(self, cells: Cells, rng: Random) -> Cells:
        """Return a round's cells in its order."""
        return shuffled(cells, rng)

    def order_words(self) -> tuple[str | int, ...]:
        """Return what the seed of the orders is made from."""
        return order_words(self.series)

    def ask(self, so_far: SoFar) -> Batch | None:
        """Return all places of its series, until they are settled."""
        planned = of_series(so_far.plan, self.series)
        if not planned:
            self.prepare(so_far.testbed())
            return Batch(self._plan())
        return Batch(planned) if len(self.measured(so_far.trials)) < len(planned) else None

    def measured(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials of its series."""
        return [trial for trial in trials if trial.planned.series == self.series]

    def _plan(self) -> list[PlannedTrial]:
        return in_rounds(
            self.cells(),
            self.rounds,
            Random(self.task.seed(self.name, *self.order_words())),
            series=self.series,
            start=self.start,
            order=self.order,
        )
