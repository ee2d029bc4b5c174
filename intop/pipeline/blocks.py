"""Sides in interleaved rounds: the same for picking, judging and contests.

Within a round every side meets the same load, in an order of the round's own, so that drift hits
all of them alike.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from intop.domain.baseline import HOST
from intop.domain.configuration import Configuration
from intop.domain.results import Verdict
from intop.domain.trial import PlannedTrial, Stage, Trial
from intop.pipeline.context import Task

T = TypeVar("T")

Sides = Mapping[str, Configuration]
"""Configurations by the name of their side, in the order in which they are told of."""


def blocks(
    task: Task, stage: Stage, sides: Sides, rounds: int, *, series: int = 1, start: int = 0
) -> list[PlannedTrial]:
    """Every side once a round, in an order of its own; a round's sides get the same load.

    A stage that is measured anew has further `series`, whose places in the plan begin at `start`.
    """
    words = ("order",) if series == 1 else ("order", series)
    rng = random.Random(task.seed(stage, *words))
    names = list(sides)
    plan: list[PlannedTrial] = []
    for number in range(1, rounds + 1):
        called = str(number) if series == 1 else f"{series}.{number}"
        for name in rng.sample(names, len(names)):
            plan.append(
                PlannedTrial(
                    index=start + len(plan),
                    role="sentinel" if sides[name].is_default else "finalist",
                    configuration=sides[name],
                    label=f"{called}: {name}",
                )
            )
    return plan


def latest_series(plan: Sequence[PlannedTrial]) -> tuple[int, list[PlannedTrial]]:
    """The number of a plan's last series, and the places of it; 1 and none for an empty plan."""
    series = max((series_of(p) for p in plan), default=1)
    return series, [p for p in plan if series_of(p) == series]


def planned_sides(plan: Sequence[PlannedTrial]) -> dict[str, Configuration]:
    """The sides that a plan has."""
    return {p.side: p.configuration for p in plan}


def planned_rounds(plan: Sequence[PlannedTrial]) -> int:
    """How many rounds a plan has."""
    return len({p.round for p in plan})


def usable_by_round(trials: Sequence[Trial]) -> dict[str, dict[str, Trial]]:
    """The usable trials, by side and in it by round."""
    found: dict[str, dict[str, Trial]] = defaultdict(dict)
    for trial in trials:
        if trial.usable:
            found[trial.planned.side][trial.planned.round] = trial
    return dict(found)


def p99_by_round(trials: Sequence[Trial]) -> dict[str, dict[str, float]]:
    """P99 (ms) of the usable trials, by side and in it by round."""
    return {
        side: {number: trial.p99_ms for number, trial in made.items()}
        for side, made in usable_by_round(trials).items()
    }


def paired(one: Mapping[str, T], other: Mapping[str, T]) -> tuple[list[T], list[T]]:
    """What both sides have, of the rounds that both have."""
    common = [number for number in one if number in other]
    return [one[n] for n in common], [other[n] for n in common]


def judged_pairs(trials: Sequence[Trial], verdict: Verdict) -> tuple[list[Trial], list[Trial]]:
    """The campaign's trials that a verdict rests on: those of the default and of the tuned side."""
    sides = usable_by_round([t for t in trials if t.stage == "judge"])
    return paired(sides.get(verdict.against or HOST, {}), sides.get(verdict.origin, {}))


def first_problem(trials: Sequence[Trial]) -> str:
    """What the first trial that can't be used says, "" when there is none."""
    return next((t.detail for t in trials if not t.usable), "")


def series_of(planned: PlannedTrial) -> int:
    """The number of the series that a place belongs to."""
    number, separator, _ = planned.round.partition(".")
    return int(number) if separator else 1
