"""Differential evolution, SciPy's."""

from typing import Any

import numpy as np

from intop.learn.searching.run import Run


def evolution(run: Run) -> None:
    """Generations of SciPy's differential evolution, each of them one call, until the run ends.

    Without its final descent along gradients, which trees don't have, and without its own
    criterion of convergence.
    """
    from scipy.optimize import Bounds, differential_evolution

    columns = run.first.shape[1]

    def objective(genes: Any) -> Any:
        return run.scores_unless_stalled(genes.T)

    try:
        differential_evolution(
            objective,
            bounds=Bounds(np.zeros(columns), np.ones(columns)),
            init=run.first,
            maxiter=run.generations + 1,
            updating="deferred",
            vectorized=True,
            polish=False,
            tol=0.0,
            atol=-np.inf,
            rng=np.random.default_rng(run.seed),
        )
    except RuntimeError as error:
        # SciPy takes a ValueError for a mistake in how it was called.
        raise error.__cause__ or error from None
