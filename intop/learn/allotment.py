"""Allotment: the part of an effort that has room in the time of a training.

The time is reckoned from the table's size, and no clock is asked. So the same trials make the same
models on every machine, and a killed training goes on with the same tries.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from intop.learn.families import FAMILIES
from intop.learn.tuning_effort import (
    FEWEST_REPEATS,
    INNER_FOLDS,
    INTERVAL_FOLDS,
    UNPRUNED_TRIES,
    Effort,
)
from intop.words import duration

PROCESSORS = 2
"""Searches that are reckoned to run side by side, on any machine."""
SLOWNESS = 1.5
"""Time of a fit on a machine that has other work, too / on the idle one of `FitTime`."""
PRUNED = 0.6
"""Share of the inner folds that a try takes where it may be given up."""


def allotted(
    families: Sequence[str], rows: int, features: int, effort: Effort
) -> Mapping[str, Effort]:
    """Return each family's own effort for a table of so many rows and features.

    All of it, where that fits in `effort.time_s`. Otherwise intervals have fewer models, and each
    family gets as much time for its tries as the others, of which cheap ones leave some over. Where
    a single try of each is too much, the folds are drawn less often, once at least.
    """
    # What is left depends on the time no more: a training goes on though its trials' time differs.
    whole, time_s = replace(effort, time_s=None), effort.time_s
    all_s = reckoned_s(dict.fromkeys(families, whole), rows, features)
    if time_s is None or all_s <= time_s:
        return dict.fromkeys(families, whole)
    for least, room_s in _leasts(whole, time_s):
        least_s = reckoned_s(dict.fromkeys(families, least), rows, features)
        if least_s <= room_s:
            break
    left_s = time_s - least_s
    efforts, learned = {}, _learned(rows, whole)
    by_cost = sorted(families, key=lambda family: FAMILIES[family].time.of(learned, features))
    for place, family in enumerate(by_cost):
        first_s = _reckoned_s(family, least, learned, features)
        share_s = max(left_s, 0.0) / (len(by_cost) - place)
        tries = max(
            n
            for n in range(1, whole.trials + 1)
            if n == 1
            or _reckoned_s(family, replace(least, trials=n), learned, features) - first_s <= share_s
        )
        efforts[family] = replace(least, trials=tries)
        left_s -= _reckoned_s(family, efforts[family], learned, features) - first_s
    return {family: efforts[family] for family in families}


def cut_line(efforts: Mapping[str, Effort], whole: Effort) -> str | None:
    """Return a line for the user about what has no room in the time; None where all has."""
    if whole.time_s is None or all(e.trials == whole.trials for e in efforts.values()):
        return None
    tries = ", ".join(f"{family} {effort.trials}" for family, effort in efforts.items())
    return (
        f"tries that fit in {duration(whole.time_s)}: {tries}; for all {whole.trials} of each, "
        "set tuning_share = 0 in [budget]"
    )


def _leasts(whole: Effort, time_s: float) -> Iterator[tuple[Effort, float]]:
    """Return efforts of a single try, and the seconds that each may take; the last is the least."""
    yield replace(whole, trials=1), time_s / 2
    for repeats in range(whole.repeats, 0, -1):
        yield replace(whole, trials=1, repeats=repeats, interval_repeats=FEWEST_REPEATS), time_s


def reckoned_s(efforts: Mapping[str, Effort], rows: int, features: int) -> float:
    """Return the seconds that a training takes with PROCESSORS on a machine with other work."""
    return math.fsum(
        _reckoned_s(family, effort, _learned(rows, effort), features)
        for family, effort in efforts.items()
    )


def _learned(rows: int, effort: Effort) -> float:
    """Return the rows that a model in an outer fold learns from."""
    return rows * (effort.folds - 1) / effort.folds


def _reckoned_s(family: str, effort: Effort, learned: float, features: int) -> float:
    later = max(effort.trials - UNPRUNED_TRIES, 0)
    tries = effort.trials - later + PRUNED * later
    known = min(learned, FAMILIES[family].most_rows or learned)
    fit_s = FAMILIES[family].time.of(known, features) * SLOWNESS / PROCESSORS
    search_s = INNER_FOLDS * tries * fit_s
    if effort.timeout_s is not None:
        search_s = min(search_s, effort.timeout_s / PROCESSORS)
    judged = 1 + INTERVAL_FOLDS * effort.interval_repeats
    return (effort.folds * effort.repeats + 1) * (search_s + judged * fit_s)
