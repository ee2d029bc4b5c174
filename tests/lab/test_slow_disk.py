"""Groups that limit a disk, on made-up mounts. tests/lab/test_cluster.py has a real one."""

import os
import subprocess
from pathlib import Path

import pytest

from intop.errors import LabError
from intop.lab import slow_disk


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One whose test folder is on the second part of a disk, and that has no groups as yet."""
    device = tmp_path.stat().st_dev
    part = tmp_path / "devices" / "disk" / "disk2"
    part.mkdir(parents=True)
    (part / "partition").write_text("2\n")
    (part / "dev").write_text("8:2\n")
    (part.parent / "dev").write_text("8:0\n")
    (tmp_path / "block").mkdir()
    (tmp_path / "block" / f"{os.major(device)}:{os.minor(device)}").symlink_to(part)
    (tmp_path / "mounts").write_text("")
    monkeypatch.setattr(slow_disk, "DEVICES", tmp_path / "block")
    monkeypatch.setattr(slow_disk, "MOUNTS", tmp_path / "mounts")
    return tmp_path


def mount(machine: Path, name: str, kind: str, options: str = "rw") -> Path:
    root = machine / name
    root.mkdir()
    with (machine / "mounts").open("a") as mounts:
        mounts.write(f"none {root} {kind} {options} 0 0\n")
    return root


def test_the_first_version_limits_the_whole_disk(machine: Path) -> None:
    mount(machine, "cpu", "cgroup", "rw,cpu")
    unified = mount(machine, "unified", "cgroup2")
    (unified / "cgroup.controllers").write_text("")
    group = mount(machine, "blkio", "cgroup", "rw,blkio") / "intop-a"
    slow_disk.limit("a", machine, 300)
    assert (group / "blkio.throttle.write_iops_device").read_text() == "8:0 300"


def test_the_second_version_has_its_controller_switched_on(machine: Path) -> None:
    root = mount(machine, "unified", "cgroup2")
    (root / "cgroup.controllers").write_text("cpu io memory")
    slow_disk.limit("a", machine, 300)
    assert (root / "cgroup.subtree_control").read_text() == "+io"
    assert (root / "intop-a" / "io.max").read_text() == "8:0 wiops=300"


def test_who_enters_a_group_is_a_member_of_it(machine: Path) -> None:
    root = mount(machine, "blkio", "cgroup", "rw,blkio")
    assert slow_disk.entering("a") == []
    (root / "intop-a").mkdir()
    (members := root / "intop-a" / "cgroup.procs").touch()
    output = subprocess.run(
        [*slow_disk.entering("a"), "sh", "-c", 'echo "$$ $1"', "sh", "a b"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output == f"{members.read_text().strip()} a b\n"


def test_a_machine_without_such_groups_is_told(machine: Path) -> None:
    with pytest.raises(LabError, match="disk_iops needs control groups that limit writes"):
        slow_disk.limit("a", machine, 300)


def test_a_folder_that_is_on_no_disk_is_told(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount(machine, "blkio", "cgroup", "rw,blkio")
    monkeypatch.setattr(slow_disk, "DEVICES", machine / "nothing")
    with pytest.raises(LabError, match="is on no disk of its own"):
        slow_disk.limit("a", machine, 300)


def test_a_group_goes_with_its_lab_and_again(machine: Path) -> None:
    root = mount(machine, "blkio", "cgroup", "rw,blkio")
    (root / "intop-a").mkdir()
    (root / "intop-b").mkdir()
    slow_disk.discard("a")
    slow_disk.discard("a")
    assert [entry.name for entry in root.iterdir()] == ["intop-b"]
