"""What the stages find out, apart from trials. Plain values, stored as JSON documents."""

import math
from dataclasses import dataclass
from typing import Literal

from intop.domain.agreement import Agreement
from intop.domain.configuration import Configuration
from intop.domain.drift import Drift
from intop.domain.replicates import Noise
from intop.domain.speedups import SpeedUps
from intop.domain.stats import MeanInterval, RatioInterval
from intop.domain.trial import Trial

Objective = Literal["p99", "component"]
"""What models learn: P99, or the first component of the performance metrics on its scale."""
TREE_MODELS = ("RFR", "CatBoost", "LightGBM", "XGBoost")
"""The families of models that are searched."""
NEAR_CEILING = 1.2
"""A model whose error is at most that many times a perfect one's has little left to learn."""


@dataclass(frozen=True, kw_only=True)
class TriedDuration:
    """What the default's trials of one duration say.

    `requests` are sent in each of `trials`; `p99_ms` is their geometric mean, `sd` the standard
    deviation of their log P99, with an interval at the pilot's level. `resolution` is how far the
    interval of a verdict of the pilot's pairs would reach, as a ratio of P99 (above 1), with the
    interval that the sd gives it; `pairs_needed` of them would reach no farther than what was
    wanted, None where that takes too many. `seconds` is the mean time of a trial, all of it.
    """

    duration_s: int
    requests: int
    trials: int
    p99_ms: float
    sd: float
    sd_low: float
    sd_high: float
    resolution: float
    resolution_low: float
    resolution_high: float
    pairs_needed: int | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """How long trials are to be: `duration_s`, one of those that were `tried` (ascending).

    `reached` says whether verdicts of so many `pairs` resolve the ratio `wanted` with it, and
    `stalled` whether longer trials were given up since they scattered no less. `given_s` is the
    file's duration, which then stands in its place. All intervals are at `level`.
    """

    duration_s: int
    tried: tuple[TriedDuration, ...]
    reached: bool
    stalled: bool
    wanted: float
    pairs: int
    level: float
    given_s: int | None = None

    @property
    def chosen(self) -> TriedDuration:
        """What the trials of the chosen duration say."""
        return next(one for one in self.tried if one.duration_s == self.duration_s)


