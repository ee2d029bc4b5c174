"""Files that are there as a whole or not at all."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.results import DEPLOYMENT
from intop.atomic import beside, write_atomically
from intop.command.output import write_page
from intop.deploy.plan_file import write_plan
from intop.deploy.result import Plan
from intop.document.columns import Column
from intop.document.csv_tables import write_tables
from intop.document.drawing import drawn
from intop.document.model import Document, Section, Table
from intop.errors import IntopError


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "file.conf"
    for data in (b"old", b"new"):
        write_atomically(path, data)
        assert data == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.conf"
    write_atomically(path, b"old")

    def full(_number: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode_and_owner(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file.conf"
    path.write_bytes(b"old")
    os.chown(path, 7, 8)
    path.chmod(mode)
    write_atomically(path, b"new")
    result = path.stat()
    assert (path.read_bytes(), result.st_uid, result.st_gid) == (b"new", 7, 8)
    assert mode == stat.S_IMODE(result.st_mode)


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_atomically(tmp_path / "file.conf", b"new")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "file.conf"
    link.symlink_to("folder/file.conf")
    for data in (b"old", b"new"):
        write_atomically(link, data)
        assert link.is_symlink()
        assert data == (tmp_path / "folder" / "file.conf").read_bytes()
    assert len(list((tmp_path / "folder").iterdir())) == 1


TABLE = Table(name="t", columns=(Column("a"),), rows=(("new",),))
DOCUMENT = Document(title="d", subtitle="", sections=(Section(title="s", blocks=(TABLE,)),))
PLAN = Plan(deployment=DEPLOYMENT, hosts=(), rounds=1)
DRAWING = drawn("x", "x", lambda _: None, about="a", height=1)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", lambda path: write_tables(path.parent, DOCUMENT)),
        ("a.svg", DRAWING.write),
        ("page.html", lambda path: write_page(path, "new")),
        ("plan.json", lambda path: write_plan(path, [PLAN], whole=False)),
    ],
)
def test_a_full_disk_leaves_what_was_written_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    write: Callable[[Path], object],
) -> None:
    path = tmp_path / name
    write(path)
    path.chmod(0o640)
    inode = path.stat().st_ino
    write(path)
    before = path.read_bytes()
    # Another file under the same name: nobody reads it half written.
    assert inode != path.stat().st_ino
    assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(IntopError, match="No space left on device"):
        write(path)
    assert before == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_draft_is_not_taken_for_a_file_of_its_kind() -> None:
    draft = beside(Path("/etc/sysctl.d/99.conf"))
    assert draft.name.startswith(".")
    assert draft.suffix != ".conf"
