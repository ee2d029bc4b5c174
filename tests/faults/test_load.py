"""The load generator dies: the program that sends the load, or the host that it runs on."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.sites import COLLECT, PROMISED_S, Site, ended, message, site
from kit.studies import wait_for


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site("l", tmp_path) as made:
        yield made


def kill_load(place: Site) -> None:
    (pid,) = [pid for pid in place.pids("lg", "engine.lua") if _program(pid) == "luajit\n"]
    os.kill(pid, signal.SIGKILL)


def _program(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text()


def test_the_load_is_killed(place: Site) -> None:
    """The default's: a stage can't do without that one."""
    with place.stopped("load", 1, "within") as process:
        kill_load(place)
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: len(place.trials()) > 1, "another trial")
        process.send_signal(signal.SIGINT)
        _, err = ended(process, 130)
    place.assert_untouched()
    # It is told of, and is not taken for a measurement.
    lost, *others = place.trials()
    assert (lost.planned.index, lost.status, lost.histogram) == (0, "disturbed", None)
    assert lost.detail == f"{place.name}-lg: engine was ended by signal 9 while it sent the load"
    assert f"disturbed: {lost.detail}" in err
    # The machine's other work may disturb one of them; its load was whole.
    assert [trial.detail for trial in others if trial.histogram is None] == []
    # It is made again.
    place.assert_goes_on()
    assert (0, 1) in {(trial.planned.index, trial.attempt) for trial in place.trials()}


def test_the_load_generator_is_gone(place: Site) -> None:
    """All of its processes at once, as by a power failure: its servers and the load."""
    with place.stopped("load", 2, "within") as process:
        assert place.is_changed()
        since = time.monotonic()
        for pid in place.pids("lg", ""):
            os.kill(pid, signal.SIGKILL)
        process.send_signal(signal.SIGCONT)
        _, err = ended(process, 1)
    # The load balancer did not need its watchdog.
    place.assert_untouched()
    assert time.monotonic() - since <= PROMISED_S
    assert f"{place.name}-lg: " in message(err)
    assert "What was measured is stored" in message(err)
    assert place.trials()[0].usable
    # Until it is there again, that is what is said.
    _, err = place.run(*COLLECT, expected=(1,))
    assert f"{place.name}-lg: " in message(err)
    place.start_sshd("lg")
    place.assert_goes_on()
