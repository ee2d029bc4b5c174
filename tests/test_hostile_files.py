"""Studies, catalogues and baselines that somebody made to hurt, or broke: one clear error each."""

import copy
import os
import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intop.config.baselines import load_baselines
from intop.config.catalogue import load_catalogue
from intop.config.source import LARGEST_FILE, LONGEST_LINE, MOST_PROBLEMS
from intop.config.study import load_study
from intop.errors import ConfigurationError
from intop.resources import shipped
from kit.commands import ran

SMALL = """
schema = 1

[[parameter]]
key = "net.core.somaxconn"
kind = "integer"
unit = "connections"
scope = "namespace"
risk = "low"
mechanism = "length of the queue"
document = "kernel"
low = 64
high = 4096
scale = "log"

[[parameter]]
key = "net.ipv4.tcp_congestion_control"
kind = "choice"
unit = ""
scope = "namespace"
risk = "low"
mechanism = "what answers loss"
document = "kernel"
choices = ["cubic", "bbr"]
"""

STUDY = """
[study]
name = "mine"
store = "mine.db"
catalogue = "small.toml"
parameters = ["net.*"]
baselines = "own"

[workload.slt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 2
paths = ["/a", "/b?c=d"]

[budget]
max_steal = 0.2
level = 0.95

[cluster.x86]
url = "http://10.0.0.2:8080"
nginx_restart = "systemctl restart nginx"
static_paths = ["/index.html"]
dynamic_path = "/dynamic"
link = "10 GbE"
programs = ["node"]
machines = ["x86_64"]

[cluster.x86.load_generator]
hostname = "load.example"

[cluster.x86.load_balancer]
hostname = "10.0.0.2"
name = "lb"
port = 22
user = "root"
key_file = "~/.ssh/id_ed25519"
known_hosts = "/etc/ssh/known"
sudo = true
state_dir = "/var/lib/intop"
lease_s = 30
jump = { hostname = "fe80::1", user = "me" }

[[cluster.x86.backends]]
hostname = "b1.example"

[cluster.arm]
lab = "lab"
link = { rate_mbit = 300 }
"""

