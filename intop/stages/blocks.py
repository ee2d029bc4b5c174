"""Arms in interleaved rounds: the same for picking, judging and contests.

Within a round every arm meets the same load, in an order of the round's own, so that drift hits
all of them alike.
"""

import random
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from intop.domain.baseline import HOST
from intop.domain.configuration import Configuration
from intop.domain.trial import Block, Outline, PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.run.context import Task
from intop.run.stage import Batch, SoFar, Stage
from intop.run.testbed import Testbed

M = TypeVar("M", Trial, Outline)
T = TypeVar("T")
R = TypeVar("R")

Arms = Mapping[str, Configuration]
"""Configurations by the name of their arm, in the order in which they are told of."""


def blocks(
    task: Task,
    stage: str,
    arms: Arms,
    rounds: int,
    *,
    series: int = 1,
    start: int = 0,
    duration_s: int | None = None,
) -> list[PlannedTrial]:
    """Every arm once a round, in an order of its own; a round's arms get the same load.

    A stage that is measured anew has further `series`, whose places in the plan begin at `start`.
    The load lasts for `duration_s`, or as the workload says.
    """
    words = ("order",) if series == 1 else ("order", series)
    rng = random.Random(task.seed(stage, *words))
    names = list(arms)
    plan: list[PlannedTrial] = []
    for number in range(1, rounds + 1):
        for name in rng.sample(names, len(names)):
            plan.append(
                PlannedTrial(
                    index=start + len(plan),
                    role="sentinel" if arms[name].is_default else "finalist",
                    configuration=arms[name],
                    arm=name,
                    round=number,
                    series=series,
                    duration_s=duration_s,
                )
            )
    return plan


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


def latest_series(plan: Sequence[PlannedTrial]) -> tuple[int, list[PlannedTrial]]:
    """The number of a plan's last series, and the places of it; 1 and none for an empty plan."""
    series = max((p.series for p in plan), default=1)
    return series, [p for p in plan if p.series == series]


def planned_arms(plan: Sequence[PlannedTrial]) -> dict[str, Configuration]:
    """The arms that a plan has."""
    return {p.arm: p.configuration for p in plan}


def planned_rounds(plan: Sequence[PlannedTrial]) -> int:
    """How many rounds a plan has."""
    return len({p.block for p in plan})


def usable_by_round(trials: Sequence[M]) -> dict[str, dict[Block, M]]:
    """The usable trials, by arm and in it by round."""
    found: dict[str, dict[Block, M]] = defaultdict(dict)
    for trial in trials:
        if trial.usable and (block := trial.planned.block):
            found[trial.planned.arm][block] = trial
    return dict(found)


def p99_by_round(trials: Sequence[Trial]) -> dict[str, dict[Block, float]]:
    """P99 (ms) of the usable trials, by arm and in it by round."""
    return {
        arm: {block: trial.p99_ms for block, trial in made.items()}
        for arm, made in usable_by_round(trials).items()
    }


def paired(one: Mapping[Block, T], other: Mapping[Block, T]) -> tuple[list[T], list[T]]:
    """What both arms have, of the rounds that both have."""
    common = [block for block in one if block in other]
    return [one[n] for n in common], [other[n] for n in common]


def judged_pairs(trials: Sequence[M], verdict: Verdict) -> tuple[list[M], list[M]]:
    """The campaign's trials that a verdict rests on: those of the default and of the tuned arm."""
    arms = usable_by_round([t for t in trials if t.stage == "judge"])
    return paired(arms.get(verdict.against or HOST, {}), arms.get(verdict.origin, {}))


def is_finished(task: Task, stage: str, planned: Sequence[PlannedTrial]) -> bool:
    """Whether all of these have a trial; no plan is never finished."""
    made = {t.planned.index for t in task.trials(stage)}
    return bool(planned) and made.issuperset(p.index for p in planned)


def first_problem(trials: Sequence[Trial]) -> str:
    """What the first trial that can't be used says, "" when there is none."""
    return next((t.detail for t in trials if not t.usable), "")
