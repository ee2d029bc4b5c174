"""The two sides of a verdict beyond P99: other percentiles, rate, errors, CPU, guardrails."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Literal

from intop.domain.baseline import HOST
from intop.domain.configuration import Configuration
from intop.domain.guardrails import Guardrail, Guardrails, Quantity, Unit
from intop.domain.histogram import Histogram
from intop.domain.percentiles import PERCENTS, told_ms
from intop.domain.rounds import M, paired, usable_by_round
from intop.domain.stats import Interval, geometric_mean, paired_difference, paired_ratio
from intop.domain.trial import Trial
from intop.domain.verdict import Pairwise, PairwiseLatency, SideBySide, Verdict

LOWEST_MS, LOWEST_RPS = 0.001, 0.001
"""In place of nothing, which has no ratio: no latency is less than 1 us."""


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """The latencies of all requests on both sides of a verdict, trial by trial.

    `against` names the baseline that stood for the default, and is empty for the host's own values.
    """

    default: tuple[Histogram, ...]
    tuned: tuple[Histogram, ...]
    against: str = ""


def latencies(default: Sequence[Trial], tuned: Sequence[Trial], *, against: str = "") -> Latencies:
    """Those of the usable trials of both sides."""
    return Latencies(default=_histograms(default), tuned=_histograms(tuned), against=against)


def side_by_side(default: Sequence[Trial], tuned: Sequence[Trial], *, level: float) -> SideBySide:
    """Both sides of some pairs of usable trials, in the order of the pairs.

    The trials of a side have the same rate and duration, so their histograms add up to the
    distribution of its requests, of which no percentile is told that too few requests are behind.
    Ratios are of single trials, since it is those that vary independently; each interval holds for
    itself at `level`. Raises ValueError for fewer than two pairs.
    """
    sides = _histograms(default), _histograms(tuned)
    before, after = map(merged, sides)

    def ratio(of: Callable[[Trial], float]) -> Interval | None:
        values = [of(t) for t in default], [of(t) for t in tuned]
        return paired_ratio(*values, level=level) if all(map(all, values)) else None

    def means(of: Callable[[Trial], float]) -> Pairwise:
        return Pairwise(
            default=fmean(map(of, default)), tuned=fmean(map(of, tuned)), ratio=ratio(of)
        )

    def known(of: Callable[[Trial], float | None]) -> Pairwise | None:
        if any(of(t) is None for t in (*default, *tuned)):
            return None
        return means(lambda t: of(t) or 0.0)

    def latency(percent: float) -> PairwiseLatency:
        both = told_ms(before, percent), told_ms(after, percent)
        # The judged P99 rests on rounds, not on a side's requests.
        shown = percent == PERCENTS["P99"] or None not in both
        return PairwiseLatency(
            default=both[0],
            tuned=both[1],
            ratio=ratio(partial(_percentile_ms, percent)) if shown else None,
        )

    told = {name: latency(percent) for name, percent in PERCENTS.items()}
    told["max"] = PairwiseLatency(default=before.max_ms, tuned=after.max_ms)
    return SideBySide(
        latencies_ms=told,
        requests=Pairwise(default=before.total, tuned=after.total),
        achieved_rps=means(lambda t: t.achieved_rps),
        error_share=Pairwise(default=error_share(default), tuned=error_share(tuned)),
        balancer_cpu=means(lambda t: t.balancer.cpu),
        fewest_requests=min(histogram.total for side in sides for histogram in side),
        mean_ms=known(lambda t: t.histogram.mean_ms if t.histogram is not None else None),
        received_mb_s=known(lambda t: t.received_mb_s),
        memory_mib=known(_memory_mib),
        context_switches_per_s=known(lambda t: t.balancer.context_switches_per_s),
        power_w=known(lambda t: t.balancer.power_w),
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
    """The verdict on some pairs of usable trials, in their order, looked at once.

    Its intervals have `each_level`, at which all that are looked at hold together at `level`;
    the rest as in `Verdict`. Raises ValueError for fewer than two pairs.
    """
    before, after = ([t.p99_ms for t in arm] for arm in (default, tuned))
    interval = paired_ratio(before, after, level=each_level)
    return Verdict(
        configuration=configuration,
        origin=origin,
        default_p99_ms=geometric_mean(before),
        tuned_p99_ms=geometric_mean(after),
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
        guardrails=check_guardrails(default, tuned, margins, level=each_level),
    )


def judged_pairs(trials: Sequence[M], verdict: Verdict) -> tuple[list[M], ...]:
    """Return the campaign's trials that a verdict rests on: of the default and of the winner."""
    arms = usable_by_round([t for t in trials if t.stage == "judge"])
    return paired(arms.get(verdict.against or HOST, {}), arms.get(verdict.origin, {}))


