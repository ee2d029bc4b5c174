"""A host whose commands run on this machine, in a network namespace of its own.

So that the real guard.sh can be tried out, and only the namespace's keys can change.
"""

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from intop.domain.cluster import HostAddress
from intop.hosts.guard import script as guard_script
from intop.hosts.host import Completed, Conversation, output
from kit.local_host import LocalConversation

SOMAXCONN = "net.core.somaxconn"
FIN = "net.ipv4.tcp_fin_timeout"
RMEM = "net.ipv4.tcp_rmem"
PORTS = "net.ipv4.ip_local_port_range"
CONGESTION = "net.ipv4.tcp_congestion_control"
KEYS = [SOMAXCONN, FIN, RMEM, PORTS, CONGESTION]
LIMIT_S = 60.0
LONG = "600"


class NamespaceHost:
    """A host whose commands run on this machine, in a network namespace."""

    def __init__(self, namespace: str, address: HostAddress) -> None:
        self._namespace = namespace
        self.address = address
        self.seen: list[str] = []

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        self.seen.append(command)
        words = self.words(command)
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=timeout_s)
        return Completed(done.returncode, done.stdout, done.stderr)

    def converse(self, command: str) -> Conversation:
        return LocalConversation(self.address.name, self.words(command))

    def words(self, command: str) -> list[str]:
        return ["ip", "netns", "exec", self._namespace, "sh", "-c", command]

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        output(self, f"umask 077; mkdir -p {directory}")
        for name, text in files.items():
            path = f"{directory}/{name}"
            draft = f"{path}.{threading.get_ident()}"
            output(self, f"umask 077; cat > {draft} && mv {draft} {path}", stdin=text)

    def close(self) -> None:
        pass

    # What the tests ask it for

    @property
    def state(self) -> Path:
        return Path(self.address.state_dir)

    def value(self, key: str) -> str:
        done = self.run(f"cat /proc/sys/{key.replace('.', '/')}")
        assert done.exit_code == 0, done.stderr
        return " ".join(done.stdout.split())

    def values(self) -> dict[str, str]:
        return {key: self.value(key) for key in KEYS}

    def script(self, *words: str, stdin: str = "") -> Completed:
        """guard.sh as a controller of another session would call it."""
        guard_script.install(self)
        command = f"sh {self.state}/{guard_script.name()} {self.state} {' '.join(words)}"
        return guard_script.complete(self, self.run(command, stdin=stdin))

    def begin(self, token: str, lease: str, *keys: str) -> Completed:
        paths = "".join(f"{key.replace('.', '/')}\n" for key in keys)
        return self.script("begin", token, lease, "somebody@elsewhere", "own", stdin=paths)

    def processes(self) -> list[int]:
        words = ["ip", "netns", "pids", self._namespace]
        return [int(pid) for pid in subprocess.check_output(words, text=True).split()]


SCRIPTS = sorted([guard_script.name(), "guard.sh"])
"""What stays in the state folder."""
LISTS = Path("/run/intop-guard")


def identity(pid: int) -> str:
    """A process as guard.sh names it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return f"{pid}-{fields[19]}"


def identity_of_nobody() -> str:
    """That of a process that has ended."""
    gone = subprocess.Popen(["sleep", "600"])
    was = identity(gone.pid)
    gone.kill()
    gone.wait()
    return was


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT_S:g} s: {what}"
        time.sleep(0.05)


def end_processes(host: NamespaceHost) -> None:
    def are_gone() -> bool:
        pids = host.processes()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    # Some start others until they end themselves.
    wait_until(are_gone, "the namespace's processes end")


def set_by_somebody(host: NamespaceHost, key: str, value: str) -> None:
    assert host.run(f"sysctl -qw {key}={shlex.quote(value)}").exit_code == 0


def begun(host: NamespaceHost, *writes: str, keys: Sequence[str] = KEYS, lease: str = LONG) -> None:
    """A session of token-1 that has written these lines."""
    assert host.begin("token-1", lease, *keys).exit_code == 0
    if writes:
        assert host.script("write", "token-1", stdin="\n".join(writes) + "\n").exit_code == 0


def died(host: NamespaceHost) -> None:
    """The session and the watchdog die, and the lease lapses."""
    end_processes(host)
    lapse(host.state / "lock")


def lapse(lock: Path) -> None:
    """The last sign of life is older than the lease, also on a machine that has just booted."""
    (lock / "lease").write_text("0\n")
    (lock / "seconds").write_text("1\n")


def leased(host: NamespaceHost, lease_s: float) -> NamespaceHost:
    host.address = replace(host.address, lease_s=lease_s)
    return host


@contextmanager
def namespace_host(folder: Path, number: int = 0) -> Iterator[NamespaceHost]:
    """A host in a new namespace, whose state folder is in `folder`; its processes are ended.

    Hosts that a test has at the same time have different numbers.
    """
    name = f"t-guard-{os.getpid()}-{number}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    number = Path(f"/run/netns/{name}").stat().st_ino
    address = HostAddress(
        name="lb",
        role="load-balancer",
        hostname="192.0.2.1",
        state_dir=str(folder / "state"),
        config_root=str(folder / "root"),
        lease_s=20.0,
    )
    made = NamespaceHost(name, address)
    try:
        yield made
        end_processes(made)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
        for sessions in LISTS.glob(f"{number}-*"):
            sessions.unlink(missing_ok=True)


@contextmanager
def busy_guard(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is taken for guard.sh with these words."""
    line = ["sh", "-c", "sleep 600; :", "guard.sh", *words]
    process = subprocess.Popen(line, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
