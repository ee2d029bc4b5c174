"""Others at the same host: a second controller, somebody's sysctl, and whoever kills a watchdog."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.sites import COLLECT, PROMISED_S, TRIALS, Site, ended, ending, finished, message, site

FIN = "net/ipv4/tcp_fin_timeout"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site("r", tmp_path) as made:
        yield made


def test_of_two_controllers_one_has_the_host(place: Site) -> None:
    """Of one folder, so that they have the same store."""
    # It goes on for longer than the other one waits.
    place.write_file(duration_s=2)
    with ending(place.start(*COLLECT)) as first:
        place.wait_until_held()
        with ending(place.start(*COLLECT)) as second:
            _, refused = ended(second, 1)
            _, err = ended(first, 0)
    assert f"{place.balancer}: held by " in message(refused)
    assert f"(process {first.pid})" in message(refused)
    assert "End that session first, or wait for it" in message(refused)
    assert TRIALS == finished(err) == sum(trial.usable for trial in place.trials())
    place.assert_untouched()


def test_the_watchdog_is_killed_and_the_controller_goes_on(place: Site) -> None:
    with place.stopped("load", 2, "within") as process:
        kill_watchdog(place)
        process.send_signal(signal.SIGCONT)
        _, err = ended(process, 0)
    assert TRIALS == finished(err) == sum(trial.usable for trial in place.trials())
    place.assert_untouched()


def test_the_watchdog_is_killed_and_later_the_controller(place: Site) -> None:
    with place.stopped("load", 2, "within") as process:
        kill_watchdog(place)
        process.send_signal(signal.SIGCONT)
        # The controller's next sign of life finds none, and starts another.
        place.wait_until_watched()
        assert place.is_changed()
        process.send_signal(signal.SIGKILL)
        ended(process, -signal.SIGKILL)
        assert place.given_back(time.monotonic()) <= PROMISED_S
    place.assert_untouched()


def kill_watchdog(place: Site) -> None:
    (pid,) = place.pids("lb", " watch ")
    os.kill(pid, signal.SIGKILL)
