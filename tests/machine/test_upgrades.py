"""Packages that are upgraded by themselves, while a session is open and while values stay."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.domain.applied import drift_of
from intop.hosts.guard import guarded, rollback, status
from intop.hosts.host import output
from intop.hosts.persistent import read_persistent
from intop.hosts.ssh import SshHost
from machine import upgrades
from machine.hosts import Machine, left, until, values
from machine.session import FILE, VALUES

pytestmark = pytest.mark.machine

KEY, THEIRS = "vm.swappiness", "33"
LOADING = {
    "systemd": "systemctl restart systemd-sysctl",
    "procps": "sysctl --system >/dev/null",
}
"""How the scripts of packages have their file take effect."""


@pytest.fixture
def host(machine: Machine) -> Iterator[SshHost]:
    with machine.connected() as made:
        yield made
    # The machine may have been restarted meanwhile.
    with machine.connected() as another:
        upgrades.remove_vendor(another)


def upgrade_system(host: SshHost, folder: Path) -> None:
    """procps has sysctl, and systemd is executed anew over the unit of the watchdog."""
    files = [upgrades.fetched(host, name, folder) for name in ("procps", "systemd")]
    since = output(host, "grep -c 'startup packages configure' /var/log/dpkg.log || :")
    upgrades.install(host, *files)
    assert since != output(host, "grep -c 'startup packages configure' /var/log/dpkg.log || :")


def vendor(folder: Path, loading: str) -> Path:
    """A package that has its own mind of one of our keys."""
    return upgrades.vendor(folder, f"{KEY} = {THEIRS}\n", LOADING[loading])


def test_an_upgrade_of_procps_and_systemd_goes_on_under_a_session(
    machine: Machine, host: SshHost, before: dict[str, str], tmp_path: Path
) -> None:
    with machine.session() as session:
        watchdog = machine.watchdog(host)
        since = time.monotonic()
        upgrade_system(host, tmp_path)
        machine.took("  procps and systemd upgraded under a session", since)
        assert values(host) == VALUES
        assert watchdog == machine.watchdog(host)
        assert watchdog[1] != 0
        session.does("write")
        machine.given_back(host, before, session.kill(), "procps, systemd upgraded, killed")
        until(lambda: machine.watchdog(host) == ("", 0), "the watchdog's unit to be gone")
        assert left(host) == ""


@pytest.mark.parametrize("loading", LOADING)
def test_what_a_package_sets_under_a_session_is_left_to_it(
    machine: Machine, host: SshHost, before: dict[str, str], tmp_path: Path, loading: str
) -> None:
    theirs = {**before, KEY: THEIRS}
    with machine.session() as session:
        upgrades.install(host, vendor(tmp_path, loading))
        assert values(host) == {**VALUES, KEY: THEIRS}
        session.tell("write")
        _, text = session.process.communicate(timeout=120)
        assert session.process.returncode == 1
        assert f"{KEY}: it was left at '{VALUES[KEY]}' and is '{THEIRS}'" in text
    # The session has given back all others at once, and a new one does not mind.
    assert theirs == values(host)
    with guarded(host, VALUES) as guard:
        assert theirs == guard.snapshot
    # That the key had another value is known until somebody decides.
    assert rollback(host).outcome == "partly"
    assert theirs == values(host)
    assert rollback(host, force=True).outcome == "restored"
    assert before == values(host)
    assert left(host) == ""


def test_what_a_package_sets_when_the_controller_is_dead_is_left_to_it(
    machine: Machine, host: SshHost, before: dict[str, str], tmp_path: Path
) -> None:
    with machine.session() as session:
        upgrades.install(host, vendor(tmp_path, "systemd"))
        theirs = {**before, KEY: THEIRS}
        machine.given_back(host, theirs, session.kill(), "a package sets a key, killed")
    until(lambda: machine.watchdog(host) == ("", 0), "the watchdog's unit to be gone")
    (_, message) = status(host).reports
    assert f"somebody else has changed {KEY}, so it was left alone" in message
    assert f"sysctl -w {KEY}={before[KEY]}" in message
    output(host, f"sysctl -w {KEY}={before[KEY]}")
    assert rollback(host).outcome == "restored"
    assert before == values(host)
    assert left(host) == ""


def test_applied_values_hold_through_upgrades_and_a_rollback_gives_all_back(
    machine: Machine, host: SshHost, before: dict[str, str], tmp_path: Path
) -> None:
    with machine.session() as session:
        session.does("keep")
    upgrade_system(host, tmp_path)
    assert values(host) == VALUES
    for loading in LOADING:
        folder = tmp_path / f"by-{loading}"
        folder.mkdir()
        upgrades.install(host, vendor(folder, loading))
        assert values(host) == VALUES, loading
    applied = status(host).applied
    assert applied is not None
    assert drift_of(applied, read_persistent(host)) == ()

    machine.restart()
    assert machine.values() == VALUES
    with machine.connected() as again:
        assert rollback(again).outcome == "restored"
        assert before == values(again)
        assert left(again) == ""
        assert output(again, f"cat {FILE} 2>/dev/null || :") == ""
