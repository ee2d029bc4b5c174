import io
import json
import sys
from dataclasses import dataclass

import pytest

from intop.document import progress as module
from intop.document.progress import LINE_EVERY_S, JsonProgress, LineProgress, progress, remaining_s
from intop.words import duration


@dataclass
class Clock:
    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def lines(stream: io.StringIO) -> list[str]:
    text = stream.getvalue()
    assert text.isprintable() or all(c == "\n" or c.isprintable() for c in text)
    return text.splitlines()


def test_without_a_terminal_progress_is_lines_on_stderr_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress() as shown:
        assert isinstance(shown, LineProgress)
        shown.begin("x86 slt: collect", 2)
        shown.say("lb is held by somebody")
        shown.step("default: P99 3.0 ms")
        shown.step("abcdef: P99 2.0 ms")
        shown.end()
    out, err = capsys.readouterr()
    assert out == ""
    assert all(c == "\n" or c.isprintable() for c in err)
    # Each after its time, of 20 characters and a blank.
    assert [line[21:] for line in err.splitlines()] == [
        "x86 slt: collect: 2 steps",
        "lb is held by somebody",
        "x86 slt: collect: 2/2, 0 s left (abcdef: P99 2.0 ms)",
    ]


def test_on_a_terminal_it_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    assert not isinstance(progress(), LineProgress)


def test_the_bar_does_all_that_the_lines_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with module.LiveProgress() as shown:
        shown.step("before anything began")
        shown.begin("x86 slt: collect", 5, 3)
        shown.say("lb is [held] by somebody")
        shown.step("default")
        shown.begin("x86 slt: train", 6)
        shown.step()
        shown.end()
        shown.end()
    out, err = capsys.readouterr()
    assert out == ""
    assert "lb is [held] by somebody" in err


def test_a_line_comes_only_when_the_last_one_is_long_ago(clock: Clock) -> None:
    stream = io.StringIO()
    shown = LineProgress(stream)
    shown.begin("work", 100)
    for _ in range(5):
        clock.now += LINE_EVERY_S / 4
        shown.step("some")
    assert lines(stream) == ["work: 100 steps", "work: 4/100, 24 min 0 s left (some)"]


def test_the_last_step_is_always_told(clock: Clock) -> None:
    stream = io.StringIO()
    shown = LineProgress(stream)
    shown.begin("work", 2)
    clock.now += 1
    shown.step()
    shown.step()
    assert lines(stream) == ["work: 2 steps", "work: 2/2, 0 s left"]


def test_a_resumed_piece_of_work_says_what_was_done_earlier_and_does_not_count_it_as_quick(
    clock: Clock,
) -> None:
    stream = io.StringIO()
    shown = LineProgress(stream)
    shown.begin("work", 100, 90)
    clock.now += LINE_EVERY_S
    shown.step()
    assert lines(stream) == [
        "work: 100 steps, 90 of them done earlier",
        "work: 91/100, 9 min 0 s left",
    ]


@pytest.mark.parametrize(
    ("done", "left", "elapsed_s", "expected"),
    [(10, 20, 30.0, 60.0), (1, 0, 30.0, 0.0), (0, 5, 0.0, 0.0), (0, 5, 2.0, 10.0)],
)
def test_remaining_time_goes_on_as_it_went(
    done: int, left: int, elapsed_s: float, expected: float
) -> None:
    assert remaining_s(done, left, elapsed_s) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (45.2, "45 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
        (90000, "25 h 0 min"),
    ],
)
def test_durations_as_a_person_says_them(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


# Disturbed trials ---------------------------------------------------------------------------------


def test_disturbed_trials_are_counted_and_each_kind_is_named_once() -> None:
    stream = io.StringIO()
    shown = LineProgress(stream)
    shown.begin("x86 slt: collect", 1)
    shown.disturbed("x86 slt: trial 1", "lb: 0.31 foreign cores, limit 0.2")
    shown.disturbed("x86 slt: trial 4", "the load was late by 3 ms")
    shown.disturbed("x86 slt: trial 9", "lb: 0.45 foreign cores, limit 0.2")
    shown.step()
    shown.end()
    shown.end()
    assert lines(stream)[1:] == [
        "x86 slt: trial 1 disturbed: lb: 0.31 foreign cores, limit 0.2",
        "x86 slt: trial 4 disturbed: the load was late by 3 ms",
        "x86 slt: collect: 1/1, 0 s left, 3 disturbed",
        (
            "x86 slt: collect: 3 trials were disturbed: lb: 0.31 foreign cores, limit 0.2 "
            "(so 2 of them)"
        ),
    ]


def test_it_says_that_nothing_but_disturbed_trials_comes() -> None:
    stream = io.StringIO()
    shown = LineProgress(stream)
    shown.begin("x86 slt: pick", 9)
    for number in range(9):
        shown.disturbed(f"x86 slt: trial {number}", "a hog")
        if number == 3:
            shown.step()
    _, first, row, *more = lines(stream)
    assert first == "x86 slt: trial 0 disturbed: a hog"
    assert row.startswith("x86 slt: trial 8 disturbed, as were all of the last 5: a hog. End what")
    assert not more


def test_programs_get_each_reason() -> None:
    stream = io.StringIO()
    JsonProgress(stream).disturbed("x86 slt: trial 1", "a hog")
    assert json.loads(stream.getvalue())["message"] == "x86 slt: trial 1 disturbed: a hog"
