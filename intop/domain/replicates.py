"""Replicates: the trials of one configuration put together, and the noise that they show."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from intop.domain.agreement import Agreement
from intop.domain.configuration import Configuration
from intop.domain.drift import Drift
from intop.domain.stats import chi_square_quantile, geometric_mean
from intop.domain.trial import Trial

PRIOR_WEIGHT = 4
"""The degrees of freedom that the pooled variance counts for beside a configuration's own."""

RESOLUTION = 0.001
"""The relative resolution of a histogram: no scatter is known to be less."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A configuration that was measured."""

    configuration: Configuration
    judged_ms: tuple[float, ...]
    """The latency of each of its usable trials; there is one at least."""
    failures: int = 0
    """Trials that gave no latencies."""

    @cached_property
    def mean_ms(self) -> float:
        """The geometric mean of its latencies, which ranks configurations and allots replicates.

        As in a verdict. Models learn the median of its log latency (`Samples.log_target`).
        """
        return geometric_mean(self.judged_ms)

    @property
    def mean_log(self) -> float:
        """The mean of log latency."""
        return math.log(self.mean_ms)

    @property
    def freedom(self) -> int:
        """The degrees of freedom of its scatter: 0 where it was measured once."""
        return len(self.judged_ms) - 1

    @cached_property
    def squares(self) -> float:
        """The sum of squares of log latency about its mean."""
        return math.fsum(math.log(value / self.mean_ms) ** 2 for value in self.judged_ms)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The scatter of trials of one configuration."""

    configurations: int
    """Configurations that were measured more than once."""
    freedom: int
    """Degrees of freedom."""
    level: float
    sd: float | None = None
    """The standard deviation of log latency within configurations, pooled over these. None without
    them."""
    low: float | None = None
    """The low end of its interval at `level`."""
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The trials of a collection, and their noise. Not stored: the trials are."""

    trials: tuple[Trial, ...]
    """The last attempt at each."""
    replicates: int
    """Trials of configurations that were chosen to be measured again, without sentinels."""
    drift: Drift
    """The drift of the default."""
    noise: Noise
    """The noise of configurations but the default."""
    default_noise: Noise
    """The noise of the default, which may be another."""
    replicas: Agreement | None = None
    """Whether the replicas of the cluster agree, None where there is only one."""


def together(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Return the trials of each configuration, in the order of the plans, those that failed too.

    Plans come in the order in which their stages are in `trials`. A configuration that was never
    usable is left out.
    """
    by_digest: dict[str, list[Trial]] = defaultdict(list)
    order = {stage: n for n, stage in enumerate(dict.fromkeys(t.stage for t in trials))}
    for trial in sorted(trials, key=lambda t: (order[t.stage], t.planned.index)):
        by_digest[trial.configuration.digest].append(trial)
    return [attempts for attempts in by_digest.values() if any(t.usable for t in attempts)]


def by_configuration(
    trials: Sequence[Trial], of: Callable[[Trial], float] = lambda t: t.judged_ms
) -> list[Measured]:
    """Return the measurements of each configuration, in the order of `together`.

    `of` is the value of a usable trial, in ms: its latency, or something on the scale of that.
    """
    return [
        Measured(
            configuration=attempts[0].configuration,
            judged_ms=tuple(of(t) for t in attempts if t.usable),
            failures=sum(t.status == "failed" for t in attempts),
        )
        for attempts in together(trials)
    ]


def noise(measured: Sequence[Measured], *, level: float) -> Noise:
    """Return the noise of a trial, from configurations that were measured more than once.

    The interval is that of a variance by chi-square. It takes log latency as normal about its
    configuration's mean, and as scattered alike in all of them.
    """
    freedom = sum(m.freedom for m in measured)
    several = sum(m.freedom > 0 for m in measured)
    if not freedom:
        return Noise(configurations=several, freedom=freedom, level=level)
    squares = math.fsum(m.squares for m in measured)
    low, high = (
        math.sqrt(squares / chi_square_quantile(share, freedom))
        for share in ((1 + level) / 2, (1 - level) / 2)
    )
    return Noise(
        configurations=several,
        freedom=freedom,
        level=level,
        sd=math.sqrt(squares / freedom),
        low=low,
        high=high,
    )


def variances(measured: Sequence[Measured]) -> list[float]:
    """Return the variance of log latency of each configuration, drawn towards that of all together.

    Most are measured once and have no variance of their own; two or three values have a wild one.
    So each is the mean of its own and of the pooled variance, weighted by degrees of freedom, of
    which the pooled one gets PRIOR_WEIGHT: the empirical Bayes estimate of Smyth (Statistical
    Applications in Genetics and Molecular Biology 3, 2004, article 3), with a fixed weight, as a
    few replicates can't tell a better one. The pooled one is RESOLUTION² at least; where nothing
    was measured twice, that is all that is known.
    """
    freedom = sum(m.freedom for m in measured)
    squares = math.fsum(m.squares for m in measured)
    pooled = max(squares / freedom if freedom else 0.0, RESOLUTION**2)
    return [(PRIOR_WEIGHT * pooled + m.squares) / (PRIOR_WEIGHT + m.freedom) for m in measured]
