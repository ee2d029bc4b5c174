"""docs/faults.md names a test for each fault and input. They exist, and no fault is left out."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "faults.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


INPUTS = re.findall(r"`([\w/]+\.py)`", TEXT.partition("| input |")[2])


def rows() -> list[list[str]]:
    """The cells of the table of faults, line by line."""
    lines = TEXT.partition("| fault |")[2].splitlines()[2:]
    table = lines[: lines.index("")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def collected(path: Path) -> set[str]:
    """What pytest collects there: the functions of the module, and the methods of its classes."""
    result: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            result.add(node.name)
    return result


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_fault_has_a_promise_and_tests_that_exist(row: list[str]) -> None:
    fault, promise, tests = row
    assert fault
    assert promise
    named = NAMED.findall(tests)
    assert re.sub(r"[\s,]", "", NAMED.sub("", tests)) == "", "something else than tests"
    assert named
    for name, test in named:
        path = ROOT / name
        assert path.is_file(), name
        assert test in collected(path), f"{name} has no {test}; it has {sorted(collected(path))}"


def test_every_test_of_a_fault_stands_in_the_table() -> None:
    named = {(name, test) for row in rows() for name, test in NAMED.findall(row[2])}
    there = {
        (str(path.relative_to(ROOT)), test)
        for path in (ROOT / "tests" / "faults").glob("test_*.py")
        for test in collected(path)
    }
    assert there
    assert there - named == set()


def test_the_tests_that_are_named_elsewhere_exist_too() -> None:
    named = NAMED.findall(TEXT)
    assert len(named) >= 20
    for name, test in named:
        assert not test or test in collected(ROOT / name)


def test_the_files_that_the_table_of_inputs_names_exist() -> None:
    assert INPUTS
    assert [name for name in INPUTS if not (ROOT / "tests" / name).is_file()] == []
