"""Controller and watchdog are both killed with -9, at every step of a trial and in each order.

The lab has no systemd, so nobody is left to give the host back: the next command does, whichever
it is. Until then the host is known to be changed, and nobody says that it is restored.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pytest

from faults.points import LANES, Point
from faults.sites import LEASE_S, PROMISED_S, Site, ended, finished, site
from kit.forked import PATIENCE_S
from kit.studies import wait_for

LAPSE_S = LEASE_S + 2.0
"""So long after its last sign of life a controller counts as dead, by whole seconds."""
COMMANDS = ("status", "rollback", "doctor", "session")
"""By turns, one of them comes next."""

WITHIN_S = cycle([0.0, 0.005, 0.01, 0.02])
"""So long a restore is at work when it dies."""


@dataclass
class Dead:
    """What there is to say of a host whose controller and watchdog are dead.

    `was_changed` and `was_half_done` (somebody has died over a restore) are of that moment.
    `problems` are what must not be.
    """

    order: str
    point: Point
    was_changed: bool
    was_half_done: bool
    seconds: float
    problems: list[str]

    def __str__(self) -> str:
        step, count, moment = self.point
        about = ["changed"] * self.was_changed + ["half restored"] * self.was_half_done
        return f"{self.order}: {step} {count} {moment}: {' '.join(about)} {self.seconds:.1f} s"


# -- who dies when -------------------------------------------------------------------------------


def kill_watchdogs(place: Site) -> None:
    """With all that they have begun, until there is none."""
    while result := place.pids("lb", " watch "):
        for pid in result:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def watchdog_first(place: Site, point: Point) -> str:
    with place.stopped(*point) as process:
        kill_watchdogs(place)
        process.send_signal(signal.SIGKILL)
        return ended(process, -signal.SIGKILL)[1]


def controller_first(place: Site, point: Point) -> str:
    _, err = ended(place.signalled(signal.SIGKILL, *point), -signal.SIGKILL)
    kill_watchdogs(place)
    return err


def watchdog_over_its_restore(place: Site, point: Point) -> str:
    """Just after it has taken the dead controller's lock away, with its whole session."""
    _, err = ended(place.signalled(signal.SIGKILL, *point), -signal.SIGKILL)
    lock, watchdog = place.state / "lock", 0
    deadline = time.monotonic() + PATIENCE_S
    while lock.exists():
        assert time.monotonic() < deadline, "the watchdog takes no lock away"
        with suppress(OSError, ValueError):
            watchdog = int((lock / "watchdog").read_text().partition("-")[0])
        time.sleep(0.001)
    time.sleep(next(WITHIN_S))
    if watchdog:
        with suppress(ProcessLookupError):
            os.killpg(watchdog, signal.SIGKILL)
    kill_watchdogs(place)
    return err


def watchdog_and_the_controller_goes_on(place: Site, point: Point) -> str:
    """Until its next sign of life has armed another one; that one lives."""
    with place.stopped(*point) as process:
        kill_watchdogs(place)
        process.send_signal(signal.SIGCONT)
        wait_for(
            lambda: process.poll() is not None or bool(place.pids("lb", " watch ")),
            "another watchdog",
        )
        process.kill()
        return ended(process, -signal.SIGKILL, 130)[1]


Order = Callable[[Site, Point], str]
ORDERS: tuple[Order, ...] = (watchdog_first, controller_first, watchdog_over_its_restore)


# -- what must hold ------------------------------------------------------------------------------


def pending(place: Site) -> list[str]:
    """What in the host's folder is still to be given back."""
    names = (path.name for path in place.state.iterdir()) if place.state.is_dir() else ()
    return [n for n in names if n.startswith(("lock", "restoring.", "unrestored."))]


def is_known(place: Site) -> bool:
    """Whether a host that is changed has something that says so."""
    # In this order: with everybody dead, nothing is changed any more that was not.
    return bool(pending(place)) or not place.is_changed()


