"""SSH on the real thing: the sshds of an embedded lab, and ones with users of their own."""

import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intop.domain.cluster import Cluster, HostAddress, LabSpec, native_arch
from intop.errors import CommandError, UnreachableError
from intop.hosts.host import output
from intop.hosts.ssh import SshHost, connect, connection
from intop.lab import cluster as lab
from kit.studies import wait_for

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
    assert (done.exit_code, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_standard_input_arrives_whole(balancer: SshHost) -> None:
    text = "ä line with 'quotes', $dollars and \\backslashes\n" * 40_000
    assert text == output(balancer, "cat", stdin=text)


GONE = """
for n in 1 2 3 4 5 6 7 8 9; do
    case $(cat /proc/{}/stat 2>/dev/null) in "" | *") Z "*) exit 0 ;; esac
    sleep 0.1
done
exit 1
"""
"""Whether a process has ended, also where nobody buries it."""
ECHO = 'while read -r word; do echo "$word, heard"; echo end; done; exit 3'


def test_a_conversation_goes_on_until_it_is_closed(balancer: SshHost) -> None:
    conversation = balancer.converse(f"echo $$; {ECHO}")
    answers = [conversation.ask(f"{word}\n", "end", 10) for word in ("one", "two", "x" * 50_000)]
    pid, first = answers[0].split("\n")[:2]
    assert first == "one, heard"
    assert answers[1:] == ["two, heard\nend\n", "x" * 50_000 + ", heard\nend\n"]
    assert balancer.run(f"kill -0 {pid}").exit_code == 0
    conversation.close()
    assert balancer.run(GONE.format(pid)).exit_code == 0


def test_what_is_said_after_an_answer_is_kept(balancer: SshHost) -> None:
    """A reader's samples follow its answer: whoever listens late finds both."""
    answered = "sleep 0.3; printf '%s\\n' one end late; sleep 0.3; printf '%s\\n' later"
    conversation = balancer.converse(f"while read -r word; do {answered}; done")
    conversation._send(b"one\n")
    wait_for(lambda: len(conversation._channel.in_buffer) == len("one\nend\nlate\nlater\n"), "all")
    assert conversation.ask("", "end", 10) == "one\nend\n"
    assert conversation.heard() == "late\nlater\n"
    conversation._send(b"two\n")
    wait_for(lambda: len(conversation._channel.in_buffer) == len("one\nend\nlate\nlater\n"), "all")
    assert conversation.ask("", "end", 10) == "one\nend\n"
    assert conversation.ask("three\n", "end", 10) == "late\nlater\none\nend\n"
    conversation.close()


def test_a_conversation_that_ends_or_does_not_answer_is_named(balancer: SshHost) -> None:
    conversation = balancer.converse("read -r word; echo why >&2; exit 3")
    with pytest.raises(UnreachableError, match=r"read ended: why"):
        conversation.ask("one\n", "end", 10)
    with pytest.raises(UnreachableError, match=r"read ended"):
        conversation.ask("two\n", "end", 10)
    assert output(balancer, "echo still there") == "still there\n"
    silent = balancer.converse("exec sleep 600")
    with pytest.raises(CommandError, match=r"no answer within 0\.3 s"):
        silent.ask("one\n", "end", 0.3)
    silent.close()


def test_a_conversation_ends_with_its_connection(cluster: Cluster, balancer: SshHost) -> None:
    other = connect(cluster.load_balancer)
    conversation = other.converse(f"echo $$; {ECHO}")
    pid = conversation.ask("one\n", "end", 10).partition("\n")[0]
    assert balancer.run(f"kill -0 {pid}").exit_code == 0
    other.close()
    assert balancer.run(GONE.format(pid)).exit_code == 0
    with pytest.raises(UnreachableError):
        conversation.ask("two\n", "end", 10)


def test_words_arrive_through_a_real_sshd_as_they_are(balancer: SshHost) -> None:
    """Those that shells, sshd and sudo have taken for something else; more of them without sshd in
    test_hostile_words.py.
    """
    words = ["", " ", "-e", "it's", '"', "\\", "\\n", "$(id)", "`id`", "$HOME", "~", "*", "!", "%h"]
    words += ["a\nb", "a\r", "\x1b[2J", "\x7f", "\u2028", "é🙂", "#", "&&", "x" * 50_000]
    printed = output(balancer, shlex.join(["printf", r"%s\0", *words]))
    assert [*words, ""] == printed.split("\0")


@pytest.mark.parametrize(
    ("command", "stdin"), [("echo a\0b", ""), ("echo \udcff", ""), ("cat", "\udcff")]
)
def test_what_would_not_arrive_is_not_sent(balancer: SshHost, command: str, stdin: str) -> None:
    with pytest.raises(CommandError, match=r"^\S+-lb: .*(NUL|no text)"):
        balancer.run(command, stdin=stdin)


def test_what_is_no_text_or_has_no_end_arrives(balancer: SshHost) -> None:
    assert output(balancer, r"printf '\377\000\r\n'") == "\ufffd\0\r\n"
    endless = output(balancer, r"head -c 10000000 /dev/zero | tr '\000' x")
    assert endless == "x" * 10_000_000


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
    with pytest.raises(
        UnreachableError, match=r"host key is not known: SHA256:.*add it with: echo"
    ):
        connect(refused)


def test_a_changed_host_key_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """The load generator's key, listed as the load balancer's."""
    keys = Path(str(cluster.load_balancer.known_hosts)).read_text().splitlines()
    other = next(line for line in keys if line.startswith(cluster.load_generator.hostname))
    wrong = other.replace(cluster.load_generator.hostname, cluster.load_balancer.hostname, 1)
    known = tmp_path / "known_hosts"
    known.write_text(wrong + "\n")
    with pytest.raises(UnreachableError, match=r"not the known one.*ssh-keygen -f .* -R"):
        connect(replace(cluster.load_balancer, known_hosts=str(known)))


@pytest.mark.parametrize(
    ("changes", "printed"),
    [
        ({"known_hosts": "/nowhere/known_hosts"}, "known_hosts file .* can't be read"),
        ({"port": 23}, "no SSH connection to root@"),
        ({"user": "nobody"}, "refused the key"),
    ],
)
def test_what_keeps_us_out_is_named(
    cluster: Cluster, changes: dict[str, object], printed: str
) -> None:
    address: HostAddress = replace(cluster.load_balancer, **changes)  # type: ignore[arg-type]
    with pytest.raises(UnreachableError, match=printed):
        connect(address)


def test_a_lost_connection_is_named(balancer: SshHost) -> None:
    balancer.close()
    with pytest.raises(UnreachableError, match="connection was lost: it was closed"):
        balancer.run("true")


def test_a_connection_that_ends_during_a_command_is_lost(balancer: SshHost) -> None:
    """Of a command that ends by a signal paramiko says the same, but that is no lost connection."""
    assert balancer.run("kill -9 $$").exit_code == -1
    assert output(balancer, "echo still there") == "still there\n"
    with pytest.raises(UnreachableError, match="connection was lost: "):
        balancer.run("kill -9 $PPID; sleep 5")


# As people have it: their configuration, ports, jump hosts, proxies ------------------------------


@pytest.fixture
def by_config(machine: Any, gateway: Any, tmp_path: Path) -> Callable[..., HostAddress]:
    """An address of which nothing is said but a name; the rest is in a file of OpenSSH's."""
    known = tmp_path / "known_hosts"
    known.write_text(machine.known_hosts.read_text() + gateway.known_hosts.read_text())
    config = tmp_path / "config"

    def made(lines: str, **said: Any) -> HostAddress:
        config.write_text(
            f"UserKnownHostsFile {known}\nIdentityAgent none\n{lines}\n"
            f"Host target\n HostName 127.0.0.1\n Port {machine.port}\n User plain\n"
            f" IdentityFile {machine.key}\n"
            f"Host gate*\n HostName 127.0.0.1\n Port {gateway.port}\n User gateway\n"
            f" IdentityFile {gateway.key}\n"
        )
        named = {"name": "lb", "role": "load-balancer", "ssh_config": str(config), **said}
        return HostAddress(hostname="target", **named)

    return made


def seen_from(address: HostAddress) -> str:
    """The address and port by which the host sees us."""
    host = connect(address)
    try:
        return output(host, "echo $SSH_CONNECTION").rpartition(" ")[2].strip()
    finally:
        host.close()


def connections(machine: Any) -> str:
    log: str = (machine.folder / "sshd.log").read_text()
    return log


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "Host target\n ProxyJump gate",
        "Host target\n ProxyJump gate1,gate2",
        "Host target\n ProxyJump gate2\nHost gate2\n ProxyJump gate1",
    ],
)
def test_the_way_that_the_configuration_says(
    by_config: Callable[..., HostAddress], machine: Any, gateway: Any, lines: str
) -> None:
    before = connections(gateway).count("Accepted publickey for gateway")
    assert str(machine.port) == seen_from(by_config(lines))
    hops = connections(gateway).count("Accepted publickey for gateway") - before
    assert (2 if "gate1" in lines else 1 if lines else 0) == hops


