"""The default among configurations, so that drift is seen."""

from collections.abc import Sequence

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial


def with_sentinels(
    configurations: Sequence[Configuration], every: int, replicas: int = 1
) -> list[PlannedTrial]:
    """The default first, then the configurations, the default again after every so many.

    Replicas take turns: on each of them stands the default first, and again after every so many.
    """
    plan = [PlannedTrial(index=n, role="baseline", configuration=DEFAULT) for n in range(replicas)]
    for count, configuration in enumerate(configurations, start=1):
        plan.append(PlannedTrial(index=len(plan), role="design", configuration=configuration))
        if count % (every * replicas) == 0:
            plan += [
                PlannedTrial(index=len(plan) + n, role="sentinel", configuration=DEFAULT)
                for n in range(replicas)
            ]
    return plan
