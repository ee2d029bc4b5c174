"""The real guard.sh: what it restores, what it leaves to others, what it says of both."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.host_state import ForeignChange, KeyValue
from intop.errors import ForeignChangeError, HostError, RefusedValueError, UsageError
from intop.hosts.guard import guarded, rollback, status
from intop.hosts.guard.script import FOREIGN, NOT_OURS, NOTHING, UNWRITABLE
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
    set_by_somebody,
    wait_until,
)

NOT_NOW = " # once it is there again: the kernel has no such key now"
ADD_LINK = "ip link add veth7 type veth peer name veth8"
FIRST_PORT = "net.ipv4.ip_unprivileged_port_start"
LOW_PORTS = "1 500"
"""The kernel refuses local ports below the first one that is not privileged."""


@contextmanager
def small_disk(host: NamespaceHost) -> Iterator[Path]:
    """A file system of its own for the host's state folder."""
    host.state.mkdir()
    options = "size=256k,mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", host.state], check=True)
    try:
        yield host.state
    finally:
        end_processes(host)
        subprocess.run(["umount", host.state], check=True)


def fill(host: NamespaceHost) -> None:
    host.run(f"cat /dev/zero > {host.state}/full")
    assert host.run(f"echo 1 > {host.state}/more").exit_code != 0


# Restoring ----------------------------------------------------------------------------------------


def test_what_is_refused_or_gone_is_said_with_the_command_and_the_rest_is_back(
    host: NamespaceHost,
) -> None:
    gone = "net.ipv4.conf.veth7.rp_filter"
    assert host.run(ADD_LINK).exit_code == 0
    set_by_somebody(host, FIRST_PORT, "0")
    set_by_somebody(host, PORTS, LOW_PORTS)
    was = host.value(gone)
    before = host.values()
    with pytest.raises(HostError) as caught, guarded(host, [*KEYS, gone]) as session:  # noqa: PT012
        ports = {PORTS: "20000 60000", gone: "2" if was != "2" else "1"}
        session.apply(Configuration({SOMAXCONN: "777", RMEM: "8192 65536 1048576"} | ports))
        set_by_somebody(host, FIRST_PORT, "1024")
        host.run("ip link del veth7")
    head, *message = str(caught.value).splitlines()
    assert head == "lb: not everything is as it was found; as root, type there:"
    assert message == [
        f"could not be restored: sysctl -w {gone}={was}{NOT_NOW}",
        f"could not be restored: sysctl -w '{PORTS}={LOW_PORTS}'",
    ]
    assert before | {PORTS: "20000 60000"} == host.values()
    # As soon as it can be restored, a rollback does.
    assert {PORTS, gone} == {change.key for change in status(host).changed}
    set_by_somebody(host, FIRST_PORT, "0")
    again = rollback(host)
    assert (KeyValue(key=PORTS, value=LOW_PORTS),) == again.restored
    assert ("partly", [gone]) == (again.outcome, [key.key for key in again.unrestored])
    assert before == host.values()


def test_the_watchdog_reports_what_it_could_not_restore_and_a_session_says_it_once(
    host: NamespaceHost,
) -> None:
    set_by_somebody(host, FIRST_PORT, "0")
    set_by_somebody(host, PORTS, LOW_PORTS)
    begun(host, "net/ipv4/ip_local_port_range 20000 60000", "net/core/somaxconn 777", lease="2")
    set_by_somebody(host, FIRST_PORT, "1024")
    set_by_somebody(host, SOMAXCONN, "55")
    report = host.state / "report"
    wait_until(lambda: report.exists() and report.read_text().count("\n") == 3, "it restores")
    reports = [line.partition("Z: ")[2] for line in status(host).reports]
    silent, *which = reports
    assert silent.startswith("no sign of life from somebody@elsewhere since 20")
    assert silent.endswith("this host was NOT fully restored by its watchdog")
    assert len(which) == 2
    assert which[0].startswith(f"somebody else has changed {SOMAXCONN}, so it was left alone")
    assert which[1] == f"could not be restored: {PORTS}; as root: sysctl -w '{PORTS}={LOW_PORTS}'"
    # What could not be restored becomes no session's default.
    with pytest.raises(HostError) as caught, guarded(host, KEYS):
        pytest.fail("must not begin")
    head, command, *other, accept = str(caught.value).splitlines()
    assert "values of an earlier session could not be restored" in head
    assert (command, other) == (f"sysctl -w '{PORTS}={LOW_PORTS}'", [])
    set_by_somebody(host, FIRST_PORT, "0")
    assert host.run(command).exit_code == 0
    heard: list[str] = []
    with guarded(host, KEYS, say=heard.append) as session:
        assert all(any(line in message for message in heard) for line in reports)
        # A command of a controller that is dead by then tells nobody.
        assert len(reports) == len(status(host).reports)
        session.renew()
        assert status(host).reports == ()
        assert {SOMAXCONN: "55"}.items() <= session.snapshot.items()
    message = len(heard)
    with guarded(host, KEYS, say=heard.append):
        assert message == len(heard)
    # What somebody else has changed is theirs, and known until they say so.
    (change,) = status(host).foreign
    assert (change.key, change.left, change.now) == (SOMAXCONN, "777", "55")
    assert host.run(accept.partition("own: ")[2]).exit_code == 0
    assert status(host).foreign == ()
    assert host.script("rollback").exit_code == NOTHING
    assert sorted(path.name for path in host.state.iterdir()) == [*SCRIPTS, "report.old"]