def test_the_address_that_we_come_from(by_config: Callable[..., HostAddress], gateway: Any) -> None:
    """A jump host binds none of ours: it is bound on the way to the first hop."""

    def source(lines: str) -> str:
        host = connect(by_config(lines))
        try:
            return output(host, "echo $SSH_CONNECTION").split()[0]
        finally:
            host.close()

    assert source("Host target\n BindAddress 127.0.0.9") == "127.0.0.9"
    assert source("Host target\n ProxyJump gate\nHost gate\n BindAddress 127.0.0.9") == "127.0.0.1"
    assert "Accepted publickey for gateway from 127.0.0.9" in connections(gateway)
    with pytest.raises(UnreachableError, match=r"no SSH connection to plain@127.0.0.1"):
        connect(by_config("Host target\n BindAddress 192.0.2.1"))


def test_addresses_of_one_family_only(by_config: Callable[..., HostAddress], machine: Any) -> None:
    assert str(machine.port) == seen_from(by_config("Host target\n AddressFamily inet"))
    with pytest.raises(UnreachableError, match=r"no SSH connection to plain@127.0.0.1"):
        connect(by_config("Host target\n AddressFamily inet6"))


def test_an_address_with_a_zone() -> None:
    address = HostAddress(name="lb", role="backend", hostname="fe80::1%lo", ssh_config="none")
    with socket.create_server(("::", 0), family=socket.AF_INET6) as server:
        closed = server.getsockname()[1]
    with pytest.raises(UnreachableError, match=rf"no SSH connection to root@fe80::1%lo:{closed}"):
        connect(replace(address, port=closed))


