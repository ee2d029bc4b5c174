"""Screening: which parameters matter, by stochastic gradient boosting regression trees (SGBRT)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix
from intop.domain.results import Importance, Ranking
from intop.domain.space import Space

FEWEST_TRIALS = 5


def rank(
    space: Space,
    configurations: Sequence[Configuration],
    p99_ms: Sequence[float],
    *,
    keep: int,
    seed: int,
    seeds: int = 20,
) -> Ranking:
    """The parameters of a space by how much they explain of log P99; the first `keep` are chosen.

    One model for each of `seeds`, fitted to a bootstrap sample of the trials: the standard
    deviation then shows how far the ranking hangs on single trials. Raises ValueError for too
    few trials, lists of different lengths, or a P99 that is not a positive number.
    """
    latencies = np.asarray(p99_ms, dtype=np.float64)
    if len(configurations) != len(latencies):
        raise ValueError(f"{len(configurations)} configurations but {len(latencies)} P99 values")
    if len(latencies) < FEWEST_TRIALS:
        raise ValueError(
            f"{len(latencies)} trials are too few to rank parameters; at least {FEWEST_TRIALS}"
        )
    if not np.all(np.isfinite(latencies) & (latencies > 0)):
        raise ValueError("every P99 must be a positive number of milliseconds")
    if keep < 1 or seeds < 1:
        raise ValueError(f"keep and seeds must be at least 1, got {keep} and {seeds}")
    features = space.encode(space.values(configurations))
    shares = _shares(space, features, np.log(latencies), np.random.default_rng(seed), seeds)
    means, spreads = shares.mean(axis=0), shares.std(axis=0)
    # A stable sort: parameters of equal importance keep the catalogue's order.
    order = np.argsort(-means, kind="stable")
    importances = tuple(
        Importance(key=space.parameters[i].key, mean=float(means[i]), sd=float(spreads[i]))
        for i in order
    )
    chosen = tuple(importance.key for importance in importances[:keep])
    return Ranking(importances=importances, chosen=chosen, trials=len(latencies))


def _shares(
    space: Space,
    features: Matrix,
    log_p99: NDArray[np.float64],
    rng: np.random.Generator,
    seeds: int,
) -> Matrix:
    """Importances (seeds, parameters); each row adds up to 1."""
    keys = [parameter.key for parameter in space.parameters]
    owner = np.array([keys.index(key) for key in space.feature_keys])
    shares = np.empty((seeds, len(keys)))
    for row in range(seeds):
        sample = rng.integers(len(log_p99), size=len(log_p99))
        importance = _importance(features[sample], log_p99[sample], int(rng.integers(2**31)))
        summed = np.bincount(owner, weights=importance, minlength=len(keys))
        # A constant P99 gives no tree a reason to split: then every parameter counts the same.
        shares[row] = summed / summed.sum() if summed.sum() > 0 else 1 / len(keys)
    return shares


def _importance(features: Matrix, log_p99: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    from sklearn.ensemble import GradientBoostingRegressor

    # Few features per split: otherwise one of two parameters that act alike hides the other.
    model = GradientBoostingRegressor(
        n_estimators=120,
        learning_rate=0.06,
        max_depth=3,
        min_samples_leaf=2,
        subsample=0.6,
        max_features=0.4,
        random_state=seed,
    )
    model.fit(features, log_p99)
    return np.asarray(model.feature_importances_, dtype=np.float64)
