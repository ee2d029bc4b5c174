"""Others at the same host: a second controller, somebody's sysctl, and whoever kills a watchdog."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from faults.sites import COLLECT, PROMISED_S, Site, ended, ending, message, site
from kit.forked import Forked
from kit.studies import wait_for

FIN = "net/ipv4/tcp_fin_timeout"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site("r", tmp_path) as made:
        yield made


def test_of_two_controllers_one_has_the_host(place: Site) -> None:
    """Each has a store of its own, so only the host can tell."""
    with at_work(place) as first:
        replace(place, store=place.folder / "other.db").write_file()
        with ending(place.start(*COLLECT)) as second:
            _, err = ended(second, 1)
        assert place.is_held()
    assert f"{place.balancer}: held by " in message(err)
    assert f"(process {first.pid})" in message(err)
    assert "End that session first, or wait for it" in message(err)
    the_first_was_left_alone(place)


def test_two_controllers_have_the_same_store(place: Site) -> None:
    with at_work(place) as first:
        with ending(place.start(*COLLECT)) as second:
            _, err = ended(second, 1)
        assert place.is_held()
    assert "x86 slt: campaign 1 is at work: " in message(err)
    assert f"(process {first.pid}) is at collect" in message(err)
    the_first_was_left_alone(place)


@contextmanager
def at_work(place: Site) -> Iterator[Forked]:
    """A controller that goes on for longer than another one waits, and after it; Ctrl-C ends it."""
    place.write_file(duration_s=3)
    with ending(place.start(*COLLECT)) as process:
        place.wait_until_held()
        yield process
        number = len(place.trials())
        wait_for(lambda: len(place.trials()) > number, "a further trial")
        process.send_signal(signal.SIGINT)
        ended(process, 130)


def the_first_was_left_alone(place: Site) -> None:
    assert all(trial.usable for trial in place.trials())
    place.assert_untouched()


def kill_watchdog(place: Site) -> None:
    result = place.pids("lb", " watch ")
    assert result
    for pid in result:
        os.kill(pid, signal.SIGKILL)


def test_the_watchdog_is_killed_and_the_controller_gives_back(place: Site) -> None:
    with place.stopped("load", 2, "within") as process:
        assert place.is_changed()
        kill_watchdog(place)
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        ended(process, 130)
    assert place.trials()[0].usable
    place.assert_untouched()


def test_the_watchdog_is_killed_and_then_the_controller(place: Site) -> None:
    with place.stopped("load", 2, "within") as process:
        kill_watchdog(place)
        process.send_signal(signal.SIGCONT)
        # The controller's next sign of life finds none, and arms another.
        place.wait_until_watched()
        wait_for(place.is_changed, "values to be set again")
        process.send_signal(signal.SIGKILL)
        ended(process, -signal.SIGKILL)
        assert place.given_back(time.monotonic()) <= PROMISED_S
    assert place.trials()[0].usable
    place.assert_untouched()


def test_both_are_killed_at_once_and_the_next_controller_gives_back(place: Site) -> None:
    """As nobody is left to do it sooner."""
    with place.stopped("load", 2, "within") as process:
        kill_watchdog(place)
        process.send_signal(signal.SIGKILL)
        ended(process, -signal.SIGKILL)
    assert place.is_changed()
    stored = place.trials()
    with place.stopped("write", 1, "before") as process:
        # It has taken the host, and written nothing yet.
        place.assert_untouched()
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        _, err = ended(process, 130)
    assert stored == place.trials()[: len(stored)]
    assert "restored by the next command" in err
    place.assert_untouched()


def test_what_somebody_else_sets_is_left_to_them(place: Site) -> None:
    before = place.inside("lb", f"cat /proc/sys/{FIN}").strip()
    with place.stopped("load", 1, "within") as process:
        place.inside("lb", f"echo 77 > /proc/sys/{FIN}")
        process.send_signal(signal.SIGCONT)
        _, err = ended(process, 1)
    words = message(err)
    assert f"{place.balancer}: " in words
    key = FIN.replace("/", ".")
    assert f"{key}: it was left at '{before}' and is '77'" in words
    assert not any(trial.usable for trial in place.trials())
    assert place.inside("lb", f"cat /proc/sys/{FIN}").strip() == "77"
    # The command that it tells is all that there is to do.
    (command,) = re.findall(r"sysctl -w \S+", words)
    place.inside("lb", command)
    place.assert_untouched()