def test_a_key_of_a_host_that_is_revoked_by_a_list(
    by_config: Callable[..., HostAddress], machine: Any, tmp_path: Path
) -> None:
    revoked = tmp_path / "revoked"
    revoked.write_text((machine.folder / "hostkey.pub").read_text())
    with pytest.raises(
        UnreachableError, match=rf"was refused: its host key is revoked in {revoked}"
    ):
        connect(by_config(f"RevokedHostKeys {revoked}"))
    revoked.write_text("")
    assert str(machine.port) == seen_from(by_config(f"RevokedHostKeys {revoked}"))


def test_a_host_that_is_known_by_another_name(
    by_config: Callable[..., HostAddress], machine: Any, tmp_path: Path
) -> None:
    """As ssh: the other name has no port in known_hosts."""
    address = by_config("HostKeyAlias alias")
    known = tmp_path / "known_hosts"
    key = machine.known_hosts.read_text().partition(" ")[2]
    known.write_text(f"[alias]:{machine.port} {key}")
    with pytest.raises(
        UnreachableError, match=r"host key is not known.*add it with: echo 'alias ssh"
    ):
        connect(address)
    known.write_text(f"alias {key}")
    assert str(machine.port) == seen_from(address)


def test_the_studys_jump_comes_first_and_may_be_an_alias(
    by_config: Callable[..., HostAddress], machine: Any
) -> None:
    address = by_config("Host target\n ProxyJump nowhere.invalid")
    gate = replace(address, name="gate", hostname="gate")
    assert str(machine.port) == seen_from(replace(address, jump=gate))


def test_a_proxy_command(
    by_config: Callable[..., HostAddress], machine: Any, gateway: Any, tmp_path: Path
) -> None:
    """It speaks on standard error, too, and must not outlive the connection."""
    proxy = (
        f"Host target\n ProxyCommand ssh -F none -i {gateway.key} -p {gateway.port} -o "
        f"UserKnownHostsFile={gateway.known_hosts} -l gateway -W %h:%p -v 127.0.0.1"
    )
    host = connect(by_config(proxy))
    text = "x" * 3_000_000
    assert text == output(host, "cat", stdin=text)
    mark = str(gateway.known_hosts).encode()

    def proxies() -> list[str]:
        return [who for who, printed in all_commands() if mark in printed]

    assert len(proxies()) == 1
    host.close()
    assert proxies() == []


def all_commands() -> Iterator[tuple[str, bytes]]:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield str(process), process.read_bytes()


def test_a_proxy_command_that_fails_is_quoted(by_config: Callable[..., HostAddress]) -> None:
    proxy = "Host target\n ProxyCommand echo the proxy is down >&2"
    with pytest.raises(UnreachableError, match=r"lb: no SSH.*ProxyCommand says: the proxy is down"):
        connect(by_config(proxy))


def test_jump_hosts_in_a_circle(by_config: Callable[..., HostAddress]) -> None:
    lines = "Host target\n ProxyJump gate1\nHost gate1\n ProxyJump gate2\n"
    with pytest.raises(UnreachableError, match="in a circle"):
        connect(by_config(lines + "Host gate2\n ProxyJump gate1"))


def test_a_jump_host_that_cannot_reach_the_next(by_config: Callable[..., HostAddress]) -> None:
    with pytest.raises(UnreachableError, match=r"jump host gate: as jump host it can't reach"):
        connect(by_config("Host target\n ProxyJump gate", port=1))


