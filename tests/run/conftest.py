"""A worker under rows of somebody else's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.testbeds import FakeTestbed
from kit.worker_site import Site, worker_site


@pytest.fixture
def site(testbed: FakeTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with worker_site(testbed, tmp_path, monkeypatch) as made:
        yield made
