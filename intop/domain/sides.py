"""The sides of a verdict beyond what is judged: percentiles, rate, errors, CPU, guardrails."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Literal

from intop.domain.baseline import HOST
from intop.domain.configuration import Configuration
from intop.domain.guardrails import Guardrail, Guardrails, Quantity, Unit
from intop.domain.histogram import (
    PERCENTS,
    STATISTICS,
    Histogram,
    Statistic,
    reliable_ms,
    requests_for,
)
from intop.domain.rounds import M, first_rounds, paired, usable_by_round
from intop.domain.stats import (
    Interval,
    bonferroni,
    geometric_mean,
    paired_difference,
    paired_ratio,
    student_quantile,
)
from intop.domain.trial import Trial, judged_by
from intop.domain.verdict import Pairwise, PairwiseLatency, SideBySide, Verdict

LOWEST_MS, LOWEST_RPS = 0.001, 0.001
"""Values in place of nothing, which has no ratio: no latency is less than 1 us."""


def beside_judged(judged_by: Statistic) -> tuple[Statistic, ...]:
    """Return the latencies that are compared beside the judged one."""
    return tuple(name for name in STATISTICS if name != judged_by)


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """The latencies of all requests on both sides of a verdict, trial by trial."""

    default: tuple[Histogram, ...]
    tuned: tuple[Histogram, ...]
    against: str = ""
    """The baseline that stood for the default, "" for the host's own values."""
    judged_by: Statistic = "P99"


def latencies(default: Sequence[Trial], tuned: Sequence[Trial], *, against: str = "") -> Latencies:
    """Return the latencies of the usable trials of both sides."""
    return Latencies(
        default=_histograms(default),
        tuned=_histograms(tuned),
        against=against,
        judged_by=judged_by(default),
    )


@dataclass(frozen=True)
class _Pairs:
    """Pairs of usable trials of both sides, in the order of the pairs."""

    default: Sequence[Trial]
    tuned: Sequence[Trial]
    level: float

    def values(self, of: Callable[[Trial], float]) -> tuple[list[float], list[float]]:
        return [of(t) for t in self.default], [of(t) for t in self.tuned]

    @property
    def judged_by(self) -> Statistic:
        return judged_by(self.default)

    def at(self, name: Statistic) -> "_Pairs":
        """The pairs at the level of a latency: those beside the judged one hold together."""
        if name == self.judged_by:
            return self
        return replace(self, level=bonferroni(self.level, len(beside_judged(self.judged_by))))

    def ratio(self, of: Callable[[Trial], float]) -> Interval | None:
        """Return the ratio of the sides with its interval, None where a value is zero."""
        default, tuned = self.values(of)
        return paired_ratio(default, tuned, level=self.level) if all(default + tuned) else None

    def means(self, of: Callable[[Trial], float]) -> Pairwise:
        default, tuned = self.values(of)
        return Pairwise(default=fmean(default), tuned=fmean(tuned), ratio=self.ratio(of))

    def known(self, of: Callable[[Trial], float | None]) -> Pairwise | None:
        """Return the means, None where some trial doesn't have the value."""
        if any(of(t) is None for t in (*self.default, *self.tuned)):
            return None
        return self.means(lambda t: of(t) or 0.0)

    def latency(self, name: Statistic, sides: tuple[Histogram, Histogram]) -> PairwiseLatency:
        default, tuned = (reliable_ms(side, PERCENTS[name]) for side in sides)
        # The judged latency rests on rounds, not on a side's requests.
        is_shown = name == self.judged_by or None not in (default, tuned)
        ratio = self.at(name).ratio(lambda t: t.statistic_ms(name)) if is_shown else None
        return PairwiseLatency(default=default, tuned=tuned, ratio=ratio)