BASELINE = """
schema = 1
title = "ours"
source = "wiki"

[values]
"net.core.somaxconn" = 8192
"net.ipv4.tcp_rmem" = "4096 131072 16777216"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "small.toml").write_text(SMALL)
    (made / "own").mkdir()
    (made / "own" / "ours.toml").write_text(BASELINE)
    (made / "study.toml").write_text(STUDY)
    return made


def refused(path: Path) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        load_study(path)
    return caught.value.problems


def with_study(folder: Path, text: str | bytes) -> tuple[str, ...]:
    path = folder / "changed.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return refused(path)


def test_the_untouched_files_are_read(folder: Path) -> None:
    """Else all that is refused below may have been refused for something else."""
    assert load_study(folder / "study.toml").name == "mine"
    assert "ours" in load_study(folder / "study.toml").baselines


# Something else than a file -----------------------------------------------------------------------


def asked(path: Path) -> tuple[int, str]:
    """What the command line does about a file; it must not wait for one that never ends."""
    doctor = [sys.executable, "-m", "intop", "doctor", "-c", path]
    done = ran(*doctor, errors="surrogateescape", stdin=subprocess.DEVNULL, timeout=60)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    code, output = asked(tmp_path / "pipe.toml")
    assert (code, output[-40:]) == (2, "pipe.toml: can't be read: Is not a file\n")


def test_a_name_that_is_no_text_is_told_escaped(tmp_path: Path) -> None:
    code, output = asked(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b]0;x\x07.toml")))
    assert code == 2
    assert r"/\udcff\u001b]0;x\u0007.toml: no such file" in output
    assert "\x1b" not in output


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/stdin"])
def test_a_device_is_no_study(name: str) -> None:
    (result,) = refused(Path(name))
    assert result == f"{name}: can't be read: Is not a file"


def test_a_symlink_is_what_it_leads_to(folder: Path, tmp_path: Path) -> None:
    link = folder / "link.toml"
    link.symlink_to(folder / "study.toml")
    assert load_study(link).name == "mine"
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    (result,) = refused(tmp_path / "loop.toml")
    assert result.endswith("loop.toml: can't be read: Too many levels of symbolic links")
    (tmp_path / "gone.toml").symlink_to(tmp_path / "nowhere.toml")
    (result,) = refused(tmp_path / "gone.toml")
    assert result.endswith("gone.toml: can't be read: No such file or directory")


@pytest.mark.parametrize("where", ["catalogue", "baseline"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "text", "empty"])
def test_the_other_files_are_no_exception(tmp_path: Path, where: str, kind: str) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "own" / "ours.toml").write_text(BASELINE)
    (tmp_path / "study.toml").write_text(STUDY)
    path = tmp_path / ("small.toml" if where == "catalogue" else "own/ours.toml")
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xff\xfe" if kind == "text" else b"")
    assert all(problem.startswith(f"{path}: ") for problem in refused(tmp_path / "study.toml"))


# Something else than a study ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (b"\xff\x00", "is not TOML: line 1 is not UTF-8: save it as UTF-8"),
        (STUDY.encode("utf-16"), "is not TOML: it is UTF-16: save it as UTF-8"),
        (
            STUDY.replace("mine", "m\x00ne"),
            "has a NUL character: save it as UTF-8, if it is UTF-16",
        ),
        (STUDY + "x = " + "[" * 100_000, f"is not TOML: line {STUDY.count(chr(10)) + 1} has more"),
        (STUDY + "x = " + "[" * 40_000, "is nested too deeply"),
        (STUDY + "x = " + "{a=" * 10_000, "is nested too deeply"),
        (STUDY + ".".join("a" * 1000) + " = 1\n", "nested too deeply"),
        (STUDY + "x = " + "9" * 5000, "is not TOML: Exceeds the limit"),
        (STUDY + "x = 0x" + "f" * 5000, "cluster.arm.x: is larger than 64 bits"),
        (STUDY + "x = '" + "y" * LONGEST_LINE + "'", "has more than 50000 characters"),
        ("x = 1\n" * (LARGEST_FILE // 6 + 1), "it has more than 4000000 characters"),
        (STUDY + '"a\\u001b[2J" = 1\n', "has a name with the control character U+001B"),
        (STUDY + STUDY, "is not TOML: Cannot declare"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_what_no_file_of_ours_needs_is_refused(
    folder: Path, text: str | bytes, output: str
) -> None:
    result = with_study(folder, text)
    assert any(output in problem for problem in result), result
    assert all(len(problem) < 500 for problem in result)


@pytest.mark.parametrize("name", ["study.toml", "small.toml", "own/ours.toml"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path, name: str, ends: str) -> None:
    (tmp_path / "own").mkdir()
    texts = {"study.toml": STUDY, "small.toml": SMALL, "own/ours.toml": BASELINE}
    for path, text in texts.items():
        mark = "\ufeff" if path == name else ""
        (tmp_path / path).write_bytes(f"{mark}{text}".replace("\n", ends).encode())
    study = load_study(tmp_path / "study.toml")
    assert study.name == "mine"
    assert len(study.catalogue.parameters) == 2
    assert study.baselines["ours"].values["net.core.somaxconn"] == "8192"


def test_the_line_of_a_mistake_is_right_below_a_byte_order_mark(folder: Path) -> None:
    (problem,) = with_study(folder, "\ufeff" + STUDY.lstrip().replace("[study]", "[study]\nx = 1"))
    assert "changed.toml:2: study.x: " in problem


def test_of_many_problems_some_are_told(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text("schema = 1\n" + "[[parameter]]\nkey = 1\n" * 2_000)
    with pytest.raises(ConfigurationError) as caught:
        load_catalogue(tmp_path / "small.toml")
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert caught.value.problems[-1].endswith("and more, which are not told")


def test_a_comment_may_hold_what_looks_like_a_line_end(folder: Path) -> None:
    """The line that is named is the one that an editor shows."""
    (result,) = with_study(folder, STUDY.replace("[study]", "# \u2028\u2028\n[study]\nx = 1"))
    assert "changed.toml:4: study.x: " in result


# Something else than a value ----------------------------------------------------------------------

odd: st.SearchStrategy[Any] = st.recursive(
    st.none().map(lambda _: "")
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.dates()
    | st.sampled_from(["$(id)", "a'b", 'a"b', "a\nb", "\r\n", "\x00", "-x", "..", "~nobody/x", "é"])
    | st.sampled_from([2**63, -(2**63) - 1, 10**4000, float("nan"), float("inf"), "9" * 5000]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def leaves(data: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all tables, lists and values, but of the file itself."""
    inner = data.items() if isinstance(data, dict) else enumerate(data)
    result: list[tuple[Any, ...]] = []
    for key, value in inner:
        result.append((*place, key))
        if isinstance(value, (dict, list)):
            result += leaves(value, (*place, key))
    return result


