"""The changes of a candidate whose trials have slow requests, where others have next to none.

A change may lower P99 and lengthen the slowest requests. A longer time-out saves many requests a
slow start, for example, and lets one in three hundred wait for a second. A few short trials don't
show that, but all trials of a campaign together do.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from intop.campaign.verify.winner import Winner
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.space import Space
from intop.domain.trial import Trial
from intop.domain.trimmed import SlowChange

LEVEL = 0.01
"""The probability that a change goes by chance. It is not shared by all changes of a candidate:
most of them do nothing, and few remain to be lost."""
HALF = 0.5
"""The part of the way from the default to the candidate's value from which on a trial has a
change."""


def slow_changes(
    space: Space, candidate: Winner, trials: Sequence[Trial], limit_ms: float
) -> tuple[SlowChange, ...]:
    """Return the changes by which more trials have a request above `limit_ms`.

    A trial counts once, whatever its number of slow requests, since one bad moment delays several.
    Fisher's exact test (Statistical Methods for Research Workers, 1934, section 21.02) compares
    trials with a change to all others, one-sided. After the clearest change the test goes on with
    the trials without it, for others that only came with it. A candidate of slow changes alone
    keeps them, and its verdict shows what they cost.
    """
    from scipy.stats import fisher_exact

    configurations = [trial.configuration for trial in trials]
    has_change = _carriers(space, candidate, configurations)
    is_slow = np.array(
        [t.histogram is not None and t.histogram.count_above(limit_ms) > 0 for t in trials],
        dtype=np.bool_,
    )
    rest = np.ones(len(trials), dtype=np.bool_)
    result: list[SlowChange] = []
    left = list(candidate.names)
    while left:
        tables = {name: _table(has_change[name][rest], is_slow[rest]) for name in left}
        tests = {
            name: float(fisher_exact(np.array(table), alternative="greater").pvalue)
            for name, table in tables.items()
        }
        name = min(tests, key=lambda n: tests[n])
        if tests[name] > LEVEL:
            break
        (slow, quick), (slow_others, quick_others) = tables[name]
        result.append(
            SlowChange(
                keys=candidate.changes[name],
                limit_ms=limit_ms,
                slow=slow,
                trials=slow + quick,
                slow_others=slow_others,
                others=slow_others + quick_others,
            )
        )
        rest &= ~has_change[name]
        left.remove(name)
    return tuple(result) if left else ()


def _carriers(
    space: Space, candidate: Winner, configurations: Sequence[Configuration]
) -> dict[str, NDArray[np.bool_]]:
    """Return for each change which configurations have it (configurations,)."""
    places = space.genes(space.values([DEFAULT, candidate.configuration, *configurations]))
    default, winner, rows = places[0], places[1], places[2:]
    is_choice = np.array([column.component is None for column in space.columns])
    is_same = default == winner
    share = (rows - default) / np.where(is_same, 1.0, winner - default)
    has_value = np.where(is_choice, rows == winner, share >= HALF) | is_same
    keys = [column.parameter.key for column in space.columns]
    return {
        name: has_value[:, [key in changed for key in keys]].all(axis=1)
        for name, changed in candidate.changes.items()
    }


def _table(
    has_change: NDArray[np.bool_], is_slow: NDArray[np.bool_]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the numbers of slow and other trials, with the change and without it."""
    with_it, without = (
        (int(np.sum(is_slow & side)), int(np.sum(~is_slow & side)))
        for side in (has_change, ~has_change)
    )
    return with_it, without
