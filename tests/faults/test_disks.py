"""Disks that are full or read-only: the controller's, and the folder of the tuned host's guard."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from faults.sites import COLLECT, PROMISED_S, Site, ended, finished, message, site


@contextmanager
def disk(folder: Path) -> Iterator[None]:
    """A small file system of its own in a folder of the controller's."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], check=True)
    try:
        yield
    finally:
        # Also while somebody still has a file open there.
        subprocess.run(["umount", "--lazy", folder], check=True)


def host_disk(place: Site, command: str) -> None:
    """Do something about the file system that the tuned host sees below its folder.

    Its sshd has mounts of its own, as all that `ip netns exec` starts: they go when it goes.
    """
    (sshd,) = place.pids("lb", "sshd.conf")
    entered = ["nsenter", "--target", str(sshd), "--mount"]
    words = command.format(folder=place.state)
    subprocess.run([*entered, "sh", "-c", words], check=True, capture_output=True)


SMALL = "mount -t tmpfs -o size=20m,mode=755 none {folder}"
"""With the 16 MiB that the doctor asks for."""
READ_ONLY = "mount -o remount,ro {folder}"
FULL = """
for size in 4096 1; do dd if=/dev/zero bs=$size >> {folder}/full 2>/dev/null; done
[ -s {folder}/full ] && ! echo more >> {folder}/full 2>/dev/null
"""
"""Until nothing goes in any more, not even into a page that is there."""


def fill(folder: Path) -> Path:
    """The same here."""
    command = FULL.format(folder=folder)
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    return folder / "full"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site("d", tmp_path) as made:
        yield made


def test_the_controllers_disk_is_full(place: Site) -> None:
    folder = place.folder / "disk"
    with disk(folder):
        place = replace(place, store=folder / "small.db")
        place.write_file()
        with place.stopped("load", 2, "within") as process:
            assert place.is_changed()
            full = fill(folder)
            process.send_signal(signal.SIGCONT)
            _, err = ended(process, 1)
        # Nobody had to wait for the watchdog.
        place.assert_untouched()
        assert f"the store {place.store}: " in message(err)
        assert "disk is full" in message(err)
        stored = place.trials()
        assert finished(err) == len(stored) == 1

        # Full from the start, nothing is begun.
        _, err = place.run(*COLLECT, expected=(1, 2))
        assert "disk is full" in message(err)
        assert stored == place.trials()

        full.unlink()
        place.assert_goes_on()


@pytest.mark.parametrize(
    ("fault", "words"),
    [(READ_ONLY, "Read-only file system"), (FULL, "No space left on device")],
    ids=["read-only", "full"],
)
def test_the_hosts_folder_can_not_be_written(place: Site, fault: str, words: str) -> None:
    host_disk(place, SMALL)
    host_disk(place, fault)
    _, err = place.run(*COLLECT, expected=(1,))
    assert f"PROBLEM  {place.balancer}: " in message(err)
    # In spite of what the doctor says, there is no session without a snapshot.
    _, err = place.run(*COLLECT, "--force", expected=(1,))
    assert place.balancer in message(err)
    assert words in message(err)
    assert place.trials() == []
    place.assert_untouched()


@pytest.mark.parametrize(
    ("fault", "words"),
    [(READ_ONLY, "it is read-only"), (FULL, "there is no room left")],
    ids=["read-only", "full"],
)
def test_no_snapshot_no_session(place: Site, fault: str, words: str) -> None:
    host_disk(place, SMALL)
    with place.stopped("begin", 1, "before") as process:
        host_disk(place, fault)
        process.send_signal(signal.SIGCONT)
        _, err = ended(process, 1)
    assert place.balancer in message(err)
    assert words in message(err)
    assert place.trials() == []
    place.assert_untouched()


@pytest.mark.parametrize("fault", [FULL, READ_ONLY], ids=["full", "read-only"])
@pytest.mark.parametrize("controller", ["alive", "dead"])
def test_the_hosts_folder_fails_under_a_session(place: Site, fault: str, controller: str) -> None:
    host_disk(place, SMALL)
    with place.stopped("load", 2, "within") as process:
        assert place.is_changed()
        host_disk(place, fault)
        since = time.monotonic()
        if controller == "dead":
            process.send_signal(signal.SIGKILL)
            ended(process, -signal.SIGKILL)
        else:
            process.send_signal(signal.SIGCONT)
            _, err = ended(process, 1)
            assert f"{place.balancer}: " in message(err)
            assert str(place.state) in message(err)
    assert place.given_back(since) <= PROMISED_S
    assert place.trials()[0].usable
    place.assert_untouched()
