"""A sweep: the worth of configurations along a load, or along nginx's workers.

The curves of several arms are measured in the same rounds. Two numbers are read off each curve. The
*capacity* is the highest rate at which latency is within a limit. The *knee* is where more load
brings no more answers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from intop.domain.configuration import Configuration
from intop.domain.histogram import Statistic
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict, outcome_of

Axis = Literal["rate", "connections", "cores", "file"]
UNITS: Mapping[Axis, str] = {
    "rate": "requests/s",
    "connections": "connections",
    "cores": "worker processes",
    "file": "",
}
"""The unit of a point on each axis. A file is called by its path."""
Loop = Literal["open", "closed"]
"""Open: requests are due at a rate. Closed: a connection asks again once it has its answer."""

LOWEST_TIMES, HIGHEST_TIMES = 0.01, 100.0
"""The reach of a sweep, as multiples of what the workload has."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A configuration that takes part in a sweep."""

    name: str
    configuration: Configuration


@dataclass(frozen=True, kw_only=True)
class ArmAt:
    """One arm's trials at one point. Means are over its usable trials, None without any."""

    ALSO_IN_JSON: ClassVar = ("outcome",)

    arm: str
    is_reference: bool
    trials: int
    overloaded: int
    """Trials that missed the rate, or in which more than 1 % of the requests failed."""
    failed: int
    """Trials in which nothing was answered."""
    fails_more: bool
    """Whether more of them failed than of the reference's."""
    judged_ms: Interval | None
    """The geometric mean, None with fewer than two usable trials."""
    mean_ms: float | None
    """The mean latency."""
    achieved_rps: float | None
    received_mb_s: float | None
    """Throughput in 10^6 bytes/s."""
    cpu: float | None
    """The load balancer's, 0 to 1."""
    memory_mib: float | None
    """The load balancer's memory in use at the end."""
    ratio: Interval | None
    """The reference's latency / its own over the rounds that both have (above 1 is better).

    None for the reference itself and with fewer than two rounds.
    """
    fewest_requests: int | None
    """The fewest that were due in a single trial, None without any."""

    @property
    def outcome(self) -> str:
        """`gain`, `worse` or `no significant gain`, or `not measured`; "" of the reference.

        A configuration that fails more often than the reference is worse.
        """
        if self.is_reference:
            return ""
        if self.fails_more:
            return "worse"
        if self.ratio is None:
            return "not measured"
        return outcome_of(self.ratio, 0)


@dataclass(frozen=True, kw_only=True)
class Point:
    """All arms at one point."""

    value: float
    """Its place on the axis. For a file, its place in the list that was asked for, from 1 on."""
    label: str
    times: float | None
    """Its multiple of what the workload has, None along an axis of which that says nothing."""
    arms: tuple[ArmAt, ...]


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The highest rate (requests/s) at which an arm's latency is within the limit of its sweep."""

    arm: str
    rps: Interval | None
    """None where it is outside of the points."""
    outside: Literal["", "below", "above", "unclear"]
    """`below` the first point or `above` the last one, or `unclear` where rounds disagree."""
    ratio: Interval | None
    """The capacity / the reference's, None for itself and where one of both is outside."""


@dataclass(frozen=True, kw_only=True)
class Knee:
    """The place from which on more load brings no more answers."""

    arm: str
    value: Interval | None
    """None where it was not seen up to the last point.

    In an open loop over the rate it is the highest rate (requests/s) that was reached, if at some
    point less than 95 % of the asked rate was reached, and a trial there was not ok. In a closed
    loop it is the place on the axis at which 95 % of the highest rate is reached, between points by
    a straight line.
    """


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Arms along an axis, the lowest point first, each point with each arm once in each round."""

    ALSO_IN_JSON: ClassVar = ("reference",)

    axis: Axis
    loop: Loop
    arms: tuple[Arm, ...]
    """The first one is the reference."""
    points: tuple[Point, ...]
    rounds: int
    level: float
    """The level of the intervals, each for itself."""
    limit_ms: float | None
    capacities: tuple[Capacity, ...]
    """There are some where a sweep over the rate has a limit of latency."""
    knees: tuple[Knee, ...]
    """There are some over the rate and in a closed loop."""
    judged_by: Statistic = "P99"

    @property
    def reference(self) -> str:
        """The name of the arm that the others are compared with."""
        return self.arms[0].name

    @property
    def has_latencies(self) -> bool:
        """Whether there is a latency of any arm at any point."""
        return any(arm.judged_ms for point in self.points for arm in point.arms)

    def along(self, arm: str) -> list[tuple[Point, ArmAt]]:
        """Return an arm at each point."""
        return [(point, at) for point in self.points for at in point.arms if at.arm == arm]

    def is_about(self, configuration: Configuration) -> bool:
        """Return whether one of the arms has this configuration."""
        return any(arm.configuration == configuration for arm in self.arms)


@dataclass(frozen=True)
class Sweeps:
    """A campaign's sweeps, the latest one of each axis and loop."""

    sweeps: tuple[Sweep, ...] = ()

    @property
    def latest(self) -> Sweep:
        """The one that was measured last."""
        return self.sweeps[-1]

    def with_one(self, sweep: Sweep) -> "Sweeps":
        """Return these with a sweep in place of an earlier one of its kind."""
        kept_sweeps = (s for s in self.sweeps if (s.axis, s.loop) != (sweep.axis, sweep.loop))
        return Sweeps((*kept_sweeps, sweep))


def winners_sweeps(sweeps: Sweeps | None, verdict: Verdict | None) -> tuple[Sweep, ...]:
    """Return the sweeps that have the winner of a verdict among their arms."""
    if sweeps is None or verdict is None:
        return ()
    return tuple(sweep for sweep in sweeps.sweeps if sweep.is_about(verdict.configuration))


def is_in_reach(point: float, own: float) -> bool:
    """Return whether a sweep could have this point where the workload has `own`."""
    return max(1, math.floor(LOWEST_TIMES * own)) <= point <= math.ceil(HIGHEST_TIMES * own)
