"""Files, folders and links of a user without rights where root tunes nginx: root keeps his own."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from attacks.local_user import USER, allow
from intop.errors import HostError
from intop.hosts.guard import script as guard_script
from kit.fake_kernel import SITE, FakeKernelHost, fake_kernel_host

Prepare = Callable[[FakeKernelHost, Path], None]
STATE = tuple[bytes, int, int, int]


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeKernelHost]:
    with fake_kernel_host(tmp_path) as made:
        made.start_nginx()
        yield made


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of root's that he would like to have."""
    file = tmp_path / "secret" / "site"
    file.parent.mkdir()
    file.write_text("root:x:0:0\n")
    file.chmod(0o600)
    return file


def state_of(file: Path) -> STATE:
    stat = file.stat()
    return file.read_bytes(), stat.st_mode, stat.st_uid, stat.st_gid


def sites(fake: FakeKernelHost) -> Path:
    return fake.nginx / "sites-available"


def he_owns_the_folder(fake: FakeKernelHost, _secret: Path) -> None:
    os.chown(sites(fake), USER, USER)


def he_owns_a_folder_above(fake: FakeKernelHost, _secret: Path) -> None:
    os.chown(fake.nginx, USER, USER)


def everybody_may_write(fake: FakeKernelHost, _secret: Path) -> None:
    sites(fake).chmod(0o777)


def his_group_may_write(fake: FakeKernelHost, _secret: Path) -> None:
    os.chown(sites(fake), 0, USER)
    sites(fake).chmod(0o775)


def everybody_may_add(fake: FakeKernelHost, _secret: Path) -> None:
    """As to /tmp: nobody can move what is root's, but can make the names that root would make."""
    sites(fake).chmod(0o1777)


def he_is_in_its_access_list(fake: FakeKernelHost, _secret: Path) -> None:
    """Its mode looks as if the group root might write there, and nobody else."""
    allow(sites(fake), USER)
    assert sites(fake).stat().st_mode & 0o777 == 0o775


def the_site_is_a_link_to_his_folder(fake: FakeKernelHost, _secret: Path) -> None:
    his = fake.nginx / "his"
    his.mkdir()
    (sites(fake) / "site").rename(his / "site")
    (sites(fake) / "site").symlink_to(his / "site")
    os.chown(his, USER, USER)


@pytest.mark.parametrize(
    "prepare",
    [
        he_owns_the_folder,
        he_owns_a_folder_above,
        everybody_may_write,
        his_group_may_write,
        everybody_may_add,
        he_is_in_its_access_list,
        the_site_is_a_link_to_his_folder,
    ],
)
def test_no_file_is_guarded_in_a_folder_that_others_can_change(
    fake: FakeKernelHost, secret: Path, prepare: Prepare
) -> None:
    prepare(fake, secret)
    before, owners = state_of(secret), fake.files()
    begun = fake.begin_in("a", "t1")
    assert begun.exit_code == 1
    assert "can't be guarded: " in begun.stderr
    assert "Make that folder root's alone, or tune the kernel only" in begun.stderr
    assert fake.pending("a") == []
    assert (before, owners) == (state_of(secret), fake.files())


def test_files_are_guarded_where_the_group_root_may_write(fake: FakeKernelHost) -> None:
    sites(fake).chmod(0o775)
    assert fake.begin_in("a", "t1").exit_code == 0
    assert fake.guard("a", "end", "t1").exit_code == 0


def links_in_a_loop(folder: Path, secret: Path, ended: threading.Event) -> None:
    """He makes each name that root's command makes a link to what he wants, as fast as he can."""
    loop = (
        f"cd {folder}; while :; do for f in .intop.*; do [ -L $f ] || ln -sf {secret} $f; done;"
        " done 2>/dev/null"
    )
    user = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    process = subprocess.Popen([*user, "sh", "-c", loop])
    ended.wait()
    process.kill()
    process.wait()


def test_links_that_he_makes_while_root_writes_lead_nowhere(
    fake: FakeKernelHost, secret: Path
) -> None:
    folder = sites(fake)
    for path in (*folder.parents,):
        if path.stat().st_mode & 0o777 == 0o700 and str(path).startswith("/tmp/"):
            path.chmod(0o711)
    os.chown(folder, USER, USER)
    before, ended = state_of(secret), threading.Event()
    he = threading.Thread(target=links_in_a_loop, args=(folder, secret, ended))
    he.start()
    try:
        for number in range(10):
            token = f"t{number}"
            if fake.begin_in("a", token).exit_code == 0:
                fake.write_files("a", token, fake.texts(f"word{number}"))
                fake.guard("a", "end", token)
    finally:
        ended.set()
        he.join()
    assert before == state_of(secret)


def test_a_file_of_his_in_a_folder_of_roots_stays_his(fake: FakeKernelHost) -> None:
    os.chown(fake.nginx / SITE, USER, USER)
    before = fake.files()
    assert fake.begin_in("a", "t1").exit_code == 0
    assert fake.write_files("a", "t1", fake.texts("ours")).exit_code == 0
    assert fake.files()[SITE][2:] == (USER, USER)
    assert fake.guard("a", "end", "t1").exit_code == 0
    assert before == fake.files()


def test_a_hard_link_to_a_file_of_roots_is_not_guarded(fake: FakeKernelHost, secret: Path) -> None:
    (fake.nginx / SITE).unlink()
    os.link(secret, fake.nginx / SITE)
    secret.write_text(fake.own_texts()[SITE])
    before = state_of(secret)
    begun = fake.begin_in("a", "t1")
    assert "has several names (hard links)" in begun.stderr
    assert before == state_of(secret)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o755])
def test_no_persistent_file_is_put_where_others_can_change_it(
    fake: FakeKernelHost, secret: Path, mode: int
) -> None:
    assert fake.begin_in("a", "t1").exit_code == 0
    folder = fake._folder / "sysctl.d"
    folder.mkdir()
    folder.chmod(mode)
    if mode in (0o775, 0o755):
        os.chown(folder, USER, USER)
    target = folder / "99-zz-intop.conf"
    # The name that root's command makes first, which is the token's.
    (folder / "99-zz-intop.conf.t1").symlink_to(secret)
    before = state_of(secret)
    done = fake.guard("a", "keep", "t1", str(target), "0" * 64, stdin="text\tevil\nend\n")
    assert done.exit_code == 1
    assert f"{target} can't be written: " in done.stderr
    assert (before, False) == (state_of(secret), target.exists())
    assert fake.guard("a", "end", "t1").exit_code == 0


@pytest.mark.parametrize("what", ["a folder of his", "a link of his", "a folder for everybody"])
def test_no_session_begins_in_a_state_folder_of_others(
    fake: FakeKernelHost, secret: Path, what: str
) -> None:
    place = fake._folder / "his"
    if what == "a link of his":
        place.symlink_to(secret.parent)
    else:
        place.mkdir()
        place.chmod(0o777 if "everybody" in what else 0o755)
        if "his" in what:
            os.chown(place, USER, USER)
    fake.use("his")
    before = state_of(secret)
    with pytest.raises(HostError, match="can't be trusted"):
        guard_script.install(fake)
    assert (before, ["site"]) == (state_of(secret), [p.name for p in secret.parent.iterdir()])