def side_by_side(default: Sequence[Trial], tuned: Sequence[Trial], *, level: float) -> SideBySide:
    """Return both sides of some pairs of usable trials, in the order of the pairs.

    The trials of a side have the same rate and duration, so their histograms add up to the
    distribution of its requests. A percentile with too few slower requests is left out. Ratios are
    of single trials, since it is those that vary independently. The interval of the judged latency
    holds at `level`; those of the latencies beside it hold at `level` all together (Bonferroni),
    and every other one for itself. Raises ValueError for fewer than two pairs.
    """
    pairs = _Pairs(default, tuned, level)
    histograms = _histograms(default), _histograms(tuned)
    before, after = map(merged, histograms)
    latencies_ms: dict[str, PairwiseLatency] = {
        name: pairs.latency(name, (before, after)) for name in STATISTICS if name in PERCENTS
    }
    latencies_ms["max"] = PairwiseLatency(default=before.max_ms, tuned=after.max_ms)
    return SideBySide(
        latencies_ms=latencies_ms,
        requests=Pairwise(default=before.total, tuned=after.total),
        achieved_rps=pairs.means(lambda t: t.achieved_rps),
        error_share=Pairwise(default=error_share(default), tuned=error_share(tuned)),
        balancer_cpu=pairs.means(lambda t: t.balancer.cpu),
        fewest_requests=min(histogram.total for side in histograms for histogram in side),
        mean_ms=pairs.at("mean latency").means(lambda t: t.statistic_ms("mean latency")),
        received_mb_s=pairs.known(lambda t: t.received_mb_s),
        memory_mib=pairs.known(_memory_mib),
        context_switches_per_s=pairs.known(lambda t: t.balancer.context_switches_per_s),
        power_w=pairs.known(lambda t: t.balancer.power_w),
    )


def judged(
    default: Sequence[Trial],
    tuned: Sequence[Trial],
    configuration: Configuration,
    *,
    origin: str,
    against: str,
    failures: int,
    rounds: int,
    margins: Guardrails,
    level: float,
    each_level: float,
) -> Verdict:
    """Return the verdict on some pairs of usable trials, in their order, after one look.

    Its intervals have `each_level`, at which all that are looked at hold together at `level`;
    the rest as in `Verdict`. Raises ValueError for fewer than two pairs.
    """
    before, after = ([t.judged_ms for t in arm] for arm in (default, tuned))
    interval = paired_ratio(before, after, level=each_level)
    return Verdict(
        configuration=configuration,
        origin=origin,
        default_ms=geometric_mean(before),
        tuned_ms=geometric_mean(after),
        ratio=interval.value,
        ratio_low=interval.low,
        ratio_high=interval.high,
        level=level,
        pairs=len(default),
        failures=failures,
        against=against,
        rounds=rounds,
        planned_rounds=rounds,
        looks=1,
        sides=side_by_side(default, tuned, level=each_level),
        judged_by=judged_by(default),
        guardrails=check_guardrails(default, tuned, margins, level=each_level),
    )


def judged_pairs(trials: Sequence[M], verdict: Verdict) -> tuple[list[M], ...]:
    """Return the campaign's trials that a verdict rests on: of the default and of the winner.

    Further rounds that are begun belong to a later verdict.
    """
    arms = usable_by_round(first_rounds([t for t in trials if t.stage == "judge"], verdict.rounds))
    return paired(arms.get(verdict.against or HOST, {}), arms.get(verdict.origin, {}))


def check_guardrails(
    default: Sequence[Trial], tuned: Sequence[Trial], margins: Guardrails, *, level: float
) -> tuple[Guardrail, ...]:
    """Return the effect on each guardrail that is not switched off.

    Effects are of single trials, paired by round, with Student's interval: of the logarithm for
    latencies and the rate, of the difference for what may be zero. Each holds for itself at
    `level`. What is judged is no guardrail, nor is P99 in trials of fewer requests than it takes.
    Raises ValueError for fewer than two pairs.
    """
    pairs = _Pairs(default, tuned, level)
    guardrail = partial(_guardrail, pairs)
    fewest = min(histogram.total for side in (default, tuned) for histogram in _histograms(side))
    is_p99_told = fewest >= requests_for(PERCENTS["P99"])
    cpu_points = _either(margins.cpu_points, margins.cpu_times, fmean(map(_cpu_percent, default)))
    memory_mib = _either(margins.memory_mib, margins.memory_times, fmean(map(_memory_mib, default)))

    def latency(name: Literal["P50", "P99"], margin: float | None) -> Iterator[Guardrail]:
        if name != pairs.judged_by and (name == "P50" or is_p99_told):
            yield from guardrail(name, "times", partial(_latency_ms, name), margin)

    return (
        *latency("P50", margins.p50_times),
        *latency("P99", margins.p99_times),
        *guardrail("rate", "times", _rate_rps, margins.rate_times, worse="lower"),
        *guardrail("error share", "points", _error_percent, margins.error_points),
        *_slow_requests(pairs, margins),
        *guardrail("CPU", "points", _cpu_percent, cpu_points),
        *guardrail("memory", "MiB", _memory_growth_mib, memory_mib),
    )


