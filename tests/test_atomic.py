"""Files that are there as a whole or not at all."""

from pathlib import Path

import pytest

from intop.atomic import beside, write_atomically


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
    assert b"old" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_draft_is_not_taken_for_a_file_of_its_kind() -> None:
    draft = beside(Path("/etc/sysctl.d/99.conf"))
    assert draft.name.startswith(".")
    assert ".conf" != draft.suffix
