"""What nginx's processes hold: read on a real host, and understood."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.hosts.processes import Footprint, parse_footprint
from intop.hosts.reader import Reader, Wanted
from kit.local_host import LocalHost


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[LocalHost]:
    """A host with a network namespace of its own, in which nginx runs."""
    (tmp_path / "nginx.conf").write_text(
        f"user root; worker_processes 2; pid {tmp_path}/nginx.pid;\n"
        "events { worker_connections 64; }\n"
        "http { access_log off; server { listen 127.0.0.1:80; } }\n"
    )
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin")
    assert nginx is not None
    setup = f"ip link set lo up; {nginx} -e {tmp_path}/nginx.log -c {tmp_path}/nginx.conf"
    yield LocalHost(setup=setup)
    pid = (tmp_path / "nginx.pid").read_text().strip()
    subprocess.run(["kill", pid], check=True)


def test_all_processes_of_this_namespaces_nginx_are_counted(inside: LocalHost) -> None:
    reader = Reader(inside)
    try:
        result = reader.read(Wanted(footprint=True)).footprint
        assert reader.read(Wanted()).footprint is None
    finally:
        reader.close()
    assert result is not None
    assert result.memory_mib is not None
    assert result.files is not None
    assert result.started_s is not None
    # A master and two workers, each with a dozen files or fewer.
    assert 0.2 < result.memory_mib < 40
    assert 9 <= result.files < 100
    assert 0 < result.started_s < float(Path("/proc/uptime").read_text().split()[0])
    assert result.host_files > result.files


def test_without_nginx_the_hosts_files_are_known_alone() -> None:
    result = parse_footprint(["files 1200 0 9223372036854775807"])
    assert Footprint(memory_mib=None, files=None, started_s=None, host_files=1200) == result


def test_processes_are_added_up() -> None:
    lines = ["files 1200 100 999", "nginx 2048 9 5000", "nginx 1024 20 5300"]
    assert Footprint(memory_mib=3.0, files=29, started_s=53.0, host_files=1100) == (
        parse_footprint(lines)
    )


@pytest.mark.parametrize(
    "lines",
    [
        ["nginx 1 2 3"],
        ["files 1 2"],
        ["files 1 0 9", "nginx 1 2"],
        ["files 1 0 9", "nginx 1 -2 3"],
        ["files 1 0 9", "sshd 1 2 3"],
        [],
    ],
)
def test_what_makes_no_sense_is_refused(lines: list[str]) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse_footprint(lines)
