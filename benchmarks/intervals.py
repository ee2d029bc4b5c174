"""Which interval of a ratio of P99s holds the truth as often as it says, and what looks cost.

Simulated, in some seconds. P99 is lumpy: 15 ms, and 200 ms for each time-out that TCP waited for;
the default meets many of them, the tuned side few (see `LUMPS`). Trials are correlated in time,
independent, or the gain itself drifts. Prints how often each method's 95 % interval holds the
true ratio, how wide it is, and how many pairs are saved by looking before the end. The tables of
looks are of Student's t, which verdicts use.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import t as student_t

from intop.domain.stats import looks

Floats = NDArray[np.float64]
Method = Callable[[Floats, float], tuple[Floats, Floats]]

SEED, RUNS, RESAMPLES = 7, 4000, 999
LEVEL = 0.95
PAIRS = (6, 10, 20)
EARLY = (10, looks(20, 2, level=LEVEL)[0].level)
"""The first of two looks at 20 pairs, which has to be surer."""
BLOCK = 2
"""Rounds in a block: the cube root of 6 to 20 rounds is 1.8 to 2.7, and 2 divides them all."""

LUMPS = {"default": (0.3, 0.5, 0.15, 0.0, 0.05), "tuned": (0.85, 0.12, 0.03)}
"""How likely P99 has 0, 1, 2 ... time-outs of 200 ms in it, by side."""

CORRELATIONS = ("none", "in time", "of the gain")


# Intervals of the mean of log ratios, for each row of (runs, rounds) ------------------------------


def student(ratios: Floats, level: float) -> tuple[Floats, Floats]:
    """Student's t: what `stats.paired_ratio` computes."""
    count = ratios.shape[1]
    half = student_t.ppf((1 + level) / 2, count - 1) * ratios.std(axis=1, ddof=1) / count**0.5
    return ratios.mean(axis=1) - half, ratios.mean(axis=1) + half


def student_of_blocks(ratios: Floats, level: float) -> tuple[Floats, Floats]:
    """Student's t of the means of blocks that follow each other."""
    return student(ratios.reshape(len(ratios), -1, BLOCK).mean(axis=2), level)


