"""The default among configurations, so that drift is seen."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial


def with_sentinels(
    configurations: Sequence[Configuration], every: int, replicas: int = 1
) -> list[PlannedTrial]:
    """Return a plan of the default first, then the configurations with the default among them.

    Replicas take turns: the default is measured on each of them first, and again after every so
    many configurations of its own.
    """
    plan = [PlannedTrial(index=n, role="baseline", configuration=DEFAULT) for n in range(replicas)]
    design = [PlannedTrial(index=0, role="design", configuration=c) for c in configurations]
    return plan + followed_by_sentinels(
        design, start=replicas, every=every * replicas, sentinels=replicas
    )


def followed_by_sentinels(
    places: Iterable[PlannedTrial], *, start: int, every: int, sentinels: int = 1, before: int = 0
) -> list[PlannedTrial]:
    """Return the places from index `start` on, each `every` of them followed by the default.

    `before` such places are in the plan already.
    """
    plan: list[PlannedTrial] = []
    for count, place in enumerate(places, start=before + 1):
        plan.append(replace(place, index=start + len(plan)))
        if count % every == 0:
            first = start + len(plan)
            plan += [
                PlannedTrial(index=first + n, role="sentinel", configuration=DEFAULT)
                for n in range(sentinels)
            ]
    return plan
