"""Fronts: what is predicted where several objectives are searched at once, and its basis."""

from dataclasses import dataclass
from typing import Literal

from intop.domain.configuration import Configuration

ObjectiveName = Literal["p99", "cpu", "throughput"]
OBJECTIVES: tuple[ObjectiveName, ...] = ("p99", "cpu", "throughput")
HIGHER_IS_BETTER: tuple[ObjectiveName, ...] = ("throughput",)

HARDLY = 1.05
"""Highest / lowest. An objective that varies by less is none to choose a configuration by."""
GUESSWORK = 0.1
"""A model with an R² below that knows next to nothing."""


@dataclass(frozen=True, kw_only=True)
class LearnedObjective:
    """One objective, and how well the models of it predict what they have not seen.

    Accuracy is over held-out folds, by the mean of the tree families.
    """

    name: ObjectiveName
    """`p99` is in ms, `cpu` the load balancer's (0 to 1), `throughput` in requests/s."""
    mape: float
    """The error in percent."""
    r2: float
    """R² of the objective's logarithm, like `spearman`."""
    spearman: float
    configurations: int
    measured_low: float
    """The lowest value that was measured."""
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
    """A configuration with its predictions."""

    configuration: Configuration
    predicted: tuple[float, ...]
    """Values in the order of the front's objectives."""


@dataclass(frozen=True, kw_only=True)
class Front:
    """Configurations of which none is predicted better than another in every objective.

    All of it is predicted, nothing measured.
    """

    objectives: tuple[LearnedObjective, ...]
    points: tuple[FrontPoint, ...]
    """Points in the order of the first objective, the best first."""
    knee: int
    """The place among the points of the one nearest to the best of all objectives."""
    default: FrontPoint
    """The host as it was found."""
    generations: int
    converged_at: int
    """The generation after which the front grew no more."""
    seconds: float


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint:
    """A collected configuration."""

    configuration: Configuration
    measured: tuple[float, ...]
    """Medians over its trials, in the order of the objectives."""


@dataclass(frozen=True, kw_only=True)
class Tradeoff:
    """A front, and the measured trials beside it. Not stored: the trials are."""

    front: Front
    measured: tuple[MeasuredPoint, ...]
    rate_rps: float
    """The rate that was asked for in all of them."""
