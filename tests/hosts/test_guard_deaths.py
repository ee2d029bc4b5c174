"""guard.sh on a fake kernel: whoever dies wherever, and what every other one makes of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from intop.hosts.guard.script import HELD, MISSING, NOT_OURS, UNWRITABLE
from kit.fake_kernel import OWN, FakeKernelHost, fake_kernel_host
from kit.namespace_host import identity_of_nobody

TUNED = {"net/core/somaxconn": "777", "vm/swappiness": "1"}
LINES = "".join(f"{path} {value}\n" for path, value in TUNED.items())
DONE = 3
"""The end of a watchdog that has nothing more to do."""


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeKernelHost]:
    with fake_kernel_host(tmp_path) as made:
        yield made


def tune(host: FakeKernelHost, name: str = "a") -> None:
    begun = host.begin_in(name, "t1")
    assert begun.exit_code == 0, begun
    assert host.guard(name, "write", "t1", stdin=LINES).exit_code == 0
    assert host.now() == OWN | TUNED


def ended_half_way(host: FakeKernelHost) -> None:
    """Whoever gave it back has died just after it took the lock away."""
    tune(host)
    host.kill_all()
    folder = host.folder("a")
    (folder / "lock").rename(folder / f"restoring.{identity_of_nobody()}")


STUCK = "/proc/sys/net/core/somaxconn"


def make_stuck(host: FakeKernelHost) -> None:
    """The kernel refuses this key from now on."""
    done = host.run(f"mount --bind {STUCK} {STUCK} && mount -o remount,bind,ro {STUCK}")
    assert done.exit_code == 0, done


# A restore that is half done ----------------------------------------------------------------------


def test_the_watchdog_finishes_what_another_one_has_begun_to_restore(fake: FakeKernelHost) -> None:
    ended_half_way(fake)
    assert fake.watch("a", "t1") == DONE
    assert (fake.now(), fake.pending("a")) == (OWN, [])
    message = (fake.folder("a") / "report").read_text()
    assert "has died over it; this host was restored by its watchdog" in message


@pytest.mark.parametrize("verb", ["write", "renew", "end"])
def test_a_session_that_is_told_of_a_restore_finds_all_restored(
    fake: FakeKernelHost, verb: str
) -> None:
    ended_half_way(fake)
    assert fake.guard("a", verb, "t1").exit_code == NOT_OURS
    assert (fake.now(), fake.pending("a")) == (OWN, [])


def test_a_watchdog_waits_while_another_one_restores(fake: FakeKernelHost) -> None:
    tune(fake)
    fake.kill_all()
    folder = fake.folder("a")
    # The first process of the host lives as long as it does.
    started = Path(f"/proc/{fake._inner}/stat").read_text().rpartition(")")[2].split()[19]
    (folder / "lock").rename(folder / f"restoring.1-{started}")
    assert fake.watch("a", "t1") != DONE
    refused = fake.guard("a", "end", "t1")
    assert refused.exit_code == 1
    assert "still being restored" in refused.stderr
    assert fake.now() == OWN | TUNED


Finish = Callable[[FakeKernelHost], bool]


def by_watchdog(host: FakeKernelHost) -> bool:
    return host.watch("a", "t1") == DONE


def by_end(host: FakeKernelHost) -> bool:
    return host.guard("a", "end", "t1").exit_code in (0, NOT_OURS)


def by_status(host: FakeKernelHost) -> bool:
    return host.guard("a", "status").exit_code == 0


def by_rollback(host: FakeKernelHost) -> bool:
    return host.guard("a", "rollback").exit_code in (0, 77)


def by_begin(host: FakeKernelHost) -> bool:
    done = host.begin_in("a", "t2")
    assert all(f"{path}:{value}\n" in done.stdout for path, value in OWN.items()), done
    return host.guard("a", "end", "t2").exit_code == 0


Die = Callable[[FakeKernelHost, int], int]


def in_end(host: FakeKernelHost, fatal: int) -> int:
    return host.guard("a", "end", "t1", fatal=fatal).exit_code


def in_watch(host: FakeKernelHost, fatal: int) -> int:
    host.lapse("a")
    code = host.watch("a", "t1", fatal)
    return 0 if code == DONE else code


@pytest.mark.parametrize("die", [in_end, in_watch])
@pytest.mark.parametrize("finish", [by_watchdog, by_end, by_status, by_begin, by_rollback])
def test_of_two_that_give_back_one_dies_anywhere_and_another_one_finishes(
    fake: FakeKernelHost, die: Die, finish: Finish
) -> None:
    """With the watchdog of the background dead, too, so that nobody but that one does."""
    for fatal in range(1, 40, 1 if finish is by_watchdog else 3):
        tune(fake)
        fake.kill_all()
        code = die(fake, fatal)
        # The other one is at work until the lease is over.
        fake.lapse("a")
        assert finish(fake), fatal
        assert (fake.now(), fake.pending("a")) == (OWN, []), fatal
        if code == 0:
            break
    assert code == 0
    assert fatal >= 5


@pytest.mark.parametrize("order", [(in_end, in_watch), (in_watch, in_end)])
def test_of_two_that_give_back_both_die_anywhere_and_the_next_command_finishes(
    fake: FakeKernelHost, order: tuple[Die, Die]
) -> None:
    first, second = order
    for fatal in range(1, 40, 2):
        tune(fake)
        fake.kill_all()
        code = first(fake, fatal)
        second(fake, 1 + fatal * 5 % 11)
        fake.kill_all()
        fake.lapse("a")
        assert by_begin(fake)
        assert (fake.now(), fake.pending("a")) == (OWN, []), fatal
        if code == 0:
            break
    assert code == 0


# The watchdog -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT", "PIPE"])
def test_a_watchdog_that_is_asked_to_end_says_that_it_is_not_done(
    fake: FakeKernelHost, tmp_path: Path, name: str
) -> None:
    """For systemd: an end by one of these signals would be a good one."""
    tune(fake)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "sleep").symlink_to("/usr/bin/sleep")
    state = tmp_path / "a"
    # What a shell starts in its background ignores an interrupt.
    watchdog = f"env --default-signal sh {state}/guard.sh {state} watch t1"
    done = fake.by("real", f"{watchdog} & sleep 0.3; kill -{name} $!; wait $!")
    assert done.exit_code == 70


def test_a_watchdog_that_can_not_sleep_is_not_done(fake: FakeKernelHost) -> None:
    tune(fake)
    assert fake.watch("a", "t1") == 70


def test_the_unit_comes_back_after_every_end_but_one(fake: FakeKernelHost, tmp_path: Path) -> None:
    shim = tmp_path / "calm" / "systemd-run"
    shim.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/said\nexit 1\n')
    shim.chmod(0o755)
    assert fake.run("mkdir -p /run/systemd/system").exit_code == 0
    assert fake.begin_in("a", "t1").exit_code == 0
    output = (tmp_path / "said").read_text()
    for property_ in ("Restart=always", "RestartSec=1", "StartLimitIntervalSec=0"):
        assert f"--property={property_}\n" in output
    assert f"--property=RestartPreventExitStatus={DONE}\n" in output


def test_without_a_watchdog_nothing_begins(fake: FakeKernelHost, tmp_path: Path) -> None:
    disarm(tmp_path)
    refused = fake.begin_in("a", "t1")
    assert refused.exit_code == 1
    assert "no watchdog can be armed" in refused.stderr
    assert "nothing was changed" in refused.stderr
    assert fake.pending("a") == []


def test_without_a_watchdog_nothing_is_written(fake: FakeKernelHost, tmp_path: Path) -> None:
    assert fake.begin_in("a", "t1").exit_code == 0
    fake.kill_all()
    disarm(tmp_path)
    refused = fake.guard("a", "write", "t1", stdin=LINES)
    assert refused.exit_code == 1
    assert "nothing more is set" in refused.stderr
    assert fake.now() == OWN
    assert fake.guard("a", "renew", "t1").exit_code == 1


def disarm(folder: Path) -> None:
    (folder / "calm" / "nohup").write_text("#!/bin/sh\nexit 1\n")
    (folder / "calm" / "nohup").chmod(0o755)


def test_a_lease_from_the_future_has_lapsed(fake: FakeKernelHost) -> None:
    """As after a container's start, whose clock begins again under the same boot."""
    tune(fake)
    fake.kill_all()
    fake.lapse("a", "9999999999")
    assert fake.watch("a", "t1") == DONE
    assert fake.now() == OWN


