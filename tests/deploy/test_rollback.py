"""status and rollback of a real host whose controller was killed; nothing can be written here."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from intop.domain.cluster import Cluster, HostAddress, LabSpec, native_arch
from intop.lab import cluster as lab

NAME = f"t-rb{os.getpid() % 10_000}"
SOMAXCONN, RMEM = "net.core.somaxconn", "net.ipv4.tcp_rmem"
FIN = "net.ipv4.tcp_fin_timeout"
VALUES = {SOMAXCONN: "777", RMEM: "8192 65536 1048576", FIN: "11"}

CONTROLLER = """
import sys, time
from dataclasses import replace
from intop.domain.configuration import Configuration
from intop.hosts.guard import guarded
from intop.hosts.ssh import connect
from intop.lab.cluster import cluster

values = {values!r}
address = replace(cluster({name!r}).load_balancer, lease_s={lease_s})
with guarded(connect(address), values) as session:
    session.apply(Configuration(values))
    print("applied", flush=True)
    time.sleep(600)
"""


class Balancer:
    """The lab's load balancer, and intop as it is typed by somebody who has nothing but a shell."""

    def __init__(self, address: HostAddress, home: Path) -> None:
        self.address = address
        self.lock = Path(address.state_dir) / "lock"
        self._home = home

    def intop(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Without a terminal, in a folder that nothing can be written to."""
        address = self.address
        there = ("--state-dir", address.state_dir, "--known-hosts", str(address.known_hosts))
        host = ("--host", f"root@{address.hostname}:{address.port or 22}")
        return subprocess.run(
            [sys.executable, "-m", "intop", *words, *host, *there, "--key-file", self.key_file],
            cwd=self._home,
            env={"PATH": os.environ["PATH"], "HOME": str(self._home), "TMPDIR": str(self._home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def key_file(self) -> str:
        return str(self.address.key_file)

    def hold(self, lease_s: int) -> None:
        """By a controller that is killed at once."""
        code = CONTROLLER.format(values=VALUES, name=NAME, lease_s=lease_s)
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
        ) as controller:
            try:
                assert controller.stdout is not None
                assert controller.stdout.readline() == "applied\n"
            finally:
                controller.kill()

    def shell(self, command: str) -> str:
        words = ["ip", "netns", "exec", f"intop-{NAME}-lb", "sh", "-c", command]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def values(self) -> dict[str, str]:
        paths = " ".join(key.replace(".", "/") for key in VALUES)
        result = self.shell(f"cd /proc/sys && cat {paths}").splitlines()
        return {key: " ".join(value.split()) for key, value in zip(VALUES, result, strict=True)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    try:
        yield lab.up(LabSpec(name=NAME, arch=native_arch()))
    finally:
        lab.down(NAME)


@pytest.fixture
def balancer(cluster: Cluster, tmp_path: Path) -> Iterator[Balancer]:
    """Afterwards nothing is held any more."""
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", home], check=True)
    try:
        made = Balancer(cluster.load_balancer, home)
        yield made
        assert made.intop("rollback", "--force", "--yes").returncode == 0
    finally:
        subprocess.run(["umount", home], check=True)


def test_a_host_of_a_killed_controller_is_shown_and_given_back(balancer: Balancer) -> None:
    before = balancer.values()
    assert balancer.intop("status").stdout.endswith(f": not held ({balancer.address.state_dir})\n")
    balancer.hold(lease_s=600)
    assert balancer.values() == VALUES

    done = balancer.intop("status")
    assert done.returncode == 0, done.stderr
    assert "held by " in done.stdout
    assert "lease 600 s, last sign of life " in done.stdout
    assert "watchdog alive" in done.stdout
    (answer,) = json.loads(balancer.intop("status", "--json").stdout)
    changed = {c["key"]: (c["before"], c["now"]) for c in answer["result"]["changed"]}
    assert {key: (before[key], VALUES[key]) for key in VALUES} == changed

    os.kill(int((balancer.lock / "watchdog").read_text().partition("-")[0]), signal.SIGKILL)
    assert "WATCHDOG DEAD" in balancer.intop("status").stdout

    # Its lease has not lapsed: nobody can know that it is dead.
    refused = balancer.intop("rollback")
    assert refused.returncode == 1
    assert "left alone: held by " in refused.stdout
    unasked = balancer.intop("rollback", "--force")
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert "Say --yes to roll back all the same" in unasked.stderr
    assert balancer.values() == VALUES

    done = balancer.intop("rollback", "--force", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as before, 3 keys put back" in done.stdout
    assert f"  {SOMAXCONN} = {before[SOMAXCONN]}\n" in done.stdout
    assert before == balancer.values()
    assert ": not held (" in balancer.intop("status").stdout
    again = balancer.intop("rollback")
    assert again.returncode == 0
    assert f"nothing to roll back in {balancer.address.state_dir}" in again.stdout


def test_what_somebody_else_has_set_is_left_alone_without_force(
    balancer: Balancer, wait_for: Callable[[Callable[[], bool], str], None]
) -> None:
    before = balancer.values()
    # On a busy machine the watchdog must not restore the host before it is killed.
    balancer.hold(lease_s=10)
    os.kill(int((balancer.lock / "watchdog").read_text().partition("-")[0]), signal.SIGKILL)
    balancer.shell(f"echo 12 > /proc/sys/{FIN.replace('.', '/')}")

    tries: list[subprocess.CompletedProcess[str]] = []

    def lapsed() -> bool:
        tries.append(balancer.intop("rollback"))
        return "left alone: held by " not in tries[-1].stdout

    wait_for(lapsed, "the lease lapses")
    done = tries[-1]
    assert done.returncode == 1, done.stdout + done.stderr
    # Both other keys, or none: a sign of life that was under way when the controller died arms the
    # watchdog anew, which may put them back before the rollback does.
    assert re.search("NOT as before, [20] keys put back", done.stdout), done.stdout
    message = f"{FIN} was changed by somebody else: intop left 11, it is 12 now"
    (line,) = [line for line in done.stdout.splitlines() if message in line]
    assert message in balancer.intop("status").stdout
    assert before | {FIN: "12"} == balancer.values()
    balancer.shell(line.partition("type there as root: ")[2])
    assert before == balancer.values()


def test_a_host_can_be_given_back_without_intop(balancer: Balancer) -> None:
    before = balancer.values()
    balancer.hold(lease_s=600)
    folder = balancer.address.state_dir
    out = balancer.shell(f"sh {folder}/guard.sh {folder} rollback force")
    assert f"restored\t{SOMAXCONN.replace('.', '/')}\t{before[SOMAXCONN]}" in out
    assert before == balancer.values()
