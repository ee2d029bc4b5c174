"""Faults on a host as users have it: systemd, sudo with a password, nginx as a unit, a disk.

A real boot each time the power is cut, so these take half an hour: `make test-machine`.
"""

import time
from dataclasses import replace

import pytest

from builders.finished import finish_campaign
from builders.results import VERDICT
from intop.domain.configuration import Configuration
from intop.errors import CommandError, HostError
from intop.hosts.facts import facts
from intop.hosts.guard import guarded, rollback, status
from intop.hosts.host import output
from intop.hosts.ssh import Secret, connect, with_passwords
from intop.inspect.host_states import state_of
from kit.studies import Study
from machine.hosts import (
    Machine,
    left,
    nginx_files,
    serves_again,
    until,
    values,
    workers,
)
from machine.session import FILE, VALUES

pytestmark = pytest.mark.machine

DAY_S = 86_400
FREE_BLOCKS = "stat -f -c %f /"
"""Of 4 KB; some are kept for the file system itself."""


def finish(study: Study, machine: Machine) -> None:
    verdict = replace(VERDICT, configuration=Configuration(VALUES))
    finish_campaign(study, verdict, with_passwords(lambda address: machine.password))


# -- what it is ----------------------------------------------------------------------------------


def test_it_is_a_host_as_users_have_it(machine: Machine) -> None:
    address = machine.cluster.load_balancer
    with machine.connected() as host:
        result = facts(host)
        assert (result.is_root, result.in_namespace) == (True, False)
        assert output(host, "cat /proc/1/comm").strip() == "systemd"
        assert output(host, "systemctl is-active nginx ssh").split() == ["active"] * 2
        assert (
            output(host, "systemctl list-units --failed --plain --no-legend | wc -l").strip() == "0"
        )
        assert output(host, "findmnt -no SOURCE,FSTYPE /").strip() == "/dev/vda ext4"
        assert output(host, 'echo "$SUDO_USER"').strip() == "admin"
        assert "rate 100Mbit" in output(host, "tc qdisc show dev eth0")
    with pytest.raises(CommandError, match="sudo wants the password of admin"):
        connect(replace(address, sudo=True))
    with pytest.raises(CommandError, match="sudo did not take the password of admin"):
        connect(address, Secret("not-it"))
    root = replace(address, user="root", sudo=False)
    with pytest.raises(HostError, match="refused the key"):
        connect(root)


