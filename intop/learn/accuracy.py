"""Accuracy: how far guesses of the log target are from what was measured.

The measures take logarithms (n,), measured first.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from intop.learn.samples import Vector


def mape(measured: "Vector", guesses: "Vector") -> float:
    """Return the mean absolute error in percent of the measured target itself."""
    with np.errstate(over="ignore"):
        # |exp(guess) - target| / target, without the two large numbers.
        return float(100 * np.mean(np.abs(np.expm1(guesses - measured))))


def r_squared(measured: "Vector", guesses: "Vector") -> float:
    """Return the share of the variance that the guesses explain; 0 when nothing varies."""
    total = float(np.sum((measured - measured.mean()) ** 2))
    return 0.0 if total == 0 else 1 - float(np.sum((measured - guesses) ** 2)) / total


def rank_correlation(measured: "Vector", guesses: "Vector") -> float:
    """Return Spearman's correlation; 0 for a model that always says the same."""
    from scipy.stats import spearmanr

    if np.ptp(guesses) == 0 or np.ptp(measured) == 0:
        return 0.0
    return float(spearmanr(measured, guesses).statistic)


def regret(measured: "Vector", guesses: "Vector") -> float:
    """Return by how many percent the row predicted lowest was measured above the lowest.

    Where several are predicted lowest, the mean over them. The lowest measured one had luck as
    well, so a perfect model has a regret, too, where there is noise.
    """
    picked = measured[guesses == guesses.min()]
    with np.errstate(over="ignore"):
        return float(100 * np.mean(np.expm1(picked - measured.min())))


def weights_by_error(errors: Sequence[float], steepness: float) -> "Vector":
    """Return weights (n,) with sum 1, in proportion to errors to the power of -steepness."""
    # A model that meets everything exactly has an error of 0.
    floored = np.maximum(errors, 1e-12)
    weights = (floored / floored.min()) ** -steepness
    return np.asarray(weights / weights.sum())
