"""A store of its own for each test. Those of the contract run on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.store import Store, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where an SQLite store may be made."""
    return tmp_path / "intop.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with opened(url) as made:
        yield made


@pytest.fixture
def sqlite_store(path: Path) -> Iterator[Store]:
    """For what is done to the file of a store."""
    with opened(str(path)) as made:
        yield made
