"""Replicas whose load makes another one slower while a campaign is measured."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from intop.domain.stats import Interval, bonferroni, unpaired_ratio

FALSE_ALARMS = 0.05
"""The share of campaigns without a disturbance in which a replica is named, at most."""
LOOKS = 50
"""Sentinels of a replica after which a campaign is looked at, at most: each look may err."""
FEWEST = 4
"""The fewest sentinels beside the other replica's load, and the fewest without it."""
HARMLESS = 1.05
"""A ratio of latencies up to which a second replica is worth more than it costs."""

Span = tuple[float, float]
"""The beginning and end of something, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Sentinel:
    """The default as it was measured on a replica."""

    latency_ms: float
    span: Span


@dataclass(frozen=True, kw_only=True)
class ReplicaDisturbance:
    """A replica whose load makes another one slower."""

    replica: str
    disturbed: str
    ratio: Interval
    """The disturbed one's latency beside the other's load / without it."""


def replica_disturbance(
    sentinels: Mapping[str, Sequence[Sentinel]], loads: Mapping[str, Sequence[Span]]
) -> ReplicaDisturbance | None:
    """Return the replica that most surely disturbs another one.

    `sentinels` and `loads` have, by replica, the trials of the default and the spans of all trials.
    A sentinel is beside another replica's load where that had some for half of the time or more.
    The ratio's interval is Welch's, of the logarithms. It is corrected (Bonferroni) for the pairs
    of replicas and the LOOKS, so that FALSE_ALARMS holds for a whole campaign in which one looks
    after each sentinel. It takes a sentinel's noise for independent of the time: a level that
    wanders may look like a disturbance, if the other replica has load in one part of the time.

    Replicas that always have load at the same time tell nothing of this. Those of workers that come
    and go do.
    """
    pairs = list(permutations(sentinels, 2))
    disturbances: list[ReplicaDisturbance] = []
    for replica, disturbed in pairs:
        beside: list[float] = []
        without: list[float] = []
        for sentinel in sentinels[disturbed]:
            has_load = shared(sentinel.span, loads.get(replica, ())) >= 1 / 2
            (beside if has_load else without).append(sentinel.latency_ms)
        if min(len(beside), len(without)) < FEWEST:
            continue
        level = bonferroni(1 - FALSE_ALARMS, len(pairs) * LOOKS)
        ratio = unpaired_ratio(beside, without, level=level)
        if ratio.low > 1 and ratio.value > HARMLESS:
            disturbances.append(
                ReplicaDisturbance(replica=replica, disturbed=disturbed, ratio=ratio)
            )
    return max(disturbances, key=lambda disturbance: disturbance.ratio.low, default=None)


def shared(span: Span, loads: Iterable[Span]) -> float:
    """Return the share of a span (0 to 1) within others, which don't overlap."""
    begin, end = span
    within = sum(max(0.0, min(end, last) - max(begin, first)) for first, last in loads)
    return within / (end - begin) if end > begin else 0.0
