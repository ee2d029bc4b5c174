"""The real guard.sh: what status and rollback say and do, whoever has died."""

import os
import shutil

import pytest

from intop.domain.configuration import Configuration
from intop.domain.host_state import KeyChange, KeyValue, RolledBack
from intop.errors import HostError
from intop.hosts.guard import guarded, rollback, status
from intop.hosts.guard.script import HELD, NOT_BACK, NOT_OURS, NOTHING
from intop.hosts.guard.state import parse_status
from kit.namespace_host import (
    FIN,
    KEYS,
    LONG,
    RMEM,
    SCRIPTS,
    SOMAXCONN,
    NamespaceHost,
    begun,
    busy_guard,
    died,
    end_processes,
    identity,
    identity_of_nobody,
    lapse,
    set_by_somebody,
    wait_until,
)


def test_status_tells_who_holds_a_host_and_what_is_changed(host: NamespaceHost) -> None:
    before = host.values()
    with guarded(host, KEYS) as session:
        session.apply(Configuration({RMEM: "8192 65536 1048576", SOMAXCONN: "777"}))
        result = status(host)
        assert f"(process {os.getpid()})" in result.holder
        assert result.since.endswith("Z")
        assert (result.lease_s, result.is_watched) == (20.0, True)
        assert result.silent_s is not None
        assert 0 <= result.silent_s <= 20
        assert (
            KeyChange(key=SOMAXCONN, before=before[SOMAXCONN], now="777"),
            KeyChange(key=RMEM, before=before[RMEM], now="8192 65536 1048576"),
        ) == result.changed
        assert (result.foreign, result.reports) == ((), ())
        end_processes(host)
        assert status(host).is_watched is False
    assert str(result) == f"held by {result.holder} since {result.since}, lease 20 s"


def test_status_restores_a_host_whose_lease_has_lapsed(host: NamespaceHost) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777")
    died(host)
    result = status(host)
    assert before == host.values()
    assert (result.holder, result.changed) == ("", ())
    assert "this host was restored by the next command" in result.reports[-1]


def test_a_living_session_is_rolled_back_by_force_only(host: NamespaceHost) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777", "net/ipv4/tcp_rmem 8192 65536 1048576")
    set_by_somebody(host, FIN, "33")
    assert RolledBack(outcome="held") == rollback(host)
    assert host.value(SOMAXCONN) == "777"
    done = rollback(host, force=True)
    assert (
        KeyValue(key=SOMAXCONN, value=before[SOMAXCONN]),
        KeyValue(key=FIN, value=before[FIN]),
        KeyValue(key=RMEM, value=before[RMEM]),
    ) == done.restored
    assert (done.outcome, done.foreign, done.unrestored) == ("restored", (), ())
    assert before == host.values()
    late = host.script("write", "token-1", stdin="net/core/somaxconn 777\n")
    assert late.exit_code == NOT_OURS
    wait_until(lambda: not host.processes(), "the watchdog ends")
    assert RolledBack(outcome="nothing") == rollback(host)
    assert before == host.values()


def test_a_root_shell_on_the_host_rolls_back_what_a_dead_session_left(host: NamespaceHost) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777", "net/ipv4/tcp_rmem 8192 65536 1048576")
    died(host)
    set_by_somebody(host, SOMAXCONN, "55")
    done = host.run(f"cd {host.state}/..; sh state/guard.sh state rollback")
    assert done.exit_code == NOT_BACK
    assert done.stdout.splitlines() == [
        f"restored\tnet/ipv4/tcp_rmem\t{before[RMEM]}",
        f"foreign\tnet/core/somaxconn\t777\t55\tsysctl -w {SOMAXCONN}={before[SOMAXCONN]}",
        f"end\t{NOT_BACK}",
    ]
    forced = rollback(host, force=True)
    assert (KeyValue(key=SOMAXCONN, value=before[SOMAXCONN]),) == forced.restored
    assert before == host.values()
    assert rollback(host, force=True).outcome == "nothing"
    assert sorted(path.name for path in host.state.iterdir()) == SCRIPTS


