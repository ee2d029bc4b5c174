"""A store of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.store import Store, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "intop.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with opened(str(path)) as made:
        yield made
