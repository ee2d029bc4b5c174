"""What reaches a terminal, a dumb one, a log file: colours, control characters, times."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.campaigns import begun
from intop.cli import cli
from intop.document.progress import progress

Shown = Callable[..., str]

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ANY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
PLAIN = [{"NO_COLOR": "1"}, {"NO_COLOR": "0"}, {"CLICOLOR": "0"}, {"TERM": "dumb"}]


def work() -> None:
    """What tune says while it measures."""
    with progress() as shown:
        shown.begin("x86 slt: collect", 2)
        shown.say("x86 slt: trial 1 disturbed: somebody was busy")
        shown.step("default: P99 3.0 ms")
        shown.step("abcdef: P99 2.0 ms")
        shown.end()


def called(*words: object) -> Callable[[], object]:
    return lambda: cli([str(word) for word in words], prog_name="intop", standalone_mode=False)


@pytest.fixture
def status(study: Path) -> Callable[[], object]:
    begun(study.parent, ["ok", "ok"])
    return called("progress", "-c", study)


def test_tables_are_coloured_on_a_terminal_only(
    status: Callable[[], object],
    on_terminal: Shown,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An empty NO_COLOR is none, by no-color.org."""
    assert COLOUR.search(on_terminal(status))
    assert COLOUR.search(on_terminal(status, NO_COLOR=""))
    status()
    assert not ANY.search(capsys.readouterr().out)


@pytest.mark.parametrize("environment", PLAIN, ids=str)
def test_who_wants_no_colour_gets_none_at_a_terminal(
    status: Callable[[], object], on_terminal: Shown, environment: dict[str, str]
) -> None:
    text = on_terminal(status, **environment)
    assert "campaign 1 of mine" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("words", [("--help",), ("tune", "--help"), ("nosuch",), ("tune", "--x")])
def test_help_and_wrong_usage_have_no_control_characters(
    on_terminal: Shown, words: tuple[str, ...]
) -> None:
    text = on_terminal(called(*words))
    assert "sage: intop" in text
    assert not ANY.search(text)


def test_a_bar_is_redrawn_on_a_terminal_in_colours_unless_they_are_not_wanted(
    on_terminal: Shown,
) -> None:
    assert COLOUR.search(on_terminal(work))
    text = on_terminal(work, NO_COLOR="1")
    assert "\x1b[" in text  # the cursor is moved all the same
    assert not COLOUR.search(text)


def test_a_dumb_terminal_gets_lines(on_terminal: Shown) -> None:
    text = on_terminal(work, TERM="dumb")
    assert not ANY.search(text)
    assert "x86 slt: collect: 2/2" in text


def test_in_a_log_file_each_line_has_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    out, err = capsys.readouterr()
    assert out == ""
    assert not ANY.search(err)
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "
    message = ["x86 slt: collect: 2 steps", "x86 slt: trial 1 disturbed", "x86 slt: collect: 2/2"]
    lines = err.splitlines()
    assert all(re.match(time + re.escape(t), line) for t, line in zip(message, lines, strict=True))


def test_a_pipe_gets_no_colours_though_a_terminal_is_there_for_errors(
    status: Callable[[], object],
    on_terminal: Shown,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    with (tmp_path / "out").open("w") as file:

        def piped() -> None:
            monkeypatch.setattr(sys, "stdout", file)
            status()

        on_terminal(piped)
    assert "campaign 1 of mine" in (tmp_path / "out").read_text()
    assert "\x1b" not in (tmp_path / "out").read_text()
