"""Replicas that drift away from the others while a campaign is measured."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from intop.domain.stats import student_p_value

FALSE_ALARMS = 0.05
"""The share of campaigns without drift in which a replica is named, at most."""
INDEPENDENT = 140
"""The number of independent tests that err as often as looking at a replica after each of 50
sentinels. Simulated with normal noise (benchmarks/results/workers.md): tests of neighbouring
places, and of one sentinel more, have most of their data in common."""
BEFORE, AFTER, LATEST = 4, 4, 8
"""The fewest sentinels before a change and after it: two or three in a row may have met the same
short trouble. A change that is older than the LATEST ones was looked for when it was new."""
NORMAL = 1.4826
"""The standard deviation of normal values / their median absolute deviation."""
ODD = 3.0
"""A value further from the median than so many standard deviations is taken to be just that far."""

SLOWER_IS_LIKELIER = 2.0
"""The factor by which a replica that became faster must have moved farther to be named. What all
replicas have in common may move while one of them does. Few become faster by themselves, so this
settles most doubts rightly."""


@dataclass(frozen=True, kw_only=True)
class ReplicaDrift:
    """A replica that measures otherwise than it did, against the other ones."""

    replica: str
    first: int
    """The place (from 0) of its first sentinel after the change."""
    ratio: float
    """The level of its metric after the change / before, relative to the other replicas."""
    p_value: float


def replica_drift(sentinels: Mapping[str, Sequence[float]]) -> ReplicaDrift | None:
    """Return the replica that has drifted, by the default's latencies (ms), in order of time.

    The n-th sentinels of all replicas make a round; rounds that are incomplete don't count. In each
    round a replica's log latency is compared with the mean of the others, which removes what
    moves all of them. A change is looked for before each of the latest rounds: Student's t of the
    two means, with the variance about them, is the generalised likelihood ratio of a shift at an
    unknown time (Hinkley, Biometrika 57, 1970). Before the change, values far from their median are
    drawn in (see ODD), since some sentinels meet a trouble of their own; those after it have to
    agree as they are. The p-value is corrected (Bonferroni) for the replicas and the looks, so that
    FALSE_ALARMS holds for a whole campaign in which one looks after each round. It takes noise for
    independent from one sentinel to the next.

    A slow-down by 20 % is 0.18 of the logarithm. How surely that is found within 8 sentinels hangs
    on how much these scatter (benchmarks/results/workers.md).

    Of two replicas, whose differences are each other's, it names the one whose own level moved
    further. One that became faster by itself must have moved SLOWER_IS_LIKELIER times as far.
    """
    names = list(sentinels)
    rounds = min((len(values) for values in sentinels.values()), default=0)
    if len(names) < 2 or rounds < BEFORE + AFTER:
        return None
    logs = {name: [math.log(value) for value in sentinels[name][:rounds]] for name in names}
    # Of two replicas, one's differences are the other's.
    tests = INDEPENDENT * (len(names) if len(names) > 2 else 1)
    places = range(max(BEFORE, rounds - LATEST), rounds - AFTER + 1)
    moved = {
        drift: distance
        for name in names
        for drift, distance in _drifts(name, logs, places=places, tests=tests)
    }
    best = min(moved, key=lambda drift: drift.p_value)
    if best.p_value > FALSE_ALARMS:
        return None
    same = [drift for drift in moved if drift.first == best.first]
    # Of two replicas both have the same p-value, but for rounding.
    likely = [drift for drift in same if math.isclose(drift.p_value, best.p_value, rel_tol=1e-6)]
    return max(likely, key=lambda drift: moved[drift])


def _drifts(
    name: str, logs: Mapping[str, Sequence[float]], *, places: Iterable[int], tests: int
) -> Iterator[tuple[ReplicaDrift, float]]:
    """Yield a replica's drift at each place, and how far its own level moved there."""
    own = logs[name]
    peer_logs = [values for peer, values in logs.items() if peer != name]
    apart = [value - fmean(values[n] for values in peer_logs) for n, value in enumerate(own)]
    for place in places:
        drift = ReplicaDrift(
            replica=name,
            first=place,
            ratio=math.exp(fmean(apart[place:]) - fmean(apart[:place])),
            p_value=min(1.0, _p_value(apart, place) * tests),
        )
        # Near the change, since all of them may wander together.
        distance = abs(fmean(own[place:]) - fmean(own[place - BEFORE : place]))
        yield drift, distance * (SLOWER_IS_LIKELIER if drift.ratio > 1 else 1)


def drawn_in(values: Sequence[float]) -> list[float]:
    """Return the values, limited to ODD standard deviations from their median.

    The standard deviation is estimated from the median absolute deviation, for normal values.
    """
    middle = median(values)
    reach = ODD * NORMAL * median(abs(value - middle) for value in values)
    return [min(max(value, middle - reach), middle + reach) for value in values]


def _p_value(values: Sequence[float], place: int) -> float:
    """Return the two-sided p-value of no shift at a place."""
    before, after = drawn_in(values[:place]), values[place:]
    shift = fmean(after) - fmean(before)
    squares = sum(math.fsum((v - fmean(part)) ** 2 for v in part) for part in (before, after))
    freedom = len(values) - 2
    spread = squares / freedom * (1 / len(before) + 1 / len(after))
    if spread == 0:
        return 0.0 if shift else 1.0
    return student_p_value(shift / math.sqrt(spread), freedom)
