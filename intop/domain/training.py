"""Trainings of models: families, their errors, and what they could reach at best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from intop.domain.histogram import STATISTICS, Statistic

Objective = Literal["p50", "p75", "p90", "p95", "p99", "p99.9", "mean", "component"]
"""The target of models: a latency, or the first component of the performance metrics on the scale
of P99."""

TREE_MODELS = ("RFR", "CatBoost", "LightGBM", "XGBoost")
"""The families of models that are searched."""

NEAR_CEILING = 1.2
"""A model whose error is at most that many times a perfect one's has little left to learn."""


def judged_by(objective: Objective) -> Statistic:
    """Return the latency that trials are judged by: P99 beside the component."""
    if objective == "mean":
        return "mean latency"
    return next((name for name in STATISTICS if name.lower() == objective), "P99")


def quantity(objective: Objective) -> str:
    """Return the name of what models predict in ms."""
    return "P99 equivalent" if objective == "component" else judged_by(objective)


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A configuration that a model had not seen, in the unit of the target."""

    measured: float
    predicted: float
    low: float
    """The low end of the prediction's interval."""
    high: float


@dataclass(frozen=True, kw_only=True)
class ModelError:
    """The accuracy of one family for configurations that it has not seen.

    All is from held-out folds, grouped by configuration, with hyper-parameters chosen inside the
    folds. Where folds are repeated, numbers are means over the repeats.
    """

    family: str
    mape: float
    """The error in percent of the measured target."""
    r2: float
    """R² of the target's logarithm, like `spearman`."""
    spearman: float
    trials: int
    seconds: float
    coverage: float
    """The share of held-out configurations that lie in their interval at `level`."""
    level: float
    regret: float
    """The percentage by which the configuration that is predicted lowest was measured higher than
    the lowest measured one."""
    held_out: tuple[HeldOut, ...] = ()
    """Each configuration once for each repeat. Empty in a file of saved models."""


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The accuracy of a perfect model, given the noise of what it is judged by."""

    mape: float
    """The lowest to be expected, in percent."""
    r2: float
    """The highest to be expected."""
    spearman: float
    """The highest to be expected."""
    sd: float
    """The standard deviation of a trial's log target within a configuration."""
    configurations: int
    """Configurations that were measured more than once."""
    scale: float | None = None
    """The scatter of replicates / what the latencies of a trial show. None where the noise comes
    from replicates alone."""


@dataclass(frozen=True, kw_only=True)
class FittedFamily:
    """A family with the hyper-parameters that Bayesian search chose on all trials."""

    family: str
    hyperparameters: dict[str, float | int | str | bool]
    inner_score: float
    """The error over inner folds, which the search made as low as it could."""


@dataclass(frozen=True, kw_only=True)
class Try:
    """One try of hyper-parameters in a search."""

    number: int
    """The number of the try, from 0 on."""
    hyperparameters: dict[str, float | int | str | bool]
    errors: tuple[float, ...]
    """The error over the held-out rows of all inner folds so far, after each of them."""
    pruned: bool
    """Whether it was given up after the last of these folds."""
    seconds: float


@dataclass(frozen=True, kw_only=True)
class FinishedSearch:
    """A finished search for one family's hyper-parameters, in one fold or on all rows."""

    fitted: FittedFamily
    predicted: tuple[float, ...]
    """Predictions for the fold's held-out rows, as logarithms. So are `low` and `high`."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SearchRecord:
    """A part of one search of a training: a try, or how it ended."""

    family: str
    fold: int
    """Among the folds of all repeats; the search on all rows comes after them."""
    known: Try | FinishedSearch


class SearchRecords(Protocol):
    """The store of a training's searches, so that they are not repeated after a kill.

    Several processes may make the same training at once and share it. `fingerprint` names all that
    the searches depend on; records of another one are of no use.
    """

    def new(self, fingerprint: str) -> Sequence[SearchRecord]:
        """Return the records that this object has not returned yet, in the order of storing."""

    def add(self, fingerprint: str, records: Sequence[SearchRecord]) -> None:
        """Keep records. Those that somebody has added already are left as they are."""


@dataclass(frozen=True, kw_only=True)
class Components:
    """The principal components of the performance metrics of some trials, the strongest first.

    Of too few trials or metrics there are no loadings, and nothing that follows from them.
    """

    trials: int
    metrics: tuple[str, ...]
    loadings: tuple[tuple[float, ...], ...] = ()
    """The correlations (components, metrics) of each component with each metric. A component has
    the sign with which P99 grows."""
    explained: tuple[float, ...] = ()
    """The share of each component in the variance of all standardised metrics."""
    needed: int = 0
    """The first components that together reach 90 %."""
    groups: tuple[tuple[str, ...], ...] = ()
    """Metrics that are connected by a chain of correlations above `together`, of either sign."""
    together: float = 0.0
    constant: tuple[str, ...] = ()
    """Metrics that are left out, since they do not vary."""

    def loading(self, component: int, metric: str) -> float:
        """Return the correlation of a component with a metric; 0 for one that was left out."""
        if metric not in self.metrics:
            return 0.0
        return self.loadings[component][self.metrics.index(metric)]


@dataclass(frozen=True, kw_only=True)
class Training:
    """The result of training: hyper-parameters and held-out errors by family."""

    ALSO_IN_JSON: ClassVar = ("best", "is_at_ceiling")

    keys: tuple[str, ...]
    """The parameters that the models know."""
    fitted: tuple[FittedFamily, ...]
    errors: tuple[ModelError, ...]
    trials: int
    """Trials that the models are judged by."""
    configurations: int
    """Their configurations, each with all of its trials put together."""
    ceiling: Ceiling | None = None
    """None where nothing was measured twice."""
    target: str = "P99"
    unit: str = "ms"
    """The unit of the target, which may be empty."""
    components: Components | None = None
    """The components of the trials' performance metrics, None for a table."""
    objective: Objective = "p99"
    """The target of the models."""
    lent: int = 0
    """Configurations of the screening that the models also learned from."""

    @property
    def best(self) -> str:
        """The family that cross-validation selects: the lowest MAPE. Empty without errors."""
        known = [e for e in self.errors if math.isfinite(e.mape)]
        return min(known, key=lambda e: e.mape).family if known else ""

    @property
    def explains(self) -> bool:
        """Whether the best family predicts unseen configurations better than their mean does."""
        return not self.errors or any(e.r2 > 0 for e in self.errors if e.family == self.best)

    @property
    def is_at_ceiling(self) -> bool:
        """Whether the best family errs by hardly more than a perfect model would."""
        mapes = [e.mape for e in self.errors if e.family == self.best]
        return self.ceiling is not None and any(
            mape <= NEAR_CEILING * self.ceiling.mape for mape in mapes
        )
