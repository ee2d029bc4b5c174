"""guard.sh and the files of a real nginx, on a fake kernel: written, refused, and given back."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from intop.hosts.guard.script import FOREIGN, MISSING, NOT_OURS, NOTHING, REFUSED, UNWRITABLE
from kit.fake_kernel import MAIN, OWN, SITE, FakeKernelHost, fake_kernel_host, sent
from kit.namespace_host import wait_until

DONE = 3
"""The end of a watchdog that has nothing more to do."""


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeKernelHost]:
    with fake_kernel_host(tmp_path) as made:
        made.start_nginx()
        yield made


def tune(host: FakeKernelHost, word: str = "ours", by: str = "reload") -> None:
    begun = host.begin_in("a", "t1")
    assert begun.exit_code == 0, begun
    done = host.write_files("a", "t1", host.texts(word), keys="vm/swappiness 1\n", by=by)
    assert done.exit_code == 0, done
    assert (word, word) == host.serves()


def assert_given_back(host: FakeKernelHost, name: str = "a") -> None:
    assert host.serves() == ("own", "own")
    assert host.now() == OWN
    assert (host.pending(name), host.beside()) == ([], [])


def test_files_are_written_served_and_given_back(fake: FakeKernelHost) -> None:
    before = fake.files()
    tune(fake)
    assert [mode[1:] for mode in before.values()] == [mode[1:] for mode in fake.files().values()]
    assert fake.texts("ours") == {name: file[0] for name, file in fake.files().items()}
    assert (fake.nginx / "sites-enabled/site").is_symlink()
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert before == fake.files()
    assert_given_back(fake)


def test_a_restart_is_made_where_one_is_needed(fake: FakeKernelHost) -> None:
    restarts = fake.nginx / "restarts"
    tune(fake, by="restart")
    assert len(restarts.read_text().splitlines()) == 2
    fake.kill_all()
    fake.lapse("a")
    assert fake.watch("a", "t1") == DONE
    assert len(restarts.read_text().splitlines()) == 3
    assert_given_back(fake)
    # So its sockets are as before, too, and nobody has to type anything.
    assert "nginx keeps" not in (fake.folder("a") / "report").read_text()


def test_the_watchdog_gives_files_back(fake: FakeKernelHost) -> None:
    before = fake.files()
    tune(fake)
    fake.kill_all()
    assert "key\tnginx\tits own configuration\t" in fake.guard("a", "status").stdout
    fake.lapse("a")
    assert fake.watch("a", "t1") == DONE
    assert before == fake.files()
    assert_given_back(fake)
    # Its sockets were opened under other values.
    assert (
        f"restarted, as root: sh {fake.nginx}/restart" in (fake.folder("a") / "report").read_text()
    )


def test_a_file_gets_its_own_text_by_a_write(fake: FakeKernelHost) -> None:
    before = fake.files()
    tune(fake)
    for texts in ({SITE: None}, {MAIN: None}, {MAIN: None, SITE: None}, fake.texts("twice")):
        assert fake.write_files("a", "t1", texts).exit_code == 0
    assert fake.serves() == ("twice", "twice")
    assert fake.write_files("a", "t1", {MAIN: None, SITE: None}).exit_code == 0
    assert before == fake.files()
    assert fake.serves() == ("own", "own")
    assert (fake.folder("a") / "lock/nginx").read_text().splitlines()[0] == "own"
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert_given_back(fake)


# What nginx does not take -------------------------------------------------------------------------


def test_what_nginx_refuses_is_gone_at_once(fake: FakeKernelHost) -> None:
    before = fake.files()
    assert fake.begin_in("a", "t1").exit_code == 0
    bad = {SITE: fake.texts("ours")[SITE], MAIN: fake.own_texts()[MAIN] + "nonsense on;\n"}
    done = fake.write_files("a", "t1", bad, keys="vm/swappiness 1\n")
    assert done.exit_code == REFUSED
    assert '[emerg] unknown directive "nonsense" in ' in done.stderr
    assert (before, OWN) == (fake.files(), fake.now())
    assert fake.serves() == ("own", "own")
    # The session goes on.
    assert fake.write_files("a", "t1", fake.texts("ours")).exit_code == 0
    assert fake.serves() == ("ours", "ours")
    assert fake.write_files("a", "t1", bad).exit_code == REFUSED
    assert fake.serves() == ("own", "own")
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert_given_back(fake)


def test_what_fails_only_when_it_takes_effect_is_gone_too(fake: FakeKernelHost) -> None:
    """A restart command that fails with these files, as a unit may."""
    assert fake.begin_in("a", "t1").exit_code == 0
    text = fake.own_texts()[SITE].replace("return", f"listen unix:{fake.nginx}/none/x; return")
    done = fake.write_files("a", "t1", {SITE: text}, by="restart")
    assert done.exit_code == REFUSED
    assert "/none/x" in done.stderr
    assert fake.serves() == ("own", "own")
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert_given_back(fake)


def test_what_was_cut_off_on_its_way_is_not_written(fake: FakeKernelHost) -> None:
    before = fake.files()
    assert fake.begin_in("a", "t1").exit_code == 0
    line = f"/1 {sent(fake.texts('ours')[MAIN])[:-9]}\n"
    assert fake.guard("a", "write", "t1", "reload", "0", stdin=line).exit_code == UNWRITABLE
    assert before == fake.files()
    assert fake.guard("a", "write", "t1", "reload", "0", stdin="/3 own\n").exit_code == 1
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert_given_back(fake)


def test_connections_of_old_workers_are_waited_for_and_told_of(fake: FakeKernelHost) -> None:
    assert fake.begin_in("a", "t1").exit_code == 0
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(fake.nginx / "s"))
        client.sendall(b"GET / HT")
        wait_until(lambda: fake.serves() == ("own", "own"), "nginx has taken the connection")
        done = fake.write_files("a", "t1", fake.texts("ours"))
        assert "draining\t1\n" in done.stdout
        assert fake.serves() == ("ours", "ours")
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert_given_back(fake)


# What can't be guarded ----------------------------------------------------------------------------


def test_files_that_a_write_would_harm_are_refused(fake: FakeKernelHost) -> None:
    os.link(fake.nginx / SITE, fake.nginx / "again")
    refused = fake.begin_in("a", "t1")
    assert (refused.exit_code, "several names (hard links)" in refused.stderr) == (1, True)
    assert fake.pending("a") == []
    (fake.nginx / "again").unlink()
    (fake.nginx / SITE).write_text("nonsense on;\n")
    refused = fake.begin_in("a", "t1")
    assert (refused.exit_code, "nginx refuses its files as they are" in refused.stderr) == (1, True)
    assert fake.pending("a") == []


def test_without_nginx_its_files_are_not_guarded(fake: FakeKernelHost) -> None:
    stop(fake)
    refused = fake.begin_in("a", "t1")
    assert (refused.exit_code, "no nginx runs" in refused.stderr) == (1, True)
    assert fake.pending("a") == []


def test_a_keep_with_files_as_they_were_found_has_none_in_its_record(fake: FakeKernelHost) -> None:
    tune(fake)
    assert fake.write_files("a", "t1", {MAIN: None, SITE: None}).exit_code == 0
    assert fake.guard("a", "keep", "t1", stdin="about\tsince\tnow\nend\n").exit_code == 0
    assert fake.serves() == ("own", "own")
    assert (fake.pending("a"), fake.beside()) == ([], [])
    (record,) = fake.folder("a").glob("applied.*")
    assert not (record / "files").exists()


def test_what_was_written_and_not_loaded_is_loaded_before_it_stays(fake: FakeKernelHost) -> None:
    """The write that put it there may have died before nginx took it."""
    assert fake.begin_in("a", "t1").exit_code == 0
    one = fake.texts("one")[MAIN]
    refusals = range(1, 60)
    for fatal in refusals:
        fake.write_files("a", "t1", {MAIN: one}, fatal=fatal)
        if fake.files()[MAIN][0] == one:
            break
    assert fake.serves() == ("own", "own")
    assert fake.guard("a", "keep", "t1", stdin="about\tsince\tnow\nend\n").exit_code == 0
    assert fake.serves() == ("one", "own")
    assert fake.guard("a", "rollback").exit_code == 0
    assert fake.serves() == ("own", "own")
    assert fake.own_texts()[MAIN] == fake.files()[MAIN][0]


def stop(host: FakeKernelHost) -> None:
    """Somebody stops nginx, or it has died."""
    host.run(f"read -r pid < {host.nginx}/nginx.pid && kill $pid")
    wait_until(lambda: not (host.nginx / "nginx.pid").exists(), "nginx ends")


# Somebody else ------------------------------------------------------------------------------------


def test_a_file_that_somebody_else_changes_is_told_of_and_left_alone(fake: FakeKernelHost) -> None:
    tune(fake)
    theirs = fake.texts("theirs")[SITE]
    (fake.nginx / SITE).write_text(theirs)
    done = fake.write_files("a", "t1", fake.texts("more"))
    assert done.exit_code == FOREIGN
    assert f"foreign\t{fake.nginx / SITE}\tas intop left it\tchanged\t" in done.stdout
    assert fake.texts("ours")[MAIN] == fake.files()[MAIN][0]

    done = fake.guard("a", "end", "t1")
    assert done.exit_code == 1
    assert f"unrestored\t{fake.nginx / SITE}\tsomebody else has changed it" in done.stdout
    assert fake.serves() == ("own", "theirs")
    assert fake.now() == OWN
    # It is no session's default until somebody says so.
    assert fake.begin_in("a", "t2").exit_code == MISSING
    assert "changed by somebody else" in fake.guard("a", "status").stdout
    assert theirs == fake.files()[SITE][0]
    assert fake.guard("a", "accept").exit_code == 0
    assert fake.beside() == []
    assert fake.begin_in("a", "t3").exit_code == 0
    assert fake.guard("a", "end", "t3").exit_code == 0
    assert fake.serves() == ("own", "theirs")


def test_by_force_a_file_is_as_it_was_found(fake: FakeKernelHost) -> None:
    before = fake.files()
    tune(fake)
    (fake.nginx / SITE).write_text(fake.texts("theirs")[SITE])
    (fake.nginx / SITE).chmod(0o600)
    (fake.nginx / MAIN).unlink()
    assert fake.guard("a", "end", "t1").exit_code == 1
    assert fake.serves() == ("ours", "ours")  # without a file nginx would not come back
    done = fake.guard("a", "rollback", "force")
    assert done.exit_code == 0, done
    assert f"restored\t{fake.nginx / MAIN}\tas it was found\n" in done.stdout
    assert before == fake.files()
    assert_given_back(fake)


def test_the_watchdogs_report_names_a_file_of_somebody_else(fake: FakeKernelHost) -> None:
    tune(fake)
    (fake.nginx / SITE).write_text(fake.texts("theirs")[SITE])
    fake.kill_all()
    fake.lapse("a")
    fake.watch("a", "t1")
    report = (fake.folder("a") / "report").read_text()
    assert "this host was NOT fully restored by its watchdog" in report
    line = f"{fake.nginx / SITE}: somebody else has changed it, so it was left alone; to restore it"
    assert line in report
    assert fake.serves() == ("own", "theirs")


def test_a_file_that_somebody_has_put_back_is_told_of_once(fake: FakeKernelHost) -> None:
    tune(fake)
    (fake.nginx / SITE).write_text(fake.own_texts()[SITE])
    assert fake.write_files("a", "t1", fake.texts("more")).exit_code == FOREIGN
    assert fake.write_files("a", "t1", fake.texts("more")).exit_code == 0
    assert fake.serves() == ("more", "more")
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert_given_back(fake)


# Disks --------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[FakeKernelHost]:
    """nginx's folder has a disk of its own."""
    (tmp_path / "nginx").mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "none", tmp_path / "nginx"], check=True
    )
    try:
        with fake_kernel_host(tmp_path) as made:
            made.start_nginx()
            yield made
    finally:
        subprocess.run(["umount", "-l", tmp_path / "nginx"], check=True)