def test_the_lease_begins_when_the_host_is_taken(fake: FakeKernelHost, tmp_path: Path) -> None:
    """However long a slow host takes for that."""
    (tmp_path / "calm" / "sync").write_text("#!/bin/sh\nexec /bin/sleep 1.1\n")
    assert fake.begin_in("a", "t1").exit_code == 0
    lock = fake.folder("a") / "lock"
    taken, lease = (int((lock / name).read_text()) for name in ("taken", "lease"))
    assert taken < lease


# What is known, and how long ----------------------------------------------------------------------


def test_a_value_that_is_not_back_is_known_until_it_is_or_is_accepted(
    fake: FakeKernelHost,
) -> None:
    tune(fake)
    make_stuck(fake)
    assert fake.guard("a", "end", "t1").exit_code == 1
    for _ in range(2):
        refused = fake.begin_in("a", "t2")
        assert refused.exit_code == MISSING
        assert "unrestored\tnet/core/somaxconn\t100\t" in refused.stdout
        assert "key\tnet/core/somaxconn\t100\t777\n" in fake.guard("a", "status").stdout
    assert fake.run(f"umount {STUCK}").exit_code == 0
    assert fake.begin_in("a", "t3").exit_code == 0
    assert fake.now() == OWN
    assert fake.guard("a", "end", "t3").exit_code == 0
    assert fake.pending("a") == []


