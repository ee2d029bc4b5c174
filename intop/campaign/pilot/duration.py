"""The duration of a trial, chosen by trials of several durations."""

import math
from collections.abc import Sequence
from statistics import fmean

from intop.domain.further import looks_with_reserve
from intop.domain.pilot import Pilot, TriedDuration
from intop.domain.stats import (
    centred,
    chi_square_quantile,
    exponential,
    geometric_mean,
    student_quantile,
)
from intop.domain.trial import Trial

MOST_PAIRS = 1000
"""Nobody measures more of them for one verdict."""


def half_width(sd: float, pairs: int, *, level: float, look_count: int) -> float:
    """Return the half width of a verdict's interval on the log scale, for an sd of log latency.

    Student's t interval of the mean of `pairs` log ratios, which have sqrt(2) times the sd of a
    trial where both sides scatter alike and independently (`stats.paired_ratio`); at the level of
    the last of the looks at them, without further pairs (`looks_with_reserve`).
    """
    last = looks_with_reserve(pairs, look_count, (), level=level)[-1].level
    return student_quantile(last, pairs - 1) * math.sqrt(2 / pairs) * sd


def pairs_needed(sd: float, resolution: float, *, level: float, look_count: int) -> int | None:
    """Return the fewest pairs whose interval is within a ratio; None beyond MOST_PAIRS."""
    wanted = math.log(resolution)
    return next(
        (
            pairs
            for pairs in range(3, MOST_PAIRS + 1)
            if half_width(sd, pairs, level=level, look_count=look_count) <= wanted
        ),
        None,
    )


def tried_duration(
    duration_s: int,
    trials: Sequence[Trial],
    *,
    pairs: int,
    wanted: float,
    level: float,
    look_count: int,
) -> TriedDuration:
    """Return the result of usable trials of one duration, for verdicts of so many pairs.

    The sd is that within replicas of the cluster, as the sides of a verdict's pair are measured on
    the same one. Its interval is that of a variance, (n - replicas) s² / chi²: it takes log
    latency as normal (Snedecor and Cochran, Statistical Methods, 8th ed., 1989).
    Raises ValueError where no replica has two trials.
    """
    count = len(trials)
    replicas = [t.replica for t in trials]
    freedom = count - len(set(replicas))
    if freedom < 1:
        raise ValueError(f"only {count} of the trials of {duration_s} s could be measured")
    around = centred([math.log(t.judged_ms) for t in trials], replicas)
    sd = math.sqrt(math.fsum(x**2 for x in around) / freedom)
    low, high = (
        sd * math.sqrt(freedom / chi_square_quantile(tail, freedom))
        for tail in ((1 + level) / 2, (1 - level) / 2)
    )

    def resolution(spread: float) -> float:
        # Two trials have an interval beyond what a float can hold.
        return exponential(half_width(spread, pairs, level=level, look_count=look_count))

    return TriedDuration(
        duration_s=duration_s,
        requests=round(trials[0].conditions.rate_rps * duration_s),
        trials=count,
        judged_ms=geometric_mean([t.judged_ms for t in trials]),
        sd=sd,
        sd_low=low,
        sd_high=high,
        resolution=resolution(sd),
        resolution_low=resolution(low),
        resolution_high=resolution(high),
        pairs_needed=pairs_needed(sd, wanted, level=level, look_count=look_count),
        seconds=fmean(t.seconds for t in trials),
    )


def stalled(tried: Sequence[TriedDuration]) -> bool:
    """Return whether neither of the last two doublings made trials scatter less than before.

    A single doubling says little: the sd of five trials is known to a factor of two or three.
    """
    spreads = [duration.sd for duration in tried]
    return len(spreads) > 2 and min(spreads[-2:]) >= min(spreads[:-2])


def chosen(
    tried: Sequence[TriedDuration],
    *,
    shortest_s: int,
    wanted: float,
    pairs: int,
    level: float,
    given_s: int | None = None,
) -> Pilot:
    """Return the shortest duration from `shortest_s` on that resolves what is wanted.

    Where none does, it is the one with the least time for its resolution: a verdict's variance is
    2 sd² / pairs, its time 2 pairs x seconds, so their product goes by seconds x sd² however many
    pairs there are (Cochran, Sampling Techniques, 3rd ed., 1977, chapter 5, weighs cost against
    variance in this way). `given_s` is the file's duration, which stands.
    """
    rows = sorted(tried, key=lambda row: row.duration_s)
    choice = [row for row in rows if row.duration_s >= shortest_s]
    best = next((row for row in choice if row.resolution <= wanted), None)
    reached = best is not None
    best = best or min(choice, key=lambda row: row.seconds * row.sd**2)
    return Pilot(
        duration_s=best.duration_s,
        tried=tuple(rows),
        reached=reached,
        stalled=not reached and stalled(choice),
        wanted=wanted,
        pairs=pairs,
        level=level,
        given_s=given_s,
    )
