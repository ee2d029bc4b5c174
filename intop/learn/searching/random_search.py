"""Random search: what every algorithm has to beat."""

import numpy as np

from intop.learn.searching.run import Run


def random_search(run: Run) -> None:
    """Populations drawn evenly from the cube of genes, until the run has ended."""
    rng = np.random.default_rng(run.seed)
    run.scores(run.first)
    while True:
        run.scores_unless_stalled(rng.random(run.first.shape))