def test_what_a_session_on_applied_values_could_not_take_back_is_ours_at_a_rollback(
    fake: FakeKernelHost,
) -> None:
    tune(fake)
    assert fake.guard("a", "keep", "t1", stdin="about\tsince\tnow\nend\n").exit_code == 0
    assert fake.begin_in("a", "t2").exit_code == 0
    assert fake.guard("a", "write", "t2", stdin="net/core/somaxconn 888\n").exit_code == 0
    make_stuck(fake)
    assert fake.guard("a", "end", "t2").exit_code == 1
    assert fake.run(f"umount {STUCK}").exit_code == 0
    assert fake.guard("a", "rollback").exit_code == 0
    assert (fake.now(), fake.pending("a")) == (OWN, [])


def test_what_is_accepted_is_the_hosts_own(fake: FakeKernelHost) -> None:
    tune(fake)
    make_stuck(fake)
    assert fake.guard("a", "end", "t1").exit_code == 1
    assert "key\tnet/core/somaxconn\t100\t777\n" in fake.guard("a", "accept").stdout
    begun = fake.begin_in("a", "t2")
    assert "net/core/somaxconn:777\n" in begun.stdout
    assert fake.guard("b", "accept").exit_code == 77


def test_a_full_disk_under_a_restore_loses_no_value(fake: FakeKernelHost, tmp_path: Path) -> None:
    """With room for one file more, and not for two."""
    tune(fake)
    make_stuck(fake)
    shim = tmp_path / "calm" / "mv"
    # The second of two files would be the list of paths.
    shim.write_text('#!/bin/sh\ncase $1 in */paths.new) exit 1 ;; esac\nexec /usr/bin/mv "$@"\n')
    shim.chmod(0o755)
    assert fake.guard("a", "end", "t1").exit_code == 1
    assert fake.run(f"umount {STUCK}").exit_code == 0
    assert fake.guard("a", "rollback").exit_code == 0
    assert fake.now() == OWN


