"""Baselines: those that come with intop, a user's own, and every mistake in them."""

from pathlib import Path

import pytest

from builders.config_files import CONFIGS, GOOD, edited, problems, study
from intop.domain.baseline import Baseline

BASELINE = """\
schema = 1
title = "mine"
source = "me"

[values]
"net.core.somaxconn" = 9
"net.ipv4.tcp_rmem" = "1 2 3"
"""


def with_baselines(tmp_path: Path, text: str = BASELINE, name: str = "mine.toml") -> str:
    """A study that names a folder of its own with this file in it."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / name).write_text(text)
    return edited('store = "mine.db"', 'baselines = "own"')


def test_the_shipped_baselines_come_with_every_study(tmp_path: Path) -> None:
    shipped = {path.stem for path in (CONFIGS / "baselines").glob("*.toml")}
    result = study(tmp_path, GOOD).baselines
    assert shipped == set(result)
    assert all(name == baseline.name for name, baseline in result.items())
    assert all(baseline.title and baseline.source for baseline in result.values())


def test_a_study_may_bring_its_own_baselines_from_beside_it(tmp_path: Path) -> None:
    result = study(tmp_path, with_baselines(tmp_path)).baselines
    assert set(result) == {"mine", *study(tmp_path, GOOD).baselines}
    values = {"net.core.somaxconn": "9", "net.ipv4.tcp_rmem": "1 2 3"}
    assert Baseline(name="mine", title="mine", source="me", values=values) == result["mine"]


def test_an_own_baseline_replaces_ours_of_the_same_name(tmp_path: Path) -> None:
    text = with_baselines(tmp_path, name="ubuntu-18.04.toml")
    result = study(tmp_path, text).baselines
    assert result["ubuntu-18.04"].title == "mine"
    assert set(study(tmp_path, GOOD).baselines) == set(result)


SOMAXCONN, RMEM = '"net.core.somaxconn" = 9', '"net.ipv4.tcp_rmem"'


NO_VALUE = "a value is a text or a whole number"
OCTAL = "to the kernel, 010 is 8: it takes a number that begins with 0 for an octal one. Write 8 or"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("schema = 1", "schema = 2", ":1: schema: must be 1, got 2"),
        ("schema = 1\n", "", ": schema: must be 1, got None"),
        ('title = "mine"', 'title = ""', ":2: title: string should have at least 1"),
        ('source = "me"\n', "", ": source: field required"),
        ("[values]", "colour = 5\n[values]", ":5: colour: extra inputs are not permitted (got 5)"),
        (SOMAXCONN, SOMAXCONN.replace("9", "true"), f":6: values.net.core.somaxconn: {NO_VALUE}"),
        ('"1 2 3"', '" "', f":7: values.net.ipv4.tcp_rmem: {NO_VALUE}"),
        (SOMAXCONN, SOMAXCONN.replace("9", '"010"'), f":6: values.net.core.somaxconn: {OCTAL}"),
        ('"1 2 3"', '"010 20 30"', f":7: values.net.ipv4.tcp_rmem: {OCTAL}"),
        (
            '"1 2 3"',
            '"10000 5000 1000"',
            ":7: values.net.ipv4.tcp_rmem: its numbers (min, default, max) have to rise: a buffer ",
        ),
        (RMEM, '"net/x"', ":7: values.net/x: is no key: its parts have dots"),
        (BASELINE[BASELINE.index(SOMAXCONN) :], "", ":5: values"),
        ('"1 2 3"', "1 2 3", ": is not TOML: "),
    ],
)
def test_a_mistake_in_a_baseline_has_its_place(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    (result,) = problems(tmp_path, with_baselines(tmp_path, edited(old, new, BASELINE)))
    assert result.startswith(f"own/mine.toml{expected}")


def test_a_key_without_quotes_is_told_how_to_be_written(tmp_path: Path) -> None:
    text = with_baselines(tmp_path, BASELINE.replace('"net.core.somaxconn"', "net.core.somaxconn"))
    expected = "own/mine.toml:6: values.net: a key has to stand in quotes, such as"
    assert any(problem.startswith(expected) for problem in problems(tmp_path, text))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("default.toml", "own/default.toml: a baseline can't be called default: the host's own"),
        ("tuned.toml", "own/tuned.toml: a baseline can't be called tuned: the campaign's own"),
        ("a b.toml", "own/a b.toml: a baseline's file is named of letters, digits, dots, _ and -"),
        ("mine.txt", "study.toml:3: study.baselines: there are no files *.toml in "),
    ],
)
def test_a_baseline_has_a_name_that_can_be_typed_and_nobody_else_has(
    tmp_path: Path, name: str, expected: str
) -> None:
    (result,) = problems(tmp_path, with_baselines(tmp_path, name=name))
    assert result.startswith(expected)


def test_mistakes_of_all_baselines_are_told_at_once_beside_the_studys(tmp_path: Path) -> None:
    text = with_baselines(tmp_path, "schema = 1\n")
    (tmp_path / "own" / "other.toml").write_text("schema = 1\n")
    result = problems(tmp_path, edited('lab = "one"', 'lab = "NOT-A-LAB"', text))
    files = [problem.partition(":")[0] for problem in result]
    assert files == ["study.toml", *["own/mine.toml"] * 3, *["own/other.toml"] * 3]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"net.core.somaxconn" = "4k"', "the kernel takes a whole number (got '4k')"),
        ('"net.core.somaxconn" = "4096;"', "the kernel takes a whole number"),
        ('"net.core.somaxconn" = "0x10"', "to the kernel, that is 16: write that (got '0x10')"),
        ('"net.core.somaxconn" = "16 # x"', "to the kernel, that is 16: write that"),
        ('"net.core.somaxconn" = "16 "', "a value is one line, with no blank at its beginning"),
        ('"net.ipv4.tcp_rmem" = "1, 2, 3"', "the kernel takes 3 whole numbers (min, default, max)"),
        ('"net.ipv4.tcp_rmem" = 4096', "the kernel takes 3 whole numbers (min, default, max)"),
        ('"net.ipv4.tcp_rmem" = "1 2 3 4"', "to the kernel, that is 1 2 3: write that"),
        ('"net.ipv4.ip_local_port_range" = "1024-65535"', "the kernel takes 2 whole numbers"),
        ('"net.ipv4.tcp_congestion_control" = "BBR"', "capital letters apart: write bbr"),
        ('"net/core/somaxconn" = 16', "is no key: its parts have dots between them"),
        ('"vm.dirty_ratio" = 10\n"vm.dirty_bytes" = 9999999', "sets vm.dirty_ratio to 0 with it"),
    ],
)
def test_a_value_that_the_kernel_shows_in_another_way_is_told_with_its_line(
    tmp_path: Path, line: str, message: str
) -> None:
    text = f'schema = 1\ntitle = "t"\nsource = "s"\n[values]\n{line}\n'
    (problem,) = problems(tmp_path, with_baselines(tmp_path, text))
    number = 4 + line.count("\n") + 1
    assert f"mine.toml:{number}: values." in problem
    assert message in problem


def test_partners_of_which_one_is_off_are_a_baseline(tmp_path: Path) -> None:
    text = f'{BASELINE}"vm.dirty_ratio" = 10\n"vm.dirty_bytes" = 0\n'
    result = study(tmp_path, with_baselines(tmp_path, text)).baselines["mine"]
    assert (result.values["vm.dirty_ratio"], result.values["vm.dirty_bytes"]) == ("10", "0")
