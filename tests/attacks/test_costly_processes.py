"""Processes of a user that cost root time, each of them without end or all of them together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.local_user import MASTER, USER, LocalUser, local_user
from intop.hosts.facts import facts_and_conf
from intop.hosts.nginx import running
from kit.fake_kernel import MAIN, OWN, FakeKernelHost, fake_kernel_host
from kit.namespace_host import wait_until

DONE = 3
BLANKS = 120_000
"""The kernel allows no longer word."""


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeKernelHost]:
    with fake_kernel_host(tmp_path) as made:
        made.start_nginx()
        yield made


@pytest.fixture
def guest(fake: FakeKernelHost) -> Iterator[LocalUser]:
    with local_user(["nsenter", "-t", str(fake._inner), "-m", "-n", "-p"]) as made:
        yield made


def begin(fake: FakeKernelHost) -> None:
    """A session that has changed nginx's files and a key."""
    assert fake.begin_in("a", "t1").exit_code == 0
    done = fake.write_files("a", "t1", fake.texts("ours"), keys="vm/swappiness 1\n")
    assert done.exit_code == 0, done


def restore(fake: FakeKernelHost) -> None:
    """Its controller dies, and the watchdog restores all."""
    before = fake.own_texts()
    fake.kill_all()
    fake.lapse("a")
    assert fake.watch("a", "t1") == DONE
    assert fake.now() == OWN
    assert before == {name: text for name, (text, *_) in fake.files().items()}
    assert (fake.pending("a"), fake.beside()) == ([], [])
    assert "NOT" not in (fake.folder("a") / "report").read_text()


@pytest.mark.parametrize("first", ["", MASTER, "nginx: worker process"])
def test_a_title_of_blanks_without_end_keeps_nobody(
    fake: FakeKernelHost, guest: LocalUser, first: str
) -> None:
    begin(fake)
    copy = guest.program("a copy of cat", "nginx")
    title = f"{first!r} + ' ' * {BLANKS}"
    guest.start(f'exec python3 -c "import os; os.execv({str(copy)!r}, [{title}])"')
    wait_until(lambda: fake._count_of(USER) == 1, "he shows his title")
    (conf,) = facts_and_conf(fake)[1]
    assert "return 200 ours" in conf
    assert running(fake).masters == 1
    restore(fake)
    assert fake.serves() == ("own", "own")


def started_by_a_session(fake: FakeKernelHost, token: str) -> int:
    """How many processes it takes to look at nginx, and to begin, write and end."""
    before = last_process(fake)
    assert len(facts_and_conf(fake)[1]) == 1
    assert running(fake).masters == 1
    assert fake.begin_in("a", token).exit_code == 0
    assert fake.write_files("a", token, fake.texts("ours")).exit_code == 0
    assert fake.guard("a", "end", token).exit_code == 0
    return last_process(fake) - before


def last_process(fake: FakeKernelHost) -> int:
    """The number of the last process that was started there."""
    return int(fake.run("cat /proc/loadavg").stdout.split()[4])


def test_a_session_starts_no_process_for_each_of_a_crowd(
    fake: FakeKernelHost, guest: LocalUser
) -> None:
    alone = started_by_a_session(fake, "t1")
    crowd = 400
    copy = guest.program("a copy of cat", "nginx")
    title = fake.nginx_title()
    guest.start(
        f"cd {guest.folder}; mkfifo f; exec 3<>f; n=0; "
        f'while [ "$n" -lt {crowd} ]; do (exec -a "{title}" {copy} <&3) & n=$((n + 1)); done; '
        "echo > there; wait"
    )
    wait_until((guest.folder / "there").exists, "the crowd is there")
    assert started_by_a_session(fake, "t2") - alone < crowd
    assert fake.serves() == ("own", "own")


def test_a_worker_that_its_user_has_stopped_keeps_no_restore_from_its_end(
    fake: FakeKernelHost, guest: LocalUser
) -> None:
    """nginx's workers may run as the very user who has got in: then he can stop them."""
    own = {n: t.replace("user root;", "user nobody nogroup;") for n, t in fake.own_texts().items()}
    assert own[MAIN] != fake.own_texts()[MAIN]
    fake.own_texts = lambda: own  # type: ignore[method-assign]
    for name, text in own.items():
        (fake.nginx / name).write_text(text)
    fake.nginx.chmod(0o755)
    assert fake.run(f"sh {fake.nginx}/restart > /dev/null 2>&1").exit_code == 0
    begin(fake)
    guest.start(
        "for p in /proc/[0-9]*; do [ -O $p ] && grep -qx nginx $p/comm && kill -STOP ${p#/proc/};"
        f" done; echo > {guest.folder}/there; sleep 1000"
    )
    wait_until((guest.folder / "there").exists, "they are stopped")
    assert "T" in fake.run("ps -C nginx -o stat").stdout
    restore(fake)


def test_of_those_who_run_without_root_a_few_are_named(
    fake: FakeKernelHost, guest: LocalUser
) -> None:
    copy = guest.program("a copy of cat", "nginx")
    guest.start(
        f"cd {guest.folder}; mkfifo f; exec 3<>f; n=0; "
        f"while [ $n -lt {40} ]; do (exec -a '{MASTER}x' {copy} <&3) & n=$((n + 1)); done; "
        "echo > there; wait"
    )
    wait_until((guest.folder / "there").exists, "they are there")
    wait_until(lambda: fake._count_of(USER) == 40, "they are called nginx")
    seen = running(fake)
    assert (seen.masters, len(seen.not_roots)) == (1, 20)
