"""Processes of a user without rights that look like nginx, while root looks, tunes and restores.

Nothing of his runs as root, nginx is what root has started, and no restore is kept from its end.
"""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from attacks.local_user import DISGUISES, MASTER, PROGRAMS, SPACES, Disguise, LocalUser, local_user
from builders.trials import cluster
from intop.errors import HostError
from intop.hosts.facts import facts_and_conf, server_conf
from intop.hosts.nginx import running, what_it_reads
from intop.inspect.nginx_connections import warnings
from kit.fake_kernel import OWN, FakeKernelHost, fake_kernel_host
from kit.namespace_host import NamespaceHost, namespace_host, wait_until
from kit.nginx_host import nginx_host

DONE = 3


def title_of(host: NamespaceHost) -> str:
    """The title of the nginx that root has started there."""
    for pid in host.processes():
        title = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ").decode()
        if title.startswith(MASTER):
            return title
    raise AssertionError("no nginx runs")


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NamespaceHost, str]]:
    """A host with an nginx, and the title of that."""
    with nginx_host(tmp_path_factory.mktemp("looked-at")) as (host, _):
        yield host, title_of(host)


@pytest.fixture
def user(looked_at: tuple[NamespaceHost, str]) -> Iterator[LocalUser]:
    host, _ = looked_at
    with local_user(["ip", "netns", "exec", host._namespace]) as made:
        yield made


@pytest.mark.parametrize("disguise", DISGUISES, ids=str)
def test_whoever_looks_sees_roots_nginx_alone(
    looked_at: tuple[NamespaceHost, str], user: LocalUser, disguise: Disguise
) -> None:
    host, title = looked_at
    before = facts_and_conf(host)[1], running(host), what_it_reads(host)
    user.put_on(disguise, title)
    described, confs = facts_and_conf(host)
    seen = replace(running(host), not_roots=())
    assert before == (confs, seen, what_it_reads(host))
    assert described.nginx_cpus == "all"
    assert user.ran_as() == set()


# Under the guard ----------------------------------------------------------------------------------


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeKernelHost]:
    with fake_kernel_host(tmp_path) as made:
        made.start_nginx()
        yield made


@pytest.fixture
def guest(fake: FakeKernelHost) -> Iterator[LocalUser]:
    with local_user(["nsenter", "-t", str(fake._inner), "-m", "-n", "-p"]) as made:
        yield made


GROUPS = [
    [d for d in DISGUISES if (d.program, d.space) == (program, space)]
    for program in PROGRAMS
    for space in SPACES
    if any((d.program, d.space) == (program, space) for d in DISGUISES)
]


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: f"{g[0].program}, {g[0].space}")
def test_a_session_and_the_watchdogs_restore_reach_their_ends(
    fake: FakeKernelHost, guest: LocalUser, group: list[Disguise]
) -> None:
    before, title = fake.files(), fake.nginx_title()
    for disguise in group:
        guest.put_on(disguise, title)
    assert fake.begin_in("a", "t1").exit_code == 0
    done = fake.write_files("a", "t1", fake.texts("ours"), keys="vm/swappiness 1\n")
    assert done.exit_code == 0, done
    assert fake.serves() == ("ours", "ours")
    done = fake.write_files("a", "t1", fake.texts("more"), by="restart")
    assert done.exit_code == 0, done
    # The controller dies, and only then he comes for the rest.
    fake.kill_all()
    for disguise in group:
        guest.put_on(disguise, title)
    fake.lapse("a")
    assert fake.watch("a", "t1") == DONE
    assert (before, OWN) == (fake.files(), fake.now())
    assert fake.serves() == ("own", "own")
    assert (fake.pending("a"), fake.beside()) == ([], [])
    assert "NOT" not in (fake.folder("a") / "report").read_text()
    assert guest.ran_as() == set()


def test_a_crowd_of_them_delays_no_restore_for_long(fake: FakeKernelHost, guest: LocalUser) -> None:
    assert fake.begin_in("a", "t1").exit_code == 0
    assert fake.write_files("a", "t1", fake.texts("ours")).exit_code == 0
    title = fake.nginx_title()
    for _ in range(40):
        guest.put_on(Disguise("a copy of cat", "nginx's own title"), title)
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert fake.serves() == ("own", "own")
    assert guest.ran_as() == set()