def check_guardrails(
    default: Sequence[Trial], tuned: Sequence[Trial], margins: Guardrails, *, level: float
) -> tuple[Guardrail, ...]:
    """What the pairs say of each guardrail that is not switched off.

    Effects are of single trials, paired by round, with Student's interval: of the logarithm for
    P50 and the rate, of the difference for what may be zero. Each holds for itself at `level`.
    Raises ValueError for fewer than two pairs.
    """

    def values(of: Callable[[Trial], float]) -> tuple[list[float], list[float]]:
        return [of(t) for t in default], [of(t) for t in tuned]

    def times(
        quantity: Quantity,
        worse: Literal["higher", "lower"],
        of: Callable[[Trial], float],
        margin: float | None,
    ) -> Iterator[Guardrail]:
        if margin is None:
            return
        before, after = values(of)
        found = paired_ratio(after, before, level=level)
        yield Guardrail(
            quantity=quantity,
            unit="times",
            worse=worse,
            default=geometric_mean(before),
            tuned=geometric_mean(after),
            effect=found.value,
            low=found.low,
            high=found.high,
            margin=margin,
        )

    def more(
        quantity: Quantity, unit: Unit, of: Callable[[Trial], float], margin: float | None
    ) -> Iterator[Guardrail]:
        if margin is None:
            return
        before, after = values(of)
        found = paired_difference(after, before, level=level)
        yield Guardrail(
            quantity=quantity,
            unit=unit,
            worse="higher",
            default=fmean(before),
            tuned=fmean(after),
            effect=found.value,
            low=found.low,
            high=found.high,
            margin=margin,
        )

    cpu, memory = (fmean(map(of, default)) for of in (_cpu_percent, _memory_mib))
    p50_ms = partial(_percentile_ms, PERCENTS["P50"])
    return (
        *times("P50", "higher", lambda t: max(p50_ms(t), LOWEST_MS), margins.p50_times),
        *times("rate", "lower", lambda t: max(t.achieved_rps, LOWEST_RPS), margins.rate_times),
        *more("error share", "points", _error_percent, margins.error_points),
        *more("CPU", "points", _cpu_percent, _either(margins.cpu_points, margins.cpu_times, cpu)),
        *more(
            "memory",
            "MiB",
            _memory_growth_mib,
            _either(margins.memory_mib, margins.memory_times, memory),
        ),
    )


def _either(more: float | None, times: float | None, base: float) -> float | None:
    """The larger of two margins: so much more, or so many times the base; None where both are."""
    known = [more] if more is not None else []
    known += [(times - 1) * base] if times is not None else []
    return max(known, default=None)


def _error_percent(trial: Trial) -> float:
    return 100 * error_share([trial])


def _cpu_percent(trial: Trial) -> float:
    return 100 * trial.balancer.cpu


def _memory_mib(trial: Trial) -> float:
    return trial.balancer.memory_mib


def _memory_growth_mib(trial: Trial) -> float:
    return trial.balancer.memory_mib - trial.balancer.memory_before_mib


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """All requests of some trials."""
    return Histogram((), ()).merge(*histograms)


def _histograms(trials: Sequence[Trial]) -> tuple[Histogram, ...]:
    return tuple(t.histogram for t in trials if t.histogram is not None)


def _percentile_ms(percent: float, trial: Trial) -> float:
    """P99 as it is judged, so that the verdict's ratio is found again."""
    return trial.p99_ms if percent == PERCENTS["P99"] else trial.percentile_ms(percent)


def error_share(trials: Sequence[Trial]) -> float:
    """The share of all requests that failed, or were pending at the end."""
    failed = sum(sum(t.errors.values()) for t in trials)
    return failed / sum(t.histogram.total for t in trials if t.histogram is not None)