def fill(folder: Path) -> None:
    subprocess.run(f"cat /dev/zero > {folder}/full", shell=True, stderr=subprocess.DEVNULL)


def test_a_full_disk_is_in_no_restores_way(small: FakeKernelHost) -> None:
    before = small.files()
    tune(small)
    fill(small.nginx)
    small.fill()
    # Twice: a write that fails leaves what is needed.
    for word in ("more", "again"):
        done = small.write_files("a", "t1", small.texts(word))
        assert done.exit_code == UNWRITABLE, done
        assert small.serves() == ("ours", "ours")
    small.kill_all()
    small.lapse("a")
    assert small.watch("a", "t1") == DONE
    assert before == small.files()
    assert_given_back(small)


def test_a_read_only_disk_is_told_of_until_it_is_writable(fake: FakeKernelHost) -> None:
    before = fake.files()
    tune(fake)
    folder = fake.nginx / "sites-available"
    bound = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
    assert fake.run(bound).exit_code == 0
    done = fake.guard("a", "end", "t1")
    assert done.exit_code == 1
    assert f"unrestored\t{fake.nginx / SITE}\tit can't be written" in done.stdout
    assert fake.now() == OWN
    # What can be restored is, and nginx has it.
    assert fake.serves() == ("own", "ours")
    assert fake.begin_in("a", "t2").exit_code == MISSING
    assert fake.run(f"umount {folder}").exit_code == 0
    assert fake.begin_in("a", "t2").exit_code == 0
    assert before == fake.files()
    assert fake.serves() == ("own", "own")
    assert fake.guard("a", "end", "t2").exit_code == 0
    assert_given_back(fake)


