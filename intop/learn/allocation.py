"""Allocation: which configurations are worth further trials, so that the best one is found."""

import math
from collections.abc import Sequence

TIE = 0.1
"""Means that are closer than this share of a trial's standard deviation count as that far apart."""


def ocba(means: Sequence[float], variances: Sequence[float], total: float) -> list[float]:
    """Return how many of `total` trials each configuration should have to tell the lowest mean.

    Optimal computing budget allocation (Chen, Lin, Yücesan and Chick, Discrete Event Dynamic
    Systems 10, 2000, 251-270): in proportion to (s_i / (mean_i - mean_best))², and for the best
    itself s_best * sqrt(sum of (N_i / s_i)² over the others). So a noisy one and a promising one
    get many, a quiet bad one few. `variances` are those of single trials, s². Ties would get all
    of it, hence TIE. Raises ValueError for a variance that is not positive, or lists of different
    lengths.
    """
    if any(v <= 0 for v in variances):
        raise ValueError(f"variances must be positive, got {min(variances)}")
    if not means:
        return []
    best = min(range(len(means)), key=means.__getitem__)
    shares = [
        variance / max(mean - means[best], TIE * math.sqrt(variance)) ** 2
        for mean, variance in zip(means, variances, strict=True)
    ]
    terms = [s**2 / v for n, (s, v) in enumerate(zip(shares, variances, strict=True)) if n != best]
    shares[best] = math.sqrt(variances[best] * math.fsum(terms)) if terms else 1.0
    whole = math.fsum(shares)
    return [total * share / whole for share in shares]


def next_batch(
    means: Sequence[float], variances: Sequence[float], counts: Sequence[int], size: int
) -> list[int]:
    """Return the indices of `size` configurations to measure next, each of them once.

    Those that lack most trials of what `ocba` gives them, out of all that there are after this
    batch; `counts` is how many each has. Of equals, the lower mean comes first, then the lower
    index. Fewer than `size` where there are fewer configurations.
    """
    wanted = ocba(means, variances, sum(counts) + size)
    lack = [want - count for want, count in zip(wanted, counts, strict=True)]
    return sorted(range(len(means)), key=lambda n: (-lack[n], means[n], n))[:size]
