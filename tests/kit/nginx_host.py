"""A host in a network namespace with a real nginx, and a controller of it that dies somewhere.

Run as a program, it is that controller: FOLDER, namespace, lease in s, number of the command,
moment.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from builders.nginx_files import catalogue
from intop.domain.cluster import HostAddress
from intop.domain.configuration import DEFAULT, Configuration
from intop.errors import NginxRefusedError
from intop.hosts.guard import guarded
from intop.hosts.host import Completed, Host
from intop.hosts.nginx_files import TunableNginx, tunable_nginx
from kit.namespace_host import FIN, SOMAXCONN, NamespaceHost, namespace_host, wait_until

MAIN = """\
# A comment \u2013 with more than ASCII.
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{
    worker_connections 128;
}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/sites-enabled/*;
}}
"""
SITE = """\
upstream backends {{ server 127.0.0.1:1; }}
server {{
    listen 127.0.0.1:80 backlog=100;\r
    keepalive_timeout 65;
    location / {{ proxy_pass http://backends; }}
}}"""
RESTART = """\
folder={folder}
if read -r pid < $folder/nginx.pid; then
    kill "$pid"
    while [ -e $folder/nginx.pid ]; do sleep 0.01; done
fi 2>/dev/null
exec nginx -p $folder -e $folder/error.log -c $folder/nginx.conf
"""

ONE = {
    SOMAXCONN: "777",
    "nginx:main.worker_processes": "2",
    "nginx:listen.backlog": "2000",
    "nginx:http.keepalive_timeout": "20",
}
"""Both kinds; a reload is enough."""
TWO = {FIN: "11", "nginx:listen.rcvbuf": "64"}
"""For this nginx has to be restarted."""
MOMENTS = ("before", "sent", "within", "after")
WITHIN_S = 0.12
"""So long after it was sent a write is at work."""


def files(folder: Path) -> dict[str, tuple[bytes, int, int, int]]:
    """Bytes, mode and owner of what nginx reads, by name."""
    names = ("nginx.conf", "sites-available/site")
    result = {}
    for name in names:
        stat = (folder / name).stat()
        result[name] = ((folder / name).read_bytes(), stat.st_mode, stat.st_uid, stat.st_gid)
    assert (folder / "sites-enabled/site").is_symlink()
    return result


def restart_command(folder: Path) -> str:
    return f"sh {folder}/restart"


def start(host: NamespaceHost, folder: Path) -> None:
    """Write nginx's files and start it."""
    for name in ("sites-available", "sites-enabled"):
        (folder / name).mkdir(parents=True)
    (folder / "sites-enabled/site").symlink_to("../sites-available/site")
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
    (folder / "sites-available/site").write_bytes(SITE.format().encode())
    (folder / "sites-available/site").chmod(0o640)
    os.chown(folder / "sites-available/site", 0, 33)
    (folder / "restart").write_text(RESTART.format(folder=folder))
    # A daemon would hold the pipes of our command.
    started = host.run(f"ip link set lo up && {restart_command(folder)} > /dev/null 2>&1")
    assert started.exit_code == 0, (folder / "error.log").read_text()
    wait_until(lambda: workers(host) == 1, "nginx serves")


def listens(host: NamespaceHost) -> str:
    """The backlog of nginx's socket, which is what somaxconn and its own option leave."""
    return host.run("ss -Hltn sport = :80").stdout.split()[2]


def workers(host: NamespaceHost) -> int:
    """Those that do not end."""
    count = 0
    for pid in host.processes():
        with suppress(OSError):
            title = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")
            count += title == b"nginx: worker process"
    return count


@contextmanager
def nginx_host(folder: Path, number: int = 0) -> Iterator[tuple[NamespaceHost, Path]]:
    """A host, and the folder of its nginx."""
    with namespace_host(folder, number) as host:
        start(host, folder / "nginx")
        yield host, folder / "nginx"


class Mortal(NamespaceHost):
    """Its controller dies at the `left`-th of its commands; those of the lease don't count."""

    def __init__(self, namespace: str, address: HostAddress, left: int, moment: str) -> None:
        super().__init__(namespace, address)
        self._left, self._moment = left, moment

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        if threading.current_thread() is not threading.main_thread():
            return super().run(command, stdin=stdin, timeout_s=timeout_s)
        self._left -= 1
        if self._left:
            return super().run(command, stdin=stdin, timeout_s=timeout_s)
        if self._moment == "before":
            die()
        if self._moment == "after":
            super().run(command, stdin=stdin, timeout_s=timeout_s)
            die()
        pipe = subprocess.PIPE
        sent = subprocess.Popen(self.words(command), stdin=pipe, stdout=pipe, stderr=pipe)
        assert sent.stdin is not None
        sent.stdin.write(stdin.encode())
        sent.stdin.close()
        time.sleep(WITHIN_S if self._moment == "within" else 0)
        die()
        raise AssertionError


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def some_trials(host: Host, nginx: TunableNginx, restart: str) -> None:
    """A configuration with a reload, one with a restart, one that nginx refuses."""
    with guarded(host, [SOMAXCONN, FIN], nginx=nginx, restart=restart) as session:
        for values in (ONE, TWO, ONE | TWO):
            session.apply(Configuration(values))
            session.apply(DEFAULT)
        with suppress(NginxRefusedError):
            session.apply(Configuration({"nginx:http.proxy_busy_buffers_size": "1"}))
        session.apply(DEFAULT)


def main() -> None:
    folder, namespace, lease, left, moment = sys.argv[1:]
    address = HostAddress(
        name="lb", role="load-balancer", hostname="192.0.2.1", state_dir=f"{folder}/state"
    )
    address = replace(address, lease_s=float(lease))
    host = Mortal(namespace, address, int(left), moment)
    some_trials(host, tunable_nginx(host, catalogue()), restart_command(Path(folder) / "nginx"))


if __name__ == "__main__":
    main()
