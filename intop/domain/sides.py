"""The two sides of a verdict beyond P99: other percentiles, rate, errors, CPU."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from intop.domain.histogram import Histogram
from intop.domain.stats import RatioInterval, paired_ratio
from intop.domain.trial import Trial
from intop.domain.verdict import Pairwise, SideBySide

PERCENTS = {"P50": 50.0, "P90": 90.0, "P99": 99.0, "P99.9": 99.9}


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
    distribution of its requests. Ratios are of single trials, since it is those that vary
    independently; each interval holds for itself at `level`. Raises ValueError for fewer than two
    pairs.
    """
    before, after = merged(_histograms(default)), merged(_histograms(tuned))

    def ratio(of: Callable[[Trial], float]) -> RatioInterval | None:
        values = [of(t) for t in default], [of(t) for t in tuned]
        return paired_ratio(*values, level=level) if all(map(all, values)) else None

    def means(of: Callable[[Trial], float]) -> Pairwise:
        return Pairwise(
            default=fmean(map(of, default)), tuned=fmean(map(of, tuned)), ratio=ratio(of)
        )

    told = {
        name: Pairwise(
            default=before.percentile_ms(percent),
            tuned=after.percentile_ms(percent),
            ratio=ratio(partial(_percentile_ms, percent)),
        )
        for name, percent in PERCENTS.items()
    }
    told["max"] = Pairwise(default=before.max_ms, tuned=after.max_ms)
    return SideBySide(
        latencies_ms=told,
        requests=Pairwise(default=before.total, tuned=after.total),
        achieved_rps=means(lambda t: t.achieved_rps),
        error_share=Pairwise(default=error_share(default), tuned=error_share(tuned)),
        balancer_cpu=means(lambda t: t.balancer.cpu),
    )


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
