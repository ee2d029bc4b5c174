"""What the lab does where somebody else could put a link, or has put one."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from intop.domain.cluster import LabSpec
from intop.errors import LabError
from intop.lab import cluster as lab
from intop.lab import own_folders, servers, state

STRANGER = 65534
NAME = f"t-o{os.getpid() % 10_000}"


def a_link(place: Path, target: Path) -> None:
    place.symlink_to(target)


def a_link_to_nothing(place: Path, target: Path) -> None:
    place.symlink_to(target / "nothing")


def a_file(place: Path, _target: Path) -> None:
    place.write_text("mine")


def a_strangers_folder(place: Path, _target: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, STRANGER, STRANGER)


def a_folder_of_all(place: Path, _target: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def a_sticky_folder_of_all(place: Path, _target: Path) -> None:
    place.mkdir()
    place.chmod(0o1777)


Obstacle = Callable[[Path, Path], None]
OBSTACLES = [
    (a_link, "is a symbolic link"),
    (a_link_to_nothing, "is a symbolic link"),
    (a_file, "is no folder"),
    (a_strangers_folder, f"belongs to user {STRANGER}"),
    (a_folder_of_all, "others can change what is in "),
]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Somebody else's folder, with a mode and a file that must not change."""
    folder = tmp_path / "target"
    folder.mkdir(mode=0o750)
    (folder / "lab.json").write_text("kept")
    return folder


def assert_untouched(target: Path) -> None:
    assert target.stat().st_mode & 0o777 == 0o750
    assert [file.read_text() for file in target.iterdir()] == ["kept"]


@pytest.mark.parametrize("below", ["", "a/b"])
@pytest.mark.parametrize(
    ("obstacle", "why"),
    [*OBSTACLES, (a_sticky_folder_of_all, "others can change what is in ")],
)
def test_a_folder_that_is_not_roots_alone_is_refused(
    tmp_path: Path, target: Path, obstacle: Obstacle, why: str, below: str
) -> None:
    place = tmp_path / "place"
    obstacle(place, target)
    if obstacle is a_sticky_folder_of_all and below:
        own_folders.make(place / below, 0o711)  # nobody moves root's folder in such a one
        return
    with pytest.raises(LabError, match=f"{place}.*{why}"):
        own_folders.make(place / below, 0o711)
    assert_untouched(target)


@pytest.mark.parametrize(("obstacle", "why"), OBSTACLES)
@pytest.mark.parametrize("part", ["intop", "intop/lab"])
def test_a_lab_is_refused_with_a_message_where_its_folder_is_not_roots(
    tmp_path: Path,
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
    obstacle: Obstacle,
    why: str,
    part: str,
) -> None:
    (tmp_path / part).parent.mkdir(exist_ok=True)
    obstacle(tmp_path / part, target)
    monkeypatch.setattr(state, "STATE_FOLDER", tmp_path / "intop/lab")
    for asked in (lambda: lab.up(LabSpec(name=NAME)), lambda: lab.down(NAME)):
        with pytest.raises(LabError, match=why):
            asked()
    assert_untouched(target)


@pytest.mark.parametrize("obstacle", [a_link, a_link_to_nothing, a_file, a_strangers_folder])
def test_what_is_in_the_place_of_a_lab_is_removed_alone(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch, obstacle: Obstacle
) -> None:
    monkeypatch.setattr(state, "STATE_FOLDER", tmp_path / "intop/lab")
    place = state.folders_of(NAME).root
    place.parent.mkdir(parents=True)
    obstacle(place, target)
    assert lab.status(NAME).state == "damaged"
    assert lab.down(NAME).state
    assert not os.path.lexists(place)
    assert_untouched(target)


def test_a_link_in_the_place_of_a_labs_disk_is_refused_and_removed_alone(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "DISKS_FOLDER", tmp_path / "disks")
    disk = state.folders_of(NAME).slow_disk
    disk.parent.mkdir()
    disk.symlink_to(target)
    with pytest.raises(LabError, match="is a symbolic link"):
        own_folders.make(disk, 0o711)
    servers.discard_disk(NAME)
    assert not os.path.lexists(disk)
    assert_untouched(target)


def test_a_privilege_folder_that_leads_nowhere_is_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "PRIVILEGE_FOLDER", tmp_path / "sshd")
    (tmp_path / "sshd").symlink_to(tmp_path / "nothing")
    with pytest.raises(LabError, match="sshd is a symbolic link"):
        servers.make_privilege_folder(tmp_path / "marker")


def test_what_is_mounted_in_a_folder_is_unmounted_and_keeps_its_files(
    tmp_path: Path, target: Path
) -> None:
    folder = tmp_path / "place"
    own_folders.mount_memory(folder / "memory", 0o711)
    assert [folder / "memory"] == own_folders.mounted_below(folder)
    assert (folder / "memory").stat().st_mode & 0o7777 == 0o711
    (folder / "memory" / "access.log").write_text("line")
    (folder / "bound").mkdir()
    subprocess.run(["mount", "--bind", str(target), str(folder / "bound")], check=True)
    with (folder / "memory" / "access.log").open():  # which keeps it busy
        own_folders.remove(folder)
    assert own_folders.mounted_below(folder) == []
    assert not folder.exists()
    assert_untouched(target)