def test_where_nginx_is_down_his_process_takes_nobodys_place(
    fake: FakeKernelHost, guest: LocalUser
) -> None:
    assert fake.begin_in("a", "t1").exit_code == 0
    assert fake.write_files("a", "t1", fake.texts("ours")).exit_code == 0
    title = fake.nginx_title()
    fake.run(f"read -r pid < {fake.nginx}/nginx.pid; kill $pid")
    wait_until(lambda: not (fake.nginx / "nginx.pid").exists(), "nginx ends")
    guest.put_on(Disguise("a copy of cat", "nginx's own title"), title)
    assert server_conf(fake) == ()
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert fake.serves() == ("own", "own")


# A program that is away ---------------------------------------------------------------------------


def test_what_a_missing_program_keeps_from_its_restore_is_restored_once_it_is_back(
    fake: FakeKernelHost,
) -> None:
    """As while its package is upgraded: the watchdog tries again every minute."""
    before = fake.files()
    assert fake.begin_in("a", "t1").exit_code == 0
    assert fake.write_files("a", "t1", fake.texts("ours")).exit_code == 0
    fake.kill_all()
    fake.lapse("a")
    inside = ["nsenter", "-t", str(fake._inner), "-m", "-n", "-p", "sh", "-c"]
    hide = "mount --bind /dev/null /usr/sbin/nginx"
    subprocess.run([*inside, hide], check=True)
    assert fake.watch("a", "t1") != DONE
    assert [name.partition(".")[0] for name in fake.pending("a")] == ["unrestored"]
    assert "NOT fully restored" in (fake.folder("a") / "report").read_text()
    assert fake.serves() == ("ours", "ours")
    subprocess.run([*inside, "umount /usr/sbin/nginx"], check=True)
    assert fake.watch("a", "t1") == DONE
    assert before == fake.files()
    assert fake.serves() == ("own", "own")
    assert "the watchdog tried it again" in (fake.folder("a") / "report").read_text()


# An nginx without root ----------------------------------------------------------------------------

ROOTLESS = """\
daemon off; pid {folder}/pid; error_log {folder}/log; events {{}}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; }}
"""


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[NamespaceHost]:
    """A host without an nginx of root's."""
    with namespace_host(tmp_path, 1) as made:
        yield made


def test_an_nginx_without_root_is_named_with_what_can_be_done(bare: NamespaceHost) -> None:
    with local_user(["ip", "netns", "exec", bare._namespace]) as user:
        conf = user.folder / "nginx.conf"
        conf.write_text(ROOTLESS.format(folder=user.folder))
        user.start(f"exec /usr/sbin/nginx -e {user.folder}/log -c {conf}")
        wait_until(lambda: running(bare).not_roots, "nginx has its title")
        assert (
            running(bare).masters,
            running(bare).not_roots,
        ) == (0, ("runs without root, as user 65534",))
        assert server_conf(bare) == ()
        with pytest.raises(HostError, match=r"root has started \(one runs without root, as user"):
            what_it_reads(bare)
        (warning,) = warnings(bare, (), cluster())
        assert "can't tune its directives; it tunes the kernel's parameters as usual" in warning


def test_roots_nginx_in_a_folder_of_others_is_named(bare: NamespaceHost) -> None:
    with local_user(["ip", "netns", "exec", bare._namespace]) as user:
        program = user.folder / "nginx"
        shutil.copy("/usr/sbin/nginx", program)
        conf = user.folder / "nginx.conf"
        conf.write_text(ROOTLESS.format(folder=user.folder))
        words = ["ip", "netns", "exec", bare._namespace, program, "-e", "stderr", "-c", conf]
        with subprocess.Popen(words) as process:
            try:
                wait_until(lambda: running(bare).not_roots, "nginx has its title")
                (why,) = running(bare).not_roots
                assert why == f"runs {program}, which others than root can change"
                assert (running(bare).masters, server_conf(bare)) == (0, ())
            finally:
                process.terminate()
