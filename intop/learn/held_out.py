"""What the tree families together say of rows that they have not seen."""

from collections.abc import Callable, Sequence

import numpy as np

from intop.domain.training import FittedFamily
from intop.learn.folds import split
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import fit_trees


def held_out(
    fitted: Sequence[FittedFamily],
    samples: Samples,
    *,
    folds: int,
    seed: int,
    progress: Callable[[str], None] | None = None,
) -> Vector:
    """The log target (n,) of each row, by the mean of the tree families fitted without its fold.

    The hyper-parameters are taken as they are, so this takes a fit for each family and fold.
    Raises ValueError when no tree family is among `fitted`.
    """
    guesses = np.empty(len(samples))
    for number, fold in enumerate(split(len(samples), folds, seed), start=1):
        training = samples.rows(fold.training)
        if np.ptp(training.log_target) == 0:
            # Not every library takes a target that never varies.
            guesses[fold.held_out] = training.log_target[0]
        else:
            predictor = fit_trees(fitted, training, seed)
            guesses[fold.held_out] = predictor(samples.values[fold.held_out])
        if progress is not None:
            progress(f"fold {number}")
    return guesses