def test_keys_that_need_each_other_are_back_after_two_passes(host: NamespaceHost) -> None:
    set_by_somebody(host, FIRST_PORT, "0")
    set_by_somebody(host, PORTS, LOW_PORTS)
    with guarded(host, [PORTS, FIRST_PORT]) as session:
        session.apply(Configuration({PORTS: "20000 60000"}))
        session.apply(Configuration({PORTS: "20000 60000", FIRST_PORT: "1024"}))
        path = PORTS.replace(".", "/")
        assert host.run(f"echo {LOW_PORTS} > /proc/sys/{path}").exit_code != 0
    assert (host.value(PORTS), host.value(FIRST_PORT)) == (LOW_PORTS, "0")


def test_a_value_that_the_kernel_reads_otherwise_fails_and_is_restored(host: NamespaceHost) -> None:
    before = host.values()
    with guarded(host, KEYS) as session:
        with pytest.raises(RefusedValueError, match="was set to '0777' and reads back as '511'"):
            session.apply(Configuration({SOMAXCONN: "0777"}))
        session.apply(Configuration({FIN: "11"}))
        session.apply(DEFAULT)
    assert before == host.values()


def test_a_write_that_was_cut_off_is_nobody_elses(host: NamespaceHost) -> None:
    """It had noted what it was about to write, and has written some of it."""
    before = host.values()
    begun(host, "net/core/somaxconn 777")
    with (host.state / "lock" / "inflight").open("a") as note:
        note.write("net/core/somaxconn\nnet/ipv4/tcp_fin_timeout\nnet/ipv4/tcp_rmem\n")
    host.run("sysctl -qw net.core.somaxconn=778 net.ipv4.tcp_fin_timeout=11")
    done = host.script("write", "token-1", stdin="net/ipv4/tcp_fin_timeout 12\n")
    assert done.exit_code == 0
    assert (host.value(SOMAXCONN), host.value(FIN)) == ("778", "12")
    assert (host.state / "lock" / "inflight").read_text() == ""
    host.script("end", "token-1")
    assert before == host.values()


def test_a_write_that_is_still_under_way_does_not_outlive_the_restore(host: NamespaceHost) -> None:
    begun(host)
    with busy_guard(str(host.state), "write", "token-1") as writer:
        (host.state / "lock" / "writer.token-1").write_text(f"{identity(writer.pid)}\n")
        assert host.script("end", "token-1").exit_code == 0
        assert writer.wait(timeout=10) == -9


def test_thirty_keys_cost_four_round_trips_and_two(host: NamespaceHost) -> None:
    assert host.run(ADD_LINK).exit_code == 0
    names = ["rp_filter", "log_martians", "arp_announce", "arp_ignore", "arp_filter"]
    names += ["accept_local", "arp_accept", "arp_notify", "promote_secondaries", "bootp_relay"]
    names += ["proxy_arp", "tag", "shared_media", "src_valid_mark", "medium_id"]
    keys = [f"net.ipv4.conf.{link}.{name}" for link in ("veth7", "veth8") for name in names]
    host.seen.clear()
    with guarded(host, keys) as session:
        other = {key: "1" if value == "0" else "0" for key, value in session.snapshot.items()}
        session.apply(Configuration(other))
        assert len(other) == 30
        assert len(host.seen) == 4
        session.apply(DEFAULT)
    assert len(host.seen) == 6


# What somebody else changes -----------------------------------------------------------------------


