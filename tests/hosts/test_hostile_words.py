"""Words that we hand to a shell arrive byte for byte, and what is no key never gets to a path."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from intop.config.catalogue import Key
from intop.domain.cluster import HostAddress
from intop.domain.configuration import Configuration
from intop.domain.workload import Clients, UrlPath
from intop.hosts.host import Completed, output
from intop.hosts.load.tools import command
from intop.hosts.load.types import Load, LoadTool
from intop.hosts.ssh import SshHost
from intop.hosts.sysctl import path_of

ROOT = Path(__file__).parents[2]
NASTY = ["'", '"', "\\", "`id`", "$(id)", "${HOME}", "$HOME", "~", "*", "?", "[a]", "{a,b}", "!"]
NASTY += [";", "&", "|", "<", ">", "(", ")", "\n", "\r", "\t", " ", "%s", "\\n", "\\0", "-e", "-n"]
NASTY += ["--", "=", "^", "#", "\x01", "\x1b[2J", "\x7f", "\x85", "\u2028", "é", "🙂", "\ufeff"]

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
words |= st.lists(st.sampled_from(NASTY), max_size=6).map("".join)
names = words.filter(lambda text: "/" not in text and text not in ("", ".", "..")).filter(
    lambda text: len(text.encode()) < 200
)
shells = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Shell(SshHost):
    """An SSH host but for SSH: its commands are run by a shell of this machine."""

    def __init__(self) -> None:
        self._address = HostAddress(name="lb", role="load-balancer", hostname="192.0.2.1")

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        # A login shell first, which reads what sshd hands it, as on a real host.
        through = ["sh", "-c", f"sh -c {shlex.quote(command)}"]
        done = subprocess.run(through, input=stdin.encode(), capture_output=True, timeout=timeout_s)
        return Completed(done.returncode, done.stdout.decode(), done.stderr.decode())


@shells
@given(st.lists(words, max_size=5))
def test_words_arrive_byte_for_byte(texts: list[str]) -> None:
    printed = output(Shell(), shlex.join(["printf", r"%s\0", "first", *texts]))
    assert ["first", *texts, ""] == printed.split("\0")


@shells
@given(words)
def test_standard_input_arrives_byte_for_byte(text: str) -> None:
    assert text == output(Shell(), "cat", stdin=text)


@shells
@given(names, names, words)
def test_files_are_put_under_any_name(tmp_path: Path, folder: str, name: str, text: str) -> None:
    Shell().put(f"{tmp_path}/{folder}", {name: text})
    assert text.encode() == Path(tmp_path, folder, name).read_bytes()


# The load tool's command --------------------------------------------------------------------------


def load(**changes: Any) -> Load:
    return Load(
        **{
            "script": "dlt",
            "url": "http://192.0.2.1",
            "rate_rps": 100,
            "connections": 8,
            "threads": 2,
            "duration_s": 1,
            "seed": 1,
            **changes,
        }
    )


@pytest.mark.parametrize("name", ["engine", "wrk2"])
@shells
@given(names, names, words, words)
def test_the_load_tool_gets_its_arguments_as_they_are(
    tmp_path: Path, name: Any, folder: str, tool: str, path: str, header: str
) -> None:
    """Whatever the folder of the scripts, the tool, the path and a header are called."""
    directory = tmp_path / folder
    directory.mkdir(exist_ok=True)
    (directory / "dlt.lua").touch()
    (tmp_path / "tools").mkdir(exist_ok=True)
    executable = tmp_path / "tools" / tool
    executable.write_text('#!/bin/sh\nprintf "%s\\0" "$PWD" "$@"\n')
    executable.chmod(0o755)
    result = LoadTool(name=name, path=str(executable), version="4.1.0")
    its_load = load(dynamic_path=path, clients=Clients(headers=(header,)))
    line = command(result, its_load, str(directory))
    # As it is carried out: within a time limit, by a further shell.
    printed = output(Shell(), shlex.join(["timeout", "20", "sh", "-c", line])).split("\0")
    assert str(directory) == printed[0]
    threads = [] if name == "engine" else ["--seed", "1", "--threads", "2"]
    # `times` speaks last.
    assert ["--", *threads, "--path", path, "--header", header] == printed[printed.index("--") : -1]


URL_PATH: TypeAdapter[str] = TypeAdapter(UrlPath)


@given(words.map(lambda text: f"/{text}"))
def test_a_configured_path_is_one_line_of_one_request(path: str) -> None:
    try:
        URL_PATH.validate_python(path)
    except ValidationError:
        return
    assert re.fullmatch(r"/[!-~]*", path)
    assert not set(path) & set("'\"\\<>`{}|^#")
    assert shlex.split(shlex.quote(path)) == [path]


BAD_PATHS = ["/a\r\nHost: evil", "/a b", "/a\tb", "a", "", "/a\n", "/a\x0bb", "/a\x0cb"]


def said_by_engine(script: str, folder: Path, *arguments: str) -> str:
    """What the engine complains of when it ends before its first request."""
    line = ["luajit", str(ROOT / "lua" / "engine.lua"), "--script", str(ROOT / "lua" / script)]
    line += ["--url", "http://127.0.0.1:9", "--rate", "1", "--duration", "1", "--connections", "1"]
    line += ["--seed", "1", "--", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=20, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.parametrize("path", BAD_PATHS, ids=repr)
def test_lua_itself_splits_no_request(tmp_path: Path, path: str) -> None:
    """Should such a path ever get there."""
    assert "intop: --path" in said_by_engine("dlt.lua", tmp_path, "--path", path)


@pytest.mark.parametrize("path", ["/a\rHost: evil", "/a b", "/a\x0bb", "no"], ids=repr)
def test_lua_itself_takes_no_list_that_would_split_one(tmp_path: Path, path: str) -> None:
    (tmp_path / "paths.txt").write_text(f"/fine\n{path}\n", newline="")
    printed = said_by_engine("slt.lua", tmp_path, "--paths", "paths.txt")
    assert "intop: --paths: not a path" in printed


# Keys and values ----------------------------------------------------------------------------------

KEY: TypeAdapter[str] = TypeAdapter(Key)
keys = st.from_regex(r"[a-z0-9_]+(\.[A-Za-z0-9_-]+)+") | words
PARTS = ["net", ".", "..", "/", "core", "\n", " ", "-", "A", "$(id)"]
keys |= st.lists(st.sampled_from(PARTS)).map("".join)


@given(keys)
def test_only_a_key_becomes_a_path_and_it_stays_below_proc_sys(text: str) -> None:
    try:
        path = path_of(text)
    except ValueError:
        with pytest.raises(ValidationError):
            KEY.validate_python(text)
        return
    assert re.fullmatch(r"[a-z0-9_]+(/[A-Za-z0-9_-]+)+", path)
    assert Path("/proc/sys") in Path("/proc/sys", path).resolve().parents
    assert text == KEY.validate_python(text)


@given(st.dictionaries(st.just("net.core.x"), st.text()))
def test_a_value_is_never_two_lines_for_the_guard(values: dict[str, str]) -> None:
    assert all("\n" not in value for value in Configuration(values).values.values())