def changed(data: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made: Any = copy.deepcopy(data)
    inside = made
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return made


@pytest.mark.parametrize(
    ("name", "text"), [("study.toml", STUDY), ("small.toml", SMALL), ("own/ours.toml", BASELINE)]
)
def test_any_value_anywhere_is_taken_or_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    real = tomllib.loads
    plain = real(text)

    @given(st.data())
    def one(data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(leaves(plain)))
        made = changed(plain, place, data.draw(odd))
        monkeypatch.setattr(tomllib, "loads", lambda t: made if t == text else real(t))
        try:
            load_study(folder / "study.toml")
        except ConfigurationError as error:
            problems = error.problems
        else:
            return
        assert all(problem.startswith(str(folder)) for problem in problems)

    one()


NAMES = ["-oProxyCommand=id", "a b", "a\tb", "a\\nb", "$(id)", "`id`", "%h", "a;b", "a'b"]
NAMES += ["a\\u0000b", "a/b", "../b", "a\\u2028b", "\\u202eb", "b\\u0301", "", "*", "~", "x" * 300]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("old", ['hostname = "10.0.0.2"', 'name = "lb"'])
def test_what_is_no_host_is_refused(folder: Path, old: str, name: str) -> None:
    key = old.partition(" ")[0]
    result = with_study(folder, STUDY.replace(old, f'{key} = "{name}"'))
    assert any("load_balancer" in problem for problem in result), result


@pytest.mark.parametrize("name", ["LB", "Lb"])
def test_hosts_are_not_told_apart_by_case_only(folder: Path, name: str) -> None:
    new = f'hostname = "b1.example"\nname = "{name}"'
    result = with_study(folder, STUDY.replace('hostname = "b1.example"', new))
    assert any("two hosts are called" in problem for problem in result), result


def test_two_forms_of_one_letter_are_refused_both(folder: Path) -> None:
    for form in ("NFC", "NFD"):
        letter = unicodedata.normalize(form, "é")
        assert with_study(folder, STUDY.replace('name = "lb"', f'name = "{letter}"'))


SPLITTING = ["/a\\r\\nHost: evil", "/a\\nb", "/a b", "/a\\tb", "/a'b", '/a\\"b', "/a\\u0000", "a"]
SPLITTING += ["/\\u00e4", "/a\\\\b", "/a#b", "/<x>", "/a\\u0085b", "/a\\u2028b", "//é", ""]
SPLITTING += ["/a\\u007f"]


@pytest.mark.parametrize("path", SPLITTING)
@pytest.mark.parametrize("old", ['["/a", "/b?c=d"]', '["/index.html"]', '"/dynamic"'])
def test_what_is_not_one_path_is_refused(folder: Path, old: str, path: str) -> None:
    new = f'["{path}"]' if old.startswith("[") else f'"{path}"'
    result = with_study(folder, STUDY.replace(old, new))
    assert any("path" in problem for problem in result), result


URLS = ["http://$(id)", "http://h:99999", "http://h:0", "http://[::1", "http://", "http://:80"]
URLS += ["http://a b", "http://h\\r\\n", "http://u:p@h", "http://h/x", "http://-h", "http://h'"]
URLS += ["http://h?x", "http://h#x", "http://[1:2]x", "http://h:", "http://h:+5", "http://\\u00e4"]


@pytest.mark.parametrize("url", [*URLS, "ftp://h", "-h"])
def test_what_is_no_url_of_a_server_is_refused(folder: Path, url: str) -> None:
    result = with_study(folder, STUDY.replace("http://10.0.0.2:8080", url))
    assert any("cluster.x86.url" in problem for problem in result), result


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('["/index.html"]', '["a b"]', "cluster.x86.static_paths.0: a path begins with /"),
        ('["/index.html"]', "[1]", "cluster.x86.static_paths.0: input should be a valid string"),
        ('["/index.html"]', "[]", "cluster.x86.static_paths: list should have at least 1 item ("),
        ('hostname = "b1.example"', 'hostname = "-x"', "cluster.x86.backends.0.hostname: must be"),
        ('["/a", "/b?c=d"]', '["/a", "b"]', "workload.slt.paths.1: a path begins with /"),
        ('["net.*"]', "[1]", "study.parameters.0: input should be a valid string"),
        ("[workload.slt]", "[workload.SLT]", "workload.SLT: a workload's name has 1 to 20"),
    ],
)
def test_what_follows_from_a_mistake_is_no_further_one(
    folder: Path, old: str, new: str, expected: str
) -> None:
    (problem,) = with_study(folder, STUDY.replace(old, new))
    assert expected in problem


