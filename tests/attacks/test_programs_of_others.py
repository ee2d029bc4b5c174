"""Whether root alone can change a program, whoever else was given rights to its file or folders."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks.local_user import USER, allow
from intop.hosts.scripts import script


@pytest.fixture
def program() -> Iterator[Path]:
    """A program whose folders are root's alone."""
    with tempfile.TemporaryDirectory(prefix="intop-", dir="/run") as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "a folder" / "nginx"
        file.parent.mkdir(mode=0o755)
        file.write_text("")
        file.chmod(0o755)
        yield file


def is_roots(program: Path) -> bool:
    asked = f"{script('trust.sh')}\nis_roots_program {shlex.quote(str(program))} ''"
    return subprocess.run(["sh", "-c", asked], check=False).returncode == 0


def test_a_folder_that_the_group_root_may_write_to_is_roots(program: Path) -> None:
    program.parent.chmod(0o775)
    program.chmod(0o775)
    assert is_roots(program)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_access_list_counts(program: Path, depth: int) -> None:
    allow((program, *program.parents)[depth], USER)
    assert not is_roots(program)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("change", ["owner", "group", "mode"])
def test_owner_group_and_mode_count(program: Path, depth: int, change: str) -> None:
    path = (program, *program.parents)[depth]
    assert is_roots(program)
    if change == "mode":
        path.chmod(0o757)
    else:
        os.chown(path, *((USER, 0) if change == "owner" else (0, USER)))
        path.chmod(0o775)
    assert not is_roots(program)