def _guardrail(
    pairs: _Pairs,
    quantity: Quantity,
    unit: Unit,
    of: Callable[[Trial], float],
    margin: float | None,
    *,
    worse: Literal["higher", "lower"] = "higher",
) -> Iterator[Guardrail]:
    """Yield the guardrail, nothing without a margin."""
    if margin is None:
        return
    default, tuned = pairs.values(of)
    interval = paired_ratio if unit == "times" else paired_difference
    mean = geometric_mean if unit == "times" else fmean
    effect = interval(tuned, default, level=pairs.level)
    yield Guardrail(
        quantity=quantity,
        unit=unit,
        worse=worse,
        default=mean(default),
        tuned=mean(tuned),
        effect=effect.value,
        low=effect.low,
        high=effect.high,
        margin=margin,
    )


def _slow_requests(pairs: _Pairs, margins: Guardrails) -> Iterator[Guardrail]:
    """Yield the guardrail of the far tail: the share of requests above a limit, in percent.

    A trial is a cluster, so the interval is Student's of the shares' differences by pair. It is at
    least as wide as two counts of independent requests allow: slow requests are few, and where
    there is none in any trial, the differences tell no scatter at all.
    """
    limit_ms = margins.slow_limit_ms(pairs.default)
    if limit_ms is None:
        return
    slow = partial(_slow_percent, limit_ms)
    half = student_quantile(pairs.level, math.inf) * math.sqrt(
        sum(_count_variance(side, limit_ms) for side in (pairs.default, pairs.tuned))
    )
    for guardrail in _guardrail(pairs, "slow requests", "points", slow, margins.slow_points):
        effect = guardrail.effect
        yield replace(
            guardrail,
            low=min(guardrail.low, effect - half),
            high=max(guardrail.high, effect + half),
            limit_ms=limit_ms,
        )


def _slow_percent(limit_ms: float, trial: Trial) -> float:
    histogram = trial.histogram
    return 0.0 if histogram is None else 100 * histogram.count_above(limit_ms) / histogram.total


def _count_variance(side: Sequence[Trial], limit_ms: float) -> float:
    """Return the variance of a side's slow requests in percent, if requests were independent.

    One slow and one other request are added, as Wilson's interval does by and large: a side
    without slow requests has a variance, too.
    """
    histogram = merged(_histograms(side))
    total = histogram.total + 2
    share = (histogram.count_above(limit_ms) + 1) / total
    return 100**2 * share * (1 - share) / total


def _either(more: float | None, times: float | None, base: float) -> float | None:
    """Return the larger of two margins: so much more, or so many times the base."""
    margins = [more, None if times is None else (times - 1) * base]
    return max((margin for margin in margins if margin is not None), default=None)


def _latency_ms(name: Statistic, trial: Trial) -> float:
    return max(trial.statistic_ms(name), LOWEST_MS)


def _rate_rps(trial: Trial) -> float:
    return max(trial.achieved_rps, LOWEST_RPS)


def _error_percent(trial: Trial) -> float:
    return 100 * error_share([trial])


def _cpu_percent(trial: Trial) -> float:
    return 100 * trial.balancer.cpu


def _memory_mib(trial: Trial) -> float:
    return trial.balancer.memory_mib


def _memory_growth_mib(trial: Trial) -> float:
    return trial.balancer.memory_mib - trial.balancer.memory_before_mib


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """Return all requests of some trials."""
    return Histogram((), ()).merge(*histograms)


def _histograms(trials: Sequence[Trial]) -> tuple[Histogram, ...]:
    return tuple(t.histogram for t in trials if t.histogram is not None)


def error_share(trials: Sequence[Trial]) -> float:
    """Return the share of all requests that failed, or were pending at the end."""
    failed = sum(sum(t.errors.values()) for t in trials)
    return failed / sum(t.histogram.total for t in trials if t.histogram is not None)
