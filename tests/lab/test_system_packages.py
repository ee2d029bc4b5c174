"""What is installed of the system's packages: only what was asked for, and only what is missing."""

import shutil
from pathlib import Path

import pytest

from intop.lab import commands
from kit.commands import ran
from kit.postgres import binaries

SCRIPT = Path(commands.__file__).with_name("system-packages.sh")
CLUSTERS = Path("/etc/postgresql-common/createcluster.d/intop.conf")


def asked(
    tmp_path: Path, words: str, hidden: tuple[str, ...], there: tuple[str, ...] = ()
) -> tuple[int, str, list[str]]:
    """Exit code, message and calls of apt-get, on a machine that lacks the `hidden` programs.

    apt-get is a script that notes what it is called with: the real one would change this machine.
    Those programs that are to be `there` are empty ones. What PostgreSQL's package would read when
    it is installed is among the calls.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in there:
        (folder / name).touch(mode=0o755)
    calls = tmp_path / "calls"
    apt = folder / "apt-get"
    apt.write_text(
        f'#!/bin/sh\necho "$*" >> {calls}\ncat {CLUSTERS} >> {calls} 2>/dev/null\n'
        "test -x /usr/sbin/policy-rc.d\n"
    )
    apt.chmod(0o755)
    paths = [shutil.which(name) for name in hidden]
    assert all(paths), f"{hidden}: the machine of this test has them: {paths}"
    mounts = "".join(f"mount --bind /dev/null {path}; " for path in paths)
    script = f"{mounts}PATH={folder}:$PATH exec sh {SCRIPT} {words}"
    done = ran("unshare", "--mount", "sh", "-c", script)
    made = calls.read_text().splitlines() if calls.exists() else []
    return done.returncode, done.stderr, made


@pytest.mark.parametrize(
    ("words", "hidden", "packages"),
    [
        ("lab", ("luajit", "nginx"), "nginx luajit"),
        ("lab", ("luajit",), "luajit"),
        ("lab guests", ("qemu-system-aarch64",), "qemu-system-arm"),
    ],
)
def test_what_is_missing_is_installed_and_nothing_is_started(
    tmp_path: Path, words: str, hidden: tuple[str, ...], packages: str
) -> None:
    policy = Path("/usr/sbin/policy-rc.d")
    before = policy.exists()
    code, output, calls = asked(tmp_path, words, hidden)
    # apt-get succeeds only while services are kept from being started.
    assert code == 0, output
    assert calls == ["update -qq", f"install -y -qq --no-install-recommends {packages}"]
    assert before == policy.exists()


def test_postgresql_makes_no_cluster_when_it_is_installed(tmp_path: Path) -> None:
    there = ("sudo", "systemd-run", "tuned-adm", "chromium")
    code, output, calls = asked(tmp_path, "tests", (str(binaries() / "postgres"),), there)
    assert code == 0, output
    no_cluster = "create_main_cluster = false"
    wanted = "install -y -qq --no-install-recommends postgresql"
    assert ["update -qq", no_cluster, wanted, no_cluster] == calls
    assert not CLUSTERS.exists()


@pytest.mark.parametrize(("words", "hidden"), [("", ("luajit", "nginx")), ("lab", ())])
def test_what_is_not_needed_or_there_is_left_alone(
    tmp_path: Path, words: str, hidden: tuple[str, ...]
) -> None:
    assert asked(tmp_path, words, hidden) == (0, "", [])


def test_a_machine_is_installed_by_mmdebstrap_and_needs_no_other_architecture(
    tmp_path: Path,
) -> None:
    parts = ("mmdebstrap", "mke2fs")
    hidden = tuple(name for name in parts if shutil.which(name))
    there = ("qemu-system-x86_64", "qemu-system-aarch64")
    _, output, calls = asked(tmp_path, "lab machines", hidden, there)
    wanted = "install -y -qq --no-install-recommends mmdebstrap e2fsprogs"
    assert calls == ["update -qq", wanted], output