def percentile(ratios: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentiles of means of resampled circular blocks."""
    means, _, _ = resampled(ratios, BLOCK)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=1)
    return low, high


def bca(ratios: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentiles corrected for bias and acceleration (Efron 1987), the jackknife by block."""
    means, blocks, _ = resampled(ratios, BLOCK)
    mean, count = ratios.mean(axis=1, keepdims=True), ratios.shape[1]
    below = (means < mean).mean(axis=1) + (means == mean).mean(axis=1) / 2
    bias = ndtri(np.clip(below, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    apart = mean - (count * mean - BLOCK * blocks) / (count - BLOCK)
    spread = (apart**2).sum(axis=1) ** 1.5
    acceleration = (apart**3).sum(axis=1) / (6 * np.where(spread > 0, spread, 1))
    ordered = np.sort(means, axis=1)
    ends = []
    for z in (ndtri((1 - level) / 2), ndtri((1 + level) / 2)):
        share = ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
        place = np.clip((share * RESAMPLES).astype(int), 0, RESAMPLES - 1)
        ends.append(np.take_along_axis(ordered, place[:, None], axis=1)[:, 0])
    return ends[0], ends[1]


def studentised(ratios: Floats, level: float, block: int = BLOCK) -> tuple[Floats, Floats]:
    """Symmetric bootstrap-t of circular blocks; infinite where resamples have no spread."""
    means, blocks, squares = resampled(ratios, block)
    mean, drawn = ratios.mean(axis=1, keepdims=True), ratios.shape[1] // block
    own = blocks.var(axis=1) / (drawn - 1)
    spread = np.sqrt(np.maximum(squares - means**2, 0) / (drawn - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = np.abs(means - mean) / np.where(spread > 1e-12, spread, 0)
    quantile = np.quantile(
        np.nan_to_num(pivots, nan=0, posinf=np.inf), level, axis=1, method="higher"
    )
    half = quantile * np.sqrt(own)
    return mean[:, 0] - half, mean[:, 0] + half


def studentised_single(ratios: Floats, level: float) -> tuple[Floats, Floats]:
    """Symmetric bootstrap-t of single rounds."""
    return studentised(ratios, level, 1)


def resampled(ratios: Floats, block: int) -> tuple[Floats, Floats, Floats]:
    """Means of resamples, the means of all circular blocks, and resamples' mean squares of those.

    (runs, RESAMPLES), (runs, rounds), (runs, RESAMPLES). All runs have the same resamples.
    """
    count = ratios.shape[1]
    drawn = count // block
    starts = np.random.default_rng(SEED).integers(count, size=(RESAMPLES, drawn))
    weights = (starts[:, :, None] == np.arange(count)).sum(axis=1).T / drawn
    blocks = np.mean([np.roll(ratios, -step, axis=1) for step in range(block)], axis=0)
    return blocks @ weights, blocks, blocks**2 @ weights


METHODS: dict[str, Method] = {
    "Student t": student,
    "t of blocks": student_of_blocks,
    "percentile": percentile,
    "BCa": bca,
    "bootstrap-t": studentised,
    "bootstrap-t, single rounds": studentised_single,
}


# What is measured ---------------------------------------------------------------------------------


def lumpy(latent: Floats, side: str, rng: np.random.Generator) -> Floats:
    """log P99 of trials that are as slow as `latent` (standard normal) says."""
    timeouts = np.searchsorted(np.cumsum(LUMPS[side])[:-1], ndtr(latent), side="right")
    return np.log(15 * np.exp(0.15 * rng.standard_normal(latent.shape)) + 200 * timeouts)


def log_ratios(
    runs: int, pairs: int, correlation: str, sides: tuple[str, str], seed: int = SEED
) -> Floats:
    """(runs, pairs) log ratios of two sides of interleaved rounds, each in an order of its own.

    `in time`: a trial's slowness is correlated with that of the trial before by 0.6. `of the
    gain`: each side's is with that of its own trial in the round before, by 0.3.
    """
    rng = np.random.default_rng(seed)
    if correlation == "in time":
        trials = autoregressive(rng, (runs, 2 * pairs), 0.6).reshape(runs, pairs, 2)
        first = rng.integers(2, size=(runs, pairs, 1))
        latent = np.take_along_axis(trials, np.concatenate([first, 1 - first], axis=2), axis=2)
    else:
        strength = 0.3 if correlation == "of the gain" else 0.0
        both = [autoregressive(rng, (runs, pairs), strength) for _ in sides]
        latent = np.stack(both, axis=2)
    return lumpy(latent[:, :, 0], sides[0], rng) - lumpy(latent[:, :, 1], sides[1], rng)


def autoregressive(rng: np.random.Generator, shape: tuple[int, int], strength: float) -> Floats:
    """Standard normal rows in which each value is correlated with the one before by `strength`."""
    values = rng.standard_normal(shape)
    for place in range(1, shape[1]):
        values[:, place] *= (1 - strength**2) ** 0.5
        values[:, place] += strength * values[:, place - 1]
    return values


def true_log_ratio(sides: tuple[str, str]) -> float:
    """What `log_ratios` has for its mean, by Gauss and Hermite."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def mean(side: str) -> float:
        shares = LUMPS[side]
        return float(
            sum(
                share * weights @ np.log(15 * np.exp(0.15 * nodes) + 200 * timeouts)
                for timeouts, share in enumerate(shares)
            )
        )

    return mean(sides[0]) - mean(sides[1])


def coverage(method: Method, ratios: Floats, truth: float, level: float) -> tuple[float, float]:
    """How often the truth is inside, and the median of upper / lower end (as ratios)."""
    low, high = method(ratios, level)
    inside = (low <= truth) & (truth <= high)
    return float(inside.mean()), float(np.exp(np.median(high - low)))


def judged(ratios: Floats, count: int, level: float) -> tuple[Floats, Floats]:
    """Pairs that each run takes, and -1, 0, 1 for worse, nothing, gain, with `count` looks."""
    runs, pairs = ratios.shape
    taken, outcome = np.full(runs, float(pairs)), np.zeros(runs)
    going = np.ones(runs, dtype=bool)
    for look in looks(pairs, count, level=level):
        low, high = student(ratios[:, : look.rounds], look.level)
        clear = going & ((low > 0) | (high < 0))
        taken[clear], outcome[clear] = look.rounds, np.where(low > 0, 1, -1)[clear]
        going &= ~clear
    return taken, outcome


def reported(ratios: Floats, count: int, level: float, truth: float) -> float:
    """How often the interval that `judged` ends with holds the truth."""
    taken, _ = judged(ratios, count, level)
    held = np.zeros(len(ratios), dtype=bool)
    for look in looks(ratios.shape[1], count, level=level):
        low, high = student(ratios[:, : look.rounds], look.level)
        held |= (taken == look.rounds) & (low <= truth) & (truth <= high)
    return float(held.mean())


# Tables -------------------------------------------------------------------------------------------


def main() -> None:
    for title, sides in (
        ("Both sides as the default", ("default", "default")),
        ("Default against tuned", ("default", "tuned")),
    ):
        print(f"\n{title}: share of intervals that hold the truth (upper / lower end)\n")
        methods(sides)
    print(f"\nBoth sides the same: share of verdicts that call a difference at {LEVEL:.0%}\n")
    by_looks(
        ("default", "default"),
        lambda ratios, count: float((judged(ratios, count, LEVEL)[1] != 0).mean()),
    )
    print("\nDefault against tuned: share of the verdicts' intervals that hold the truth\n")
    sides = ("default", "tuned")
    truth = true_log_ratio(sides)
    by_looks(sides, lambda ratios, count: reported(ratios, count, LEVEL, truth))
    print("\nTrue gains, 2 looks, log-normal noise: mean pairs; share found (with 1 look)\n")
    savings()


def methods(sides: tuple[str, str]) -> None:
    """Coverage and width of all methods."""
    print(f"| correlation | pairs | level | {' | '.join(METHODS)} |")
    print(f"|---|---:|---:|{'---:|' * len(METHODS)}")
    truth = true_log_ratio(sides)
    for correlation in CORRELATIONS:
        for pairs, level in (*((pairs, LEVEL) for pairs in PAIRS), EARLY):
            ratios = log_ratios(RUNS, pairs, correlation, sides)
            found = (coverage(m, ratios, truth, level) for m in METHODS.values())
            cells = " | ".join(f"{share:.1%} ({width:.3g})" for share, width in found)
            print(f"| {correlation} | {pairs} | {level:.2%} | {cells} |", flush=True)


def by_looks(sides: tuple[str, str], share: Callable[[Floats, int], float]) -> None:
    """A share of verdicts by the number of looks."""
    print("| correlation | pairs | 1 look | 2 looks | 3 looks |")
    print("|---|---:|---:|---:|---:|")
    for correlation in CORRELATIONS:
        for pairs in PAIRS[1:]:
            ratios = log_ratios(RUNS, pairs, correlation, sides)
            cells = " | ".join(f"{share(ratios, count):.1%}" for count in (1, 2, 3))
            print(f"| {correlation} | {pairs} | {cells} |", flush=True)


def savings() -> None:
    """Pairs taken where there is a gain, and whether it is still found."""
    print("| sd of a pair's log ratio | pairs planned | 1.5 | 3 | 10 |")
    print("|---:|---:|---:|---:|---:|")
    rng = np.random.default_rng(SEED)
    for spread in (0.15, 0.3, 0.7):
        for pairs in PAIRS[1:]:
            noise = spread * rng.standard_normal((RUNS, pairs))
            cells = []
            for gain in (1.5, 3, 10):
                taken, outcome = judged(noise + np.log(gain), 2, LEVEL)
                _, once = judged(noise + np.log(gain), 1, LEVEL)
                found, before = (outcome == 1).mean(), (once == 1).mean()
                cells.append(f"{taken.mean():.1f}; {found:.0%} ({before:.0%})")
            print(f"| {spread} | {pairs} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
