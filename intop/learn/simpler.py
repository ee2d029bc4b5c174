"""Candidates that change no more than what the models promise something of.

A search gives each parameter some value, also the many that do nothing. Whoever measures a
candidate has the risks of all its changes, and an explanation has to look at each of them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.search import Candidate
from intop.domain.space import Space, mixture
from intop.learn.samples import Vector
from intop.learn.searching.run import Predict, estimated

TOLERANCE = 0.01
"""In log P99, penalty included: what all changes that are taken back may cost together."""


def simpler(space: Space, candidate: Candidate, predict: Predict) -> Candidate:
    """The candidate with as many changes taken back to the default as cost next to nothing.

    Those whose loss is predicted to be least go first, and together by no more than TOLERANCE; what
    only changes together goes together. One change stays at least. A function of its arguments.
    """
    configuration = candidate.configuration
    groups = space.together(configuration, DEFAULT)

    def made(kept: Sequence[set[str]]) -> Configuration:
        return mixture(configuration, DEFAULT, set().union(*kept))

    def scores(several: Sequence[Configuration]) -> Vector:
        return estimated(predict, space.values(several)).score

    limit = scores([configuration])[0] + TOLERANCE
    while len(groups) > 1:
        alone = scores([made([g for g in groups if g is not one]) for one in groups])
        groups = [groups[n] for n in np.argsort(alone, kind="stable")]
        # Without the first one, the first two, and so on.
        nested = scores([made(groups[n:]) for n in range(1, len(groups))])
        fit = [n for n, score in enumerate(nested, 1) if score <= limit]
        if not fit:
            break
        groups = groups[fit[-1] :]
    found = estimated(predict, space.values([made(groups)]))
    spread = float(found.spread[0])
    return replace(
        candidate,
        configuration=made(groups),
        predicted_p99_ms=float(np.exp(found.log_p99[0])),
        spread=spread,
        penalised_p99_ms=None if spread == 0 else float(np.exp(found.score[0])),
    )
