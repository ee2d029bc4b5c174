"""Whatever the load tool prints is a result that makes sense, or an error that names the tool."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.damage import NUMBERS, PIECES, anything, damaged
from builders.loads import DATA, ENGINE, SLT, WRK2, json_of
from intop.errors import LoadOutputError
from intop.hosts.load.tools import parse_output, parse_tools

FOUND = (DATA / "found-all.txt").read_text()
TOOLS = {tool.name: tool for tool in (ENGINE, WRK2)}
PRINTED = {name: (DATA / f"{name}-slt.txt").read_text() for name in TOOLS}
LONG = 10_000_000


def read(text: str, name: str) -> None:
    tool = TOOLS[name]
    try:
        result = parse_output(text, tool, SLT)
    except LoadOutputError as error:
        output = str(error)
    else:
        numbers = (result.duration_s, result.achieved_rps, result.run_s, result.cpu_s or 0.0)
        numbers += (result.lag_ms or 0.0, abs(result.clock_step_s or 0.0), float(result.uncounted))
        assert all(math.isfinite(number) and number >= 0 for number in numbers)
        assert all(0 < count < 2**63 for count in result.errors.values())
        assert sum(result.errors.values()) <= result.requests == result.histogram.total
        return
    assert output.startswith(f"{tool.path}: ")
    assert len(output) < 3000


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_an_output_is_a_result_or_refused(name: str) -> None:
    @given(anything | damaged(PRINTED[name]) | damaged(json_of(PRINTED[name]) + "\n"))
    def one(text: str) -> None:
        read(text, name)

    one()


WORDS = {
    "engine": "due answered on_time pending bytes counted_us run_us cpu_us clock_step_us refused "
    "timeout content schema stopped",
    "wrk2": "duration_us requests bytes connect timeout schema",
}
KEYS = [(name, key) for name, keys in WORDS.items() for key in keys.split()]


@pytest.mark.parametrize(("name", "key"), KEYS)
@pytest.mark.parametrize(
    "number", [*NUMBERS, "[" * 100_000, "null", "true", "{}"], ids=lambda n: n[:9]
)
def test_a_number_of_the_result_is_one_or_refused(name: str, key: str, number: str) -> None:
    text, count = re.subn(rf'"{key}":[^,}}]+', lambda _: f'"{key}":{number}', PRINTED[name])
    assert count == 1
    read(text, name)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n[:9])
@pytest.mark.parametrize("times", ["{}m0.1s 0m0.1s", "0m{}.1s 0m0.1s", "0m0.{}s 0m0.1s"])
def test_a_time_of_the_shell_is_one_or_none(times: str, number: str) -> None:
    text = f"{PRINTED['wrk2']}{times.format(number)}\n"
    result = parse_output(text, WRK2, SLT)
    assert result.cpu_s is None or math.isfinite(result.cpu_s)


@given(anything | damaged(FOUND) | st.lists(st.sampled_from([*PIECES, "tool ", "| "])).map("".join))
def test_a_tool_is_a_program_of_a_path(text: str) -> None:
    for result in parse_tools(text):
        assert result.path.startswith("/")
        assert result.path.isprintable()
        assert len("LuaJIT ") + 100 >= len(result.version)


@pytest.mark.parametrize("piece", ["x", "{", "[", " ", "\n", "9", "tool ", "0m0.1s "])
def test_10_mb_of_the_load_tool_take_no_time(piece: str) -> None:
    """Blank lines took a time that grew with the square of their number."""
    text = piece * (LONG // len(piece) if piece not in ("\n", "tool ") else LONG // 20)
    for name in TOOLS:
        read(text, name)
    parse_tools(text)


def test_the_untouched_outputs_are_read() -> None:
    """Else all that was refused above may have been refused for something else."""
    for name, tool in TOOLS.items():
        assert parse_output(PRINTED[name], tool, SLT).requests > 0
    assert [result.name for result in parse_tools(FOUND)] == ["wrk2", "engine"]
