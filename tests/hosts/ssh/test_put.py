"""A load generator's folder: scripts are put only where nobody else can replace them."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from intop.errors import CommandError
from intop.hosts.host import Completed
from intop.hosts.ssh import SshHost, connect

STRANGER = 65534
FILES = {"slt.lua": "-- ours\n", "paths.txt": "/\n"}
NOT_OURS = r"it belongs to user {}, and not to root or user {}"
OPEN = r"others can change what is in it \(mode {}\)"


@contextmanager
def opened(machine: Any, user: str, **others: object) -> Iterator[SshHost]:
    host = connect(machine.address(user, role="load-generator", **others))
    try:
        yield host
    finally:
        host.close()


@pytest.fixture
def place(machine: Any) -> Path:
    """A folder of root's that every user of the machine can reach."""
    folder = Path(tempfile.mkdtemp(prefix="put-", dir=machine.folder))
    folder.chmod(0o755)
    return folder


def uid_of(host: SshHost) -> int:
    return int(host.run("echo ${SUDO_UID:-$(id -u)}").stdout)


@pytest.mark.parametrize(("user", "sudo"), [("plain", False), ("free", True)])
@pytest.mark.parametrize("where", ["own", "own/.intop/load", "sticky/own/load", "roots/own/load"])
def test_a_folder_of_ours_below_roots_takes_files(
    machine: Any, place: Path, user: str, sudo: bool, where: str
) -> None:
    with opened(machine, user, sudo=sudo) as host:
        for name, mode in (("sticky", 0o1777), ("roots", 0o755)):
            (place / name).mkdir()
            (place / name).chmod(mode)
        own = place / where.partition("own")[0] / "own"
        own.mkdir(mode=0o755)
        os.chown(own, uid_of(host), -1)
        host.put(str(place / where), FILES)
        assert {path.name: path.read_text() for path in (place / where).iterdir()} == FILES


@pytest.mark.parametrize(("user", "sudo"), [("plain", False), ("free", True)])
@pytest.mark.parametrize("which", ["x", "x/state", "x/state/load"])
@pytest.mark.parametrize(
    ("owner", "mode", "why"),
    [
        (STRANGER, 0o755, NOT_OURS),
        (STRANGER, 0o777, NOT_OURS),
        (None, 0o775, OPEN),
        (None, 0o777, OPEN),
        (0, 0o777, OPEN),
    ],
)
def test_a_folder_that_others_can_change_is_refused_and_no_link_in_it_is_followed(
    machine: Any,
    place: Path,
    user: str,
    sudo: bool,
    which: str,
    owner: int | None,
    mode: int,
    why: str,
) -> None:
    load, victim = place / "x/state/load", place / "victim"
    load.mkdir(parents=True)
    with opened(machine, user, sudo=sudo, state_dir=str(load.parent)) as host:
        ours = uid_of(host)
        for folder in (load, load.parent, load.parent.parent):
            os.chown(folder, ours, -1)
        victim.write_text("kept")
        os.chown(victim, ours, -1)
        for name in FILES:
            (load / f"{name}.new").symlink_to(victim)
        os.chown(place / which, ours if owner is None else owner, -1)
        (place / which).chmod(mode)
        expected = why.format(*((owner, ours) if why == NOT_OURS else (f"{mode:o}",)))
        with pytest.raises(CommandError, match=rf"^the-{user}: .*{place / which}: {expected}") as e:
            host.put(str(load), FILES)
        assert "give the host another one as state_dir" in str(e.value)
        assert len(str(e.value).splitlines()) == 1
        assert victim.read_text() == "kept"
        assert {f"{name}.new" for name in FILES} == {path.name for path in load.iterdir()}


def test_a_link_on_the_way_is_refused(machine: Any, place: Path) -> None:
    (place / "elsewhere").mkdir(mode=0o755)
    (place / "x").symlink_to(place / "elsewhere")
    refused = pytest.raises(CommandError, match=f"{place}/x is a symbolic link")
    with opened(machine, "free", sudo=True) as host, refused:
        host.put(f"{place}/x/load", FILES)
    assert list((place / "elsewhere").iterdir()) == []


def test_a_folder_that_can_t_be_made_is_one_message(machine: Any, place: Path) -> None:
    refused = pytest.raises(CommandError, match=r"can't be made: .*[Pp]ermission denied")
    with opened(machine, "plain", sudo=False) as host, refused:
        host.put(f"{place}/load", FILES)


def test_the_look_at_the_folder_costs_no_round_trip(
    machine: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = SshHost.run

    def counted(self: SshHost, command: str, **others: Any) -> Completed:
        asked.append(command)
        return run(self, command, **others)

    with opened(machine, "free", sudo=True) as host:
        monkeypatch.setattr(SshHost, "run", counted)
        host.put(f"{place}/load", FILES)
    assert 1 + len(FILES) == len(asked)
