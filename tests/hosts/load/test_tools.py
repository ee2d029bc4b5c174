"""Which load generators there are, which one is taken, its command line, and what runs it."""

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from builders.loads import DATA, ENGINE, LUA, SLT, WRK2, edited, executable, load
from intop.domain.workload import Clients, LoadToolChoice
from intop.errors import LoadOutputError
from intop.hosts.load.tools import (
    FIND_TOOL,
    choose,
    command,
    identify,
    parse_output,
    parse_tools,
    planned_run_s,
    script_fingerprint,
    sent_s,
    threads_of,
)
from intop.hosts.load.types import Load, LoadTool
from kit.commands import ran

POISSON = load(arrivals="poisson")
HTTP2 = load(clients=Clients(http="2"))

# Which tool ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("luajit-version.txt", replace(ENGINE, path="/bin/w")),
        ("wrk2-version.txt", replace(WRK2, path="/bin/w")),
        # A closed loop, which no tool of ours can pace.
        ("wrk-version.txt", None),
    ],
)
def test_identify_by_what_it_says_not_by_its_name(output: str, expected: LoadTool | None) -> None:
    assert identify("/bin/w", (DATA / output).read_text()) == expected


@pytest.mark.parametrize("output", ["hm\n", "", "not LuaJIT 2.1.0 -- at all\n", "LuaJIT\n"])
def test_another_program_is_no_tool(output: str) -> None:
    assert identify("/bin/ls", output) is None


def test_all_tools_are_found_and_wrk2_comes_first() -> None:
    text = (DATA / "found-all.txt").read_text()
    expected = (replace(WRK2, path="/opt/wrk2/bin/wrk2"), ENGINE)
    assert parse_tools(text) == expected
    first, *others = re.findall(r"^tool .*\n(?:\| .*\n)*", text, re.MULTILINE)
    assert len(others) == 2
    assert parse_tools("".join([*others, first])) == expected


