"""Arms in interleaved rounds: their plan, its series, and the pairs that its trials make.

Within a round every arm meets the same load, in an order of the round's own, so that drift hits
all of them alike.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeVar

from intop.domain.configuration import Configuration
from intop.domain.stats import Interval, geometric_interval, paired_ratio
from intop.domain.trial import Outline, PlannedTrial, SeriesRound, Trial

M = TypeVar("M", Trial, Outline)
T = TypeVar("T")

Arms = Mapping[str, Configuration]
"""Configurations by the name of their arm, in the order in which they are shown."""
Cells = Sequence[PlannedTrial]
"""The arms under loads that every round has once, as places without a number and a round."""
Order = Callable[[Cells, Random], Cells]
"""The order of a round's cells."""


def cell(arm: str, configuration: Configuration, **load: Any) -> PlannedTrial:
    """Return an arm under a load, which is what a place has in place of its workload's."""
    return PlannedTrial(
        index=0,
        role="sentinel" if configuration.is_default else "finalist",
        configuration=configuration,
        arm=arm,
        **load,
    )


def shuffled(cells: Cells, rng: Random) -> Cells:
    """Return the cells in any order."""
    return rng.sample(cells, len(cells))


def in_rounds(
    cells: Cells,
    rounds: int,
    rng: Random,
    *,
    series: int = 1,
    start: int = 0,
    after: int = 0,
    order: Order = shuffled,
) -> list[PlannedTrial]:
    """Return the plan of a series: each cell once a round, from the place `start` on.

    Its rounds are numbered from the one `after` those of an earlier series.
    """
    numbers = range(after + 1, after + rounds + 1)
    places = [(number, place) for number in numbers for place in order(cells, rng)]
    return [
        replace(place, index=start + n, round=number, series=series)
        for n, (number, place) in enumerate(places)
    ]


# Series -------------------------------------------------------------------------------------------


def latest_series(plan: Sequence[PlannedTrial]) -> tuple[int, list[PlannedTrial]]:
    """Return the number of a plan's last series with its places; 1 and none for an empty plan."""
    number = max((place.series for place in plan), default=1)
    return number, of_series(plan, number)


def of_series(plan: Sequence[PlannedTrial], number: int) -> list[PlannedTrial]:
    """Return the places of one series."""
    return [place for place in plan if place.series == number]


def planned_arms(plan: Sequence[PlannedTrial]) -> dict[str, Configuration]:
    """Return the arms of a plan."""
    return {place.arm: place.configuration for place in plan}


def planned_rounds(plan: Sequence[PlannedTrial]) -> int:
    """Return the number of a plan's rounds."""
    return len({place.series_round for place in plan})


def differences(planned: Sequence[PlannedTrial], cells: Cells, rounds: int | None) -> list[str]:
    """Return a line for each way in which a planned series is another one than is asked for.

    Without any, it is the same series. Any number of `rounds` will do where that is None.
    """
    then, now = _by_arm(planned), _by_arm(cells)
    lines: list[str] = []
    if then.keys() != now.keys():
        lines.append(f"entrants: {', '.join(sorted(then))} against {', '.join(sorted(now))}")
    lines += [
        f"{arm}: its values are not those of then"
        for arm in now
        if arm in then and then[arm] != now[arm]
    ]
    if rounds not in (None, planned_rounds(planned)):
        lines.append(f"rounds: {planned_rounds(planned)} against {rounds}")
    return lines


def _by_arm(places: Sequence[PlannedTrial]) -> dict[str, set[tuple[Any, ...]]]:
    """Return the loads and values of each arm."""
    arms: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for p in places:
        load = (p.duration_s, p.rate_rps, p.connections, p.closed_loop, p.path, p.other_workload)
        arms[p.arm].add((p.configuration.digest, *load))
    return arms


# Pairs --------------------------------------------------------------------------------------------


def usable_by_round(trials: Sequence[M]) -> dict[str, dict[SeriesRound, M]]:
    """Return the usable trials, by arm and in it by round."""
    arms: dict[str, dict[SeriesRound, M]] = defaultdict(dict)
    for trial in trials:
        if trial.usable and (series_round := trial.planned.series_round):
            arms[trial.planned.arm][series_round] = trial
    return dict(arms)


def first_rounds(trials: Sequence[M], count: int) -> list[M]:
    """Return the trials of the first `count` rounds."""
    return [trial for trial in trials if 0 < (trial.planned.round or 0) <= count]


def judged_by_round(trials: Sequence[Trial]) -> dict[str, dict[SeriesRound, float]]:
    """Return the latency (ms) of the usable trials, by arm and in it by round."""
    return {
        arm: {series_round: trial.judged_ms for series_round, trial in own.items()}
        for arm, own in usable_by_round(trials).items()
    }


def paired(*arms: Mapping[SeriesRound, T]) -> tuple[list[T], ...]:
    """Return what each arm has in the rounds that all of them have."""
    common = [series_round for series_round in arms[0] if all(series_round in arm for arm in arms)]
    return tuple([arm[series_round] for series_round in common] for arm in arms)


def ratio_interval(
    numerators: Mapping[SeriesRound, float],
    denominators: Mapping[SeriesRound, float],
    *,
    level: float,
) -> Interval | None:
    """Return the ratio over the rounds that both have; None with fewer than two of them."""
    pairs = paired(numerators, denominators)
    return paired_ratio(*pairs, level=level) if len(pairs[0]) > 1 else None


def mean_interval(values: Sequence[float], *, level: float) -> Interval | None:
    """Return the geometric mean; None with fewer than two values, or where one of them is 0."""
    if len(values) < 2 or min(values) <= 0:
        return None
    return geometric_interval(values, level=level)


@dataclass(frozen=True, kw_only=True)
class ArmResult:
    """An arm's trials, and their latency compared with a reference's."""

    trials: tuple[Trial, ...]
    judged_ms: Interval | None
    """The geometric mean over its rounds, None with fewer than two."""
    ratio: Interval | None
    """The reference's latency / its own over the rounds that both have (above 1 is better).

    None for the reference itself and with fewer than two rounds.
    """

    @property
    def failures(self) -> int:
        """The number of its failed trials."""
        return failures(self.trials)

    @property
    def problem(self) -> str:
        """The detail of its first unusable trial, "" without any."""
        return first_problem(self.trials)


def compare(
    trials: Sequence[Trial],
    arms: Iterable[str],
    reference: str,
    *,
    level: float,
    ratio_level: float | None = None,
) -> dict[str, ArmResult]:
    """Return each arm beside one of them; the ratios may have another level than latency."""
    judged_ms = judged_by_round(trials)

    def result(arm: str) -> ArmResult:
        own, base = judged_ms.get(arm, {}), judged_ms.get(reference, {})
        ratio = ratio_interval(base, own, level=ratio_level or level)
        return ArmResult(
            trials=tuple(trial for trial in trials if trial.planned.arm == arm),
            judged_ms=mean_interval(list(own.values()), level=level),
            ratio=None if arm == reference else ratio,
        )

    return {arm: result(arm) for arm in arms}


def failures(trials: Sequence[M]) -> int:
    """Return the number of failed trials."""
    return sum(trial.status == "failed" for trial in trials)


def first_problem(trials: Sequence[M]) -> str:
    """Return the detail of the first unusable trial, "" without any."""
    return next((trial.detail for trial in trials if not trial.usable), "")
