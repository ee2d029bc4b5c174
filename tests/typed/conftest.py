"""Commands as they are typed, each of them a process: texts, streams and exit codes."""

from pathlib import Path

import pytest

from builders.campaigns import LAB


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(LAB.format(folder=tmp_path))
    return path
