"""The machine of a lab, as its tests see it and hurt it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from intop.domain.cluster import Cluster, LabSpec
from intop.errors import HostError
from intop.hosts.host import output
from intop.hosts.ssh import Secret, SshHost, connect
from intop.lab import cluster as lab
from machine.session import FILE, VALUES

PROJECT = Path(__file__).resolve().parents[2]
LEASE_S = 15
"""That of a lab's hosts."""
PROMISED_S = LEASE_S + 5
BOOT_LIMIT_S = 600.0
"""Emulated, with other work on this machine."""
POLL_S = 0.3
MARGIN_S = 2.0
"""What looking takes: a command over SSH by sudo, on an emulated machine."""


@dataclass(frozen=True)
class Machine:
    """`times` takes a fault and the seconds until all was well again."""

    spec: LabSpec
    cluster: Cluster
    password: Secret
    times: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def connected(self) -> Iterator[SshHost]:
        """A connection of its own."""
        host = connect(self.cluster.load_balancer, self.password)
        try:
            yield host
        finally:
            host.close()

    def asked(self, command: str) -> str:
        """What a command prints there, as root, without the last line's end."""
        with self.connected() as host:
            return output(host, command, timeout_s=120).rstrip("\n")

    def values(self) -> dict[str, str]:
        with self.connected() as host:
            return values(host)

    def took(self, fault: str, since: float) -> float:
        """Note and return the seconds since then."""
        seconds = time.monotonic() - since
        self.times.append((fault, seconds))
        return seconds

    # Power

    @property
    def qemu(self) -> int:
        return int(Path(f"/run/intop/lab/{self.spec.name}/host-lb/qemu.pid").read_text())

    def cut_power(self) -> None:
        """What it has not written to its disk is lost."""
        pid = self.qemu
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists(), "QEMU to be dead")

    def switch_on(self) -> None:
        """From the same disk, until everything answers."""
        assert lab.up(self.spec) == self.cluster

    def restart(self) -> None:
        """As its owner does, until everything answers."""
        before, boot = self.qemu, "cat /proc/sys/kernel/random/boot_id"
        old = self.asked(boot)
        self.asked("systemctl reboot >/dev/null 2>&1 &")

        def is_back() -> bool:
            try:
                return self.asked(boot) != old
            except HostError:
                return False

        until(is_back, "the machine to have started again", BOOT_LIMIT_S)
        until(lambda: not lab.status(self.spec.name).problems, "its servers", BOOT_LIMIT_S)
        assert before == self.qemu

    # Sessions

    def wait_for_values(
        self, process: "subprocess.Popen[str]", are_there: Callable[[dict[str, str]], bool]
    ) -> None:
        """Until a command has set values, which it does before it ends.

        Looked for seldom: each look takes the machine's one processor from what is waited for.
        """
        with self.connected() as host:

            def are_set() -> bool:
                assert process.poll() is None, process.communicate()
                return are_there(values(host))

            until(are_set, "values of a command", BOOT_LIMIT_S, poll_s=2)

    @contextmanager
    def session(self, *kinds: str) -> Iterator["Session"]:
        """A controller that has taken it, and set VALUES, and what `kinds` ask for."""
        process = subprocess.Popen(
            [sys.executable, "-m", "machine.session", self.spec.name, *kinds],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        made = Session(process)
        try:
            made.hear("taken")
            made.does("write")
            yield made
        finally:
            made.kill()

    def given_back(self, host: SshHost, before: dict[str, str], since: float, fault: str) -> None:
        """Wait until it is as it was, which has to be in time."""
        until(lambda: values(host) == before, f"{fault}: the host to be given back")
        assert self.took(fault, since) < PROMISED_S + MARGIN_S

    def watchdog(self, host: SshHost) -> tuple[str, int]:
        """The unit of the watchdog and its process, which is 0 while there is none."""
        units = output(
            host, "systemctl list-units --all --plain --no-legend 'intop-guard-*' | cut -d' ' -f1"
        ).split()
        if not units:
            return "", 0
        return units[0], int(output(host, f"systemctl show -P MainPID {units[0]}"))


@dataclass(frozen=True)
class Session:
    """A controller in a process of its own."""

    process: "subprocess.Popen[str]"

    def tell(self, step: str) -> None:
        """Without waiting for it."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{step}\n")
        self.process.stdin.flush()

    def does(self, step: str) -> None:
        self.tell(step)
        self.hear(f"done {step}")

    def hear(self, expected: str) -> None:
        """Its answer; it fails by itself when something hangs, since the host has time limits."""
        assert self.process.stdout is not None
        heard = self.process.stdout.readline().rstrip("\n")
        if heard != expected:
            self.process.kill()
            _, text = self.process.communicate()
            raise AssertionError(f"{expected!r} expected, heard {heard!r}: {text}")

    def stop(self) -> float:
        """It stands still: no sign of life any more. When that was."""
        self.process.send_signal(signal.SIGSTOP)
        return time.monotonic()

    def kill(self) -> float:
        """Its death, and when that was."""
        self.process.kill()
        since = time.monotonic()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        self.process.wait()
        return since


def values(host: SshHost) -> dict[str, str]:
    """Of the keys of VALUES, what they are."""
    text = output(host, f"sysctl -n {' '.join(VALUES)}").splitlines()
    return dict(zip(VALUES, text, strict=True))


def nginx_files(host: SshHost) -> str:
    """Of each file of nginx's: its name, mode and owner, and the SHA-256 of what is in it."""
    result = "find /etc/nginx -type f -o -type l | sort"
    return output(host, f"{result} | xargs stat -c '%n %A %u %g'; {result} | xargs sha256sum")


def workers(host: SshHost) -> int:
    """How many processes of nginx serve."""
    return len(output(host, "pgrep -x -f 'nginx: worker process' || :").split())


def left(host: SshHost) -> str:
    """Whatever is there of an apply or a session: record, lock, file."""
    return output(
        host,
        "cd /var/lib/intop 2>/dev/null && ls -d lock making.* applied.* restoring.* unrestored.* "
        f"undone.* {FILE} {FILE}.* /etc/systemd/system/*intop* /etc/systemd/system/*/*intop* "
        "2>/dev/null || :",
    )


def until(
    condition: Callable[[], bool], what: str, limit_s: float = 120.0, poll_s: float = POLL_S
) -> None:
    """Wait for it, with a generous limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {limit_s:g} s for {what}"
        time.sleep(poll_s)


def serves_again(host: SshHost) -> None:
    """Sshd may answer before nginx."""
    is_active = "systemctl is-active nginx || :"
    until(lambda: output(host, is_active).strip() == "active", "nginx", BOOT_LIMIT_S)