@dataclass(frozen=True, kw_only=True)
class Importance:
    """How much one parameter explains of log P99, by the models of a screening.

    `mean` and `sd` are of its share of what the splits of a model explain; the shares of all
    parameters add up to 1 with those of the probes. `permutation` is what it is ranked by: how
    much worse a model predicts configurations that it has not seen when this parameter's values
    are shuffled among them. By so much of the variance of log P99 does its squared error grow, on
    average, with a standard deviation over the models. `above` is the share of the sets of probes
    all of which it beats, `passes` whether the screening takes it for more than noise.
    """

    key: str
    mean: float
    sd: float
    permutation: float
    permutation_sd: float
    above: float
    passes: bool


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Parameters by importance, the most important first, and the ones chosen for collection.

    The chosen ones are the SRP (workload slt) or DRP (workload dlt): those that pass, and where
    these are few, the next by rank, at most `keep` of them. `probe_level` is what a
    permutation importance has to be above; where none has an effect, any passes with a chance of
    `error_rate` at most. `saved` trials were planned and not measured, since the choice
    had become stable. `drift` is that of the default among its trials, None as long as the
    screening is under way.
    """

    importances: tuple[Importance, ...]
    chosen: tuple[str, ...]
    trials: int
    probe_level: float
    error_rate: float
    keep: int
    drift: Drift | None = None
    saved: int = 0

    @property
    def passing(self) -> tuple[str, ...]:
        """What is more than noise, the most important first."""
        return tuple(i.key for i in self.importances if i.passes)


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The last attempt at each trial of a stage, the default's drift and the noise among them.

    `replicates` counts the trials of configurations that were chosen to be measured again; the
    default's sentinels are not among them. `noise` is that of these configurations, and
    `default_noise` that of the default, which may be another. `replicas` says whether the replicas
    of the cluster agree, None where there is only one. Not stored: the trials are.
    """

    trials: tuple[Trial, ...]
    replicates: int
    drift: Drift
    noise: Noise
    default_noise: Noise
    replicas: Agreement | None = None


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
    have. `sd` is that of a trial's log target within a configuration, of `configurations` that
    were measured more than once.
    """

    mape: float
    r2: float
    spearman: float
    sd: float
    configurations: int


@dataclass(frozen=True, kw_only=True)
class FittedFamily:
    """A family with the hyper-parameters that Bayesian search chose on all trials.

    `inner_score` is what the search made as low as it could: the error over inner folds.
    """

    family: str
    hyperparameters: dict[str, float | int | str | bool]
    inner_score: float


@dataclass(frozen=True, kw_only=True)
class FinishedSearch:
    """A search for one family's hyper-parameters that has ended, in one fold or on all rows.

    `fold` counts the folds of all repeats; the search on all rows comes after them. `predicted`,
    `low` and `high` are of the fold's held-out rows, as logarithms.
    """

    fold: int
    fitted: FittedFamily
    predicted: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Searches:
    """The finished searches of one training, so that they are not made again if it is killed.

    `fingerprint` names all that they depend on: with another one they are of no use.
    """

    fingerprint: str
    finished: tuple[FinishedSearch, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """How a search of one model went: the predicted P99 (ms) of the best after each generation.

    `converged_at` is the generation after which the best improved no more. A generation is as many
    predictions as the population has individuals, whatever the `algorithm`; `predictions` is how
    many were made in all. After `restarts` of them the search began anew, where nothing got better.
    Where uncertainty has a penalty, what is best has it, and the P99 shown has not.
    """

    model: str
    best_ms: tuple[float, ...]
    converged_at: int
    seconds: float
    algorithm: str
    predictions: int
    restarts: int


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A configuration that was predicted, not measured.

    `spread` is the standard deviation of log P99 among what the models say, 0 where none is known;
    `penalised_p99_ms` is the prediction with the penalty for it, None where there is none.
    """

    configuration: Configuration
    predicted_p99_ms: float
    model: str
    spread: float = 0.0
    penalised_p99_ms: float | None = None

    @property
    def rank_ms(self) -> float:
        """What it is ranked by."""
        return self.predicted_p99_ms if self.penalised_p99_ms is None else self.penalised_p99_ms