def test_nothing_is_found_where_nothing_was_said() -> None:
    assert parse_tools("") == ()
    assert parse_tools("tool luajit\n| LuaJIT 2.1.0 -- no path\n") == ()


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (
            {"wrk2": "wrk2", "wrk": "wrk", "luajit": "luajit"},
            [("wrk2", "wrk2"), ("engine", "luajit")],
        ),
        ({"wrk": "wrk", "luajit": "luajit"}, [("engine", "luajit")]),
        ({"wrk": "wrk2"}, [("wrk2", "wrk")]),
        ({"wrk": "wrk"}, []),
        ({}, []),
    ],
)
def test_find_tool_in_a_shell(
    tmp_path: Path, printed: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    for name in ("wrk2", "wrk", "luajit"):
        captured = printed.get(name)
        body = f"cat {DATA / captured}-version.txt; exit 1" if captured else "echo no; exit 126"
        executable(tmp_path / name, body)
    path = f"{tmp_path}:/usr/bin:/bin"
    tools = parse_tools(ran("sh", "-c", FIND_TOOL, env={"PATH": path}, check=True).stdout)
    assert [(tool.name, tool.path.removeprefix(f"{tmp_path}/")) for tool in tools] == expected


BOTH = (WRK2, ENGINE)
NO_LUAJIT = "has no luajit on its PATH, which runs intop's load generator, and"
INSTALL = (
    "On Debian and Ubuntu: apt-get install luajit; on Fedora and, from EPEL, on RHEL: dnf install "
    "luajit"
)
CANT = "wrk2 can't send poisson arrivals"
RECORDED = load(arrivals="recorded")
ASKED_FOR = 'and the study has load_tool = "wrk2". Set it to "auto" or "engine"'


@pytest.mark.parametrize(
    ("tools", "loads", "wanted", "expected"),
    [
        (BOTH, [load()], "auto", WRK2),
        (BOTH, [load()], "engine", ENGINE),
        (BOTH, [load()], "wrk2", WRK2),
        (BOTH, [POISSON], "auto", ENGINE),
        (BOTH, [load(), POISSON], "auto", ENGINE),
        ((ENGINE,), [load()], "auto", ENGINE),
        ((WRK2,), [load()], "auto", WRK2),
        (BOTH, [POISSON], "wrk2", f"{CANT}, {ASKED_FOR}"),
        (BOTH, [RECORDED], "auto", ENGINE),
        (BOTH, [RECORDED], "wrk2", f"wrk2 can't send recorded arrivals, {ASKED_FOR}"),
        (BOTH, [load(), HTTP2], "auto", ENGINE),
        (BOTH, [HTTP2], "wrk2", f"wrk2 can't send HTTP/2, {ASKED_FOR}"),
        ((ENGINE,), [load()], "wrk2", f"has no wrk2 on its PATH, {ASKED_FOR}"),
        ((), [load()], "wrk2", f"has no wrk2 on its PATH, {ASKED_FOR}"),
        ((), [load()], "auto", f"{NO_LUAJIT} no wrk2. {INSTALL}"),
        ((), [POISSON], "engine", f"{NO_LUAJIT} no wrk2. {INSTALL}"),
        ((WRK2,), [POISSON], "auto", f"{NO_LUAJIT} its {CANT}. {INSTALL}"),
        ((WRK2,), [load()], "engine", f'{NO_LUAJIT} the study has load_tool = "engine". {INSTALL}'),
    ],
)
def test_the_tool_is_one_that_can_send_the_loads_and_that_the_study_wants(
    tools: Sequence[LoadTool],
    loads: Sequence[Load],
    wanted: LoadToolChoice,
    expected: LoadTool | str,
) -> None:
    assert choose(tools, loads, wanted) == expected


# Command ------------------------------------------------------------------------------------------

ENGINE_RUNS = (
    "/usr/bin/luajit engine.lua --script {0}.lua --url http://10.0.0.1:80 --rate 1500.000000 "
    "--duration 3 --warmup 0 --drain 1.5 --connections 32 --timeout 10 --seed 7 --stream 0 "
    "--streams 1 --arrivals constant --"
)
WRK2_RUNS = (
    "/opt/wrk2/wrk -t 2 -c 32 -d 14 --timeout 10 -R 1500 -s {0}.lua http://10.0.0.1:80 -- "
    "--seed 7 --threads 2"
)


@pytest.mark.parametrize(
    ("tool", "script", "run"),
    [
        (ENGINE, "slt", f"{ENGINE_RUNS} --paths paths.txt"),
        (ENGINE, "dlt", f"{ENGINE_RUNS} --path /dynamic"),
        (WRK2, "slt", f"{WRK2_RUNS} --paths paths.txt"),
        (WRK2, "dlt", f"{WRK2_RUNS} --path /dynamic"),
    ],
)
def test_command(tool: LoadTool, script: str, run: str) -> None:
    expected = f"cd /tmp/i && cat {script}.lua >/dev/null && {run.format(script)} && times"
    assert command(tool, load(script=script), "/tmp/i") == expected


def test_a_scripts_name_is_one_word_of_the_command() -> None:
    name = "x;touch /tmp/evil;"
    message = command(ENGINE, load(own_script=name), "/tmp/i")
    words = shlex.split(message.partition("cat ")[2])
    assert words[0] == f"{name}.lua"
    assert words[words.index("--script") + 1] == f"{name}.lua"


def test_the_engine_has_one_thread_and_wrk2_those_of_the_load() -> None:
    assert (threads_of(ENGINE, load()), threads_of(WRK2, load())) == (1, 2)


def test_planned_run_covers_all_that_is_not_counted_too() -> None:
    # The engine waits up to 1.5 s for what is unanswered; wrk2 calibrates.
    assert (planned_run_s(ENGINE, load()), planned_run_s(WRK2, load())) == (5, 14)
    assert planned_run_s(ENGINE, load(duration_s=2.5, warmup_s=2)) == 6
    assert (sent_s(ENGINE, load(warmup_s=2)), sent_s(WRK2, load())) == (5, 14)


@pytest.mark.parametrize("tool", [ENGINE, WRK2], ids=lambda tool: tool.name)
@pytest.mark.parametrize(
    ("url", "output"),
    [
        ("http://192.0.2.1", "http://192.0.2.1:80"),
        ("https://lb.example", "https://lb.example:443"),
        ("http://[2001:db8::1]", "http://[2001:db8::1]:80"),
        ("http://lb.example:8080", "http://lb.example:8080"),
    ],
)
def test_the_port_is_always_said(tool: LoadTool, url: str, output: str) -> None:
    """Where there is no /etc/services, wrk2 can't find the port of http."""
    assert output in shlex.split(command(tool, load(url=url), "/d"))


@pytest.mark.parametrize("tool", [ENGINE, WRK2], ids=lambda tool: tool.name)
def test_command_is_quoted(tmp_path: Path, tool: LoadTool) -> None:
    directory = tmp_path / "a b'c;$(d)"
    shutil.copytree(LUA, directory)
    tool = replace(tool, path=executable(tmp_path / "my tool", "pwd; printf '%s\\n' \"$@\""))
    header = "X-A: $(e) 'f'; g"
    hostile = load(
        script="dlt",
        url="http://h:8/?a=1&b=$(c) `d`",
        dynamic_path="/x;y 'z' & $HOME",
        clients=Clients(headers=(header,)),
    )
    output = ran("sh", "-c", command(tool, hostile, str(directory)))
    assert ("", str(directory)) == (output.stderr, output.stdout.splitlines()[0])
    assert {hostile.url, hostile.dynamic_path, header} <= set(output.stdout.splitlines())


@pytest.mark.parametrize("tool", [ENGINE, WRK2], ids=lambda tool: tool.name)
def test_command_runs_no_load_without_its_script(tmp_path: Path, tool: LoadTool) -> None:
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "slt.lua").unlink()
    tool = replace(tool, path=executable(tmp_path / "tool", "echo ran"))
    output = ran("sh", "-c", command(tool, load(), str(tmp_path)))
    assert (output.stdout, "slt.lua" in output.stderr) == ("", True)


