"""What `make quick` leaves out, and the guard that holds this against what tests do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import quick
from kit.namespace_host import FIN, namespace_host
from kit.studies import Study, wait_for


def starts_it(tmp_path: Path) -> None:
    with namespace_host(tmp_path):
        pass


class Wrapped:
    def measure(self, tmp_path: Path) -> list[str]:
        return [f"{starts_it(tmp_path)}" for _ in range(2)]


def has_one() -> Study:
    return [Study(Path(), ())][0]


def needs_none() -> None:
    wait_for(lambda: FIN == "", "nothing")


def test_what_refers_to_a_helper_of_the_lab_is_seen_through_functions_and_classes() -> None:
    assert quick.starts_lab(starts_it)
    assert quick.starts_lab(lambda: Wrapped())
    assert quick.starts_lab(has_one)
    assert not quick.starts_lab(needs_none)


def test_files_and_tests_that_are_named_exist() -> None:
    for name in (*quick.LAB_FOLDERS, *quick.LAB_TESTS, *quick.SLOW_TESTS):
        path, _, test = name.partition("::")
        assert (quick.TESTS / path).exists(), name
        assert not test or f"def {test}(" in (quick.TESTS / path).read_text(), name


@pytest.mark.parametrize(
    ("event", "arguments", "does"),
    [
        ("subprocess.Popen", ("ip", ["ip", "link"], None, None), "starts ip"),
        ("subprocess.Popen", (None, ["/usr/sbin/nginx", "-t"], None, None), "starts nginx"),
        ("os.posix_spawn", ("/usr/bin/psql", ["psql"], None), "starts psql"),
        ("os.exec", ("/usr/bin/unshare", ["unshare", "-n"], None), "starts unshare"),
        ("subprocess.Popen", ("/bin/sh", ["/bin/sh", "-c", "true"], None, None), ""),
        ("socket.connect", (None, ("127.0.0.1", 80)), "connects to ('127.0.0.1', 80)"),
        ("socket.connect", (None, "/run/socket"), ""),
        ("open", ("/usr/sbin/nginx", "r", 0), ""),
    ],
)
def test_what_needs_a_lab_is_known(event: str, arguments: tuple[object, ...], does: str) -> None:
    assert does == quick.beyond_quick(event, arguments)


TESTS = """
import subprocess
def test_it():
    try:
        subprocess.run(["ip", "link"])
    except RuntimeError:
        pass
"""


@pytest.mark.parametrize(("expression", "outcome"), [("not lab", "error"), ("not long", "passed")])
def test_a_quick_test_that_starts_a_program_of_the_lab_fails(
    tmp_path: Path, expression: str, outcome: str
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text("from quick import _needs_no_lab\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", expression, "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(quick.TESTS)},
        capture_output=True,
        text=True,
    )
    assert f"1 {outcome}" in done.stdout