@dataclass(frozen=True, kw_only=True)
class Pairwise:
    """A quantity on both sides of a verdict.

    `ratio` is default / tuned, the geometric mean over the pairs, with an interval. It is None
    where there is no such mean: of a maximum, or where a value is zero.
    """

    default: float
    tuned: float
    ratio: RatioInterval | None = None


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """What the pairs of a verdict say apart from the P99 that it is judged by.

    `latencies_ms` by percentile ("P50" to "max"): of all answered requests of a side's trials,
    put together. Their ratios are of single trials; that of P99 has failed requests and a missed
    rate in it, as the verdict has. `requests` were answered; `achieved_rps` and `balancer_cpu`
    (the load balancer's, 0 to 1) are means over trials; `error_share` is of all requests.
    """

    latencies_ms: dict[str, Pairwise]
    requests: Pairwise
    achieved_rps: Pairwise
    error_share: Pairwise
    balancer_cpu: Pairwise


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of an A/B measurement of a configuration against the default.

    `ratio` is default P99 / tuned P99 (above 1: a gain), the geometric mean over `pairs`
    interleaved pairs, with a confidence interval at `level`. `failures` are trials of the tuned
    side that gave no latencies at all. `against` names the baseline that stood for the default,
    and is empty for the host's own values. `rounds` of `planned_rounds` were measured, looked at
    up to `looks` times; the interval is so wide that those of all looks hold together at `level`.
    `models` is what the tree models' own winners were worth in the rounds before, in which the
    configuration was picked; None where they were not measured.
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
    rounds: int
    planned_rounds: int
    looks: int
    sides: SideBySide
    failures: int = 0
    against: str = ""
    models: SpeedUps | None = None

    @property
    def reference(self) -> str:
        """What the tuned side is held against: `default`, or the baseline that stood for it."""
        return self.against or "default"

    @property
    def stopped_early(self) -> bool:
        """Whether it was clear before all rounds were measured."""
        return self.rounds < self.planned_rounds

    @property
    def outcome(self) -> str:
        """`gain`, `worse` or `no significant gain`."""
        return _outcome(self.ratio_low, self.ratio_high, self.failures)

    @property
    def gain(self) -> str:
        """In words, where it is one: P99 is 3.10 times lower (95% interval 2.20 to 4.40)."""
        than = f" than with {self.against}" if self.against else ""
        interval = f"{self.level:.0%} interval {self.ratio_low:.2f} to {self.ratio_high:.2f}"
        return f"P99 is {self.ratio:.2f} times lower{than} ({interval})"


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """One arm of a contest: the host's own values, a baseline, or the tuned configuration.

    `keys` is how many its source names, `already` how many of them the host has anyway;
    `left_out` has the reason for each of the others that `configuration` doesn't have.
    `p99_ms` is the geometric mean over its rounds with an interval for it alone; `ratio` is the
    reference's P99 / its own (above 1: a gain) over the rounds that both have. Both are None
    where fewer than two rounds could be measured. `failures` are trials without latencies,
    `detail` the first one's reason. `same_as` names the contestant that it equals on this host and
    that was measured in its place.
    """

    name: str
    title: str
    configuration: Configuration
    keys: int
    already: int
    left_out: dict[str, str]
    same_as: str = ""
    is_reference: bool = False
    p99_ms: MeanInterval | None = None
    ratio: RatioInterval | None = None
    failures: int = 0
    detail: str = ""

    @property
    def outcome(self) -> str:
        """`gain`, `worse`, `no significant gain`, or why there is none of them."""
        if self.is_reference:
            return "reference"
        if self.same_as:
            return f"same as {self.same_as}"
        if self.ratio is None:
            return "failed" if self.failures else "not measured"
        return _outcome(self.ratio.low, self.ratio.high, self.failures)


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Several sets of values against each other, all of them in each of `rounds` rounds.

    `level` is that of the intervals of P99. Those of the ratios have `ratio_level`, which is so
    high (Bonferroni) that all of them hold together at `level`.
    """

    contestants: tuple[Contestant, ...]
    reference: str
    rounds: int
    level: float
    ratio_level: float


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

    `keys` are the parameters that the models know, `trials` how many they were trained on. Those
    of one of the `configurations` were put together. `ceiling` is None where nothing was measured
    twice. The `target` is in `unit`, which may be empty. `components` are those of the trials'
    performance metrics, None for a table; `objective` is what the models learned.
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


@dataclass(frozen=True, kw_only=True)
class Search:
    """What the search found: candidates in order of promise, and how each run of it went.

    `objective` is what was searched for the lowest of. `winners` are the best candidate of each
    tree model by itself.
    """

    candidates: tuple[Candidate, ...]
    convergences: tuple[Convergence, ...]
    winners: tuple[Candidate, ...]
    objective: Objective = "p99"

    @property
    def quantity(self) -> str:
        """What its predictions in ms are of: P99, or what a component is on the scale of P99."""
        return "P99" if self.objective == "p99" else "P99 equivalent"


def _outcome(ratio_low: float, ratio_high: float, failures: int) -> str:
    """What an interval of default P99 / other P99 says; a side that fails is worse."""
    if ratio_low > 1 and failures == 0:
        return "gain"
    return "worse" if failures or ratio_high < 1 else "no significant gain"