def test_where_no_session_ever_was_there_is_nothing_to_roll_back(host: NamespaceHost) -> None:
    assert RolledBack(outcome="nothing") == rollback(host, force=True)
    assert host.script("rollback").exit_code == NOTHING


def test_a_rollback_that_fails_otherwise_is_no_rollback(host: NamespaceHost) -> None:
    """Such as by a guard.sh of an earlier version."""
    host.put(str(host.state), {"guard.sh": 'echo "unknown verb: $2" >&2; exit 1'})
    with pytest.raises(HostError, match=r"lb: guard\.sh ended with 1: unknown verb: rollback"):
        rollback(host)


def test_a_begin_that_was_interrupted_anywhere_is_rolled_back_and_taken_over(
    host: NamespaceHost,
) -> None:
    before = host.values()
    begun(host)
    end_processes(host)
    lock, whole = host.state / "lock", host.state / "whole"
    lapse(lock)
    lock.rename(whole)
    in_order = ["armed.token-1", "taken", "boot", "network", "seconds", "owner", "script"]
    in_order += ["restart", "paths", "snapshot"]
    in_order += ["watchdog", "writer.token-1", "lease", "token"]
    assert sorted(in_order) == sorted(path.name for path in whole.iterdir())
    for count in range(1, len(in_order) + 1):
        for how in ("rollback", "rollback force", "begin"):
            lock.mkdir()
            for name in in_order[:count]:
                shutil.copy(whole / name, lock / name)
            if how == "begin":
                assert host.begin("token-2", LONG, FIN).exit_code == 0
                assert host.script("end", "token-2").exit_code == 0
            else:
                assert host.script(how).exit_code == 0, in_order[:count]
            assert not lock.exists()
    assert before == host.values()


def test_a_value_that_a_dead_restore_has_half_written_is_ours(host: NamespaceHost) -> None:
    """The kernel has taken the first numbers, and nobody lived to note it."""
    before = host.values()
    begun(host, "net/ipv4/tcp_rmem 8192 87380 4194304")
    died(host)
    first, second, _ = before[RMEM].split()
    set_by_somebody(host, RMEM, f"{first} {second} 4194304")
    assert ((), before) == (status(host).foreign, host.values())
    # What has another number in it is somebody else's.
    begun(host, "net/ipv4/tcp_rmem 8192 87380 4194304")
    died(host)
    set_by_somebody(host, RMEM, f"{first} 99999 4194304")
    assert {k.key: k.now for k in status(host).changed}[RMEM] == f"{first} 99999 4194304"


def test_a_lock_that_is_being_made_is_rolled_back_by_force_only(host: NamespaceHost) -> None:
    lock = host.state / "lock"
    lock.mkdir(parents=True)
    with busy_guard("begin", "token-1") as maker:
        (lock / "armed.token-1").write_text(f"{identity(maker.pid)}\n")
        assert host.script("rollback").exit_code == HELD
        assert host.script("rollback", "force").exit_code == 0
    assert not lock.exists()


def test_a_restore_that_was_killed_is_ended_by_a_rollback(host: NamespaceHost) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777")
    end_processes(host)
    (host.state / "lock").rename(host.state / f"restoring.{identity_of_nobody()}")
    done = rollback(host)
    assert done.outcome == "restored"
    assert (KeyValue(key=SOMAXCONN, value=before[SOMAXCONN]),) == done.restored
    assert before == host.values()
    assert sorted(path.name for path in host.state.iterdir()) == SCRIPTS


def test_what_a_host_prints_beside_the_protocol_is_left_out() -> None:
    assert parse_status("Welcome!\n\tholder\nlease_s\tmany\nkey\tonly\nwatchdog\t?\n") == (
        parse_status("")
    )
