"""Finalists: which candidates are worth measuring.

The best of a search are mostly neighbours of each other, which stand or fall together.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.search import Candidate
from intop.domain.space import Space

SLACK = 0.15
CROWD = 10


def diverse(
    space: Space,
    candidates: Sequence[Candidate],
    count: int,
    *,
    weights: Mapping[str, float] | None = None,
    slack: float = SLACK,
) -> list[Candidate]:
    """At most `count` good candidates that differ, the best of all first.

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
    """Features (n, f) whose distances count a parameter by its weight."""
    features = space.encode(space.values([c.configuration for c in candidates]))
    if weights is None:
        return features
    return features * np.array([weights.get(k, 0.0) for k in space.feature_keys], dtype=np.float64)
