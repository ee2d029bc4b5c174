"""What a host says of the nginx that runs there."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.errors import CommandError, HostError
from intop.hosts import nginx
from intop.hosts.nginx import UNLIMITED, RunningNginx, parse_running, running
from kit.local_host import LocalHost
from kit.namespace_host import NamespaceHost
from kit.nginx_host import nginx_host

SAYS = """\
master 811
nofile 1024
worker 65536
worker unlimited
unit nginx.service
unit_nofile infinity
version nginx version: nginx/1.22.1 (Debian)
build configure arguments: --with-cc-opt='-g -O2' --with-threads
kernel 6.1.0-30-amd64
cpus 2
page 4096
"""


def test_lines_of_a_word_and_what_it_is_about() -> None:
    result = parse_running(SAYS)
    assert (result.masters, result.nofile, result.workers) == (1, 1024, (65536, UNLIMITED))
    assert (result.unit, result.unit_nofile) == ("nginx.service", UNLIMITED)
    assert result.facts is not None
    assert (
        result.facts.version,
        result.facts.cpus,
        result.facts.page_kib,
        result.facts.nofile,
    ) == ((1, 22, 1), 2, 4, 1024)
    assert "--with-threads" in result.facts.build


def test_a_host_without_nginx() -> None:
    assert RunningNginx(masters=0) == parse_running("kernel 6.1\ncpus 2\npage 4096\n")


def test_a_units_name_is_no_path() -> None:
    assert parse_running(SAYS.replace("unit nginx.", "unit ../x;reboot.")).unit == ""


@pytest.mark.parametrize("line", ["worker many", "nofile -1", "cpus two", "version nginx version:"])
def test_an_answer_that_makes_no_sense_names_the_host(line: str) -> None:
    word = line.partition(" ")[0]
    lines = [line if one.startswith(word + " ") else one for one in SAYS.splitlines()]
    with pytest.raises(CommandError, match=r"^lb: its nginx can't be looked at"):
        running(LocalHost("\n".join([*lines, ""])))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[NamespaceHost]:
    with nginx_host(tmp_path) as (made, _):
        yield made


def test_the_limits_of_a_real_one(host: NamespaceHost) -> None:
    result = running(host)
    assert result.masters == 1
    assert (result.nofile,) == result.workers
    assert result.facts is not None
    assert os.cpu_count() == result.facts.cpus


def test_a_configuration_that_makes_no_sense_names_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nginx, "server_conf", lambda _host: ["events {\n"])
    with pytest.raises(HostError, match=r"^lb: nginx -T:1: "):
        nginx.what_it_reads(LocalHost())
