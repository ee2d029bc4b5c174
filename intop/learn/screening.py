"""Screening: which parameters matter, by stochastic gradient boosting regression trees (SGBRT).

What an importance has to be above is measured beside it: by probes, parameters without effect
that are made by shuffling the real ones. docs/screening.md has the method and what it finds.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from intop.domain.encoding import Matrix, encode
from intop.domain.results import Importance, Ranking
from intop.learn.samples import Rows, Samples, Vector

FEWEST_ROWS = 5
"""Of less, a bootstrap sample leaves nothing to fit, or nothing to be predicted."""

ERROR_RATE = 0.05
"""How likely any parameter may pass where none has an effect."""

FITS = 40
"""Models of one screening. The level is the second strongest of their strongest probes; with 20
it would be the strongest one, which hangs on a single fit."""

FEWEST_FITS = math.ceil(1 / ERROR_RATE) - 1
"""Fewer can't show a chance of ERROR_RATE."""

FEW = 5
"""How many are chosen by rank where none passes."""


def rank(samples: Samples, *, keep: int, seed: int, fits: int = FITS) -> Ranking:
    """The parameters by how much they explain of the target's logarithm; the first are chosen.

    Each of the models is fitted to a bootstrap sample of the configurations and to probes of its
    own: each parameter once more, its values shuffled over the configurations (shadow features;
    Kursa and Rudnicki, Journal of Statistical Software 36, 2010, issue 11). A parameter passes
    when

    - its mean importance is above the probe level. This is the importance which the strongest
      probe of a fit reaches in k of them, where (k + 1) / (fits + 1) is just above ERROR_RATE: the
      Monte Carlo test of a maximum (Westfall and Young, Resampling-Based Multiple Testing, 1993;
      Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9, 2010,
      article 39), so the rate holds for all parameters together;
    - shuffling it makes predictions of configurations outside of the bootstrap sample worse, on
      average over the models (permutation importance; Breiman, Machine Learning 45, 2001, 5-32).

    At most `keep` are chosen. Where none passes, the first FEW by rank are. Raises ValueError for
    too few configurations or fits, and for a `keep` below 1.
    """
    if len(samples) < FEWEST_ROWS:
        raise ValueError(
            f"{len(samples)} configurations are too few to rank parameters; at least {FEWEST_ROWS}"
        )
    if keep < 1 or fits < FEWEST_FITS:
        raise ValueError(f"keep must be at least 1, and fits {FEWEST_FITS}, got {keep} and {fits}")
    found = _fitted(samples, np.random.default_rng(seed), fits)
    strongest = found.probes.max(axis=1)
    level = float(np.sort(strongest)[-_allowed(fits)])
    means, spreads = found.shares.mean(axis=0), found.shares.std(axis=0)
    worse, worse_by = found.permuted.mean(axis=0), found.permuted.std(axis=0)
    above = (found.shares > strongest[:, None]).mean(axis=0)
    # A stable sort: parameters of equal importance keep the catalogue's order.
    importances = tuple(
        Importance(
            key=found.keys[i],
            mean=float(means[i]),
            sd=float(spreads[i]),
            permutation=float(worse[i]),
            permutation_sd=float(worse_by[i]),
            above=float(above[i]),
            passes=bool(means[i] > level and worse[i] > 0),
        )
        for i in np.argsort(-means, kind="stable")
    )
    passing = tuple(i.key for i in importances if i.passes)
    by_rank = tuple(i.key for i in importances[:FEW])
    return Ranking(
        importances=importances,
        chosen=(passing or by_rank)[:keep],
        trials=sum(len(trials) for trials in samples.measured),
        probe_level=level,
        error_rate=ERROR_RATE,
        keep=keep,
    )


def _allowed(fits: int) -> int:
    """Which place, counted from the strongest, has the probe level among the fits."""
    return math.floor(ERROR_RATE * (fits + 1) + 1e-9)


@dataclass(frozen=True)
class _Found:
    """What the models say of each parameter: matrices (fits, parameters).

    `shares` of the importance, those of their `probes`, and by how much of the target's variance
    the squared error grew when they were `permuted`.
    """

    keys: tuple[str, ...]
    shares: Matrix
    probes: Matrix
    permuted: Matrix


def _fitted(samples: Samples, rng: np.random.Generator, fits: int) -> _Found:
    keys = tuple(dict.fromkeys(v.key for v in samples.variables))
    owner = np.array([keys.index(v.key) for v in samples.variables for _ in v.features])
    features = encode(samples.variables, samples.values)
    target = samples.log_target
    count, variance = len(samples), float(np.var(target))
    shares, probes, permuted = (np.zeros((fits, len(keys))) for _ in range(3))
    for fit in range(fits):
        # The draws as weights: a row that was drawn three times needs no sorting three times.
        weights = np.bincount(_bootstrap(count, rng), minlength=count).astype(np.float64)
        inside = weights > 0
        both = np.hstack([features, _shuffled(features, owner, rng)])
        model = _model(int(rng.integers(2**31)))
        model.fit(both[inside], target[inside], sample_weight=weights[inside])
        importance = np.asarray(model.feature_importances_, dtype=np.float64)
        own, theirs = importance[: len(owner)], importance[len(owner) :]
        shares[fit] = np.bincount(owner, weights=own, minlength=len(keys))
        probes[fit] = np.bincount(owner, weights=theirs, minlength=len(keys))
        used = np.flatnonzero(shares[fit])
        if variance > 0 and len(used):
            growth = _growth(model, both[~inside], target[~inside], owner, used, rng)
            permuted[fit, used] = growth / variance
    return _Found(keys, shares, probes, permuted)


def _bootstrap(count: int, rng: np.random.Generator) -> Rows:
    """As many rows as there are, drawn with replacement, so that two or more are left over."""
    while True:
        drawn = rng.integers(count, size=count)
        if len(np.unique(drawn)) <= count - 2:
            return drawn


def _shuffled(features: Matrix, owner: Rows, rng: np.random.Generator) -> Matrix:
    """Probes (n, f): the features of each parameter in another order of the rows, all alike."""
    keys = int(owner.max()) + 1
    order = rng.permuted(np.tile(np.arange(len(features)), (keys, 1)), axis=1)
    return np.take_along_axis(features, order[owner].T, axis=0)


def _growth(
    model: Any, rows: Matrix, target: Vector, owner: Rows, used: Rows, rng: np.random.Generator
) -> Vector:
    """By how much the mean squared error grows (used,) when each of the parameters is shuffled."""
    blocks = np.repeat(rows[None], len(used), axis=0)
    for block, which in zip(blocks, used, strict=True):
        columns = np.flatnonzero(owner == which)
        block[:, columns] = block[np.ix_(rng.permutation(len(rows)), columns)]
    predicted = model.predict(blocks.reshape(-1, rows.shape[1])).reshape(len(used), len(rows))
    before = np.mean((target - model.predict(rows)) ** 2)
    return np.asarray(np.mean((target - predicted) ** 2, axis=1) - before, dtype=np.float64)


def _model(seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    # Few features per split: otherwise one of two parameters that act alike hides the other.
    return GradientBoostingRegressor(
        n_estimators=120,
        learning_rate=0.06,
        max_depth=3,
        min_samples_leaf=2,
        subsample=0.6,
        max_features=0.4,
        random_state=seed,
    )
