from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.namespace_host import NamespaceHost, namespace_host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[NamespaceHost]:
    with namespace_host(tmp_path) as made:
        yield made
