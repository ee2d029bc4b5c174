"""A host in a network namespace on which systemd is."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from intop.hosts.host import Completed
from kit.commands import ran
from kit.namespace_host import NamespaceHost, end_processes, wait_until

BOOT = """
set -e
mount -t tmpfs none /run
mount -t tmpfs none /etc/systemd/system
mkdir -p /run/systemd/system /run/user
chmod 700 /run/user
export XDG_RUNTIME_DIR=/run/user
/lib/systemd/systemd --user --unit=basic.target &
exec sleep 600
"""
"""A systemd of its own with nothing to do; one for the whole system would change sysctls."""


class SystemdHost(NamespaceHost):
    """A host on which systemd is: `systemd-run` and `systemctl` speak with one for a user."""

    def __init__(self, host: NamespaceHost, first: int, programs: Path) -> None:
        super().__init__(host._namespace, host.address)
        self._first = first
        self.programs = programs

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        self.seen.append(command)
        settings = f"XDG_RUNTIME_DIR=/run/user PATH={self.programs}:$PATH; export XDG_RUNTIME_DIR"
        words = ["nsenter", "-t", str(self._first), "-m", "-p", "-n", "sh", "-c"]
        words.append(f"{settings}; {command}")
        done = ran(*words, input=stdin, timeout=timeout_s)
        return Completed(done.returncode, done.stdout, done.stderr)


@contextmanager
def systemd_host(host: NamespaceHost, folder: Path) -> Iterator[SystemdHost]:
    """The host with a systemd, whose programs are in the folder."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("systemd-run", "systemctl"):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec /usr/bin/{name} --user "$@"\n')
        program.chmod(0o755)
    words = ["nsenter", f"--net=/run/netns/{host._namespace}"]
    words += ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", BOOT]
    outer = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        listed = ["ps", "--ppid", str(outer.pid), "-o", "pid="]
        wait_until(
            lambda: subprocess.run(listed, capture_output=True).stdout.strip(), "it is started"
        )
        first = int(subprocess.check_output(listed, text=True))
        made = SystemdHost(host, first, programs)
        is_up = "systemctl is-active --quiet basic.target"
        wait_until(lambda: made.run(is_up).exit_code == 0, "systemd is up")
        yield made
    finally:
        end_processes(host)
        outer.wait(timeout=20)
