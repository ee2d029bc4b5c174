"""Screening: which parameters matter, by stochastic gradient boosting regression trees (SGBRT).

What an importance has to be above is measured beside it: by probes, parameters without effect
that are made by shuffling the real ones. docs/method.md describes the method.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from intop.domain.encoding import Matrix, encode
from intop.domain.ranking import Importance, Ranking, Screening
from intop.learn.samples import Rows, Samples, Vector

FEWEST_ROWS = 5
"""The fewest rows. A bootstrap sample of fewer leaves nothing to fit or to be predicted."""

SETS = 20
"""Sets of probes, each with models of its own."""

ERROR_RATE = 1 / (SETS + 1)
"""The probability that any parameter passes where none has an effect. Were it one of the probes, it
and the strongest of each set would be equally likely to be the strongest of all."""

FITS = 3
"""Models for each set. One alone scatters more than the importances do that it is to judge."""


def rank(
    samples: Samples, *, screening: Screening, keep: int, seed: int, fits: int = FITS
) -> Ranking:
    """Rank parameters by how much worse the target's logarithm is predicted without them.

    Each model is fitted to a bootstrap sample of the configurations and to a set of probes: each
    parameter once more, its values shuffled over the configurations (shadow features; Kursa and
    Rudnicki, Journal of Statistical Software 36, 2010, issue 11). The importance that counts is
    that by permutation, on the configurations outside of the bootstrap sample (Breiman, Machine
    Learning 45, 2001, 5-32); a tree's own prefers what has many values.

    A parameter passes when its importance, the mean over all models, is above the probe level:
    that of the strongest probe in any of the SETS, as the mean over the `fits` models of its set.
    This is the Monte Carlo test of a maximum (Westfall and Young, Resampling-Based Multiple
    Testing, 1993), so ERROR_RATE holds for all parameters together.

    This is the paper's ranking. What is chosen says `screening`, which tells more of few trials.
    Raises ValueError for too few configurations, and for `keep` or `fits` below 1.
    """
    if len(samples) < FEWEST_ROWS:
        raise ValueError(
            f"{len(samples)} configurations are too few to rank parameters; at least {FEWEST_ROWS}"
        )
    if keep < 1 or fits < 1:
        raise ValueError(f"keep and fits must be at least 1, got {keep} and {fits}")
    models = _fitted(samples, np.random.default_rng(seed), fits)
    strongest = _by_set(models.probes).max(axis=1)
    # What makes predictions worse is no importance, however weak the probes are.
    level = max(0.0, float(strongest.max()))
    means, spreads = models.permuted.mean(axis=0), models.permuted.std(axis=0)
    shares, share_spreads = models.shares.mean(axis=0), models.shares.std(axis=0)
    above = (_by_set(models.permuted) > strongest[:, None]).mean(axis=0)
    # A stable sort: parameters of equal importance keep the catalogue's order.
    importances = tuple(
        Importance(
            key=models.keys[i],
            mean=float(shares[i]),
            sd=float(share_spreads[i]),
            permutation=float(means[i]),
            permutation_sd=float(spreads[i]),
            above=float(above[i]),
            passes=bool(means[i] > level),
        )
        for i in np.argsort(-means, kind="stable")
    )
    return Ranking(
        importances=importances,
        chosen=screening.keys("chosen"),
        trials=sum(len(trials) for trials in samples.measured),
        probe_level=level,
        error_rate=ERROR_RATE,
        keep=keep,
        screening=screening,
    )


@dataclass(frozen=True)
class _Importances:
    """Importances by each model: matrices (models, parameters), set after set."""

    keys: tuple[str, ...]
    shares: Matrix
    """Shares by splits."""
    permuted: Matrix
    """The share of the target's variance by which the squared error grew without a parameter."""
    probes: Matrix
    """The same of each parameter's probe."""


def _by_set(importances: Matrix) -> Matrix:
    """Return means (SETS, parameters) over the models of each set."""
    by_set = importances.reshape(SETS, -1, importances.shape[1])
    return np.asarray(by_set.mean(axis=1), dtype=np.float64)


def _fitted(samples: Samples, rng: np.random.Generator, fits: int) -> _Importances:
    keys = tuple(dict.fromkeys(v.key for v in samples.variables))
    owner = np.array([keys.index(v.key) for v in samples.variables for _ in v.features])
    owner_of_both = np.concatenate([owner, owner + len(keys)])
    features = encode(samples.variables, samples.values)
    target = samples.log_target
    count, variance = len(samples), float(np.var(target))
    shares, growth = (np.zeros((SETS * fits, 2 * len(keys))) for _ in range(2))
    both = features
    for fit in range(SETS * fits):
        if fit % fits == 0:
            both = np.hstack([features, _shuffled(features, owner, rng)])
        # The draws as weights: a row that was drawn three times needs no sorting three times.
        weights = np.bincount(_bootstrap(count, rng), minlength=count).astype(np.float64)
        inside = weights > 0
        model = _model(int(rng.integers(2**31)), int(inside.sum()))
        model.fit(both[inside], target[inside], sample_weight=weights[inside])
        shares[fit] = np.bincount(owner_of_both, weights=model.feature_importances_)
        if len(used := np.flatnonzero(shares[fit])):
            outside = both[~inside], target[~inside]
            growth[fit, used] = _growth(model, *outside, owner_of_both, used, rng) / variance
    real, probes = slice(None, len(keys)), slice(len(keys), None)
    return _Importances(keys, shares[:, real], growth[:, real], growth[:, probes])


def _bootstrap(count: int, rng: np.random.Generator) -> Rows:
    """Draw as many rows as there are, with replacement, so that two or more are left over."""
    while True:
        drawn = rng.integers(count, size=count)
        if len(np.unique(drawn)) <= count - 2:
            return drawn


def _shuffled(features: Matrix, owner: Rows, rng: np.random.Generator) -> Matrix:
    """Return probes (n, f): the features of each parameter in another order of the rows."""
    keys = int(owner.max()) + 1
    order = rng.permuted(np.tile(np.arange(len(features)), (keys, 1)), axis=1)
    return np.take_along_axis(features, order[owner].T, axis=0)


def _growth(
    model: Any, rows: Matrix, target: Vector, owner: Rows, used: Rows, rng: np.random.Generator
) -> Vector:
    """Return how much the mean squared error grows (used,) when each parameter is shuffled."""
    blocks = np.repeat(rows[None], len(used), axis=0)
    for block, which in zip(blocks, used, strict=True):
        columns = np.flatnonzero(owner == which)
        block[:, columns] = block[np.ix_(rng.permutation(len(rows)), columns)]
    predicted = model.predict(blocks.reshape(-1, rows.shape[1])).reshape(len(used), len(rows))
    before = np.mean((target - model.predict(rows)) ** 2)
    return np.asarray(np.mean((target - predicted) ** 2, axis=1) - before, dtype=np.float64)


def _model(seed: int, rows: int) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    # Few features per split: otherwise one of two parameters that act alike hides the other.
    # Shallow trees: deeper ones fit more noise and find no more.
    return GradientBoostingRegressor(
        n_estimators=80,
        learning_rate=0.1,
        max_depth=2,
        min_samples_leaf=min(4, 1 + rows // 12),  # a few rows are to have leaves, too
        subsample=0.7,
        max_features=0.2,
        random_state=seed,
    )
