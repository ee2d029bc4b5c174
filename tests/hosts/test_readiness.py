"""What a host has for a campaign, and who else would set its sysctls."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.cluster import Role
from intop.domain.diagnosis import Readiness
from intop.errors import CommandError
from intop.hosts.readiness import NEEDED, packages_of, parse_readiness, readiness
from kit.local_host import LocalHost

SAYS = """untrusted the state folder /a can't be trusted: /a is a symbolic link
can_store
free 71582432
lacks ss
lacks ip
tuner tuned
schedule /etc/cron.d/our sysctls
lockdown integrity
selinux 0
label docker-default (enforce)
"""


def test_lines_of_a_word_and_what_it_is_about() -> None:
    assert Readiness(
        free_mib=69904,
        can_store=True,
        untrusted="the state folder /a can't be trusted: /a is a symbolic link",
        lacks=("ss", "ip"),
        tuners=("tuned",),
        schedules=("/etc/cron.d/our sysctls",),
        confinement="kernel lockdown: integrity, AppArmor: docker-default (enforce)",
    ) == parse_readiness(SAYS)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", ""),
        ("lockdown none", ""),
        ("lockdown confidentiality", "kernel lockdown: confidentiality"),
        ("label unconfined", ""),
        ("label nginx (complain)", ""),
        ("selinux 0\nlabel u:r:t", ""),
        ("selinux 1\nlabel u:r:t:s0", "SELinux enforces, label u:r:t:s0"),
    ],
)
def test_security_modules_are_named_where_they_may_refuse(lines: str, expected: str) -> None:
    assert parse_readiness(f"{lines}\n").confinement == expected


def test_a_host_that_says_nothing_has_nothing() -> None:
    assert Readiness(free_mib=None, can_store=False) == parse_readiness("free \n")


def test_an_answer_that_makes_no_sense_names_the_host() -> None:
    with pytest.raises(CommandError, match=r"^lb: what it has can't be read .*free much"):
        readiness(LocalHost("free much\n"))


def test_programs_come_in_packages() -> None:
    assert packages_of(["ss", "ip", "tr", "stat"]) == "coreutils iproute2"


def at(folder: Path, host: LocalHost | None = None) -> LocalHost:
    host = host or LocalHost()
    host.address = replace(host.address, state_dir=str(folder))
    return host


def test_this_machine_has_what_is_needed(tmp_path: Path) -> None:
    result = readiness(at(tmp_path / "not" / "there yet"))
    assert result.can_store
    assert result.lacks == ()
    assert result.free_mib is not None
    assert abs(result.free_mib - shutil.disk_usage(tmp_path).free / 2**20) < 1024
    assert not (tmp_path / "not").exists()


def test_a_small_disk_and_one_that_is_read_only(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=3m none {tmp_path}"
    small = readiness(at(tmp_path / "state", LocalHost(setup=mount)))
    assert (small.free_mib, small.can_store) == (3, True)
    closed = readiness(at(tmp_path / "state", LocalHost(setup=f"{mount} -o ro")))
    assert not closed.can_store


def test_a_folder_whose_parent_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not readiness(at(tmp_path / "file" / "state")).can_store


@pytest.mark.parametrize("role", ["load-generator", "load-balancer"])
@pytest.mark.parametrize(
    ("owner", "mode", "why"),
    [
        (65534, 0o755, "it belongs to user 65534, and not to root"),
        (0, 0o777, r"others can change what is in it \(mode 777\)"),
        (0, 0o1777, r"others can change what is in it \(mode 1777\)"),
    ],
)
def test_a_folder_that_others_can_change_is_named(
    tmp_path: Path, role: Role, owner: int, mode: int, why: str
) -> None:
    host = at(tmp_path / "state")
    host.address = replace(host.address, role=role)
    (tmp_path / "state").mkdir()
    assert readiness(host).untrusted == ""
    os.chown(tmp_path / "state", owner, owner)
    (tmp_path / "state").chmod(mode)
    assert re.search(f"{tmp_path}/state: {why}", readiness(host).untrusted)


def test_programs_that_are_missing_are_named(tmp_path: Path) -> None:
    # Nothing but a shell and what the question itself takes is on the PATH.
    some = ("sh", "dirname", "df", "cat", "grep", "sed", "sort", "ls")
    for name in some:
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    hide = f"mount -t tmpfs none /usr/sbin; mount -t tmpfs none /sbin; export PATH={tmp_path}"
    result = readiness(at(tmp_path, LocalHost(setup=hide)))
    assert set(NEEDED["load-balancer"]) - set(some) == set(result.lacks)


def test_only_a_load_generator_is_asked_for_the_engines_program(tmp_path: Path) -> None:
    path = shutil.which("luajit")
    assert path, "the machine of this test has it: it is hidden from the host"

    def lacks(role: Role) -> tuple[str, ...]:
        host = at(tmp_path, LocalHost(setup=f"mount --bind /dev/null {path}"))
        host.address = replace(host.address, role=role)
        return readiness(host).lacks

    assert lacks("load-generator") == ("luajit",)
    assert () == lacks("load-balancer") == lacks("backend")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Starts a process of a name."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> None:
        program = tmp_path / name
        shutil.copy(shutil.which("sleep") or "sleep", program)
        started.append(subprocess.Popen([program, "60"]))

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_tuner_that_runs_is_named(tmp_path: Path, running: Callable[[str], None]) -> None:
    running("irqbalance")
    running("bpftune")
    running("tuned-else")
    assert readiness(at(tmp_path)).tuners == ("bpftune",)


def test_what_sets_sysctls_by_the_clock_is_named(tmp_path: Path) -> None:
    setup = """
    mount -t tmpfs none /etc && mkdir /etc/cron.d /etc/systemd /etc/systemd/system || exit
    echo '* * * * * root sysctl -p' > /etc/cron.d/tune
    echo '# sysctl -p, once' > /etc/cron.d/comment
    echo '* * * * * root run-sysctls' > /etc/cron.d/other
    : > /etc/systemd/system/our-sysctl.timer
    """
    result = readiness(at(tmp_path, LocalHost(setup=setup)))
    assert result.schedules == ("/etc/cron.d/tune", "/etc/systemd/system/our-sysctl.timer")