@pytest.mark.parametrize("url", ["http://h", "https://h.example:8443", "http://[fe80::1]:80"])
def test_a_url_of_a_server_is_taken(folder: Path, url: str) -> None:
    path = folder / "changed.toml"
    path.write_text(STUDY.replace("http://10.0.0.2:8080", url))
    assert url == load_study(path).clusters["x86"][0].url  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('user = "root"', 'user = "-oX"'),
        ('user = "root"', 'user = "a b"'),
        ("/var/lib/intop", "/var/lib\\nintop"),
        ("/var/lib/intop", "/var/lib/\\u0000"),
        ("/var/lib/intop", "var/lib"),
        ("~/.ssh/id_ed25519", "~no-such-user/x"),
        ("~/.ssh/id_ed25519", "/a\\u0000b"),
        ("~/.ssh/id_ed25519", "/a\\nb"),
        ('"mine.db"', '"~no-such-user/x.db"'),
        ('"mine.db"', '"a\\u0000b"'),
        ('"small.toml"', '"a\\u0000b"'),
        ('"small.toml"', '"' + "a" * 300 + '"'),
        ('"own"', '"a\\u0000b"'),
        ('"10 GbE"', '"\\u001b]0;title\\u0007"'),
        ("max_steal = 0.2", "max_steal = nan"),
        ("level = 0.95", "level = nan"),
        ("rate_rps = 100", "rate_rps = inf"),
        ("rate_rps = 100", "rate_rps = 1e400"),
        ("lease_s = 30", "lease_s = nan"),
    ],
)
def test_what_would_hurt_later_is_refused_now(folder: Path, old: str, new: str) -> None:
    assert STUDY.count(old) == 1
    result = with_study(folder, STUDY.replace(old, new))
    assert all(len(problem) < 600 for problem in result)


@pytest.mark.parametrize(
    "choice", ["a'b", "$(id)", "a\\nb", "", " ", "a  b", "`id`", "\\u0007", '\\"', "\\u00e9"]
)
def test_a_choice_is_words_of_the_kernels(tmp_path: Path, choice: str) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace('"bbr"', f'"{choice}"'))
    with pytest.raises(ConfigurationError, match="choices"):
        load_catalogue(path)


KEYS = ["net.core.x\\n", "../etc/passwd", "/etc/passwd", "net..x", "net.core.$(id)", "net.core.x y"]
KEYS += ["net.core.x\\u0000", "net.core.é", "net.core.x/../../y", "net/core/x", "", "net"]


@pytest.mark.parametrize("key", KEYS)
def test_what_is_no_key_is_refused_in_every_file(tmp_path: Path, key: str) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace("net.core.somaxconn", key))
    with pytest.raises(ConfigurationError):
        load_catalogue(path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "ours.toml").write_text(BASELINE.replace("net.core.somaxconn", key))
    with pytest.raises(ConfigurationError):
        load_baselines(tmp_path / "own")


@pytest.mark.parametrize("name", ["Default", "TUNED"])
def test_a_reserved_name_is_reserved_in_capitals(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.toml").write_text(BASELINE)
    with pytest.raises(ConfigurationError, match=f"can't be called {name}"):
        load_baselines(tmp_path)


@pytest.mark.parametrize("value", ['"' + "9" * 5000 + '"', '"a\\u0000"', "nan", "[]", '""', "true"])
def test_what_is_no_value_of_a_baseline_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "ours.toml").write_text(BASELINE.replace("8192", value))
    with pytest.raises(ConfigurationError, match=r"ours\.toml"):
        load_baselines(tmp_path)


def test_the_shipped_files_have_nothing_odd() -> None:
    assert len(load_catalogue(shipped("configs") / "parameters.toml").parameters) > 100