def test_a_report_is_told_until_a_controller_has_heard_it(fake: FakeKernelHost) -> None:
    tune(fake)
    fake.kill_all()
    fake.lapse("a")
    for token in ("t2", "t3"):
        # Its answer never arrives, and it dies.
        assert "report\t" in fake.begin_in("a", token).stdout
        fake.kill_all()
        fake.lapse("a")
    begun = fake.begin_in("a", "t4")
    assert begun.stdout.count("no sign of life from me since") == 3
    assert not (fake.folder("a") / "report.old").exists()
    assert fake.guard("a", "renew", "t4").exit_code == 0
    assert "no sign of life" in (fake.folder("a") / "report.old").read_text()
    assert fake.guard("a", "end", "t4").exit_code == 0
    assert "report\t" not in fake.begin_in("a", "t5").stdout


def test_the_report_says_how_to_restart_nginx(fake: FakeKernelHost) -> None:
    paths = "".join(f"{path}\n" for path in OWN)
    words = ("begin", "t1", "30", "me", "own", "'systemctl restart nginx'")
    assert fake.guard("a", *words, stdin=paths).exit_code == 0
    fake.lapse("a")
    fake.watch("a", "t1")
    report = fake.folder("a") / "report"
    assert "nginx" not in report.read_text()  # Nothing was written.
    assert fake.guard("a", *words, stdin=paths).exit_code == 0
    assert fake.guard("a", "write", "t1", stdin=LINES).exit_code == 0
    fake.kill_all()
    fake.lapse("a")
    assert fake.watch("a", "t1") == DONE
    assert "until it is restarted, as root: systemctl restart nginx\n" in report.read_text()


# The rest of what may go wrong --------------------------------------------------------------------


def test_a_disk_that_does_not_take_the_snapshot_is_noticed(
    fake: FakeKernelHost, tmp_path: Path
) -> None:
    (tmp_path / "calm" / "sync").write_text("#!/bin/sh\nexit 1\n")
    refused = fake.begin_in("a", "t1")
    assert refused.exit_code == UNWRITABLE
    assert "sync failed" in refused.stderr
    assert fake.pending("a") == []


def test_a_write_that_does_not_end_keeps_a_host_from_being_called_restored(
    fake: FakeKernelHost,
) -> None:
    """No signal ends the host's first process when it comes from inside."""
    tune(fake)
    fake.kill_all()
    started = Path(f"/proc/{fake._inner}/stat").read_text().rpartition(")")[2].split()[19]
    writer = fake.folder("a") / "lock" / "writer.t1"
    writer.write_text(f"1-{started}\n")
    refused = fake.guard("a", "end", "t1")
    assert refused.exit_code == 1
    assert "a write does not end (process 1)" in refused.stderr
    # What can be done is done; and it stays to be done again.
    assert fake.now() == OWN
    (pending,) = fake.pending("a")
    assert pending.startswith("restoring.")
    fake.set(TUNED)
    (fake.folder("a") / pending / "writer.t1").write_text("0\n")
    assert fake.watch("a", "t1") == DONE
    assert (fake.now(), fake.pending("a")) == (OWN, [])


def test_what_the_kernel_widens_by_itself_goes_back(fake: FakeKernelHost, tmp_path: Path) -> None:
    choice, allowed = (
        tmp_path / "sys" / f"net/ipv4/tcp_{name}congestion_control" for name in ("", "allowed_")
    )
    choice.write_text("cubic\n")
    allowed.write_text("reno cubic\n")
    asked = "net/ipv4/tcp_congestion_control\n"
    assert fake.guard("a", "begin", "t1", "30", "me", "own", stdin=asked).exit_code == 0
    assert fake.guard("a", "write", "t1", stdin=f"{asked.strip()} bbr\n").exit_code == 0
    # As the kernel has it at once.
    allowed.write_text("reno cubic bbr\n")
    left = fake.folder("a") / "lock" / "left"
    left.write_text(left.read_text().replace("reno cubic\n", "reno cubic bbr\n"))
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert (choice.read_text(), allowed.read_text()) == ("cubic\n", "reno cubic\n")


# Two state folders --------------------------------------------------------------------------------