# Deaths -------------------------------------------------------------------------------------------


def test_a_reboot_gives_files_back_and_starts_nothing(fake: FakeKernelHost, tmp_path: Path) -> None:
    before = fake.files()
    tune(fake)
    fake.kill_all()
    stop(fake)
    (tmp_path / "sys/kernel/random/boot_id").write_text("another-boot\n")
    fake.set({"vm/swappiness": "55"})
    # Nobody takes the host from another folder meanwhile.
    assert fake.begin_in("b", "t2").exit_code == 75
    assert fake.guard("a", "status").exit_code == 0
    assert before == fake.files()
    assert (fake.pending("a"), fake.beside()) == ([], [])
    assert fake.now()["vm/swappiness"] == "55"
    assert not (fake.nginx / "nginx.pid").exists()
    assert "was started anew under the session of me" in (fake.folder("a") / "report").read_text()


@pytest.mark.parametrize("by", ["reload", "restart"])
def test_an_nginx_that_was_started_with_our_files_after_a_reboot_reads_its_own(
    fake: FakeKernelHost, tmp_path: Path, by: str
) -> None:
    """A reboot empties /run, too."""
    before = fake.files()
    tune(fake, by=by)
    fake.kill_all()
    fake.run("rm -r /run/intop-guard")
    (tmp_path / "sys/kernel/random/boot_id").write_text("another-boot\n")
    assert fake.guard("a", "rollback").exit_code == 0
    assert before == fake.files()
    assert fake.serves() == ("own", "own")


