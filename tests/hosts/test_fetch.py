"""Asking for paths once: what the engine prints, and the engine against a real nginx."""

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given

from builders.damage import NUMBERS, anything, damaged
from intop.domain.cluster import LabSpec
from intop.domain.fetched import UNASKED, Fetched
from intop.errors import CommandError, LoadOutputError
from intop.hosts.fetch import fetch, parse_fetched
from intop.hosts.host import output
from intop.hosts.rig import Rig, connected
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from kit.local_host import LocalHost

ROOT = Path(__file__).parents[2]
PRINTED = (ROOT / "tests" / "data" / "load" / "engine-fetch.txt").read_text()
PATHS = ("/index.html", "/nosuch", "/empty", "/slow", "/after")


def line(**changes: object) -> str:
    fields = {"crc32": 1, "length": 2, "path": "/", "problem": "", "status": 200, "us": 3}
    return json.dumps(fields | changes) + "\n"


def test_each_path_has_its_answer_or_its_problem() -> None:
    page, missing, empty, slow, after = parse_fetched(PRINTED, PATHS)
    assert page == Fetched(
        path="/index.html", status=200, bytes=4096, check=3610107134, seconds=0.001214
    )
    assert (missing.problem, missing.status) == ("status", 404)
    assert empty.complaint == "answers 204 with an empty body"
    # When its time is over the engine has nothing to say of those that are left.
    assert (slow.problem, slow.status, slow.seconds) == ("timeout", 0, 0.0)
    assert after.problem == UNASKED


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", "0 lines for 1 paths"),
        (line() * 2, "2 lines for 1 paths"),
        (line().rstrip(), "0 lines for 1 paths"),
        ("{\n", "the line of JSON is broken"),
        ("[" * 100_000 + "\n", "expected one line of JSON, found 0"),
        ("[]\n", "expected one line of JSON, found 0"),
        ("{}\n", "'{}' is no answer to a path"),
        (line(more=1), "is no answer to a path"),
        (line(path="/b"), "'/b' stands in the place of /"),
        (line(path=7), "7 stands in the place of /"),
        (line(status=1000), "status is 1000, not a whole number up to 999"),
        (line(status=-1), "status is -1"),
        (line(status=True), "status is True"),
        (line(length=1.0), "length is 1.0"),
        (line(length=2**63), "length is 9223372036854775808"),
        (line(crc32=2**32), "crc32 is 4294967296"),
        (line(us="3"), "us is '3'"),
        (line(us=None), "us is None"),
        (line(problem="other"), "problem is 'other', which is no kind of problem"),
        (line(problem=None), "problem is None"),
        (line(problem=[]), "problem is []"),
    ],
)
def test_anything_else_is_refused(text: str, printed: str) -> None:
    with pytest.raises(ValueError, match=re.escape(printed)):
        parse_fetched(text, ["/"])


@given(anything | damaged(PRINTED))
def test_whatever_is_printed_is_answers_or_an_error_that_names_the_host(text: str) -> None:
    try:
        result = fetch(Puts(text), "/tmp/x", "http://lb", PATHS)
    except LoadOutputError as error:
        printed = str(error)
    else:
        assert tuple(one.path for one in result) == PATHS
        return
    assert printed.startswith("lb: engine.lua: ")
    assert len(printed) < 1000


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n[:9])
@pytest.mark.parametrize("key", ["status", "length", "crc32", "us"])
def test_a_number_is_one_or_refused(key: str, number: str) -> None:
    text = re.sub(rf'"{key}": [^,}}]+', lambda _: f'"{key}": {number}', line())
    try:
        (result,) = parse_fetched(text, ["/"])
    except ValueError:
        return
    assert 0 <= result.status <= 999
    assert result.bytes >= 0
    assert result.seconds >= 0


class Puts(LocalHost):
    """A host that takes files, or runs the engine here."""

    def __init__(self, answer: str | None = None, setup: str | None = None) -> None:
        super().__init__(answer, setup)
        self.files: dict[str, str] = {}

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        self.files = dict(files)
        if self._answer is None:
            Path(directory).mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (Path(directory) / name).write_text(text)


def test_without_paths_nothing_is_put_or_asked() -> None:
    host = Puts("nonsense")
    assert fetch(host, "/nowhere", "http://lb", []) == ()
    assert host.files == {}


