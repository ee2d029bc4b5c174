"""A store of its own for each test. Those of the contract run on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.store import Store, opened
from postgres import Server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where an SQLite store may be made."""
    return tmp_path / "intop.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, path: Path) -> str:
    """Where a store may be made, in each of the databases."""
    if request.param == "sqlite":
        return str(path)
    server: Server = request.getfixturevalue("postgres_server")
    return server.database()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with opened(url) as made:
        yield made


@pytest.fixture
def sqlite_store(path: Path) -> Iterator[Store]:
    """For what is done to the file of a store."""
    with opened(str(path)) as made:
        yield made
