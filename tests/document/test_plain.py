"""What a host says can't talk to the terminal, however it gets there."""

import json
import os
import pty
import subprocess
import sys
import unicodedata
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intop.document.columns import texts
from intop.document.machine import to_json
from intop.document.model import Paragraph, Table, Verbatim
from intop.document.progress import LineProgress
from intop.document.text import show
from intop.domain.diagnosis import Diagnosis
from intop.inspect.doctor_view import examined
from intop.words import inert

EVIL = "a\x1b]0;title\x07b\rc\x9b2Jd\u202ee\u2028f\udcffg"
SHOWN = r"a\u001b]0;title\u0007b\u000dc\u009b2Jd\u202ee\u2028f\udcffg"


def test_control_characters_are_shown() -> None:
    assert inert(EVIL) == SHOWN
    assert inert("ä one\n\ttwo █ 5 µs") == "ä one\n\ttwo █ 5 µs"


@given(st.text(st.characters()))
def test_what_is_left_can_be_seen_and_written(text: str) -> None:
    result = inert(text)
    assert {"Cc", "Cf", "Cs", "Zl", "Zp"}.isdisjoint(
        unicodedata.category(c) for c in result if c not in "\n\t"
    )
    assert isinstance(result.encode(), bytes)
    assert result == inert(result)


def test_messages_of_progress_are_inert() -> None:
    message = StringIO()
    with LineProgress(message) as progress:
        progress.say(EVIL)
        progress.begin("work", 1)
        progress.step(EVIL)
    assert message.getvalue().count(SHOWN) == 2
    assert "\x1b" not in message.getvalue()


@pytest.mark.parametrize("markup", ["[red]x[/red]", "[/x]", "[link=http://evil]x", ":smile:", "[b"])
def test_what_a_host_says_is_no_markup(markup: str, capsys: pytest.CaptureFixture[str]) -> None:
    show(Table(columns=texts(markup), rows=((markup,),)))
    assert capsys.readouterr().out.count(markup) == 2


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_cell_can_be_shown(text: str) -> None:
    table = Table(columns=texts("name"), rows=((text,),))
    show(table, Paragraph(text), Verbatim((text,)))


def test_a_diagnosis_full_of_escapes_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    result = Diagnosis(
        arch="x86",
        link=EVIL,
        load_tool=EVIL,
        hosts=(),
        offered=("net.core.y",),
        ranges={"net.core.y": ()},
        refused={"net.core.x": EVIL},
        lost={"net.core.y": {EVIL: EVIL}},
        problems=(EVIL,),
    )
    show(*examined(result))
    out = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e"} & set(out)
    assert r"a\u001b]0;title" in out
    assert json.loads(to_json(result))["link"] == EVIL


def test_json_stays_json_when_it_is_made_inert() -> None:
    everything = "".join(map(chr, [*range(0x300), 0x2028, 0x202E, 0xDCFF, 0xE0001]))
    assert {"x": everything} == json.loads(inert(to_json({"x": everything})))


SHOW = """
from intop.document.progress import progress
from intop.document.model import Section, Table
from intop.document.columns import texts
from intop.document.text import show
evil = {evil!r}
with progress() as shown:
    shown.say(evil)
    shown.begin("work", 2)
    shown.step(evil)
    shown.say(evil)
    shown.begin(evil, 2)
show(Section(title="a heading", blocks=(Table(columns=texts("x"), rows=((evil,),)),)))
"""

BAR = """
from intop.document.progress import progress
with progress() as shown:
    shown.begin({title!r}, 2)
    shown.step()
"""

COMMAND = """
import sys
sys.argv[1:] = {words!r}
from intop.cli import main
main()
"""


def on_a_terminal(code: str) -> bytes:
    """What a terminal gets of Python code that succeeds."""
    controller, terminal = pty.openpty()
    try:
        done = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        )
        os.close(terminal)
        shown = b""
        while True:
            try:
                shown += os.read(controller, 65_536)
            except OSError:  # how a terminal says that nobody has it open any more
                break
        assert done.wait(timeout=60) == 0, shown
    finally:
        os.close(controller)
    return shown


def test_a_real_terminal_gets_no_escapes_but_ours() -> None:
    """Bold and the bar are there, so it is the way of a terminal that is tried."""
    shown = on_a_terminal(SHOW.format(evil=EVIL.replace("\udcff", "")))
    assert b"\x1b[1ma heading" in shown
    assert shown.count(rb"\u001b]0;title") >= 6
    assert b"\x1b]" not in shown
    assert b"\x07" not in shown
    assert "\x9b" not in shown.decode()


@pytest.mark.parametrize("title", ["x[/y].csv: train", "[red]x[/red]", "[link=http://evil]x", "[b"])
def test_the_title_of_a_bar_is_no_markup(title: str) -> None:
    assert title.encode() in on_a_terminal(BAR.format(title=title))


@pytest.mark.parametrize("name", ["x[/y].csv", "a\x1b]0;evil\x07[red]\nb.csv"])
def test_a_table_of_any_name_is_trained_on_a_terminal(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    lines = "".join(f"{n * 31 % 37},{n * n % 41},{n % 5 + 1}\n" for n in range(30))
    file.write_text(f"a,b,y\n{lines}")
    words = ["train", "--data", str(file), "--target", "y", "--family", "RFR", "--trials", "1"]
    shown = on_a_terminal(COMMAND.format(words=[*words, "--folds", "2"]))
    bar = " ".join(inert(str(file)).split())
    assert f"{bar}: train".encode() in shown
    assert not any(sign in shown for sign in (b"\x1b]", b"\x07", b"\x1b[31mb"))


@pytest.mark.parametrize("command", ["doctor", "plan", "contest --nothing", "store check"])
def test_usage_errors_show_what_was_typed_inertly(command: str) -> None:
    code = COMMAND.format(words=[*command.split(), EVIL.replace("\udcff", ""), "x\x1b[2J"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "Usage: " in done.stderr
    assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e"} & set(done.stderr)
