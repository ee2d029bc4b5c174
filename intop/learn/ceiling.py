"""The noise ceiling: what a perfect model would reach, given the noise of what judges it."""

import math

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.training import Ceiling
from intop.learn.accuracy import mape, r_squared, rank_correlation
from intop.learn.samples import Samples, Vector

SEED = 1
MOST_REPEATS = 200
MOST_DRAWS = 2_000_000
"""Trials that are drawn in all, so that large tables take no longer than a second or two."""


def ceiling(samples: Samples) -> Ceiling | None:
    """What a model would reach that knows every row's true median; None without replicates.

    Simulated with a fixed seed: the table is measured again and again, each row with as many
    trials as it has, and each time the true medians are judged by the measured ones, as a model
    would be. The noise is drawn from the replicates' own deviations, in which each row counts
    alike: the default has many trials, and they say little of the others' noise. The true medians
    are the measured ones, drawn together about their mean until their variance is what is left
    without the noise's, as Louis does (Journal of the American Statistical Association 79, 1984,
    393-398). Noise in modes makes the error too large: see docs/models.md.
    """
    deviations, shares = _deviations(samples)
    if not len(deviations):
        return None
    sd = math.sqrt(float(np.sum(shares * deviations**2)))
    measured = samples.log_target
    noise = _noise(samples, deviations, shares)
    spread = float(np.var(measured))
    kept = max(0.0, 1 - float(np.mean(noise**2)) / spread) if spread else 0.0
    truth = measured.mean() + math.sqrt(kept) * (measured - measured.mean())
    again = truth + noise
    return Ceiling(
        mape=float(np.mean([mape(row, truth) for row in again])),
        r2=float(np.mean([max(0.0, r_squared(row, truth)) for row in again])),
        spearman=float(np.mean([rank_correlation(row, truth) for row in again])),
        sd=sd,
        configurations=sum(len(trials) > 1 for trials in samples.measured),
    )


def _deviations(samples: Samples) -> tuple[Vector, Vector]:
    """Deviations of log trials from their row's mean, and the chance with which each is drawn.

    About their own mean, m values scatter by (m - 1) / m too little, which is made up for. So the
    weighted mean of the squares is the mean of the rows' variances.
    """
    several = [np.log(trials) for trials in samples.measured if len(trials) > 1]
    if not several:
        return np.empty(0), np.empty(0)
    found = [(logs - logs.mean()) * math.sqrt(len(logs) / (len(logs) - 1)) for logs in several]
    shares = [np.full(len(logs), 1 / (len(several) * len(logs))) for logs in several]
    return np.concatenate(found), np.concatenate(shares)


def _noise(samples: Samples, deviations: Vector, shares: Vector) -> Matrix:
    """Errors (repeats, n) of the medians of as many trials as each row has."""
    rng = np.random.default_rng(SEED)
    counts = np.array([len(trials) for trials in samples.measured])
    repeats = int(np.clip(MOST_DRAWS // counts.sum(), 1, MOST_REPEATS))
    noise = np.empty((repeats, len(counts)))
    for count in np.unique(counts):
        rows = np.flatnonzero(counts == count)
        drawn = rng.choice(deviations, size=(repeats, len(rows), count), p=shares)
        noise[:, rows] = np.median(drawn, axis=2)
    return noise