def is_told(place: Site) -> bool:
    """The same of what status says."""
    (answer,) = json.loads(place.run("status", "--json")[0])
    output = answer["result"]
    return bool(output["holder"] or output["changed"]) or not place.is_changed()


def give_back(place: Site, command: str) -> None:
    if command != "session":
        place.run(command)
        return
    with place.stopped("write", 1, "before") as process:
        place.assert_untouched()
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        ended(process, 130)


def both_die(place: Site, point: Point, order: Order, command: str) -> Dead:
    before = place.trials()
    err = order(place, point)
    since = time.monotonic()
    # What the host was told to do before, it does: a begin still arms its watchdog.
    wait_for(lambda: set(place.pids("lb", "guard-")) == set(place.pids("lb", " watch ")), "its end")
    kill_watchdogs(place)
    names = pending(place)
    half = any(name.startswith("restoring.") for name in names)
    dead = Dead(order.__name__, point, place.is_changed(), half, 0.0, [])
    if not is_known(place):
        dead.problems.append("changed, and nothing there says so")
    if not is_told(place):
        dead.problems.append("changed, and status does not say so")
    time.sleep(max(0.0, since + LAPSE_S - time.monotonic()))
    began = time.monotonic()
    give_back(place, command)
    dead.seconds = time.monotonic() - began
    if place.is_changed():
        dead.problems.append(f"changed after {command}")
    if names := pending(place):
        dead.problems.append(f"{names} after {command}")
    after = place.trials()
    if before != after[: len(before)] or finished(err) > len(after):
        dead.problems.append("trials are lost")
    return dead


def one_lives(place: Site, point: Point) -> Dead:
    """The watchdog dies, the controller lives for a while, and what it has armed gives back."""
    order = watchdog_and_the_controller_goes_on
    order(place, point)
    since = time.monotonic()
    dead = Dead(order.__name__, point, place.is_changed(), False, 0.0, [])
    dead.seconds = place.given_back(since)
    if dead.seconds > PROMISED_S:
        dead.problems.append(f"given back after {dead.seconds:.1f} s")
    # The next controller must not wait for this one's lease.
    place.wait_until_released()
    return dead


def carried_out(places: list[Site], work: Callable[[Site, Point, int], Dead]) -> list[Dead]:
    """Each lane on a lab of its own, by turns of the commands."""

    def lane(number: int) -> list[Dead]:
        return [work(places[number], p, number + n) for n, p in enumerate(LANES[number])]

    with ThreadPoolExecutor(len(LANES)) as pool:
        return [dead for one in pool.map(lane, range(len(LANES))) for dead in one]


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[Site]]:
    with ExitStack() as stack:
        made = [stack.enter_context(site(f"d{n}", tmp_path / str(n))) for n in range(len(LANES))]
        yield made
        for place in made:
            place.assert_untouched()


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS)
def test_both_are_killed_at_every_point(places: list[Site], order: Order) -> None:
    result = carried_out(
        places, lambda place, p, n: both_die(place, p, order, COMMANDS[n % len(COMMANDS)])
    )
    print(*result, sep="\n")
    assert [f"{dead}: {', '.join(dead.problems)}" for dead in result if dead.problems] == []
    # Else there would have been nothing to give back.
    if order is watchdog_over_its_restore:
        assert sum(dead.was_half_done for dead in result) >= 5
    else:
        assert sum(dead.was_changed for dead in result) >= 15


@pytest.mark.long
def test_the_watchdog_is_killed_at_every_point_and_the_controller_lives(
    places: list[Site],
) -> None:
    result = carried_out(places, lambda place, p, _: one_lives(place, p))
    print(*result, sep="\n")
    assert [f"{dead}: {', '.join(dead.problems)}" for dead in result if dead.problems] == []


def test_the_watchdog_dies_over_the_restore_of_a_dead_controller(tmp_path: Path) -> None:
    """One point of all: see above."""
    with site("d", tmp_path) as place:
        dead = both_die(place, ("load", 2, "within"), watchdog_over_its_restore, "session")
        assert dead.problems == []
        place.assert_untouched()
