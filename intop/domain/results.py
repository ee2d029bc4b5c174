"""What the stages find out, apart from trials. Plain values, stored as JSON documents."""

from dataclasses import dataclass

from intop.domain.configuration import Configuration


@dataclass(frozen=True, kw_only=True)
class Importance:
    """How much one parameter explains of log P99: mean and standard deviation over seeds.

    Importances of all parameters of one ranking add up to 1.
    """

    key: str
    mean: float
    sd: float


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Parameters by importance, the most important first, and the ones chosen for collection.

    The chosen ones are the SRP (workload slt) or DRP (workload dlt).
    """

    importances: tuple[Importance, ...]
    chosen: tuple[str, ...]
    trials: int


@dataclass(frozen=True, kw_only=True)
class ModelError:
    """How one family predicts configurations that it has not seen.

    `mape` in percent of the measured P99; `r2` and `spearman` on log P99. All from held-out
    folds, grouped by configuration, with hyper-parameters chosen inside the folds.
    """

    family: str
    mape: float
    r2: float
    spearman: float
    trials: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class FittedFamily:
    """A family with the hyper-parameters that Bayesian search chose on all trials."""

    family: str
    hyperparameters: dict[str, float | int | str | bool]
    inner_score: float


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """How a search went: the best predicted P99 (ms) after each generation, and the time.

    `converged_at` is the generation after which the best improved no more.
    """

    model: str
    best_ms: tuple[float, ...]
    converged_at: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A configuration that was predicted, not measured."""

    configuration: Configuration
    predicted_p99_ms: float
    model: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of an A/B measurement of a configuration against the default.

    `ratio` is default P99 / tuned P99 (above 1: a gain), the geometric mean over `pairs`
    interleaved pairs, with a confidence interval at `level`. `failures` are trials of the tuned
    side that gave no latencies at all.
    """

    configuration: Configuration
    origin: str
    default_p99_ms: float
    tuned_p99_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float
    level: float
    pairs: int
    failures: int = 0

    @property
    def outcome(self) -> str:
        """`gain`, `worse` or `no significant gain`."""
        if self.ratio_low > 1 and self.failures == 0:
            return "gain"
        return "worse" if self.failures or self.ratio_high < 1 else "no significant gain"


@dataclass(frozen=True, kw_only=True)
class Training:
    """What training found: hyper-parameters and held-out errors by family.

    `keys` are the parameters that the models know, `trials` how many they were trained on.
    """

    keys: tuple[str, ...]
    fitted: tuple[FittedFamily, ...]
    errors: tuple[ModelError, ...]
    trials: int


@dataclass(frozen=True, kw_only=True)
class Search:
    """What the search found: candidates in order of promise, and how each run of it went."""

    candidates: tuple[Candidate, ...]
    convergences: tuple[Convergence, ...]
