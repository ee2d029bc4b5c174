"""Texts that a test holds against a file, so that every word of them is read when it changes.

Each test module has one file in tests/data/views, with a block for each text. To write the files
again, after a change that is meant, and to read the difference:

    WRITE_GOLDEN=1 python -m pytest tests/soak/test_view.py
"""

import difflib
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Golden = Callable[[str], None]

FOLDER = Path(__file__).parents[1] / "data/views"
HEADING = re.compile(r"^=== (.+)\n", re.MULTILINE)
LONGEST_LINE = 200


class GoldenFile:
    """The blocks of one test module."""

    def __init__(self, module: Path) -> None:
        self.path = FOLDER / module.relative_to(FOLDER.parents[1]).with_suffix(".txt")
        self.blocks: dict[str, str] = {}
        if self.path.exists():
            _, *parts = HEADING.split(self.path.read_text())
            self.blocks = dict(zip(parts[::2], parts[1::2], strict=True))

    def write(self, tests: set[str]) -> None:
        """Write the blocks of these tests. Blocks of tests that are gone go, too."""
        kept = {
            name: text for name, text in self.blocks.items() if re.split(r"[\[ ]", name)[0] in tests
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(f"=== {name}\n{text}" for name, text in sorted(kept.items())))


def plain(text: str, folder: str) -> str:
    """Return a text as a file keeps it: FOLDER for its folder, and long lines folded."""
    lines: list[str] = []
    for line in text.replace(folder, "FOLDER").splitlines():
        lines += textwrap.wrap(line, 100) if len(line) > LONGEST_LINE else [line.rstrip()]
    return "\n".join(lines).strip("\n") + "\n"


@pytest.fixture(scope="module", name="golden_file")
def _golden_file(request: pytest.FixtureRequest) -> Iterator[GoldenFile]:
    file = GoldenFile(request.path)
    yield file
    if os.environ.get("WRITE_GOLDEN"):
        file.write(set(dir(request.module)))


@pytest.fixture(name="golden")
def _golden(request: pytest.FixtureRequest, golden_file: GoldenFile) -> Golden:
    """Return a function that wants a text to be the next block of this test in its file."""
    folder = "/no/folder"
    if "tmp_path" in request.fixturenames:
        folder = str(request.getfixturevalue("tmp_path"))
    count = 0

    def check(text: str) -> None:
        nonlocal count
        count += 1
        name = request.node.name if count == 1 else f"{request.node.name} {count}"
        actual = plain(text, folder)
        if os.environ.get("WRITE_GOLDEN"):
            golden_file.blocks[name] = actual
        expected = golden_file.blocks.get(name, "")
        if actual != expected:
            lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(), lineterm="")
            pytest.fail(f"WRITE_GOLDEN=1 writes {name} again:\n" + "\n".join(lines), pytrace=False)

    return check
