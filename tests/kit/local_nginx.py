"""A real nginx of its own on loopback, with the servers and the log that a test asks for."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kit.studies import wait_for

TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on, all different."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


@contextmanager
def local_nginx(home: Path, http: str, port: int) -> Iterator[int]:
    """Give the process of an nginx with the block `http`, once it listens on `port`."""
    (home / "nginx.conf").write_text(configuration(home, http))
    process = subprocess.Popen(["nginx", "-p", home, "-e", "error.log", "-c", home / "nginx.conf"])
    try:
        wait_for(lambda: accepts(port), f"nginx on port {port}")
        yield process.pid
    finally:
        process.terminate()
        process.wait(timeout=10)


def configuration(home: Path, http: str) -> str:
    user = "user root;" if os.geteuid() == 0 else ""  # pytest's directories are private
    temporary = " ".join(f"{kind}_temp_path {home}/{kind};" for kind in TEMPORARY)
    return f"""
    {user} daemon off; worker_processes 1; pid {home}/nginx.pid;
    events {{ worker_connections 512; }}
    http {{ {temporary} {http} }}
    """


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    else:
        return True
