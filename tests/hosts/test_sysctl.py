import shlex
from pathlib import Path

import pytest

from intop.domain.probing import Reading
from intop.errors import CommandError
from intop.hosts.answers import lines
from intop.hosts.host import Completed
from intop.hosts.sysctl import (
    PROBE,
    WRITE_BACK,
    parse_probe,
    parse_refusals,
    parse_values,
    path_of,
    probe,
    write_back,
)
from kit.commands import ran
from kit.local_host import LocalHost

DATA = Path(__file__).parents[1] / "data" / "hosts"


class FailingHost(LocalHost):
    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        return Completed(1, "", "sh: broken pipe\n")


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem"),
        ("fs.dentry-negative", "fs/dentry-negative"),
        ("net.ipv6.neigh.default.gc_thresh1", "net/ipv6/neigh/default/gc_thresh1"),
    ],
)
def test_path_of_a_key(key: str, path: str) -> None:
    assert path == path_of(key)


@pytest.mark.parametrize(
    "text",
    ["", "net", "net/core/x", "../etc/passwd", "net.core.x y", "net.core.x;id", "a.b\n", "a..b",
     "net.core.$(id)", ".a.b", "a.b.", "/proc/sys/net.x"],
)  # fmt: skip
def test_what_is_no_key_never_becomes_a_path(text: str) -> None:
    with pytest.raises(ValueError, match="not a sysctl key"):
        path_of(text)


def test_values_are_lines_of_path_tab_value() -> None:
    text = "net/ipv4/tcp_rmem\t4096\t131072\t6291456\nnet/core/x\t7\nnet/core/empty\t\nnoise\n"
    rmem = {"net.ipv4.tcp_rmem": "4096 131072 6291456"}
    assert rmem | {"net.core.x": "7", "net.core.empty": ""} == parse_values(lines(text))


def test_values_read_back_have_a_colon_for_the_tab() -> None:
    text = "net/ipv4/tcp_rmem:4096\t131072\t6291456\nnet/core/x:a:b\nnet/core/empty:\n"
    rmem = {"net.ipv4.tcp_rmem": "4096 131072 6291456"}
    assert rmem | {"net.core.x": "a:b", "net.core.empty": ""} == parse_values(lines(text))


def test_a_real_probe_of_a_namespace() -> None:
    result = parse_probe((DATA / "probe-x86-namespace.txt").read_text())
    assert {
        "net.ipv4.tcp_rmem": Reading("writable", "4096 131072 33554432"),
        "net.ipv4.tcp_congestion_control": Reading("writable", "bbr"),
        "net.ipv4.tcp_allowed_congestion_control": Reading("readable", "reno bbr"),
        "net.ipv4.tcp_available_congestion_control": Reading("readable", "reno bbr cubic"),
        "net.core.somaxconn": Reading("writable", "4096"),
        "net.core.netdev_max_backlog": Reading("missing", ""),
        "net.ipv4.ip_local_port_range": Reading("writable", "32768 60999"),
        "vm.swappiness": Reading("writable", "60"),
        "net.ipv4.nosuch": Reading("missing", ""),
        "net.ipv4.conf": Reading("unreadable", ""),
        "kernel.ostype": Reading("readable", "Linux"),
        "net.ipv4.route.flush": Reading("unreadable", ""),
        "vm.dirty_bytes": Reading("writable", "0"),
        "net.ipv4.tcp_tw_reuse": Reading("writable", "2"),
    } == result


@pytest.mark.parametrize("text", ["", "\n", "sh: 1: Syntax error\n", "net/core/x\tperhaps\t7\n"])
def test_lines_that_are_no_readings_say_nothing(text: str) -> None:
    assert parse_probe(text) == {}


def test_probe_asks_this_machine() -> None:
    keys = ["kernel.ostype", "net.ipv4.nosuch", "net.ipv4.ip_local_port_range", "kernel.ostype"]
    result = probe(LocalHost(), keys)
    assert set(keys) == set(result)
    assert Reading("readable", "Linux") == result["kernel.ostype"]
    assert Reading("missing", "") == result["net.ipv4.nosuch"]
    assert len(result["net.ipv4.ip_local_port_range"].value.split()) == 2


def test_a_probe_that_fails_names_the_host() -> None:
    with pytest.raises(CommandError, match=r"(?s)^lb: exit code 1 of `.*sh: broken pipe"):
        probe(FailingHost(), ["kernel.ostype"])


