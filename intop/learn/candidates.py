"""Candidates of a search: which to measure, and with how few changes.

The best of a search are mostly neighbours of each other, which stand or fall together. And a search
gives each parameter some value, also the many that do nothing: whoever measures a candidate has the
risks of all its changes, and an explanation has to look at each of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from intop.domain.configuration import DEFAULT, Configuration, mixture
from intop.domain.encoding import Matrix
from intop.domain.search import Candidate
from intop.domain.space import Space
from intop.learn.samples import Vector
from intop.learn.searching.run import Predict, estimated

SLACK = 0.15
CROWD = 10
TOLERANCE = 0.01
"""The cost in log latency, penalty included, that all changes that are taken back may add up to.
"""


def diverse(
    space: Space,
    candidates: Sequence[Candidate],
    count: int,
    *,
    weights: Mapping[str, float] | None = None,
    slack: float = SLACK,
) -> list[Candidate]:
    """Return at most `count` good candidates that differ, the best of all first.

    Good: predicted, with the penalty where it has one, at most `slack` (a fraction) above the
    best, or among the best CROWD times `count` when few are. Each further one is the farthest, in
    features, from those taken. `weights` by key, such as the importances of a ranking, keep
    parameters without effect from passing for a difference. Raises ValueError for a negative count.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    pool = _good(sorted(candidates, key=lambda c: c.rank_ms), count, slack)
    if not pool or count == 0:
        return []
    places = _weighted(space, pool, weights)
    taken = [0]
    nearest = np.full(len(pool), np.inf)
    while len(taken) < min(count, len(pool)):
        nearest = np.minimum(nearest, np.linalg.norm(places - places[taken[-1]], axis=1))
        # What is taken must not be taken again, even where all distances are 0.
        nearest[taken] = -1.0
        taken.append(int(np.argmax(nearest)))
    return [pool[i] for i in taken]


def _good(ranked: Sequence[Candidate], count: int, slack: float) -> list[Candidate]:
    limit = ranked[0].rank_ms * (1 + slack) if ranked else 0.0
    good = [c for c in ranked if c.rank_ms <= limit]
    return good if len(good) >= count else list(ranked[: CROWD * count])


def _weighted(
    space: Space, candidates: Sequence[Candidate], weights: Mapping[str, float] | None
) -> Matrix:
    """Return features (n, f) whose distances count a parameter by its weight."""
    features = space.encode(space.values([c.configuration for c in candidates]))
    if weights is None:
        return features
    return features * np.array([weights.get(k, 0.0) for k in space.feature_keys], dtype=np.float64)


def simpler(space: Space, candidate: Candidate, predict: Predict) -> Candidate:
    """Return the candidate with those changes alone that promise something.

    Changes whose loss is predicted to be least go back to the default first, and together lose no
    more than TOLERANCE; what only changes together goes together. One change stays at least.
    """
    configuration = candidate.configuration
    groups = space.together(configuration, DEFAULT)

    def mixed(kept: Sequence[set[str]]) -> Configuration:
        return mixture(configuration, DEFAULT, set().union(*kept))

    def scores(several: Sequence[Configuration]) -> Vector:
        return estimated(predict, space.values(several)).score

    limit = scores([configuration])[0] + TOLERANCE
    while len(groups) > 1:
        without = scores([mixed([g for g in groups if g is not group]) for group in groups])
        groups = [groups[n] for n in np.argsort(without, kind="stable")]
        # Without the first one, the first two, and so on.
        nested = scores([mixed(groups[n:]) for n in range(1, len(groups))])
        fit = [n for n, score in enumerate(nested, 1) if score <= limit]
        if not fit:
            break
        groups = groups[fit[-1] :]
    estimate = estimated(predict, space.values([mixed(groups)]))
    spread = float(estimate.spread[0])
    return replace(
        candidate,
        configuration=mixed(groups),
        predicted_ms=float(np.exp(estimate.log_latency[0])),
        spread=spread,
        penalised_ms=None if spread == 0 else float(np.exp(estimate.score[0])),
    )
