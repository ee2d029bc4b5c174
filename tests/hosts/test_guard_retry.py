"""What of a session could not be restored: who tries it again, and where that is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.local_user import local_user
from intop.hosts.guard import script as guard_script
from kit.fake_kernel import OWN, FakeKernelHost, fake_kernel_host
from kit.namespace_host import wait_until

DONE = 3
SWAPPINESS = "vm/swappiness"


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeKernelHost]:
    with fake_kernel_host(tmp_path) as made:
        yield made


def leave_a_key_of_somebody_else(fake: FakeKernelHost, token: str) -> None:
    """A session has set it to 1, and somebody else to 33."""
    assert fake.begin_in("a", token).exit_code == 0
    assert fake.guard("a", "write", token, stdin=f"{SWAPPINESS} 1\n").exit_code == 0
    fake.set({SWAPPINESS: "33"})
    assert fake.guard("a", "end", token).exit_code == 1
    assert [name.partition(".")[0] for name in fake.pending("a")] == ["unrestored"]


def test_nobody_waits_for_what_somebody_else_has_changed(fake: FakeKernelHost) -> None:
    leave_a_key_of_somebody_else(fake, "t1")
    assert fake.watch("a", "t1") == DONE
    assert fake.now()[SWAPPINESS] == "33"
    # Nor does the watchdog of a later session, which has nothing to do with it.
    assert fake.begin_in("a", "t2").exit_code == 0
    assert fake.guard("a", "end", "t2").exit_code == 0
    assert fake.watch("a", "t2") == DONE
    assert "foreign" in fake.guard("a", "status").stdout


def test_what_was_applied_since_is_not_taken_back_by_a_restore_of_before(
    fake: FakeKernelHost,
) -> None:
    """The value that stays is the very one that the session had left there."""
    leave_a_key_of_somebody_else(fake, "t1")
    assert fake.begin_in("a", "t2").exit_code == 0
    assert fake.guard("a", "write", "t2", stdin=f"{SWAPPINESS} 1\n").exit_code == 0
    kept = fake.guard("a", "keep", "t2", stdin=f"key\t{SWAPPINESS}\nend\n")
    assert (kept.exit_code, fake.now()[SWAPPINESS]) == (0, "1")
    fake.watch("a", "t1")
    assert fake.now()[SWAPPINESS] == "1"
    assert fake.begin_in("a", "t3").exit_code == 0
    assert fake.guard("a", "end", "t3").exit_code == 0
    assert fake.now()[SWAPPINESS] == "1"
    fake.guard("a", "rollback")
    assert fake.now()[SWAPPINESS] == "33"


def test_where_the_boot_can_not_be_told_values_are_restored(
    fake: FakeKernelHost, tmp_path: Path
) -> None:
    """As where the kernel has killed `cat` for memory: they are not given up as another boot's."""
    assert fake.begin_in("a", "t1").exit_code == 0
    assert fake.guard("a", "write", "t1", stdin=f"{SWAPPINESS} 1\n").exit_code == 0
    blind = tmp_path / "blind/cat"
    blind.parent.mkdir()
    blind.write_text('#!/bin/sh\ncase $1 in */boot_id) exit 1 ;; esac\nexec /usr/bin/cat "$@"\n')
    blind.chmod(0o755)
    state = tmp_path / "a"
    done = fake.by("blind", f"sh {state}/{guard_script.name()} {state} end t1")
    assert (done.exit_code, fake.now(), fake.pending("a")) == (0, OWN, [])


def test_a_namespace_of_a_user_with_the_number_of_one_that_is_gone_keeps_no_restore(
    fake: FakeKernelHost,
) -> None:
    """Anybody can make one in a user namespace, and gets the lowest number that is free."""
    assert fake.begin_in("a", "t1").exit_code == 0
    assert fake.guard("a", "write", "t1", stdin=f"{SWAPPINESS} 1\n").exit_code == 0
    with local_user(["nsenter", "-t", str(fake._inner), "-m", "-n", "-p"]) as user:
        user.start(
            f"exec unshare --user --net sh -c 'readlink /proc/self/ns/net > {user.folder}/number; "
            "exec sleep 1000'"
        )
        number = user.folder / "number"
        wait_until(lambda: number.exists() and number.read_text(), "his namespace is there")
        (_, _, digits) = number.read_text().strip("]\n").partition("[")
        (fake.folder("a") / "lock" / "network").write_text(f"{digits}-1\n")
        fake.kill_all()
        fake.lapse("a")
        begun = fake.begin_in("a", "t2")
        assert begun.exit_code == 0, begun
        assert OWN[SWAPPINESS] == fake.now()[SWAPPINESS]
        assert fake.guard("a", "end", "t2").exit_code == 0