def test_of_two_folders_of_a_host_one_has_it(fake: FakeKernelHost) -> None:
    tune(fake, "a")
    refused = fake.begin_in("b", "t2")
    assert refused.exit_code == 75
    assert "held by me since 20" in refused.stdout
    assert f"in another state folder, {fake.address.state_dir[:-1]}a: " in refused.stdout
    assert fake.pending("b") == []
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert fake.begin_in("b", "t2").exit_code == 0
    assert fake.now() == OWN
    assert fake.begin_in("a", "t3").exit_code == 75


def test_another_folders_values_are_no_default(fake: FakeKernelHost) -> None:
    ended_half_way(fake)
    refused = fake.begin_in("b", "t2")
    assert (refused.exit_code, "guard.sh" in refused.stdout) == (75, True)
    # What it says to type makes room.
    assert fake.run(refused.stdout.splitlines()[0].rpartition("roll back by: ")[2]).exit_code == 0
    assert fake.begin_in("b", "t2").exit_code == 0
    assert fake.now() == OWN


def test_what_is_applied_from_one_folder_is_not_undone_under_the_session_of_another(
    fake: FakeKernelHost,
) -> None:
    tune(fake, "a")
    assert fake.guard("a", "keep", "t1", stdin="about\tsince\tnow\nend\n").exit_code == 0
    assert fake.begin_in("b", "t2").exit_code == 0
    refused = fake.guard("a", "rollback")
    assert (refused.exit_code, "in another state folder" in refused.stderr) == (75, True)
    assert fake.now() == OWN | TUNED
    assert fake.guard("b", "end", "t2").exit_code == 0
    assert fake.guard("a", "rollback").exit_code == 0
    assert fake.now() == OWN


def test_folders_that_begin_at_once_never_both_have_the_host(fake: FakeKernelHost) -> None:
    paths = "".join(f"{path}\n" for path in OWN)
    for n in range(5):
        both = " ".join(
            f"(printf '{paths.replace(chr(10), '|')}' | tr '|' '\\n' | sh {state}/guard.sh {state} "
            f"begin t{n} 30 me own >/dev/null; echo $?) &"
            for state in (fake.address.state_dir[:-1] + name for name in "ab")
        )
        codes = sorted(fake.run(f"{both} wait").stdout.split())
        assert codes in (["0", "75"], ["75", "75"])
        for name in "ab":
            fake.guard(name, "end", f"t{n}")


def test_a_rollback_with_a_full_disk_leaves_another_folders_session_alone(
    fake: FakeKernelHost,
) -> None:
    """It can't take its lock; what the other session found is still not its own to change."""
    fake.begin_in("a", "first")
    fake.guard("a", "write", "first", stdin="net/core/somaxconn 1\n")
    fake.guard("a", "keep", "first", stdin="about\tsince\tnow\nend\n")
    fake.fill()
    fake.begin_in("b", "second")
    refused = fake.guard("a", "rollback")
    assert refused.exit_code == HELD
    assert "in another state folder" in refused.stderr
    assert fake.now()["net/core/somaxconn"] == "1"
    assert fake.guard("b", "end", "second").exit_code == 0
    assert fake.guard("a", "rollback").exit_code == 0
    assert fake.now() == OWN


@pytest.mark.parametrize("verb", ["write", "keep"])
def test_nothing_is_set_once_a_dead_keep_has_kept(fake: FakeKernelHost, verb: str) -> None:
    """It would stay without a record of it, which a rollback goes by."""
    about = "about\tsince\tnow\nend\n"
    result = 0
    for fatal in range(12, 36):
        tune(fake)
        fake.guard("a", "keep", "t1", stdin=about, fatal=fatal)
        if fake.applied("a") and (fake.folder("a") / "lock/token").exists():
            stdin = about if verb == "keep" else LINES.replace(" ", " 1")
            done = fake.guard("a", verb, "t1", stdin=stdin)
            assert done.exit_code == NOT_OURS
            result += "were kept already" in done.stderr
            assert fake.pending("a") == []
            assert fake.now() == OWN | TUNED
        fake.lapse("a")
        assert fake.guard("a", "rollback").exit_code in (0, 77)
        assert fake.now() == OWN
        fake.kill_all()
    assert result
