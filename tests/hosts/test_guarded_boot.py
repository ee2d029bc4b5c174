"""Nginx's files after a reboot in a trial: a unit of systemd restores them.

Here the reboot is made up, on a systemd for a user; a real one is in tests/machine.
"""

import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.nginx_files import catalogue
from intop.domain.configuration import Configuration
from intop.errors import HostError
from intop.hosts.guard import guarded, status
from intop.hosts.nginx_files import tunable_nginx
from kit import nginx_host
from kit.namespace_host import SOMAXCONN, lapse, namespace_host, wait_until
from kit.nginx_host import ONE, files, restart_command
from kit.systemd_host import SystemdHost, systemd_host

UNITS = "/etc/systemd/system"
Place = tuple[SystemdHost, Path]


@pytest.fixture
def place() -> Iterator[Place]:
    """Of a host whose state folder is on a disk, as /tmp may not be."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        with namespace_host(folder) as host, systemd_host(host, folder) as booted:
            # A sign of life would arm the watchdog that a test has ended.
            booted.address = replace(booted.address, lease_s=600)
            nginx_host.start(booted, folder / "nginx")
            yield booted, folder / "nginx"


def units(host: SystemdHost) -> list[str]:
    """All that is ours below the folder of units."""
    return sorted(host.run(f"cd {UNITS} && find . -name '*intop*'").stdout.split())


def test_a_unit_of_the_next_start_gives_nginx_its_files_back(place: Place) -> None:
    host, folder = place
    before = files(folder)
    nginx = tunable_nginx(host, catalogue())
    assert units(host) == []
    with (  # noqa: PT012
        pytest.raises(HostError, match="has restored it before we were done"),
        guarded(host, [SOMAXCONN], nginx=nginx, restart=restart_command(folder)) as session,
    ):
        session.apply(Configuration(ONE))
        unit = f"intop-guard-{session._token}-boot.service"
        assert units(host) == [f"./{unit}", f"./multi-user.target.wants/{unit}"]
        checked = host.run(
            f"systemd-analyze verify --man=no {UNITS}/multi-user.target.wants/{unit}"
        )
        assert (checked.exit_code, checked.stderr) == (0, "")

        # Nothing of this boot is there after it but what is on the disk.
        watchdog = f"intop-guard-{session._token}"
        assert host.run(f"systemctl stop {watchdog}").exit_code == 0
        (host.state / "lock/boot").write_text("another\n")
        for pid in host.processes():
            if b"nginx" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        assert before != files(folder)
        text = host.run(f"cat {UNITS}/{unit}").stdout
        (command,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
        done = host.run(command.removeprefix("ExecStart="))
        assert (done.exit_code, done.stderr) == (0, "")

    assert before == files(folder)
    assert units(host) == []
    (report,) = status(host).reports
    assert "was restored by its unit of systemd, before nginx was started" in report


def test_the_unit_goes_with_its_session(place: Place) -> None:
    host, folder = place
    nginx = tunable_nginx(host, catalogue())
    with guarded(host, [SOMAXCONN], nginx=nginx, restart=restart_command(folder)):
        assert len(units(host)) == 2
    assert units(host) == []
    # One that a power failure has brought back.
    unit = "intop-guard-x-boot.service"
    host.run(f"touch {UNITS}/{unit}")
    assert host.script("boot", unit).exit_code == 0
    assert units(host) == []
    # What is on the disk alone has no unit.
    with guarded(host, [SOMAXCONN]):
        assert units(host) == []


def test_the_unit_stays_for_what_the_watchdog_could_not_restore(place: Place) -> None:
    host, folder = place
    before = files(folder)
    nginx = tunable_nginx(host, catalogue())
    with (  # noqa: PT012
        pytest.raises(HostError, match="has restored it before we were done"),
        guarded(host, [SOMAXCONN], nginx=nginx, restart=restart_command(folder)) as session,
    ):
        session.apply(Configuration(ONE))
        assert host.run("mount --bind /dev/null /usr/sbin/nginx").exit_code == 0
        lapse(host.state / "lock")
        wait_until(lambda: list(host.state.glob("unrestored.*")), "it can't all be restored")
    (unit, _) = units(host)
    assert before == files(folder)
    # The machine is started again, with nginx's program in its place.
    assert host.run("umount /usr/sbin/nginx").exit_code == 0
    watchdog = unit[2:].removesuffix("-boot.service")
    assert host.run(f"systemctl stop {watchdog}").exit_code == 0
    (left,) = host.state.glob("unrestored.*")
    (left / "boot").write_text("another\n")
    assert host.script("boot", unit[2:]).exit_code == 0
    assert (list(host.state.glob("unrestored.*")), units(host)) == ([], [])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "mount -t tmpfs -o mode=700 none {state}",
            "is in memory, and a reboot would lose what restores",
        ),
        (f"mount -o remount,ro {UNITS}", f"{UNITS} can't be written, where the unit would be"),
    ],
)
def test_no_session_begins_that_a_reboot_would_not_undo(
    place: Place, fault: str, message: str
) -> None:
    host, folder = place
    nginx = tunable_nginx(host, catalogue())
    assert host.run(f"mkdir -p {host.state} && {fault.format(state=host.state)}").exit_code == 0
    with pytest.raises(HostError, match=message):
        guarded(host, [SOMAXCONN], nginx=nginx, restart=restart_command(folder)).__enter__()
    assert host.run(f"ls -d {host.state}/lock 2>/dev/null").stdout == ""
    assert units(host) == []
