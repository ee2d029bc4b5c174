"""Causes of a gain or loss, by the counters of a verdict's two sides."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from intop.domain.causes import LEVEL, Cause, Causes, Moved
from intop.domain.counters import CounterCatalogue, HostCounters, KernelCounter, general
from intop.domain.stats import ratio_of_logs, student_p_value, student_quantile

MOVES = 1.25
"""A counter is named where it changes by so many times, by the near limit of its interval."""

NAMES = 0.002
"""The probability that any mechanism is named where the sides are the same. In twenty verdicts of
that kind most likely none is."""

INCLUDED = {"TcpExt.ListenDrops": "TcpExt.ListenOverflows"}
"""Counters that also count another one's events, which are subtracted."""


def own_total(counters: HostCounters, name: str) -> float:
    """Return a counter's total in a trial, without the events that another one counts, too."""
    included = INCLUDED.get(name)
    return counters.totals.get(name, 0.0) - (counters.total(included) if included else 0)


def causes(
    default: Sequence[HostCounters], tuned: Sequence[HostCounters], catalogue: CounterCatalogue
) -> Causes | None:
    """Return the mechanisms whose counters differ between paired trials; None below two pairs.

    Counters that any of the trials has not shown are left out. A mechanism's p-value is the lowest
    of its counters, times their number (Bonferroni). Named are those that pass Holm's procedure at
    NAMES over all mechanisms, and of which a counter that is clear by itself has changed by MOVES
    times. Raises ValueError for sequences of different lengths.
    """
    if len(default) != len(tuned):
        raise ValueError(f"{len(default)} trials against {len(tuned)}")
    if len(default) < 2:
        return None
    sides = [[_counted(trial) for trial in side] for side in (default, tuned)]
    names = sorted({name for side in sides for values in side for name in values})
    by_mechanism: dict[tuple[str, bool], list[Moved]] = defaultdict(list)
    for name in names:
        entry = catalogue.find(name)
        if entry is None or not entry.mechanism or entry.direction == "neutral":
            continue
        if not all(trial.shows(name) for trial in (*default, *tuned)):
            continue  # as of more sockets than are listed: nothing is known of that side
        before, after = ([values.get(name, 0.0) for values in side] for side in sides)
        moved = _moved(name, entry, before, after)
        more = moved.times.value > 1
        by_mechanism[entry.mechanism, more == (entry.direction == "worse")].append(moved)
    named = [
        Cause(
            mechanism=mechanism,
            about=catalogue.mechanisms[mechanism].about,
            eased=eased,
            counters=clear,
        )
        for (mechanism, eased), counters in _holm(by_mechanism)
        if (clear := _clear(counters))
    ]
    named.sort(key=lambda cause: -cause.counters[0].least)
    compared = sum(map(len, by_mechanism.values()))
    return Causes(pairs=len(default), counters=compared, mechanisms=tuple(named))


def _counted(counters: HostCounters) -> dict[str, float]:
    """Return a number for each counter of a trial, of all processors together."""
    values: dict[str, float] = defaultdict(float)
    for name, value in counters.totals.items():
        values[general(name) if name.startswith("softnet.") else name] += value
    for name in INCLUDED:
        if name in values:
            values[name] = own_total(counters, name)
    return values


def _moved(
    name: str, entry: KernelCounter, before: Sequence[float], after: Sequence[float]
) -> Moved:
    pairs = len(before)
    logs = [math.log1p(b) - math.log1p(a) for b, a in zip(before, after, strict=True)]
    spread = variance(logs)
    if not entry.level:
        # Counts scatter by their root at least, also where a few pairs happen to agree.
        spread = max(spread, sum(fmean(x / (1 + x) ** 2 for x in side) for side in (before, after)))
    error, mean = math.sqrt(spread / pairs), fmean(logs)
    half = student_quantile(LEVEL, pairs - 1) * error
    p_value = student_p_value(mean / error, pairs - 1) if error else float(mean == 0)
    return Moved(
        name=name,
        meaning=entry.meaning,
        mechanism=entry.mechanism,
        default=fmean(before),
        tuned=fmean(after),
        times=ratio_of_logs(mean, mean - half, mean + half),
        p_value=p_value,
    )


def _holm(
    mechanisms: Mapping[tuple[str, bool], Sequence[Moved]],
) -> list[tuple[tuple[str, bool], Sequence[Moved]]]:
    """Return those that pass Holm's procedure (Scand. Journal of Statistics 6, 1979, 65-70)."""
    sizes = {key: min(1.0, len(m) * min(x.p_value for x in m)) for key, m in mechanisms.items()}
    passed: list[tuple[tuple[str, bool], Sequence[Moved]]] = []
    for rank, key in enumerate(sorted(sizes, key=lambda k: sizes[k])):
        if sizes[key] > NAMES / (len(sizes) - rank):
            break
        passed.append((key, mechanisms[key]))
    return passed


def _clear(counters: Sequence[Moved]) -> tuple[Moved, ...]:
    """Return the counters that changed enough, each clear by itself; the largest change first."""
    clear = [x for x in counters if x.least >= MOVES and x.p_value <= NAMES]
    return tuple(sorted(clear, key=lambda x: -x.least))