def test_a_foreign_change_stops_the_writing_and_is_left_alone(host: NamespaceHost) -> None:
    before = host.values()
    with pytest.raises(HostError) as caught, guarded(host, KEYS) as session:  # noqa: PT012
        session.apply(Configuration({SOMAXCONN: "777", FIN: "11"}))
        set_by_somebody(host, SOMAXCONN, "55")
        set_by_somebody(host, RMEM, "5000 6000 7000")
        for _ in range(2):
            with pytest.raises(ForeignChangeError) as stopped:
                session.apply(Configuration({FIN: "12"}))
        assert host.value(FIN) == "11"
        foreign = status(host).foreign
    rmem = before[RMEM]
    changes = (f"{SOMAXCONN} ('777' is '55' now)", f"{RMEM} ('{rmem}' is '5000 6000 7000' now)")
    assert changes == stopped.value.changes
    commands = [f"sysctl -w {SOMAXCONN}={before[SOMAXCONN]}", f"sysctl -w '{RMEM}={rmem}'"]
    expected = (
        ForeignChange(key=SOMAXCONN, left="777", now="55", command=commands[0]),
        ForeignChange(key=RMEM, left=rmem, now="5000 6000 7000", command=commands[1]),
    )
    assert foreign == expected
    message = str(caught.value).splitlines()
    assert message[0] == "lb: not everything is as it was found; as root, type there:"
    assert commands == [line.partition("left alone: ")[2] for line in message[1:]]
    assert before | {SOMAXCONN: "55", RMEM: "5000 6000 7000"} == host.values()
    assert not (host.state / "lock").exists()
    # The commands that it names do what they say.
    assert host.run("; ".join(commands)).exit_code == 0
    assert before == host.values()


def test_a_key_that_somebody_set_back_disturbs_once(host: NamespaceHost) -> None:
    before = host.values()
    with guarded(host, KEYS) as session:
        session.apply(Configuration({SOMAXCONN: "777"}))
        set_by_somebody(host, SOMAXCONN, before[SOMAXCONN])
        with pytest.raises(ForeignChangeError, match="'777' is"):
            session.apply(DEFAULT)
        session.apply(Configuration({SOMAXCONN: "778"}))
        assert host.value(SOMAXCONN) == "778"
    assert before == host.values()


def test_a_key_that_vanishes_meanwhile_disturbs(host: NamespaceHost) -> None:
    key = "net.ipv4.conf.veth7.rp_filter"
    host.run(ADD_LINK)
    with guarded(host, [FIN, key]) as session:
        was = session.snapshot[key]
        host.run("ip link del veth7")
        with pytest.raises(ForeignChangeError, match=r"veth7\.rp_filter \(is gone\)"):
            session.apply(Configuration({FIN: "11"}))
        host.run(ADD_LINK)
        assert was == host.value(key)


# A state folder that can't be written -------------------------------------------------------------


def test_a_full_disk_does_not_keep_a_host_from_being_restored(host: NamespaceHost) -> None:
    before = host.values()
    with small_disk(host):
        with (  # noqa: PT012
            pytest.raises(HostError, match=r"lb: the state folder .* can't be written: there is"),
            guarded(host, KEYS) as session,
        ):
            session.apply(Configuration({SOMAXCONN: "777", RMEM: "8192 65536 1048576"}))
            fill(host)
            session.apply(Configuration({SOMAXCONN: "778"}))
        assert before == host.values()
        assert not (host.state / "lock").exists()


def test_on_a_full_disk_the_lease_is_renewed_and_the_watchdog_restores(host: NamespaceHost) -> None:
    before = host.values()
    with small_disk(host):
        begun(host, "net/core/somaxconn 777", lease="2")
        fill(host)
        command = f"sh {host.state}/guard.sh {host.state} renew token-1"
        assert host.run(command).exit_code == 0
        assert host.value(SOMAXCONN) == "777"
        wait_until(lambda: not host.processes(), "the watchdog ends")
        assert before == host.values()
        assert not (host.state / "lock").exists()


def test_where_there_is_no_room_for_the_snapshot_nothing_begins(host: NamespaceHost) -> None:
    before = host.values()
    with small_disk(host):
        host.script("status")
        fill(host)
        # Before the script is there
        with pytest.raises(HostError) as caught, guarded(host, KEYS):
            pytest.fail("must not begin")
        assert str(caught.value).startswith(f"lb: the state folder {host.state} can't be written")
        # and after
        command = f"sh {host.state}/guard.sh {host.state} begin token-1 {LONG} me"
        refused = host.run(command, stdin="net/core/somaxconn\n")
        assert refused.exit_code == UNWRITABLE
        assert f"the state folder {host.state} can't be written: there is no" in refused.stderr
        assert not (host.state / "lock").exists()
        assert host.processes() == []
    assert before == host.values()


def test_a_folder_that_becomes_read_only_does_not_keep_a_host_from_being_restored(
    host: NamespaceHost,
) -> None:
    before = host.values()
    with small_disk(host):
        assert host.begin("token-1", "2", *KEYS).exit_code == 0
        lines = "net/core/somaxconn 777\n"
        guard = f"sh {host.state}/guard.sh {host.state}"
        assert host.run(f"{guard} write token-1", stdin=lines).exit_code == 0
        subprocess.run(["mount", "-o", "remount,ro", host.state], check=True)
        renewing = host.run(f"{guard} renew token-1")
        assert (renewing.exit_code, "read-only" in renewing.stderr) == (UNWRITABLE, True)
        wait_until(lambda: not host.processes(), "the watchdog ends")
        assert before == host.values()
        # Somebody else's changes thereafter are theirs.
        set_by_somebody(host, SOMAXCONN, "55")
        subprocess.run(["mount", "-o", "remount,rw", host.state], check=True)
        with guarded(host, KEYS) as session:
            assert session.snapshot[SOMAXCONN] == "55"
        assert host.value(SOMAXCONN) == "55"


