"""Recorded arrivals: the part of a recording that a trial plays, shared out among its streams.

A trial of seconds stands for an hour. So the recording is cut into strata of equal length, and a
trial plays a window of each. Where a window begins is drawn by a seed, and moves on from round to
round in steps of the golden ratio: such steps fill a stratum evenly, however many follow (Weyl,
Mathematische Annalen 77, 1916).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from intop.domain.workload import Recording, Workload

Words = NDArray[np.uint64]
"""The requests of a recording in the order of time, a word for each.

A word is the time in µs times MOST_PATHS, plus the place of the path in the workload's list.
"""
Whole = NDArray[np.int64]

PATH_BITS = 20
MOST_PATHS = 1 << PATH_BITS
MOST_WINDOWS = 10
"""Windows of a trial. Each is a second or longer, since a burst must fit into one."""
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Slots:
    """Requests in the order in which they are due."""

    due_us: Whole
    """Times since the first moment of the warm-up."""
    paths: Whole
    """Places in the workload's list of paths, from 0 on."""

    def due_from(self, at_us: float) -> int:
        """Return the number of requests that are due at that time or later."""
        return int(np.count_nonzero(self.due_us >= at_us))

    def shared(self, shares: Sequence[float]) -> "list[Slots]":
        """Return a part for each share. Every slot is in one part, and bursts are shared, too.

        The shares add up to 1.
        """
        turns = np.arange(len(self.due_us)) * GOLDEN % 1
        owner = np.searchsorted(np.cumsum(shares)[:-1], turns, side="right")
        own = [owner == number for number in range(len(shares))]
        return [Slots(self.due_us[mine], self.paths[mine]) for mine in own]

    def text(self) -> str:
        """Return the engine's file: a line for each slot, with µs and the path's number from 1."""
        rows = zip(self.due_us.tolist(), self.paths.tolist(), strict=True)
        return "".join(f"{due_us} {path + 1}\n" for due_us, path in rows)


def times_us(words: Words) -> Whole:
    """Return the times of requests."""
    return (words >> np.uint64(PATH_BITS)).astype(np.int64)


def paths_of(words: Words) -> Whole:
    """Return the places of their paths."""
    return (words & np.uint64(MOST_PATHS - 1)).astype(np.int64)


def windows(length_s: float, played_s: float, count: int, *, seed: int, number: int) -> list[float]:
    """Return where a trial's windows begin in a recording (s), one in each stratum.

    A trial plays `played_s` of the recording in at most `count` windows. A recording that is no
    longer than that is one stratum. `seed` is that of a series of trials, and `number` the trial's
    in it: equal ones have equal windows.
    """
    count = 1 if played_s >= length_s else count
    draws = Random(seed)
    return [
        (stratum + (draws.random() + number * GOLDEN) % 1) * length_s / count
        for stratum in range(count)
    ]


def trial_slots(
    words: Words, recording: Recording, load: Workload, *, seed: int, number: int
) -> Slots:
    """Return the slots of a trial of this load: its warm-up, then its windows in order.

    The warm-up plays what comes before the first window. Time runs faster or slower, so that the
    whole recording would have the load's rate. After its end the recording begins again.
    """
    speed = load.rate_rps / recording.rate_rps
    begins = windows(
        recording.seconds,
        load.counted_s * speed,
        min(MOST_WINDOWS, load.counted_s),
        seed=seed,
        number=number,
    )
    each_s = load.counted_s / len(begins)
    ends_us = [round(1e6 * (load.warmup_s + n * each_s)) for n in range(1, len(begins) + 1)]
    begins[0] -= load.warmup_s * speed
    parts = [
        _played(words, recording, round(1e6 * begin), speed, *span)
        for begin, span in zip(begins, pairwise([0, *ends_us]), strict=True)
    ]
    due_us, paths = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Slots(due_us, paths)


def _played(
    words: Words, recording: Recording, begin_us: int, speed: float, first_us: int, last_us: int
) -> tuple[Whole, Whole]:
    """Return the due times, from `first_us` to `last_us`, and the paths of a part."""
    length_us = round(1e6 * recording.seconds)
    end_us = begin_us + round((last_us - first_us) * speed)
    laps, places = np.divmod(
        np.arange(*(_requests_before(words, length_us, at_us) for at_us in (begin_us, end_us))),
        len(words),
    )
    own = words[places]
    since_us = times_us(own) + laps * length_us - begin_us
    due_us = first_us + (since_us / speed).astype(np.int64)
    return np.minimum(due_us, last_us - 1), paths_of(own)


def _requests_before(words: Words, length_us: int, at_us: int) -> int:
    """Return the requests before a time, laps of the recording included; negative before 0."""
    lap, within_us = divmod(at_us, length_us)
    return lap * len(words) + int(np.searchsorted(words, np.uint64(within_us << PATH_BITS)))
