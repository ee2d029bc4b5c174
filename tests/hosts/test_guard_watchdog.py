"""The real guard.sh: what becomes of a host whose watchdog is ended, by systemd and without."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.domain.configuration import Configuration
from intop.hosts.guard import guarded, status
from intop.hosts.guard.script import NOT_BACK, NOT_OURS
from kit.namespace_host import (
    KEYS,
    LONG,
    SOMAXCONN,
    NamespaceHost,
    begun,
    died,
    end_processes,
    leased,
    wait_until,
)
from kit.systemd_host import SystemdHost, systemd_host

LINE = "net/core/somaxconn 777"


def watchdog(host: NamespaceHost) -> str:
    """Its number."""
    return (host.state / "lock" / "watchdog").read_text().partition("-")[0]


@pytest.mark.parametrize("verb", ["renew", "write"])
def test_a_watchdog_that_was_killed_is_armed_anew(host: NamespaceHost, verb: str) -> None:
    before = host.values()
    begun(host)
    first = watchdog(host)
    assert status(host).is_watched
    end_processes(host)
    assert status(host).is_watched is False
    assert host.script(verb, "token-1", stdin="").exit_code == 0
    assert first != watchdog(host)
    result = status(host)
    assert result.is_watched
    (report,) = result.reports
    assert "the watchdog of this host was gone, and was armed anew" in report
    assert host.script("write", "token-1", stdin=f"{LINE}\n").exit_code == 0
    # It is as good as the first.
    (host.state / "lock" / "seconds").write_text("2\n")
    wait_until(lambda: not host.processes(), "the watchdog ends")
    assert before == host.values()


@pytest.mark.parametrize("verb", ["renew", "write"])
def test_a_lapsed_lease_is_not_renewed_and_nothing_is_written_under_it(
    host: NamespaceHost, verb: str
) -> None:
    """Also where the watchdog has not got to it yet; this one never will."""
    before = host.values()
    begun(host, LINE)
    died(host)
    late = host.script(verb, "token-1", stdin="net/core/somaxconn 778\n")
    assert late.exit_code == NOT_OURS
    assert "the lease has lapsed: this host heard nothing from us for " in late.stderr
    assert before == host.values()
    assert not (host.state / "lock").exists()
    assert "this host was restored by the next command" in status(host).reports[-1]


def test_a_lease_of_two_seconds_is_kept_and_lapses(host: NamespaceHost) -> None:
    before = host.values()
    with guarded(leased(host, 2.0), KEYS) as session:
        session.apply(Configuration({SOMAXCONN: "777"}))
        assert status(host).lease_s == 2.0
    begun(host, LINE, lease="2")
    wait_until(lambda: not (host.state / "lock").exists(), "the watchdog takes over")
    wait_until(lambda: before == host.values(), "the watchdog restores")


def test_a_write_that_hangs_over_the_end_of_its_lease_writes_nothing_more(
    host: NamespaceHost,
) -> None:
    """As over a link that was cut while the values were on their way."""
    before = host.values()
    begun(host, LINE, lease="2")
    guard = f"{host.state}/guard.sh"
    words = ["ip", "netns", "exec", host._namespace, "sh", guard, str(host.state), "write"]
    with subprocess.Popen([*words, "token-1"], stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        writer.stdin.write(b"net/core/somaxconn 778\n")
        writer.stdin.flush()
        wait_until(lambda: writer.poll() is not None, "it is ended")
        wait_until(lambda: not (host.state / "lock").exists(), "the watchdog takes over")
        wait_until(lambda: before == host.values(), "the watchdog restores")
    assert writer.returncode == -9
    assert before == host.values()


# By systemd ---------------------------------------------------------------------------------------

LIST = "systemctl list-units --all --plain --no-legend 'intop*'"


@pytest.fixture
def booted(host: NamespaceHost, tmp_path: Path) -> Iterator[SystemdHost]:
    with systemd_host(host, tmp_path) as made:
        yield made


def test_systemd_starts_a_watchdog_anew_whatever_ends_it(booted: SystemdHost) -> None:
    """Also for more than five times in ten seconds, which is systemd's limit otherwise."""
    before = booted.values()
    with guarded(booted, KEYS) as session:
        session.apply(Configuration({SOMAXCONN: "777"}))
        unit = f"intop-guard-{session._token}"
        shown = f"systemctl show -p MainPID --value {unit}"
        # Not PIPE: systemd has its units ignore that.
        for name in ("KILL", "TERM", "HUP", "INT", "KILL", "TERM"):
            first = watchdog(booted)
            assert first == booted.run(shown).stdout.strip()
            assert booted.run(f"kill -{name} {first}").exit_code == 0
            wait_until(lambda: watchdog(booted) != first, f"it is started anew after {name}")  # noqa: B023
        assert watchdog(booted) == booted.run(shown).stdout.strip()
        assert status(booted).is_watched
    wait_until(lambda: booted.run(f"systemctl -q is-active {unit}").exit_code, "the watchdog ends")
    assert booted.run(LIST).stdout == ""
    assert before == booted.values()


def test_the_watchdog_that_systemd_started_restores(booted: SystemdHost) -> None:
    before = booted.values()
    begun(booted, LINE, lease="2")
    assert booted.run("systemctl -q is-active intop-guard-token-1").exit_code == 0
    wait_until(lambda: before == booted.values(), "the watchdog restores")
    wait_until(lambda: status(booted).reports, "it reports")


def test_where_systemd_starts_nothing_the_watchdog_is_a_process(booted: SystemdHost) -> None:
    (booted.programs / "systemd-run").write_text("#!/bin/sh\nexit 1\n")
    begun(booted)
    assert status(booted).is_watched
    assert booted.run(LIST).stdout == ""
    assert booted.script("end", "token-1").exit_code == 0


def test_a_namespace_of_a_host_with_systemd_has_a_process(booted: SystemdHost) -> None:
    """What systemd starts would see the keys of another network namespace."""
    booted.script("status")
    words = f"sh {booted.state}/guard.sh {booted.state} begin token-1 {LONG} me"
    assert booted.run(f"unshare --net {words} </dev/null").exit_code == 0
    assert status(booted).is_watched
    assert booted.run(LIST).stdout == ""
    late = booted.script("end", "token-1")
    assert late.exit_code == NOT_BACK
    assert "the values are those of another network namespace" in late.stderr
    wait_until(lambda: not list(booted.state.glob("restoring.*")), "its watchdog restores")