def test_an_nginx_that_has_died_comes_back_with_its_files(fake: FakeKernelHost) -> None:
    tune(fake)
    stop(fake)
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert_given_back(fake)


def test_an_nginx_that_is_just_starting_is_waited_for(fake: FakeKernelHost) -> None:
    """Whoever restarted it has died. A signal would be lost on it, and another could not start."""
    tune(fake)
    stop(fake)
    (fake.folder("a") / "lock" / "acting").write_text("1999999-1\n")
    (fake.nginx / "restart").rename(fake.nginx / "slow")
    (fake.nginx / "restart").write_text("exit 5\n")
    fake.run(f"(exec 1>&- 2>&-; /bin/sleep 1.5; exec sh {fake.nginx}/slow) &")
    done = fake.write_files("a", "t1", fake.texts("more"))
    assert done.exit_code == 0, done
    assert fake.serves() == ("more", "more")
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert_given_back(fake)


def test_a_restart_that_does_nothing_is_told_of(fake: FakeKernelHost) -> None:
    """Such as that of another unit."""
    (fake.nginx / "restart").write_text("exit 0\n")
    assert fake.begin_in("a", "t1").exit_code == 0
    done = fake.write_files("a", "t1", fake.texts("ours"), by="restart")
    assert done.exit_code == 1
    assert "nginx still has the workers from before sh " in done.stderr
    assert fake.own_texts() == {name: file[0] for name, file in fake.files().items()}
    assert fake.serves() == ("own", "own")


