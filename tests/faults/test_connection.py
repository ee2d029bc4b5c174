"""The way to the hosts fails: the link, their sshd, or a controller that stands still."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.sites import COLLECT, LEASE_S, PROMISED_S, Site, ended, message, site
from kit.studies import wait_for


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site("c", tmp_path) as made:
        yield made


@contextmanager
def link_down(place: Site) -> Iterator[None]:
    """The controller can't reach any host of the lab; they can reach each other."""
    link = ["ip", "link", "set", "dev", f"intop-{place.name}"]
    subprocess.run([*link, "down"], check=True)
    try:
        yield
    finally:
        subprocess.run([*link, "up"], check=True)


def assert_told(place: Site, err: str) -> None:
    """The one message names a host, says that nothing is lost, and what to type next."""
    words = message(err)
    assert f"{place.name}-l" in words
    assert "What was measured is stored" in words
    assert "the same command" in words


def assert_nothing_counted(place: Site) -> None:
    """The trial in which it happened is no measurement; the one before it is."""
    default, *others = place.trials()
    assert default.usable
    assert [trial.status for trial in others] == ["disturbed"]


def test_the_link_goes_down(place: Site) -> None:
    with place.stopped("load", 2, "within") as process, link_down(place):
        since = time.monotonic()
        process.send_signal(signal.SIGCONT)
        assert place.is_changed()
        assert place.given_back(since) <= PROMISED_S
        _, err = ended(process, 1)
    assert_told(place, err)
    assert_nothing_counted(place)
    place.assert_goes_on()


def test_the_link_is_down_for_longer_than_the_lease(place: Site) -> None:
    with place.stopped("load", 2, "within") as process:
        with link_down(place):
            since = time.monotonic()
            process.send_signal(signal.SIGCONT)
            assert place.is_changed()
            assert place.given_back(since) <= PROMISED_S
        _, err = ended(process, 1)
    assert_told(place, err)
    assert_nothing_counted(place)
    place.assert_untouched()


def test_sshd_is_killed(place: Site) -> None:
    with place.stopped("load", 2, "within") as process:
        assert place.is_changed()
        since = time.monotonic()
        for pid in place.pids("lb", "sshd"):
            os.kill(pid, signal.SIGKILL)
        process.send_signal(signal.SIGCONT)
        _, err = ended(process, 1)
    assert place.given_back(since) <= PROMISED_S
    assert_told(place, err)
    assert_nothing_counted(place)
    # While there is none, that is what is said.
    _, err = place.run(*COLLECT, expected=(1,))
    assert f"{place.balancer}: " in message(err)
    place.start_sshd("lb")
    place.assert_goes_on()


@pytest.mark.parametrize("count", [1, 2], ids=["default", "values"])
def test_the_controller_stands_still_for_longer_than_the_lease(place: Site, count: int) -> None:
    """As on a laptop that was closed. The first load is the default's: nothing is set in it."""
    with place.stopped("load", count, "within") as process:
        since = time.monotonic()
        if count == 2:
            assert place.is_changed()
            assert place.given_back(since) <= PROMISED_S
        place.wait_until_released()
        process.send_signal(signal.SIGCONT)
        _, err = ended(process, 1)
    assert_told(place, err)
    assert "restored" in message(err)
    last = place.trials()[-1]
    assert (count - 1, "disturbed") == (last.planned.index, last.status)
    place.assert_untouched()


def test_the_controller_stands_still_for_less_than_the_lease(place: Site) -> None:
    place.write_file(lease_s=10 * LEASE_S)
    with place.stopped("load", 2, "within") as process:
        time.sleep(LEASE_S)
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: len(place.trials()) > 1, "the trial to be stored")
        process.send_signal(signal.SIGINT)
        ended(process, 130)
    assert all(trial.usable for trial in place.trials())
    place.assert_untouched()
