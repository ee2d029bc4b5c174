"""Evidence and bounds that hold whenever one looks, for pairs in random order.

A pair has a block of each side, one after the other, in an order that a fair coin decides. Where
the two sides do the same, the difference `d` of a pair is as likely +|d| as -|d|, whatever drifts
from block to block. So for each θ > 0 the factor

    1 + tanh(θ d) = exp(θ d) / cosh(θ d)

has the mean 1 given all pairs before. A product of such factors is a martingale. By Ville's
inequality it ever exceeds 1/a with a probability of at most a (Ville, *Étude critique de la notion
de collectif*, 1939). Each factor is the likelihood ratio of the sign of a normal difference, given
its size, for θ = mean/variance. It is never below exp(θ d - θ² d² / 2), the factor of de la Peña
(*Annals of Probability* 27, 1999), since cosh x <= exp(x²/2). A mean over several θ needs no guess
at the effect.

A bound that one look has shown holds from then on.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

THETAS = tuple(float(2**n) for n in range(9))
"""The θ of the mean, for differences of logarithms: effects of a few percent to several times."""

_STEPS = 40
"""Halvings of a bracket: to 1e-12 of it."""


def evidence(differences: Sequence[float]) -> "NDArray[np.float64]":
    """Return the evidence that the mean difference is above zero, after each pair.

    It is a natural logarithm.
    """
    import numpy as np

    doubled = -2 * np.multiply.outer(THETAS, np.asarray(differences, dtype=float))
    # The logarithm of 1 + tanh x, also where tanh x rounds to -1.
    logs = (math.log(2) - np.logaddexp(0, doubled)).cumsum(axis=1)
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(THETAS)))


def is_above(differences: Sequence[float], bound: float, error_rate: float) -> bool:
    """Return whether the mean difference is shown to be above a number, at any look so far.

    Over all looks together it is wrong with at most this probability. It takes the difference of
    the sides as constant.
    """
    if not differences:
        return False
    return bool(evidence([d - bound for d in differences]).max() >= -math.log(error_rate))


def lower_bound(differences: Sequence[float], error_rate: float) -> float:
    """Return the highest number that `is_above` shows; minus infinity with too few pairs."""
    if len(differences) * math.log(2) <= -math.log(error_rate):
        return -math.inf
    high = max(differences)
    reach = 1.0
    while not is_above(differences, low := high - reach, error_rate):
        reach *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        shown = is_above(differences, middle, error_rate)
        low, high = (middle, high) if shown else (low, middle)
    return low


def upper_bound(differences: Sequence[float], error_rate: float) -> float:
    """Return the number that the mean difference is below, as `lower_bound` does."""
    return -lower_bound([-d for d in differences], error_rate)