def test_keys_of_hosts_at_other_ports_and_behind_jumps(
    by_config: Callable[..., HostAddress], machine: Any, gateway: Any, tmp_path: Path
) -> None:
    """The gateway's key is listed as the target's; then the lines of the errors are typed."""
    address = by_config("Host target\n ProxyJump gate")
    known = tmp_path / "known_hosts"
    wrong = gateway.known_hosts.read_text().replace(str(gateway.port), str(machine.port))
    known.write_text(gateway.known_hosts.read_text() + wrong)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    for hint in ("remove the old key with: ", "add it with: "):
        with pytest.raises(UnreachableError) as caught:
            connect(address)
        line = str(caught.value).split(hint)[1]
        subprocess.run(["sh", "-euc", line], check=True, capture_output=True)
    assert str(machine.port) == seen_from(address)


@pytest.mark.parametrize(
    ("hostname", "printed"),
    [
        ("nowhere.invalid", r"no SSH connection to root@nowhere.invalid:22: .*by hand: ssh "),
        ("x" * 70 + ".example", r"no SSH connection to root@x+.example:22"),
    ],
)
def test_names_that_lead_nowhere(hostname: str, printed: str) -> None:
    address = HostAddress(name="lb", role="backend", hostname=hostname, ssh_config="none")
    with pytest.raises(UnreachableError, match=printed):
        connect(address)


def test_a_login_shell_that_speaks_unasked(machine: Any) -> None:
    with pytest.raises(CommandError, match=r"the-noisy: its login shell .*Welcome.*chsh"):
        connect(machine.address("noisy"))


def test_a_user_who_may_not_log_in(gateway: Any) -> None:
    with pytest.raises(CommandError, match=r"its login shell .*no login"):
        connect(gateway.address("gateway"))


# Silence -----------------------------------------------------------------------------------------


@contextmanager
def serving(say: bytes, *, every_s: float = 0) -> Iterator[int]:
    """The port of a server that says this and no more, or again and again."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(say)
                while not over.wait(every_s or None):
                    connection.sendall(say)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize(
    ("say", "every_s"),
    [
        (b"", 0),
        (b"SSH-2.0-quiet\r\n", 0),
        (b"x", 0.2),
        (b"a line before the greeting\r\n", 0.05),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", 0),
        (b"\xff\x00\n", 0.05),
    ],
)
def test_a_server_that_does_not_get_to_the_point(
    machine: Any, tmp_path: Path, say: bytes, every_s: float
) -> None:
    config = tmp_path / "config"
    config.write_text("ConnectTimeout 1\n")
    begun = time.monotonic()
    with serving(say, every_s=every_s) as port:
        address = machine.address("plain", port=port, ssh_config=str(config))
        with pytest.raises(UnreachableError, match=rf"no SSH connection to plain@127.0.0.1:{port}"):
            connect(address)
    assert time.monotonic() - begun < 30


def test_a_host_that_falls_silent_is_lost(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sshd is stopped, and TCP does not notice. No timeout of ours is that short."""
    monkeypatch.setattr(connection, "KEEPALIVE_S", 0.5)
    monkeypatch.setattr(connection, "SILENCE_S", 2)
    host = connect(machine.address("plain"))
    try:
        # The one that runs as the user, and the one above it, which runs as root.
        stopped = [int(output(host, "cut -d ' ' -f 4 /proc/$PPID/stat"))]
        stopped.append(int(Path(f"/proc/{stopped[0]}/stat").read_text().split()[3]))
        begun = time.monotonic()
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(
                UnreachableError, match="the SSH connection was lost: no answer for 2 s"
            ):
                host.run("sleep 20", timeout_s=300)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        assert time.monotonic() - begun < 60
    finally:
        host.close()


def test_a_quiet_command_is_not_taken_for_silence(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "KEEPALIVE_S", 0.1)
    monkeypatch.setattr(connection, "SILENCE_S", 1)
    host = connect(machine.address("plain"))
    try:
        assert output(host, "sleep 2; echo done") == "done\n"
    finally:
        host.close()


def test_a_connection_that_another_thread_closes_is_lost_at_once(machine: Any) -> None:
    """So is a load ended that is of no use any more."""
    host = connect(machine.address("plain"))
    closing = threading.Timer(0.5, host.close)
    closing.start()
    with pytest.raises(UnreachableError, match="the SSH connection"):
        host.run("sleep 20", timeout_s=300)
    closing.join()
    host.close()


def test_no_thread_and_no_connection_is_left(machine: Any) -> None:
    before = threading.active_count()
    for _ in range(3):
        host = connect(machine.address("plain"))
        host.close()
    deadline = time.monotonic() + 20
    while threading.active_count() > before:
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.05)
