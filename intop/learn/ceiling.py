"""The noise ceiling: what a perfect model would reach, given the noise of what judges it."""

import math
from collections.abc import Sequence

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.histogram import PERCENTS, Histogram, Statistic
from intop.domain.replicates import PRIOR_WEIGHT, RESOLUTION
from intop.domain.training import Ceiling
from intop.learn.accuracy import mape, r_squared, rank_correlation
from intop.learn.samples import Samples, Vector

SEED = 1
MOST_REPEATS = 200
MOST_DRAWS = 2_000_000
"""Trials that are drawn in all, so that large tables take no longer than a second or two."""


def ceiling(
    samples: Samples,
    histograms: Sequence[Sequence[Histogram]] = (),
    judged_by: Statistic = "P99",
) -> Ceiling | None:
    """Return what a model would reach that knows every row's true median.

    Simulated with a fixed seed: the table is measured again and again, each row with as many
    trials as it has, and each time the true medians are judged by the measured ones, as a model
    would be. Where the target is a latency, its noise is drawn from the `histograms` of each row's
    trials; where there are none, from replicates, and there is no ceiling (None) without those.
    The true medians are the measured ones, drawn together about their mean until their variance is
    what is left without the noise's, as Louis does (Journal of the American Statistical
    Association 79, 1984, 393-398). Noise in modes makes the error too large: see docs/models.md.
    """
    several = sum(len(trials) > 1 for trials in samples.measured)
    if histograms:
        noise, sd, scale = _by_latencies(samples, histograms, judged_by)
    elif several:
        noise, sd = _by_replicates(samples)
        scale = None
    else:
        return None
    measured = samples.log_target
    spread = float(np.var(measured))
    kept = max(0.0, 1 - float(np.mean(noise**2)) / spread) if spread else 0.0
    truth = measured.mean() + math.sqrt(kept) * (measured - measured.mean())
    again = truth + noise
    return Ceiling(
        mape=float(np.mean([mape(row, truth) for row in again])),
        r2=float(np.mean([max(0.0, r_squared(row, truth)) for row in again])),
        spearman=float(np.mean([rank_correlation(row, truth) for row in again])),
        sd=sd,
        configurations=several,
        scale=scale,
    )


def _repeats(samples: Samples) -> int:
    draws = sum(len(trials) for trials in samples.measured)
    return int(np.clip(MOST_DRAWS // draws, 1, MOST_REPEATS))


# -- told by the latencies of each trial ---------------------------------------------------------


def _by_latencies(
    samples: Samples, histograms: Sequence[Sequence[Histogram]], judged_by: Statistic
) -> tuple[Matrix, float, float]:
    """Return errors (repeats, n) of the rows' medians, a trial's sd, and the scale of both.

    Each trial's latencies are drawn again from its own histogram, so each row has its own noise: a
    configuration in which a few requests wait for a time-out scatters more than one in which none
    does. Latencies within a trial are not quite independent, and trials differ in other ways, too.
    Replicates show by how much: one factor scales all noise, the root of the ratio of their
    variance to the variance of the draws. Few replicates tell little, so PRIOR_WEIGHT degrees of
    freedom are added in which both variances are equal.
    """
    rng = np.random.default_rng(SEED)
    repeats = _repeats(samples)
    drawn = [
        np.column_stack([_again(judged_by, histogram, repeats, rng) for histogram in trials])
        for trials in histograms
    ]
    variances = np.array([float(np.mean(np.var(row, axis=0))) for row in drawn])
    freedom = np.array([len(trials) - 1 for trials in samples.measured])
    squares = math.fsum(
        float(np.sum((logs - logs.mean()) ** 2)) for logs in map(np.log, samples.measured)
    )
    usual = max(float(variances.mean()), RESOLUTION**2)
    expected = float(freedom @ variances)
    scale = math.sqrt((PRIOR_WEIGHT * usual + squares) / (PRIOR_WEIGHT * usual + expected))
    noise = np.column_stack([np.median(row, axis=1) for row in drawn])
    return scale * noise, scale * math.sqrt(float(variances.mean())), scale


def _again(
    judged_by: Statistic, histogram: Histogram, repeats: int, rng: np.random.Generator
) -> Vector:
    """Return deviations (repeats,) of the logarithm when as many latencies are drawn again.

    A percentile is an order statistic, so its place among the latencies is a beta variate, and
    nothing needs to be drawn but that. A mean is normal by the latencies' own variance.
    """
    total = histogram.total
    if judged_by == "mean latency":
        values, counts = np.array(histogram.values_us, dtype=float), np.array(histogram.counts)
        mean = np.average(values, weights=counts)
        sd = math.sqrt(np.average((values - mean) ** 2, weights=counts) / total)
        return np.asarray(rng.normal(0.0, sd / mean, repeats), dtype=np.float64)
    rank = histogram.rank(PERCENTS[judged_by])
    places = np.maximum(1, np.ceil(rng.beta(rank, total - rank + 1, repeats) * total))
    buckets = np.searchsorted(np.cumsum(histogram.counts), places)
    logs = np.log(np.maximum(histogram.values_us, 1))[buckets]
    return np.asarray(logs - logs.mean(), dtype=np.float64)


# -- told by replicates alone --------------------------------------------------------------------


def _by_replicates(samples: Samples) -> tuple[Matrix, float]:
    """Return errors (repeats, n) of the rows' medians, and the sd of a trial.

    They are drawn from the replicates' own deviations, in which each row counts alike: the default
    has many trials, and they say little of the others' noise.
    """
    deviations, shares = _deviations(samples)
    rng = np.random.default_rng(SEED)
    counts = np.array([len(trials) for trials in samples.measured])
    repeats = _repeats(samples)
    noise = np.empty((repeats, len(counts)))
    for count in np.unique(counts):
        rows = np.flatnonzero(counts == count)
        drawn = rng.choice(deviations, size=(repeats, len(rows), count), p=shares)
        noise[:, rows] = np.median(drawn, axis=2)
    return noise, math.sqrt(float(np.sum(shares * deviations**2)))


def _deviations(samples: Samples) -> tuple[Vector, Vector]:
    """Return deviations of log trials from their row's mean, and each one's chance to be drawn.

    About their own mean, m values scatter by (m - 1) / m too little, which is made up for. So the
    weighted mean of the squares is the mean of the rows' variances.
    """
    several = [np.log(trials) for trials in samples.measured if len(trials) > 1]
    widened = [(logs - logs.mean()) * math.sqrt(len(logs) / (len(logs) - 1)) for logs in several]
    shares = [np.full(len(logs), 1 / (len(several) * len(logs))) for logs in several]
    return np.concatenate(widened), np.concatenate(shares)
