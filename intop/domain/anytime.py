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
"""

import math
from collections.abc import Sequence

THETAS = tuple(float(2**n) for n in range(9))
"""The θ of the mean, for differences of logarithms: effects of a few percent to several times."""

_STEPS = 40
"""Halvings of a bracket: to 1e-12 of it."""


def evidence(differences: Sequence[float]) -> float:
    """Return the natural logarithm of the evidence that the mean difference is above zero."""
    import numpy as np

    doubled = -2 * np.multiply.outer(THETAS, np.asarray(differences, dtype=float))
    # The logarithm of 1 + tanh x, also where tanh x rounds to -1.
    logs = (math.log(2) - np.logaddexp(0, doubled)).sum(axis=1)
    return float(np.logaddexp.reduce(logs) - math.log(len(THETAS)))


def lower_bound(differences: Sequence[float], error_rate: float) -> float:
    """Return the number that the mean difference is above; minus infinity with too few pairs.

    Over all looks together it is wrong with at most this probability. It takes the difference of
    the sides as constant.
    """
    wanted = -math.log(error_rate)
    if len(differences) * math.log(2) <= wanted:
        return -math.inf

    def is_shown(bound: float) -> bool:
        return evidence([d - bound for d in differences]) >= wanted

    high = max(differences)
    reach = 1.0
    while not is_shown(low := high - reach):
        reach *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_shown(middle) else (low, middle)
    return low


def upper_bound(differences: Sequence[float], error_rate: float) -> float:
    """Return the number that the mean difference is below, as `lower_bound` does."""
    return -lower_bound([-d for d in differences], error_rate)