def tree(tmp_path: Path) -> str:
    """Every kind of file that /proc/sys has, and what `PROBE` says of them when it looks there."""
    folder = tmp_path / "net" / "core"
    folder.mkdir(parents=True)
    (folder / "number").write_text("7\n")
    (folder / "vector").write_text("1\t2\t3\n")
    (folder / "lines").write_text("first\nsecond\n")
    (folder / "empty").write_text("")
    (folder / "blank").write_text("\n")
    (folder / "colon").write_text("net/core/number:8\n")
    (folder / "folder").mkdir()
    names = ["blank", "colon", "empty", "folder", "lines", "nosuch", "number", "vector"]
    script = PROBE.replace("cd /proc/sys", f"cd {shlex.quote(str(tmp_path))}")
    asked = "".join(f"net/core/{name}\n" for name in names)
    done = ran("sh", "-c", script, input=asked, check=True)
    assert done.stderr == ""
    return done.stdout


def test_one_probe_tells_every_kind_of_key_apart(tmp_path: Path) -> None:
    assert {
        "net.core.blank": Reading("writable", ""),
        "net.core.colon": Reading("writable", "net/core/number:8"),
        "net.core.empty": Reading("writable", ""),
        "net.core.folder": Reading("unreadable", ""),
        "net.core.lines": Reading("writable", "first"),
        "net.core.nosuch": Reading("missing", ""),
        "net.core.number": Reading("writable", "7"),
        "net.core.vector": Reading("writable", "1 2 3"),
    } == parse_probe(tree(tmp_path))


def test_what_can_only_be_written_cannot_be_read() -> None:
    """This needs root, and writes nothing: the kernel itself refuses to let it be read."""
    keys = ["net.ipv4.route.flush", "net.ipv4.conf", "net.ipv4.ip_forward"]
    result = probe(LocalHost(), keys)
    assert Reading("unreadable", "") == result["net.ipv4.route.flush"]
    assert Reading("unreadable", "") == result["net.ipv4.conf"]
    assert result["net.ipv4.ip_forward"].access == "writable"


# Writing own values -------------------------------------------------------------------------------

KEYS = ["net.ipv4.tcp_sack", "net.ipv4.tcp_rmem", "net.ipv4.tcp_fin_timeout", "net.ipv4.nosuch"]
OTHER_VALUES = """
printf '%s\n' 0 > /proc/sys/net/ipv4/tcp_sack
printf '%s\n' '4097 131072 6291456' > /proc/sys/net/ipv4/tcp_rmem
"""
READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"
OVER_ANOTHER = "mount --bind /proc/sys/vm/dirty_bytes /proc/sys/net/ipv4/tcp_fin_timeout"
"""The kernel prints 0 for dirty_bytes where the ratio is in force, and does not take that back."""


def test_keys_that_take_their_own_values_keep_them() -> None:
    after = "grep . /proc/sys/net/ipv4/tcp_sack /proc/sys/net/ipv4/tcp_rmem >&2"
    host = LocalHost(setup=OTHER_VALUES)
    assert write_back(host, KEYS) == {}
    lines = "".join(f"{path_of(key)}\n" for key in KEYS)
    done = host.run(f"{WRITE_BACK}\n{after}", stdin=lines)
    assert done.stdout == ""
    assert [line.rpartition("/")[2].replace("\t", " ") for line in done.stderr.splitlines()] == [
        "tcp_sack:0",
        "tcp_rmem:4097 131072 6291456",
    ]


def test_the_kernel_says_why_it_refuses() -> None:
    assert write_back(LocalHost(setup=OVER_ANOTHER), KEYS) == {
        "net.ipv4.tcp_fin_timeout": "Invalid argument"
    }
    assert Path("/proc/sys/vm/dirty_bytes").read_text().strip() == "0"


def test_a_tree_that_is_mounted_read_only_refuses_all() -> None:
    host = LocalHost(setup=READ_ONLY)
    assert dict.fromkeys(KEYS[:3], "Read-only file system") == write_back(host, KEYS)
    assert {r.access for r in probe(host, KEYS[:3]).values()} == {"readable"}


def test_without_keys_no_host_is_asked() -> None:
    assert write_back(FailingHost(), []) == {}
    with pytest.raises(CommandError, match=r"(?s)^lb: exit code 1 of `.*sh: broken pipe"):
        write_back(FailingHost(), KEYS)


def test_what_is_said_of_other_keys_is_not_heard() -> None:
    output = LocalHost("net/ipv4/tcp_sack\tno\nnet/ipv4/other\tno\n")
    assert write_back(output, KEYS) == {"net.ipv4.tcp_sack": "no"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("sh: 1: Syntax error\n", {}),
        ("net/core/x\tInvalid argument\n", {"net.core.x": "Invalid argument"}),
        ("net/core/x\t\n", {"net.core.x": "without saying why"}),
        ("net/core/x\tits value is 1\t2 then\nnoise\n", {"net.core.x": "its value is 1 2 then"}),
    ],
)
def test_refusals_are_lines_of_path_tab_words(text: str, expected: dict[str, str]) -> None:
    assert parse_refusals(text) == expected
