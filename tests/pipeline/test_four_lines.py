"""The lines that the project's card shows, typed as they stand there, on real clusters."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


def typed(study: Any, line: str, expected: tuple[int, ...] = (0,)) -> tuple[str, str]:
    """What a line of the shell prints; it begins with intop and has no options but its own."""
    program, *words = line.split()
    assert program == "intop"
    return study.run(*words, expected=expected)


@pytest.fixture
def study(make_study: Make) -> Any:
    """Two clusters, as a file in the current folder has them; only the second one is up."""
    made = make_study("x86", "arm")
    made.run("lab", "down", "--arch", "x86")
    return made


@pytest.mark.long
def test_the_four_lines_in_their_order(study: Any) -> None:
    _, message = typed(study, "intop collect --arch arm")
    assert "left out" not in message

    out, message = typed(study, "intop train")
    assert "arm slt: error of the models" in out
    assert "arm dlt: error of the models" in out
    assert "x86" not in out
    (line,) = (line for line in message.splitlines() if "x86" in line)
    assert line == (
        "left out: x86: nothing is collected yet. Run: intop lab up --arch x86 && "
        "intop collect --arch x86 && intop train --arch x86"
    )

    out, message = typed(study, "intop search --workload dlt")
    assert "arm dlt" in out
    assert "slt" not in out
    (line,) = (line for line in message.splitlines() if "x86" in line)
    assert line.endswith(
        "intop lab up --arch x86 && intop collect --arch x86 --workload dlt && "
        "intop train --arch x86 --workload dlt && intop search --arch x86 --workload dlt"
    )

    # Before the other half is made, what is missing is named once, with all that makes it.
    out, message = typed(study, "intop compare x86 arm", expected=(1,))
    assert out == ""
    (line,) = message.splitlines()
    assert line.startswith("intop: x86: nothing to compare (0 usable trials of the default")
    assert line.endswith(
        ": intop lab up --arch x86 && intop collect --arch x86 && intop compare x86 arm"
    )

    # What that line says, typed.
    for command in line[line.index("intop lab up") :].split(" && "):
        out, _ = typed(study, command)
    assert "x86 and arm: measured P99 in ms" in out
    assert "slt" in out
    assert "dlt" in out