def test_all_that_the_engine_reads_is_put_beside_it() -> None:
    host = Puts(line())
    fetch(host, "/nowhere", "http://lb", ["/"])
    needed = re.findall(r'here \.\. "([a-z0-9]+\.lua)"', host.files["engine.lua"])
    assert {"http.lua", "http2.lua", "multiplex.lua", "tls.lua"} < set(needed)
    assert set(needed) < set(host.files)


def test_what_was_asked_with_is_told() -> None:
    (result,) = fetch(Puts(line()), "/nowhere", "http://lb", ["/"], headers=["Host: a"])
    assert result.headers == ("Host: a",)


def test_a_server_that_is_not_there_refuses_all_paths(tmp_path: Path) -> None:
    """With a blank and quotes in the folder's name, which the shell must not take apart."""
    folder = tmp_path / "a 'folder'"
    host = Puts(setup="ip link set lo up")
    result = fetch(host, str(folder), "http://127.0.0.1:80", ["/a", "/b"])
    assert [(one.path, one.problem, one.status) for one in result] == [
        ("/a", "refused", 0),
        ("/b", "refused", 0),
    ]


def test_a_host_without_luajit_is_an_error(tmp_path: Path) -> None:
    path = shutil.which("luajit")
    assert path, "the machine of this test has it: it is hidden from the host"
    host = Puts(setup=f"mount --bind /dev/null {path}")
    with pytest.raises(CommandError, match=r"^lb: exit code 12[67] of .*luajit"):
        fetch(host, str(tmp_path), "http://127.0.0.1", ["/"])


# A real nginx -------------------------------------------------------------------------------------

NAME = f"t-f{os.getpid() % 10_000}"
LOCATIONS = """
        location = /empty { return 204; }
        location = /nothing { return 200; }
        location = /moved { return 301 /css/site.css; }
        location = /broken { proxy_pass http://127.0.0.1:9; }
"""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    try:
        with connected(lab.up(LabSpec(name=NAME)), connect) as rig:
            configuration = Path(f"/run/intop/lab/{NAME}/host-lb/nginx.conf")
            text = configuration.read_text()
            begin = "listen 80 backlog=65535;"
            assert begin in text
            configuration.write_text(text.replace(begin, begin + LOCATIONS))
            output(rig.load_balancer, rig.cluster.server_restart)
            yield rig
    finally:
        lab.down(NAME)


def asked(rig: Rig, *paths: str, limit_s: float = 20) -> tuple[Fetched, ...]:
    directory = f"{rig.load_generator.address.state_dir}/fetch"
    return fetch(rig.load_generator, directory, rig.cluster.url, paths, limit_s=limit_s)


def test_every_path_of_the_lab_answers_with_its_content(rig: Rig) -> None:
    result = asked(rig, *rig.cluster.static_paths, f"{rig.cluster.dynamic_path}?r=1")
    assert len(result) == 25
    assert {one.complaint for one in result} == {""}
    assert {one.status for one in result} == {200}
    content = Path(f"/run/intop/lab/{NAME}/content")
    for one in result[:-1]:
        body = (content / one.path[1:]).read_bytes()
        assert (len(body), zlib.crc32(body)) == (one.bytes, one.check)
        assert 0 < one.seconds < 10


def test_what_is_wrong_with_a_path_is_told(rig: Rig) -> None:
    good, missing, empty, nothing, moved, broken, after = asked(
        rig, "/css/site.css", "/nosuch", "/empty", "/nothing", "/moved", "/broken", "/css/site.css"
    )
    assert "" == good.complaint == after.complaint
    assert missing.complaint == "answers 404"
    assert empty.complaint == "answers 204 with an empty body"
    assert nothing.complaint == "answers 200 with an empty body"
    assert moved.is_redirect
    assert broken.complaint == "answers 502"


def test_a_server_that_stands_still_is_given_up_in_time(rig: Rig) -> None:
    folder = f"/run/intop/lab/{NAME}/host-lb"
    pids = output(rig.load_balancer, f"ps -o pid= --ppid $(cat {folder}/nginx.pid)").split()
    output(rig.load_balancer, f"kill -STOP {' '.join(pids)}")
    try:
        first, *others = asked(rig, "/css/site.css", "/nosuch", "/empty", limit_s=1)
    finally:
        output(rig.load_balancer, f"kill -CONT {' '.join(pids)}")
    assert first.problem == "timeout"
    assert [one.problem for one in others] == [UNASKED, UNASKED]
