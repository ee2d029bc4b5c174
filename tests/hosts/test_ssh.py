"""SSH on the real thing: the sshds of an embedded lab."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.cluster import Cluster, HostAddress, LabSpec, native_arch
from intop.errors import CommandError, UnreachableError
from intop.hosts.host import output
from intop.hosts.ssh import SshHost, connect
from intop.lab import cluster as lab

NAME = f"t-s{os.getpid() % 10_000}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    try:
        yield lab.up(LabSpec(name=NAME, arch=native_arch()))
    finally:
        lab.down(NAME)


@pytest.fixture
def balancer(cluster: Cluster) -> Iterator[SshHost]:
    host = connect(cluster.load_balancer)
    yield host
    host.close()


def test_exit_code_output_and_error(balancer: SshHost) -> None:
    done = balancer.run("echo out; echo err >&2; exit 7")
    assert (7, "out\n", "err\n") == (done.exit_code, done.stdout, done.stderr)


def test_standard_input_arrives_whole(balancer: SshHost) -> None:
    text = "ä line with 'quotes', $dollars and \\backslashes\n" * 40_000
    assert text == output(balancer, "cat", stdin=text)


def test_words_arrive_through_a_real_sshd_as_they_are(balancer: SshHost) -> None:
    """Those that shells, sshd and sudo have taken for something else; more of them without sshd in
    test_hostile_words.py.
    """
    words = ["", " ", "-e", "it's", '"', "\\", "\\n", "$(id)", "`id`", "$HOME", "~", "*", "!", "%h"]
    words += ["a\nb", "a\r", "\x1b[2J", "\x7f", "\u2028", "é🙂", "#", "&&", "x" * 50_000]
    said = output(balancer, shlex.join(["printf", r"%s\0", *words]))
    assert [*words, ""] == said.split("\0")


def test_what_is_no_text_or_has_no_end_arrives(balancer: SshHost) -> None:
    assert "\ufffd\0\r\n" == output(balancer, r"printf '\377\000\r\n'")
    endless = output(balancer, r"head -c 10000000 /dev/zero | tr '\000' x")
    assert "x" * 10_000_000 == endless


def test_a_command_that_fails_names_host_and_reason(balancer: SshHost) -> None:
    with pytest.raises(CommandError, match=rf"{NAME}-lb: exit code 3 .*no such thing"):
        output(balancer, "echo no such thing >&2; exit 3")


def test_a_command_that_hangs_is_given_up(balancer: SshHost) -> None:
    with pytest.raises(CommandError, match=r"no answer within 0.3 s"):
        balancer.run("sleep 20", timeout_s=0.3)
    assert output(balancer, "echo still there") == "still there\n"


def test_files_are_put_for_their_owner_only(balancer: SshHost) -> None:
    folder = f"{balancer.address.state_dir}/it's a folder; $(true)"
    balancer.put(folder, {"a file": "one\n", "another": "two"})
    assert Path(folder, "a file").read_text() == "one\n"
    assert Path(folder, "another").stat().st_mode & 0o777 == 0o600


def test_through_a_jump_host(cluster: Cluster) -> None:
    through = replace(cluster.load_balancer, jump=cluster.load_generator)
    host = connect(through)
    try:
        namespace = output(host, "readlink /proc/self/ns/net").strip()
    finally:
        host.close()
    command = ["ip", "netns", "exec", f"intop-{NAME}-lb", "readlink", "/proc/self/ns/net"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert namespace == done.stdout.strip()


def test_an_unknown_host_key_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    empty = tmp_path / "known_hosts"
    empty.touch()
    refused = replace(cluster.load_balancer, known_hosts=str(empty))
    with pytest.raises(UnreachableError, match=r"not found in known_hosts.*ssh-keyscan"):
        connect(refused)


def test_a_changed_host_key_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """The load generator's key, listed as the load balancer's."""
    keys = Path(str(cluster.load_balancer.known_hosts)).read_text().splitlines()
    other = next(line for line in keys if line.startswith(cluster.load_generator.hostname))
    wrong = other.replace(cluster.load_generator.hostname, cluster.load_balancer.hostname, 1)
    known = tmp_path / "known_hosts"
    known.write_text(wrong + "\n")
    with pytest.raises(UnreachableError, match=r"not the known one.*ssh-keygen -R"):
        connect(replace(cluster.load_balancer, known_hosts=str(known)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"known_hosts": "/nowhere/known_hosts"}, "known_hosts file .* can't be read"),
        ({"port": 23}, "no SSH connection to root@"),
        ({"user": "nobody"}, "refused the key"),
    ],
)
def test_what_keeps_us_out_is_named(
    cluster: Cluster, changes: dict[str, object], said: str
) -> None:
    address: HostAddress = replace(cluster.load_balancer, **changes)  # type: ignore[arg-type]
    with pytest.raises(UnreachableError, match=said):
        connect(address)


def test_a_lost_connection_is_named(balancer: SshHost) -> None:
    balancer.close()
    with pytest.raises(UnreachableError, match="connection was lost"):
        balancer.run("true")


def test_a_connection_that_ends_during_a_command_is_lost(balancer: SshHost) -> None:
    """Of a command that ends by a signal paramiko says the same, but that is no lost connection."""
    assert balancer.run("kill -9 $$").exit_code == -1
    assert output(balancer, "echo still there") == "still there\n"
    with pytest.raises(UnreachableError, match="connection"):
        balancer.run("kill -9 $PPID; sleep 5")
