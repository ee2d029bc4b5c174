"""Whatever the load tool prints is a result that makes sense, or an error that names the tool."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damage import NUMBERS, PIECES, anything, damaged
from intop.errors import LoadOutputError
from intop.hosts.load import Load, LoadTool, parse_found, parse_output

DATA = Path(__file__).parents[1] / "data" / "load"
FOUND = (DATA / "found-both.txt").read_text()
TOOLS = {
    name: LoadTool(name=name, path="/usr/bin/wrk", version="4")  # type: ignore[arg-type]
    for name in ("wrk", "wrk2")
}
PRINTED = {name: (DATA / f"{name}-slt.txt").read_text() for name in TOOLS}
LOAD = Load(
    script="slt",
    url="http://127.0.0.1:18080",
    rate_rps=1500,
    connections=32,
    threads=2,
    duration_s=3,
    seed=7,
)
LONG = 10_000_000


def read(text: str, name: str) -> None:
    try:
        found = parse_output(text, TOOLS[name], LOAD)
    except LoadOutputError as error:
        said = str(error)
    else:
        numbers = (found.duration_s, found.achieved_rps, found.run_duration_s, found.cpu_s or 0.0)
        assert all(math.isfinite(number) and number >= 0 for number in numbers)
        assert all(0 <= count < 2**63 for count in found.counted_errors.values())
        return
    assert said.startswith("/usr/bin/wrk: ")
    assert 3000 > len(said)


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_an_output_is_a_result_or_refused(name: str) -> None:
    @given(anything | damaged(PRINTED[name]) | damaged(PRINTED[name].splitlines()[-1] + "\n"))
    def one(text: str) -> None:
        read(text, name)

    one()


KEYS = ["duration_us", "requests", "bytes", "connect", "timeout", "schema", "late", "stopped"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "number", [*NUMBERS, "[" * 100_000, "null", "true", "{}"], ids=lambda n: n[:9]
)
def test_a_number_of_the_result_is_one_or_refused(key: str, number: str) -> None:
    read(re.sub(rf'"{key}":[^,}}]+', lambda _: f'"{key}":{number}', PRINTED["wrk"]), "wrk")


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n[:9])
@pytest.mark.parametrize("times", ["{}m0.1s 0m0.1s", "0m{}.1s 0m0.1s", "0m0.{}s 0m0.1s"])
def test_a_time_of_the_shell_is_one_or_none(times: str, number: str) -> None:
    text = f"{PRINTED['wrk']}{times.format(number)}\n"
    found = parse_output(text, TOOLS["wrk"], LOAD)
    assert found.cpu_s is None or math.isfinite(found.cpu_s)


@given(anything | damaged(FOUND) | st.lists(st.sampled_from([*PIECES, "tool ", "| "])).map("".join))
def test_a_tool_is_a_program_of_a_path_or_none(text: str) -> None:
    found = parse_found(text)
    if found is not None:
        assert found.path.startswith("/")
        assert found.path.isprintable()
        assert 100 >= len(found.version)


@pytest.mark.parametrize("piece", ["x", "{", "[", " ", "\n", "9", "tool ", "0m0.1s "])
def test_10_mb_of_the_load_tool_take_no_time(piece: str) -> None:
    """Blank lines took a time that grew with the square of their number."""
    text = piece * (LONG // len(piece) if piece not in ("\n", "tool ") else LONG // 20)
    for name in TOOLS:
        read(text, name)
    parse_found(text)


def test_the_untouched_outputs_are_read() -> None:
    """Else all that was refused above may have been refused for something else."""
    for name, tool in TOOLS.items():
        assert 0 < parse_output(PRINTED[name], tool, LOAD).requests
    found = parse_found(FOUND)
    assert found is not None
    assert "wrk2" == found.name