def test_an_nginx_that_does_not_come_back_is_told_of_and_tried_again(fake: FakeKernelHost) -> None:
    tune(fake, by="restart")
    script = (fake.nginx / "restart").read_text()
    (fake.nginx / "restart").write_text("echo no such unit; exit 5\n")
    done = fake.guard("a", "end", "t1")
    assert done.exit_code == 1
    assert (
        "unrestored\tnginx\tit may not serve with the files on its disk: exit code 5" in done.stdout
    )
    assert "no such unit" in done.stdout
    assert fake.begin_in("a", "t2").exit_code == MISSING
    (fake.nginx / "restart").write_text(script)
    assert fake.begin_in("a", "t2").exit_code == 0
    assert fake.serves() == ("own", "own")
    assert fake.guard("a", "end", "t2").exit_code == 0
    assert_given_back(fake)


Die = Callable[[FakeKernelHost, int], int]


def in_write(host: FakeKernelHost, fatal: int) -> int:
    more = host.texts("more")
    return host.write_files("a", "t1", more, keys="vm/swappiness 2\n", fatal=fatal).exit_code


def in_end(host: FakeKernelHost, fatal: int) -> int:
    return host.guard("a", "end", "t1", fatal=fatal).exit_code


def in_watch(host: FakeKernelHost, fatal: int) -> int:
    host.lapse("a")
    code = host.watch("a", "t1", fatal)
    return 0 if code == DONE else code


def carried_out(host: FakeKernelHost, die: Die, step: int) -> None:
    """It dies at each of its programs, the watchdog with it; the next command gives back."""
    before = host.files()
    deaths = 0
    for fatal in range(1, 90, step):
        tune(host)
        host.kill_all()
        code = die(host, fatal)
        deaths += code != 0
        host.kill_all()
        host.lapse("a")
        assert host.guard("a", "rollback").exit_code in (0, NOTHING), fatal
        assert before == host.files(), fatal
        assert_given_back(host)
        if code == 0:
            break
    assert code == 0
    assert deaths >= 15 // step


@pytest.mark.parametrize("die", [in_write, in_end, in_watch])
def test_whoever_dies_over_files_the_next_one_gives_them_back(
    fake: FakeKernelHost, die: Die
) -> None:
    carried_out(fake, die, 7)


@pytest.mark.long
@pytest.mark.parametrize("die", [in_write, in_end, in_watch])
def test_whoever_dies_over_files_at_each_step(fake: FakeKernelHost, die: Die) -> None:
    carried_out(fake, die, 1)


def test_a_session_that_is_told_of_a_restore_finds_files_restored(fake: FakeKernelHost) -> None:
    tune(fake)
    fake.lapse("a")
    assert fake.write_files("a", "t1", fake.texts("more")).exit_code == NOT_OURS
    assert_given_back(fake)
