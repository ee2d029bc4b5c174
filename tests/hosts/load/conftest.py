"""A server that does everything wrong, and the engine's scripts beside each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.crooked_server import CrookedServer, crooked_server

LUA = Path(__file__).parents[3] / "lua"


@pytest.fixture
def server() -> Iterator[CrookedServer]:
    with crooked_server() as started:
        yield started


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    return tmp_path