def test_the_command_line_knows_its_password_and_finds_nothing_wrong(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    (result,) = study.json("doctor")
    assert result["problems"] == []
    assert sorted(VALUES) == sorted(result["offered"])
    monkeypatch.delenv("INTOP_SUDO_PASSWORD")
    _, printed = study.run("doctor", expected=(2,))
    assert "set INTOP_SUDO_PASSWORD" in printed


# -- the controller and the watchdog die ---------------------------------------------------------


def test_the_controller_is_killed(machine: Machine, before: dict[str, str]) -> None:
    with machine.connected() as host, machine.session() as session:
        unit, _ = machine.watchdog(host)
        assert unit
        assert values(host) == VALUES
        since = session.kill()
        machine.given_back(host, before, since, "controller killed")
        until(lambda: machine.watchdog(host) == ("", 0), "the watchdog's unit to be gone")
        assert left(host) == ""


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_the_watchdog_is_ended_when_the_controller_is_silent(
    machine: Machine, before: dict[str, str], signal: str
) -> None:
    with machine.connected() as host, machine.session() as session:
        unit, process = machine.watchdog(host)
        assert process
        since = session.stop()
        began = time.monotonic()
        output(host, f"systemctl kill --kill-whom=main --signal={signal} {unit}")

        def is_back() -> bool:
            there, now = machine.watchdog(host)
            return there == unit and now not in (0, process)

        until(is_back, f"the watchdog to come back after SIG{signal}", 15)
        machine.took(f"watchdog ended by SIG{signal}, back", began)
        machine.given_back(host, before, since, f"watchdog ended by SIG{signal}, controller silent")
        session.kill()
        assert left(host) == ""


# -- the host's own troubles ---------------------------------------------------------------------


def test_sshd_is_restarted(machine: Machine, before: dict[str, str]) -> None:
    with machine.connected() as host, machine.session() as session:
        since = time.monotonic()
        output(host, "systemctl restart ssh")
        machine.took("  sshd restarted", since)
        session.does("write")
        machine.took("  the session writes", since)
        until(lambda: machine.values() == VALUES, "a new connection")
        machine.took("sshd restarted, a new connection", since)
        machine.given_back(host, before, session.kill(), "sshd restarted, controller killed")
        assert left(host) == ""


def test_the_clock_is_set_by_a_day_back_and_forth(machine: Machine, before: dict[str, str]) -> None:
    def set_clock(days: int) -> None:
        """From the time of this machine."""
        output(host, f"date -s @{int(time.time()) + days * DAY_S} >/dev/null")

    with machine.connected() as host:
        try:
            with machine.session() as session:
                for days in (1, -1):
                    set_clock(days)
                    time.sleep(3)  # the watchdog looks each second
                    session.does("write")
                    assert values(host) == VALUES
                machine.given_back(host, before, session.kill(), "clock a day back, killed")
            with machine.session() as session:
                since = session.kill()
                set_clock(1)
                machine.given_back(host, before, since, "clock two days forth, killed")
            assert left(host) == ""
        finally:
            set_clock(0)


def test_the_disk_is_full(machine: Machine, before: dict[str, str]) -> None:
    # Root may have what is kept for root, too.
    fill = f"fallocate -l $(($({FREE_BLOCKS}) * 4096)) /full.1; cat /dev/zero >/full.2; sync; :"
    with machine.connected() as host:
        try:
            with machine.session() as session:
                output(host, f"{{ {fill}; }} 2>/dev/null", timeout_s=300)
                assert host.run("head -c 4096 /dev/zero >/full.3").exit_code != 0
                machine.given_back(host, before, session.kill(), "disk full, controller killed")
            # What that session had on the disk would be enough for another one.
            output(host, "{ cat /dev/zero >/full.4; sync; } 2>/dev/null; :", timeout_s=300)
            with pytest.raises(HostError, match="can't be written"), guarded(host, VALUES):
                pytest.fail("a session on a full disk")
            assert before == values(host)
        finally:
            output(host, "rm -f /full.*; sync")
        status(host)
        assert left(host) == ""


def test_its_root_is_mounted_read_only(machine: Machine, before: dict[str, str]) -> None:
    with machine.connected() as host:
        try:
            with machine.session() as session:
                # A plain remount is refused while somebody has a file open for writing.
                output(host, "echo u >/proc/sysrq-trigger")
                until(lambda: "ro," in output(host, "findmnt -no OPTIONS /"), "a read-only root")
                machine.given_back(host, before, session.kill(), "/ read-only, controller killed")
            with pytest.raises(HostError, match="can't be written"), guarded(host, VALUES):
                pytest.fail("a session on a read-only disk")
            assert before == values(host)
        finally:
            output(host, "mount -o remount,rw /")
        status(host)
        assert left(host) == ""
    with machine.session() as session:
        session.does("write")
        with machine.connected() as host:
            machine.given_back(host, before, session.kill(), "/ writable again, killed")


# -- boots ---------------------------------------------------------------------------------------


def test_an_apply_survives_a_restart_and_a_rollback_does_too(
    machine: Machine, study: Study, before: dict[str, str]
) -> None:
    finish(study, machine)
    study.run("apply", "--persist", "--yes", "--rounds", "2", "--accept-no-loss")
    assert machine.values() == VALUES

    since = time.monotonic()
    machine.restart()
    machine.took("restart, until all servers answer", since)
    assert machine.values() == VALUES
    out, _ = study.run("status")
    assert out.splitlines()[0].endswith("as applied")
    assert machine.asked("systemctl is-active nginx") == "active"

    study.run("rollback")
    assert before == machine.values()
    machine.restart()
    assert before == machine.values()
    with machine.connected() as host:
        assert left(host) == ""
    out, _ = study.run("status")
    assert "not held" in out.splitlines()[0]


@pytest.mark.parametrize("later_s", [0, 1, 2.5])
def test_the_power_fails_in_a_trial(
    machine: Machine, study: Study, before: dict[str, str], later_s: float
) -> None:
    """Once values are set, or later: while the load is at work, or they are given back."""
    process = study.start("collect", "--samples", "8", "--workload", "slt")
    machine.wait_for_values(process, lambda result: result != before)
    time.sleep(later_s)
    machine.cut_power()
    _, printed = process.communicate(timeout=300)
    assert process.returncode == 1, printed
    assert "Traceback" not in printed
    assert "What was measured is stored" in printed
    _, printed = study.run("doctor", expected=(1,))
    assert f"lab {machine.spec.name} is damaged: start it again with intop lab up" in printed

    since = time.monotonic()
    machine.switch_on()
    machine.took("power cut in a trial, until all servers answer", since)
    assert before == machine.values()
    out, _ = study.run("status")
    assert "not held" in out.splitlines()[0]
    with machine.connected() as host:
        assert left(host) == ""


@pytest.mark.parametrize("orderly", [False, True])
def test_a_reboot_in_a_trial_with_directives(
    machine: Machine, before: dict[str, str], *, orderly: bool
) -> None:
    """Nginx does not start with what a trial has left in its files."""
    with machine.connected() as host:
        files, serving = nginx_files(host), workers(host)
    with machine.session("directives") as session:
        with machine.connected() as host:
            assert nginx_files(host) != files
            assert (workers(host), serving) == (2, 1)
        if orderly:
            machine.restart()
            session.kill()
        else:
            machine.cut_power()
            session.kill()
            machine.switch_on()
    with machine.connected() as host:
        serves_again(host)
        assert files == nginx_files(host)
        assert serving == workers(host)
        assert before == values(host)
        assert left(host) == ""
        (report,) = status(host).reports
        assert "this host was started anew under the session of" in report
        assert "was restored by its unit of systemd, before nginx was started" in report
        assert output(host, "systemctl list-units --failed --plain --no-legend").strip() == ""


def test_directives_that_stay_survive_a_restart_and_a_rollback_does_too(
    machine: Machine, before: dict[str, str]
) -> None:
    with machine.connected() as host:
        files, serving = nginx_files(host), workers(host)
    with machine.session("directives") as session:
        session.does("keep")
    with machine.connected() as host:
        kept = nginx_files(host)
    assert files != kept
    machine.restart()
    with machine.connected() as host:
        serves_again(host)
        assert (kept, 2, VALUES) == (nginx_files(host), workers(host), values(host))
        assert state_of(host).drift == ()
        assert rollback(host).outcome == "restored"
        assert (files, serving, before) == (nginx_files(host), workers(host), values(host))
    machine.restart()
    with machine.connected() as host:
        serves_again(host)
        assert (files, serving, before) == (nginx_files(host), workers(host), values(host))
        assert left(host) == ""
        assert output(host, "systemctl list-units --failed --plain --no-legend").strip() == ""


@pytest.mark.parametrize("part", [0.5, 0.8, 1.0, 1.6])
def test_the_power_fails_while_directives_are_kept(
    machine: Machine, before: dict[str, str], keep_s: float, part: float
) -> None:
    """All of it stays or nothing, nginx serves by its files, and a rollback undoes it."""
    with machine.connected() as host:
        files, serving = nginx_files(host), workers(host)
    with machine.session("directives") as session:
        session.tell("keep")
        # nginx takes its files once more.
        time.sleep(part * (keep_s + 1))
        machine.cut_power()
        session.kill()
    machine.switch_on()
    with machine.connected() as host:
        serves_again(host)
        result = status(host)
        message = (nginx_files(host) == files, workers(host))
        if result.applied is None:
            machine.times.append((f"directives, {part:.0%}: nothing is left", float("nan")))
            assert (True, serving) == message
        else:
            machine.times.append((f"directives, {part:.0%}: all of it is there", float("nan")))
            assert message == (False, 2)
            assert {file.state for file in result.applied.nginx_files} == {"ours"}
            assert rollback(host).outcome == "restored"
        assert (files, serving, before) == (nginx_files(host), workers(host), values(host))
        assert left(host) == ""


@pytest.mark.parametrize("later_s", [0, 3])
def test_the_power_fails_in_an_apply(
    machine: Machine, study: Study, before: dict[str, str], later_s: float
) -> None:
    """While the canary is measured: nothing is left."""
    finish(study, machine)
    process = study.start("apply", "--persist", "--yes", "--rounds", "2", "--accept-no-loss")
    machine.wait_for_values(process, lambda result: result == VALUES)
    time.sleep(later_s)
    machine.cut_power()
    _, printed = process.communicate(timeout=300)
    assert process.returncode == 1, printed
    assert "Traceback" not in printed
    machine.switch_on()
    assert before == machine.values()
    with machine.connected() as host:
        status(host)
        assert left(host) == ""


@pytest.fixture(scope="module")
def keep_s(machine: Machine) -> float:
    """How long it takes to keep values with a file, when nothing happens meanwhile."""
    with machine.session() as session:
        since = time.monotonic()
        session.does("keep")
        seconds = machine.took("values kept, with a file for the next boot", since)
    with machine.connected() as host:
        assert values(host) == VALUES
        assert rollback(host).outcome == "restored"
    return seconds


@pytest.mark.parametrize("part", [0.4, 0.6, 0.75, 0.9, 1.0])
def test_the_power_fails_while_values_are_kept(
    machine: Machine, before: dict[str, str], keep_s: float, part: float
) -> None:
    """All of it stays or nothing, and a rollback undoes whatever it is."""
    with machine.session() as session:
        session.tell("keep")
        time.sleep(part * keep_s)
        machine.cut_power()
        session.kill()
    since = time.monotonic()
    machine.switch_on()
    fault = f"power cut after {part:.0%} of the time that keeping takes"
    machine.took(f"{fault}, until all servers answer", since)
    with machine.connected() as host:
        booted, file = values(host), output(host, f"cat {FILE} 2>/dev/null || :")
        result = status(host)
        if result.applied is None:
            machine.times.append(("  nothing is left", float("nan")))
            assert (before, "") == (booted, file)
        else:
            # Where it was cut off between two renames, `status` has put the file in its place.
            machine.times.append((f"  all of it is there, file: {bool(file)}", float("nan")))
            assert (VALUES if file else before) == booted
            assert result.applied.file_is == "ours"
            assert rollback(host).outcome == "restored"
        assert before == values(host)
        assert left(host) == ""
