"""What was trained: families, their errors, and what they could reach at best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Objective = Literal["p99", "component"]
"""What models learn: P99, or the first component of the performance metrics on its scale."""

TREE_MODELS = ("RFR", "CatBoost", "LightGBM", "XGBoost")
"""The families of models that are searched."""

NEAR_CEILING = 1.2
"""A model whose error is at most that many times a perfect one's has little left to learn."""


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A configuration that a model had not seen: what it predicted, and what was measured.

    In the target's unit; `low` and `high` are the ends of the prediction's interval.
    """

    measured: float
    predicted: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ModelError:
    """How one family predicts configurations that it has not seen.

    `mape` in percent of the measured target; `r2` and `spearman` on its logarithm. `coverage` is
    the share of held-out configurations that lie in their interval at `level`. `regret` says how
    much higher, in percent, the configuration that is predicted lowest was measured than the
    lowest measured one. All from held-out folds, grouped by configuration, with hyper-parameters
    chosen inside the folds; where folds are repeated, means over the repeats, and `held_out` has
    each configuration once for each repeat. It is empty in a file of saved models.
    """

    family: str
    mape: float
    r2: float
    spearman: float
    trials: int
    seconds: float
    coverage: float
    level: float
    regret: float
    held_out: tuple[HeldOut, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """What a perfect model would reach, given the noise of what it is judged by.

    `mape` (percent) is at least, `r2` and `spearman` are at most what a model can be expected to
    have. `sd` is the standard deviation of a trial's log target within a configuration. It comes
    from the latencies of each trial, times the `scale` that replicates show, or from replicates
    alone (`scale` is None). `configurations` is how many were measured more than once.
    """

    mape: float
    r2: float
    spearman: float
    sd: float
    configurations: int
    scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class FittedFamily:
    """A family with the hyper-parameters that Bayesian search chose on all trials.

    `inner_score` is what the search made as low as it could: the error over inner folds.
    """

    family: str
    hyperparameters: dict[str, float | int | str | bool]
    inner_score: float


@dataclass(frozen=True, kw_only=True)
class Try:
    """One try of hyper-parameters in a search, `number` counted from 0.

    `errors` is the error over the held-out rows of all inner folds so far, after each of them; a
    `pruned` try was given up after the last one.
    """

    number: int
    hyperparameters: dict[str, float | int | str | bool]
    errors: tuple[float, ...]
    pruned: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class FinishedSearch:
    """A search for one family's hyper-parameters that has ended, in one fold or on all rows.

    `predicted`, `low` and `high` are of the fold's held-out rows, as logarithms.
    """

    fitted: FittedFamily
    predicted: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SearchRecord:
    """What is known of one search of a training: a try, or how it ended.

    `fold` counts the folds of all repeats; the search on all rows comes after them.
    """

    family: str
    fold: int
    known: Try | FinishedSearch


class SearchRecords(Protocol):
    """Where a training's searches are kept, so that they are not made again if it is killed.

    Several processes may make the same training at once and share it. `fingerprint` names all that
    the searches depend on; records of another one are of no use.
    """

    def new(self, fingerprint: str) -> Sequence[SearchRecord]:
        """All records that this object has not given yet, in the order in which they were added."""

    def add(self, fingerprint: str, records: Sequence[SearchRecord]) -> None:
        """Keep records. Those that somebody has added already are left as they are."""


@dataclass(frozen=True, kw_only=True)
class Components:
    """The principal components of the performance metrics of `trials`, the strongest first.

    `loadings` (components, metrics) are the correlations of each component with each of the
    `metrics`; a component has the sign with which P99 grows. `explained` is its share of the
    variance of all standardised metrics; the first `needed` of them reach 90 %. In each of the
    `groups`, a chain of correlations above `together`, of either sign, connects the metrics. The
    `constant` ones are left out. Of too few trials or metrics there are no loadings, and nothing
    that follows from them.
    """

    trials: int
    metrics: tuple[str, ...]
    loadings: tuple[tuple[float, ...], ...] = ()
    explained: tuple[float, ...] = ()
    needed: int = 0
    groups: tuple[tuple[str, ...], ...] = ()
    together: float = 0.0
    constant: tuple[str, ...] = ()

    def loading(self, component: int, metric: str) -> float:
        """The correlation of a component with a metric; 0 for one that was left out."""
        if metric not in self.metrics:
            return 0.0
        return self.loadings[component][self.metrics.index(metric)]


@dataclass(frozen=True, kw_only=True)
class Training:
    """What training found: hyper-parameters and held-out errors by family.

    The models know the parameters `keys`. They are judged by `trials` trials; those of one of the
    `configurations` were put together. They also learned from `lent` configurations of the
    screening. `ceiling` is None where nothing was measured twice. The `target` is in `unit`, which
    may be empty. `components` are the principal components of the trials' performance metrics; a
    table has None. `objective` says what the models learned.
    """

    keys: tuple[str, ...]
    fitted: tuple[FittedFamily, ...]
    errors: tuple[ModelError, ...]
    trials: int
    configurations: int
    ceiling: Ceiling | None = None
    target: str = "P99"
    unit: str = "ms"
    components: Components | None = None
    objective: Objective = "p99"
    lent: int = 0

    @property
    def best(self) -> str:
        """The family that cross-validation selects: the lowest MAPE. Empty without errors."""
        known = [e for e in self.errors if math.isfinite(e.mape)]
        return min(known, key=lambda e: e.mape).family if known else ""

    @property
    def is_at_ceiling(self) -> bool:
        """Whether the best family errs by hardly more than a perfect model would."""
        mapes = [e.mape for e in self.errors if e.family == self.best]
        return self.ceiling is not None and any(
            mape <= NEAR_CEILING * self.ceiling.mape for mape in mapes
        )
