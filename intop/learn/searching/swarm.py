"""Particle swarm optimisation.

Written here: SciPy has none, and DEAP's tools move one particle at a time.
"""

import numpy as np

from intop.learn.searching.run import Run

INERTIA, PULL = 0.7298, 1.49618
"""The constriction of Clerc and Kennedy (IEEE Transactions on Evolutionary Computation 6, 2002,
58-73), in the form of an inertia and two equal pulls."""
FASTEST = 0.5
"""The fastest move as a share of the range in a generation: beyond, particles would only stick to
the borders."""


def swarm(run: Run) -> None:
    """Move all particles, and predict them in one call, until the run has ended.

    Each is pulled to where it was best and to where the best of all was. At a border it stops.
    """
    rng = np.random.default_rng(run.seed)
    places, best = run.first.copy(), run.first.copy()
    lowest = run.scores(places)
    speeds = np.zeros_like(places)
    while True:
        own, common = rng.random((2, *places.shape))
        leader = best[np.argmin(lowest)]
        speeds = INERTIA * speeds + PULL * (own * (best - places) + common * (leader - places))
        speeds = np.clip(speeds, -FASTEST, FASTEST)
        moved = places + speeds
        places = np.clip(moved, 0.0, 1.0)
        speeds[places != moved] = 0.0
        scores = run.scores_unless_stalled(places)
        better = scores < lowest
        best[better], lowest[better] = places[better], scores[better]