def test_a_session_whose_folder_becomes_read_only_is_restored_at_its_end(
    host: NamespaceHost,
) -> None:
    before = host.values()
    with small_disk(host):
        with (  # noqa: PT012
            pytest.raises(HostError, match=r"lb: .*read-only\. Every key is as it was found"),
            guarded(host, KEYS) as session,
        ):
            session.apply(Configuration({SOMAXCONN: "777"}))
            subprocess.run(["mount", "-o", "remount,ro", host.state], check=True)
        assert before == host.values()
        with pytest.raises(HostError, match=r"it is read-only\. Nothing was changed"):
            guarded(host, KEYS).__enter__()
        subprocess.run(["mount", "-o", "remount,rw", host.state], check=True)


# Values are data ----------------------------------------------------------------------------------

HOSTILE = ["$(touch {mark})", "`touch {mark}`", "1; touch {mark}", "'; touch {mark}; '"]
HOSTILE += ['"; touch {mark}; "', "1\ntouch {mark}\nnet/core/somaxconn 5", "\\", "%s%n", "*", "-n"]
HOSTILE += ["--help", "~", "é\u202e", "9" * 10_000_000, "x " * 1_000_000]


def test_hostile_values_are_refused_or_inert(host: NamespaceHost, tmp_path: Path) -> None:
    before = host.values()
    mark = tmp_path / "mark"
    with guarded(host, KEYS) as session:
        for value in HOSTILE:
            for key in (SOMAXCONN, CONGESTION):
                with pytest.raises(RefusedValueError) as refused:
                    session.apply(Configuration({key: value.replace("{mark}", str(mark))}))
                assert len(str(refused.value)) < 1000
        session.apply(DEFAULT)
        assert before == host.values()
    assert not mark.exists()


@pytest.mark.parametrize("value", ["1\x002", "\ud800"])
def test_a_value_that_no_key_can_have_is_refused_before_it_is_sent(
    host: NamespaceHost, value: str
) -> None:
    with guarded(host, KEYS) as session:
        sent = len(host.seen)
        with pytest.raises(UsageError, match=r"net\.core\.somaxconn: "):
            session.apply(Configuration({SOMAXCONN: value}))
        assert sent == len(host.seen)


def test_nothing_outside_of_proc_sys_is_written(host: NamespaceHost, tmp_path: Path) -> None:
    begun(host)
    mark = tmp_path / "mark"
    lines = f"{mark} 1\n../..{mark} 1\nnet/../../..{mark} 1\n"
    done = host.script("write", "token-1", stdin=lines)
    assert done.stderr.count("refused: ") == 3
    assert not mark.exists()
    assert host.script("end", "token-1").exit_code == 0


# Other shells -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_session_in_another_shell(host: NamespaceHost, tmp_path: Path, shell: str) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    result = shutil.which(shell)
    assert result, f"no {shell} here"
    (programs / "sh").symlink_to(result)

    class Other(NamespaceHost):
        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
            return super().run(f"PATH={programs}:$PATH; {command}", stdin=stdin)

    other = Other(host._namespace, host.address)
    check_a_whole_session(other)


def check_a_whole_session(host: NamespaceHost) -> None:
    before = host.values()
    with guarded(host, KEYS) as session:
        session.apply(Configuration({SOMAXCONN: "777", RMEM: "8192 65536 1048576"}))
        session.renew()
        with pytest.raises(RefusedValueError):
            session.apply(Configuration({PORTS: "60000 20000"}))
        assert status(host).is_watched
        end_processes(host)
        session.renew()
        assert status(host).is_watched
        assert "was armed anew" in status(host).reports[0]
    assert before == host.values()
    begun(host, "net/ipv4/tcp_rmem 8192 65536 1048576")
    died(host)
    assert host.script("write", "token-1", stdin="net/core/somaxconn 5\n").exit_code == NOT_OURS
    assert before == host.values()
    begun(host, "net/core/somaxconn 777")
    set_by_somebody(host, FIN, "33")
    refused = host.script("write", "token-1", stdin="net/core/somaxconn 778\n")
    assert refused.exit_code == FOREIGN
    assert rollback(host).outcome == "held"
    assert rollback(host, force=True).outcome == "restored"
    assert before == host.values()