# Output -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("0m0.000000s 0m0.010000s\n0m2.310000s 1m1.250000s\n", 63.56),
        ("0m0.00s 0m0.01s\n0m2.31s 0m1.25s\n", 3.56),
        ("0m0,001s 0m0,010s\n2m2,312s 0m0,250s\n", 122.562),
        ("", None),
        ("0.00 0.01\n2.31 1.25\n", None),
    ],
)
def test_the_shell_says_what_cpu_time_wrk2_took(output: str, expected: float | None) -> None:
    result = parse_output((DATA / "wrk2-slt.txt").read_text() + output, WRK2, SLT)
    assert result.cpu_s == pytest.approx(expected)


def test_the_engine_says_by_itself_what_cpu_time_it_took() -> None:
    text = edited("engine-slt.txt", lambda data: data.update(cpu_us=1_250_000))
    result = parse_output(text + "0m0.00s 0m0.01s\n0m2.31s 0m1.25s\n", ENGINE, SLT)
    assert result.cpu_s == 1.25


@pytest.mark.parametrize(
    ("text", "last_lines"),
    [
        ("", "(nothing was printed)"),
        ("unable to connect\n", "unable to connect"),
        ("\n".join(map(str, range(20))), "\n".join(map(str, range(12, 20)))),
    ],
    ids=["nothing", "a line", "many"],
)
def test_unusable_output_names_the_tool_and_shows_its_last_lines(
    text: str, last_lines: str
) -> None:
    with pytest.raises(LoadOutputError) as caught:
        parse_output(text, ENGINE, SLT)
    expected = "/usr/bin/luajit: expected one line of JSON, found 0; last lines:\n"
    assert expected + last_lines == str(caught.value)
    with pytest.raises(LoadOutputError, match=r"^/opt/wrk2/wrk: wrk2 calibrated 0 of 2 threads; "):
        parse_output(text, WRK2, SLT)


# What runs it -------------------------------------------------------------------------------------


def test_the_fingerprint_of_a_script_of_ones_own_covers_ours_too(tmp_path: Path) -> None:
    shutil.copytree(LUA, tmp_path / "lua")
    mine = tmp_path / "mine.lua"
    seen = set()
    for path in (None, mine, tmp_path / "lua" / "dlt.lua", tmp_path / "lua" / "engine.lua"):
        if path is not None:
            with path.open("a") as file:
                file.write("-- changed\n")
        else:
            mine.write_text("-- mine\n")
        seen.add(script_fingerprint(tmp_path / "lua", "slt", str(mine)))
    assert len(seen) == 4
    with pytest.raises(FileNotFoundError):
        script_fingerprint(LUA, "slt", str(tmp_path / "none.lua"))


def test_a_script_of_ones_own_takes_the_arguments_of_its_kind() -> None:
    for tool in (ENGINE, WRK2):
        message = command(tool, load(own_script="mine"), "/tmp/i")
        assert "cat mine.lua" in message
        assert "slt.lua" not in message
        assert message.endswith("--paths paths.txt && times")


def test_the_fingerprint_covers_the_script_and_all_that_it_is_sent_by(tmp_path: Path) -> None:
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    before = {script: script_fingerprint(LUA, script) for script in ("slt", "dlt")}
    assert before == {script: script_fingerprint(tmp_path, script) for script in before}
    assert re.fullmatch(r"[0-9a-f]{16}", before["slt"])

    seen = {*before.values()}
    changed = sorted({path.name for path in LUA.glob("*.lua")} - {"dlt.lua", "link.lua"})
    assert {"engine.lua", "intop.lua", "slt.lua"} <= set(changed)
    for name in changed:
        with (tmp_path / name).open("a") as file:
            file.write("-- changed\n")
        seen.add(script_fingerprint(tmp_path, "slt"))
    assert 2 + len(changed) == len(seen)


def test_the_fingerprint_leaves_out_the_labs_link(tmp_path: Path) -> None:
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "link.lua").unlink()
    assert script_fingerprint(LUA, "slt") == script_fingerprint(tmp_path, "slt")


def test_the_fingerprint_leaves_out_the_other_script(tmp_path: Path) -> None:
    shutil.copytree(LUA, tmp_path, dirs_exist_ok=True)
    (tmp_path / "dlt.lua").write_text("-- changed\n")
    assert script_fingerprint(LUA, "slt") == script_fingerprint(tmp_path, "slt")
    assert script_fingerprint(LUA, "dlt") != script_fingerprint(tmp_path, "dlt")


def test_scripts_that_are_not_there_have_no_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "engine.lua").write_text("")
    with pytest.raises(OSError, match=r"slt\.lua"):
        script_fingerprint(tmp_path, "slt")
