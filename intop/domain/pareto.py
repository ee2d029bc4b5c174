"""Fronts: what is predicted where several objectives are searched at once, and what it rests on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from intop.domain.configuration import Configuration

ObjectiveName = Literal["p99", "cpu", "throughput"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("p99", "cpu", "throughput")
HIGHER_IS_BETTER: tuple[ObjectiveName, ...] = ("throughput",)

HARDLY = 1.05
"""Highest over lowest: what varies by less is no objective to choose a configuration by."""
GUESSWORK = 0.1
"""A model with an R² below that knows next to nothing."""


@dataclass(frozen=True, kw_only=True)
class LearnedObjective:
    """One objective, and how well the models of it predict what they have not seen.

    `p99` is in ms, `cpu` the load balancer's (0 to 1), `throughput` in requests/s. `mape` in
    percent; `r2` and `spearman` on the logarithm: of `configurations` held out in folds, by the
    mean of the tree families. They were measured from `measured_low` to `measured_high`.
    """

    name: ObjectiveName
    mape: float
    r2: float
    spearman: float
    configurations: int
    measured_low: float
    measured_high: float

    @property
    def varies(self) -> bool:
        """Whether configurations differ in it by more than a little."""
        return self.measured_high > HARDLY * self.measured_low

    @property
    def is_guesswork(self) -> bool:
        """Whether the models hardly do better than the mean."""
        return self.r2 < GUESSWORK


@dataclass(frozen=True, kw_only=True)
class FrontPoint:
    """A configuration with what is predicted of it, in the order of the front's objectives."""

    configuration: Configuration
    predicted: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Front:
    """Configurations of which none is predicted better than another in every objective.

    All of it is predicted, nothing measured. `points` are in the order of the first objective, the
    best first; `knee` is the place of one of them, and `default` is the host as it was found. The
    search ended after `generations`; the front grew no more after generation `converged_at`.
    """

    objectives: tuple[LearnedObjective, ...]
    points: tuple[FrontPoint, ...]
    knee: int
    default: FrontPoint
    generations: int
    converged_at: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint:
    """A collected configuration: medians over its trials, in the order of the objectives."""

    configuration: Configuration
    measured: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Tradeoff:
    """A front, and the measured trials that it stands beside. Not stored: the trials are.

    `rate_rps` is the rate that was asked for in all of them.
    """

    front: Front
    measured: tuple[MeasuredPoint, ...]
    rate_rps: float


def cost(name: ObjectiveName, value: float) -> float:
    """The logarithm of an objective, turned so that lower is better."""
    return -math.log(value) if name in HIGHER_IS_BETTER else math.log(value)


def knee(costs: Sequence[Sequence[float]]) -> int:
    """The place of the point that is nearest to the best of all objectives at once.

    `costs` are lower where better. Each objective is scaled to its range over the front, and the
    distance is Euclidean: of equals the first. Raises ValueError without points.
    """
    if not costs:
        raise ValueError("a front without points has no knee")
    best = [min(column) for column in zip(*costs, strict=True)]
    ranges = [max(column) - min(column) for column in zip(*costs, strict=True)]
    return min(
        range(len(costs)),
        key=lambda place: math.hypot(
            *(
                (value - low) / reach if reach else 0.0
                for value, low, reach in zip(costs[place], best, ranges, strict=True)
            )
        ),
    )
