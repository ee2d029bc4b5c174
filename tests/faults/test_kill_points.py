"""The controller is killed with -9 at every step of a trial, and nothing of it stays anywhere.

Several controllers are at it at once, each with a lab of its own, since most of the time a lease
is waited for. After each death the same command goes on, and dies further on; the last one ends.
"""

import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from faults.points import LANES, POINTS, UNCERTAIN, UNHELD, Point
from faults.sites import COLLECT, PROMISED_S, TRIALS, Site, ended, finished, site
from intop.domain.trial import Trial


@dataclass
class Death:
    """What there is to say of one controller and of the host after it.

    `trials` and `left` are the stored trials before and after. `seconds` went by from its death
    until every key was as before, where that was not so then. `later` is what all those said that
    came after it.
    """

    pid: int
    err: str
    trials: list[Trial]
    left: list[Trial]
    seconds: float | None
    later: str = ""


@dataclass
class Lane:
    """One lab after all of its points. `last` is what the command that ended said."""

    deaths: dict[Point, Death]
    trials: list[Trial]
    last: str


def died(place: Site, point: Point) -> Death:
    before = place.trials()
    process = place.signalled(signal.SIGKILL, *point)
    _, err = ended(process, -9)
    since = time.monotonic()
    seconds = place.given_back(since) if place.is_changed() else None
    return Death(process.pid, err, before, place.trials(), seconds)


def carried_out(place: Site, points: tuple[Point, ...]) -> Lane:
    deaths: dict[Point, Death] = {}
    for point in points:
        deaths[point] = died(place, point)
    _, last = place.run(*COLLECT)
    place.assert_untouched()
    lane = Lane(deaths, place.trials(), last)
    output = [*(death.err for death in deaths.values()), last]
    for n, death in enumerate(deaths.values(), start=1):
        death.later = "".join(output[n:])
    return lane


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Lane]]:
    folder: Path = tmp_path_factory.mktemp("lanes")
    with ExitStack() as stack, ThreadPoolExecutor(len(LANES)) as pool:
        places = [stack.enter_context(site(f"k{n}", folder / str(n))) for n in range(len(LANES))]
        yield list(pool.map(carried_out, places, LANES))


def test_these_are_at_least_thirty_points() -> None:
    assert len(set(POINTS)) == len(POINTS) >= 30


@pytest.mark.parametrize("point", POINTS, ids=lambda point: "-".join(map(str, point)))
def test_killed_there(lanes: list[Lane], point: Point, record_property) -> None:
    (lane,) = [lane for lane in lanes if point in lane.deaths]
    death = lane.deaths[point]
    # Every key is as it was, in the time that is promised.
    if death.seconds is not None:
        record_property("seconds", death.seconds)
        print(f"given back after {death.seconds:.1f} s")
        assert death.seconds <= PROMISED_S
    # No trial that it told of is lost, nor one of before.
    assert death.trials == death.left[: len(death.trials)]
    assert finished(death.err) <= len(death.left)
    places = [trial.planned.index for trial in death.left]
    assert list(range(max(places, default=-1) + 1)) == sorted(set(places))
    # Whoever takes the host next hears of it, once.
    line = rf"^\S+Z \S+-lb reports: .*\(process {death.pid}\).*$"
    message = re.findall(line, death.later, re.MULTILINE)
    if point not in UNCERTAIN:
        assert (point not in UNHELD) == len(message)


def test_the_last_one_ends_with_all_trials(lanes: list[Lane]) -> None:
    for lane in lanes:
        assert finished(lane.last) == TRIALS
        made = {(trial.planned.index, trial.attempt) for trial in lane.trials}
        assert set(range(TRIALS)) == {index for index, _ in made}
        # None of them was made twice; what the machine's other work disturbed has another attempt.
        assert len(made) == len(lane.trials)


def test_values_were_set_at_most_points(lanes: list[Lane]) -> None:
    """Else there would have been nothing to give back."""
    changed = [d for lane in lanes for d in lane.deaths.values() if d.seconds is not None]
    assert len(changed) >= 15
