"""The real guard.sh, in a network namespace of its own: sessions, watchdogs, locks."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.host_state import HostState
from intop.errors import CommandError, HostLockedError, RefusedValueError, UnreachableError
from intop.hosts.guard import guarded, status
from intop.hosts.guard import session as guard_session
from intop.hosts.guard.script import HELD, NOT_OURS
from intop.hosts.host import Completed
from kit.namespace_host import (
    CONGESTION,
    FIN,
    KEYS,
    LONG,
    PORTS,
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
    leased,
    wait_until,
)

# Apply, read back, restore ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        {SOMAXCONN: "777"},
        {RMEM: "8192 65536 1048576"},
        {PORTS: "20000 60000", FIN: "11", SOMAXCONN: "64"},
        {CONGESTION: "reno"},
        {},
    ],
)
def test_what_was_applied_is_there_and_gone_at_the_end(
    host: NamespaceHost, values: dict[str, str]
) -> None:
    before = host.values()
    with guarded(host, KEYS) as session:
        assert before == session.snapshot
        session.apply(Configuration(values))
        assert before | values == host.values()
        assert bool(values) == session.was_tuned
    assert before == host.values()


def test_the_next_configuration_starts_from_the_snapshot(host: NamespaceHost) -> None:
    before = host.values()
    with guarded(host, KEYS) as session:
        session.apply(Configuration({SOMAXCONN: "777", RMEM: "8192 65536 1048576"}))
        session.apply(Configuration({SOMAXCONN: "64", FIN: "11"}))
        assert before | {SOMAXCONN: "64", FIN: "11"} == host.values()
        session.apply(DEFAULT)
        assert before == host.values()


def test_nothing_is_written_when_nothing_changes(host: NamespaceHost) -> None:
    with guarded(host, KEYS) as session:
        session.apply(Configuration({FIN: "11"}))
        left = host.state / "lock" / "left"
        written = left.stat().st_mtime_ns
        session.apply(Configuration({FIN: "11"}))
        assert written == left.stat().st_mtime_ns


def test_keys_that_are_not_guarded_are_left_to_others(host: NamespaceHost) -> None:
    with guarded(host, [FIN]) as session:
        session.apply(Configuration({FIN: "11"}))
        host.run("echo 555 > /proc/sys/net/core/somaxconn")
    assert host.value(SOMAXCONN) == "555"


def test_a_key_that_is_not_guarded_is_refused_by_name(host: NamespaceHost) -> None:
    with (
        guarded(host, [FIN]) as session,
        pytest.raises(ValueError, match=r"not guarded: net\.core\.somaxconn"),
    ):
        session.apply(Configuration({SOMAXCONN: "1"}))


@pytest.mark.parametrize(
    ("key", "value"),
    [(CONGESTION, "nosuch"), (SOMAXCONN, "-5"), (FIN, "many"), (PORTS, "60000 20000")],
)
def test_a_refused_value_is_named_and_the_others_restored(
    host: NamespaceHost, key: str, value: str
) -> None:
    before = host.values()
    with guarded(host, KEYS) as session:
        with pytest.raises(RefusedValueError, match=f"lb: {key} was set to '{value}' and reads"):
            session.apply(Configuration({RMEM: "8192 65536 1048576", key: value}))
        assert host.value(RMEM) == "8192 65536 1048576"
        session.apply(DEFAULT)
        assert before == host.values()
    assert before == host.values()


def test_an_exception_in_the_block_restores(host: NamespaceHost) -> None:
    before = host.values()
    with pytest.raises(ZeroDivisionError), guarded(host, KEYS) as session:  # noqa: PT012
        session.apply(Configuration({SOMAXCONN: "777"}))
        raise ZeroDivisionError
    assert before == host.values()
    assert not (host.state / "lock").exists()


def test_a_key_that_cannot_be_read_ends_the_session_before_it_begins(host: NamespaceHost) -> None:
    with (
        pytest.raises(CommandError, match=r"lb: can't be read there: net\.ipv4\.nosuch"),
        guarded(host, [FIN, "net.ipv4.nosuch"]),
    ):
        pytest.fail("must not begin")
    assert not (host.state / "lock").exists()


def test_a_write_whose_answer_was_lost_is_made_good_by_the_next(host: NamespaceHost) -> None:
    class Deaf(NamespaceHost):
        deaf = False

        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
            done = super().run(command, stdin=stdin, timeout_s=timeout_s)
            if self.deaf and " write " in command:
                self.deaf = False
                raise CommandError("lb", "no answer within 30 s")
            return done

    deaf = Deaf(host._namespace, host.address)
    before = host.values()
    with guarded(deaf, KEYS) as session:
        deaf.deaf = True
        with pytest.raises(CommandError, match="no answer"):
            session.apply(Configuration({SOMAXCONN: "777"}))
        assert host.value(SOMAXCONN) == "777"
        session.apply(DEFAULT)
        assert before == host.values()


# Before the first write ---------------------------------------------------------------------------


def test_the_snapshot_is_on_disk_before_the_first_write(host: NamespaceHost) -> None:
    before = host.value(RMEM)
    with guarded(host, [RMEM]) as session:
        snapshot = (host.state / "lock" / "snapshot").read_text()
        assert not [command for command in host.seen if " write " in command]
        session.apply(Configuration({RMEM: "8192 65536 1048576"}))
        assert snapshot == (host.state / "lock" / "snapshot").read_text()
    assert snapshot == f"net/ipv4/tcp_rmem:{before.replace(' ', chr(9))}\n"


def test_the_state_is_for_its_owner_only(host: NamespaceHost) -> None:
    with guarded(host, [FIN]):
        assert (host.state / "lock").stat().st_mode & 0o077 == 0
        assert (host.state / "lock" / "token").stat().st_mode & 0o077 == 0


# The watchdog -------------------------------------------------------------------------------------


def test_the_watchdog_restores_when_the_controller_falls_silent(host: NamespaceHost) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777", "net/ipv4/tcp_rmem 8192 65536 1048576", lease="3")
    assert host.value(SOMAXCONN) == "777"
    wait_until(lambda: before == host.values(), "the watchdog restores")
    wait_until(lambda: not host.processes(), "the watchdog ends")
    (output,) = status(host).reports
    assert "no sign of life from somebody@elsewhere since 20" in output
    assert "this host was restored by its watchdog" in output
    late = host.script("write", "token-1", stdin="net/core/somaxconn 777\n")
    assert late.exit_code == NOT_OURS
    assert "the lock is no longer ours" in late.stderr
    assert before == host.values()


def test_a_session_that_lost_its_host_says_so(host: NamespaceHost) -> None:
    class Silent(NamespaceHost):
        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
            if " renew " in command:
                raise UnreachableError("lb", "the network is gone")
            return super().run(command, stdin=stdin, timeout_s=timeout_s)

    before = host.values()
    silent = Silent(host._namespace, replace(host.address, lease_s=1.0))
    with (  # noqa: PT012
        pytest.raises(UnreachableError, match="lb: its watchdog has restored it before"),
        guarded(silent, KEYS) as session,
    ):
        session.apply(Configuration({SOMAXCONN: "777"}))
        wait_until(lambda: not (host.state / "lock").exists(), "the watchdog takes over")
        wait_until(lambda: before == host.values(), "the watchdog restores")
        with pytest.raises(UnreachableError, match="lb: the lock is no longer ours"):
            session.apply(Configuration({SOMAXCONN: "778"}))
    assert before == host.values()


def test_a_slow_host_is_given_a_sign_of_life_as_often_as_a_quick_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    pauses: list[float] = []
    takes = iter([4.0, 12.0, 0.0])

    class Stop:
        def wait(self, seconds: float) -> bool:
            nonlocal now
            pauses.append(seconds)
            now += seconds
            return len(pauses) == 4

    class Session:
        def renew(self) -> None:
            nonlocal now
            now += next(takes)

    monkeypatch.setattr(guard_session.time, "monotonic", lambda: now)
    guard_session._renew_until(Session(), 30.0, Stop())  # type: ignore[arg-type]
    assert pauses == [10.0, 6.0, 0.0, 10.0]


def test_renewals_keep_the_host_beyond_one_lease(host: NamespaceHost) -> None:
    lease = host.state / "lock" / "lease"
    with guarded(leased(host, 2.0), KEYS) as session:
        session.apply(Configuration({SOMAXCONN: "777"}))
        start = int(lease.read_text())
        wait_until(lambda: int(lease.read_text()) >= start + 5, "the lease is renewed for 5 s")
        assert host.value(SOMAXCONN) == "777"
        session.apply(Configuration({SOMAXCONN: "778"}))


def test_no_watchdog_is_left_after_a_normal_end(host: NamespaceHost) -> None:
    with guarded(host, KEYS):
        assert host.processes() != []
    wait_until(lambda: not host.processes(), "the watchdog ends")
    assert HostState() == status(host)
    assert sorted(path.name for path in host.state.iterdir()) == SCRIPTS


def test_status_says_nothing_where_no_session_ever_was(host: NamespaceHost) -> None:
    assert HostState() == status(host)


# One session at a time ----------------------------------------------------------------------------


def test_two_sessions_after_one_another(host: NamespaceHost) -> None:
    before = host.values()
    for value in ("777", "778"):
        with guarded(host, KEYS) as session:
            assert before == session.snapshot
            session.apply(Configuration({SOMAXCONN: value}))
    assert before == host.values()


def test_a_held_host_is_waited_for_and_then_refused_naming_who_holds_it(
    host: NamespaceHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_session, "TAKEOVER_GRACE_S", 0.0)
    host.begin("token-1", LONG, FIN)
    heard: list[str] = []
    with (
        pytest.raises(HostLockedError) as caught,
        guarded(leased(host, 1.0), [FIN], say=heard.append),
    ):
        pytest.fail("must not begin")
    assert "lb: held by somebody@elsewhere since 20" in str(caught.value)
    assert f"lease {LONG} s. End that session first, or wait for it" in str(caught.value)
    assert len(heard) == 1
    assert heard[0].startswith("lb is held by somebody@elsewhere since 20")
    assert status(host).holder == "somebody@elsewhere"
    assert host.script("end", "token-1").exit_code == 0


def test_a_host_that_is_given_back_meanwhile_is_taken(host: NamespaceHost) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777")

    def give_back(_: str) -> None:
        assert host.script("end", "token-1").exit_code == 0

    with guarded(host, KEYS, say=give_back) as session:
        assert before == session.snapshot


def test_a_lapsed_lock_without_a_watchdog_is_restored_before_the_snapshot(
    host: NamespaceHost,
) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777")
    died(host)
    with guarded(host, KEYS) as session:
        assert before == session.snapshot
    assert before == host.values()


def test_another_sessions_token_is_refused(host: NamespaceHost) -> None:
    host.begin("token-1", LONG, FIN)
    for verb in ("write", "renew", "end"):
        assert host.script(verb, "token-2", stdin="").exit_code == NOT_OURS
    assert host.begin("token-2", LONG, FIN).exit_code == HELD
    assert host.script("end", "token-1").exit_code == 0


def test_a_lock_from_before_a_reboot_is_discarded_without_restoring(host: NamespaceHost) -> None:
    host.begin("token-1", LONG, SOMAXCONN)
    end_processes(host)
    (host.state / "lock" / "boot").write_text("11111111-2222-3333-4444-555555555555\n")
    host.run("echo 777 > /proc/sys/net/core/somaxconn")
    with guarded(host, [SOMAXCONN]) as session:
        assert session.snapshot == {SOMAXCONN: "777"}
    assert host.value(SOMAXCONN) == "777"


def being_made(host: NamespaceHost, maker: str) -> Path:
    lock = host.state / "lock"
    lock.mkdir(parents=True)
    (lock / "armed.token-9").write_text(f"{maker}\n")
    return lock


def test_a_lock_that_is_just_being_made_is_not_taken_away(host: NamespaceHost) -> None:
    with busy_guard() as maker:
        lock = being_made(host, identity(maker.pid))
        # However old it looks: the clock may have been set.
        os.utime(lock, (0, 0))
        refused = host.begin("token-1", "1", FIN)
        assert (refused.exit_code, refused.stdout) == (HELD, "being taken by another session\n")
        assert status(host).holder == "another session, which is just taking it"
        assert lock.is_dir()


def test_a_lock_that_was_never_finished_is_taken_over(host: NamespaceHost) -> None:
    lock = being_made(host, identity_of_nobody())
    # However young it looks.
    os.utime(lock, (2**32, 2**32))
    assert host.begin("token-1", LONG, FIN).exit_code == 0
    assert host.script("end", "token-1").exit_code == 0


def test_a_process_that_has_the_number_of_a_dead_one_is_not_taken_for_it(
    host: NamespaceHost,
) -> None:
    before = host.values()
    with busy_guard() as other:
        number, _, start = identity(other.pid).partition("-")
        restorer(host, f"{number}-{int(start) - 1}")
        assert host.begin("token-2", LONG, *KEYS).exit_code == 0
    assert before == host.values()
    assert host.script("end", "token-2").exit_code == 0


def test_of_many_sessions_that_begin_at_once_one_gets_the_host(host: NamespaceHost) -> None:
    host.script("status")
    words = [f"sh {host.state}/guard.sh {host.state} begin t{n} {LONG} me" for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        codes = [done.exit_code for done in pool.map(host.run, words)]
    assert sorted(codes) == [0] + 7 * [HELD]


def lapsed_lock(host: NamespaceHost) -> None:
    """What a session leaves that died together with its watchdog."""
    begun(host, "net/core/somaxconn 777")
    died(host)


def test_sessions_that_take_over_a_lapsed_lock_at_once_have_it_one_after_the_other(
    host: NamespaceHost,
) -> None:
    before = host.values()
    lapsed_lock(host)
    snapshots: list[dict[str, str]] = []
    heard: list[str] = []

    def session(value: str) -> None:
        with guarded(host, KEYS, say=heard.append) as mine:
            snapshots.append(mine.snapshot)
            mine.apply(Configuration({SOMAXCONN: value}))
            assert value == host.value(SOMAXCONN)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(session, ("101", "102", "103", "104")))
    assert 4 * [before] == snapshots
    assert all(
        message.startswith(("lb is held by ", "lb is being ", "lb reports: ")) for message in heard
    )
    assert before == host.values()
    assert sorted(path.name for path in host.state.iterdir()) == [*SCRIPTS, "report.old"]


def test_a_lock_that_was_given_back_between_two_tries_is_taken(
    host: NamespaceHost, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    made = tmp_path / "mv"
    made.write_text(
        "#!/bin/sh\n"
        f'case $3 in */lock) echo >> {tries}; [ "$(wc -l < {tries})" -gt 2 ] || exit 1 ;; esac\n'
        'exec /bin/mv "$@"\n'
    )
    made.chmod(0o755)

    class Late(NamespaceHost):
        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
            return super().run(f"PATH={tmp_path}:$PATH; {command}", stdin=stdin)

    begun = Late(host._namespace, host.address).begin("token-1", LONG, *KEYS)
    assert (begun.exit_code, begun.stderr) == (0, "")
    assert tries.read_text().count("\n") == 3
    assert host.script("end", "token-1").exit_code == 0


def test_a_lapsed_lock_that_another_session_takes_away_is_left_to_it(host: NamespaceHost) -> None:
    before = host.values()
    lapsed_lock(host)
    lock = host.state / "lock"
    with busy_guard() as other:
        (lock / "armed.token-1").rename(lock / f"claimed.token-1.{identity(other.pid)}")
        refused = host.begin("token-2", LONG, *KEYS)
        assert refused.exit_code == HELD
        assert refused.stdout.startswith("held by somebody@elsewhere since 20")
        assert host.value(SOMAXCONN) == "777"
    # Now it is dead, and in nobody's way.
    assert host.begin("token-2", LONG, *KEYS).exit_code == 0
    assert before == host.values()
    assert host.script("end", "token-2").exit_code == 0


def restorer(host: NamespaceHost, who: str) -> None:
    """A lock that process `who` has moved away and not restored yet."""
    begun(host, "net/core/somaxconn 777")
    end_processes(host)
    shutil.move(host.state / "lock", host.state / f"restoring.{who}")


def test_no_snapshot_is_taken_while_a_watchdog_still_restores(host: NamespaceHost) -> None:
    before = host.values()
    with busy_guard() as at_work:
        restorer(host, identity(at_work.pid))

        def end(message: str) -> None:
            if message.startswith("lb reports: "):
                assert "has died over it; this host was restored by the next command" in message
                return
            assert "lb is being restored from an earlier session" in message
            assert not (host.state / "lock").exists()
            os.killpg(at_work.pid, signal.SIGKILL)
            at_work.wait()

        with guarded(host, KEYS, say=end) as session:
            assert before == session.snapshot
        assert before == host.values()


def test_a_restore_that_was_killed_is_carried_to_its_end(host: NamespaceHost) -> None:
    before = host.values()
    restorer(host, identity_of_nobody())
    with guarded(host, KEYS) as session:
        assert before == session.snapshot
    assert before == host.values()
    assert list(host.state.glob("restoring.*")) == []
