"""A campaign that an explanation takes apart, with P99 made up by what is changed."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from builders.testbeds import FakeTestbed
from intop.domain.trial import PlannedTrial


def latency(
    winner: Mapping[str, str], factors: Mapping[str, float], sd: float
) -> Callable[[PlannedTrial], int]:
    """P99 in us: 4 ms times the factor of each of the winner's values, with noise of the place."""

    def made_up(planned: PlannedTrial) -> int:
        p99 = 4_000.0 * random.Random(planned.index).lognormvariate(0, sd)
        for key, factor in factors.items():
            p99 *= factor if planned.configuration.values.get(key) == winner[key] else 1
        return round(p99)

    return made_up


def with_few_rounds(testbed: FakeTestbed) -> None:
    context = testbed.task.context
    budget = replace(context.study.budget, explain_rounds=2, explain_pairs=4)
    study = replace(context.study, budget=budget)
    testbed.task = replace(testbed.task, context=replace(context, study=study))
