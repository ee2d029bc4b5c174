"""The lab's servers: sshd on every host, nginx on four of them, an application behind three.

The load balancer may have another server in place of nginx.

`prepare` writes keys, content and configurations, `start_all` starts the programs inside the
namespaces, `problems` asks each of them for an answer.
"""

import grp
import http.client
import os
import pwd
import resource
import socket
import sys
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from intop.domain.balancing import Balancing, cpus_of
from intop.domain.server import NGINX, SERVERS
from intop.errors import LabError
from intop.lab import app, content, network, other_servers, own_folders, slow_disk, texts
from intop.lab.certificate import self_signed
from intop.lab.commands import find_program, last_lines, run, start, wait_until

BALANCER = network.BALANCER
BACKENDS = ("b1", "b2", "b3")
WEB_HOSTS = (BALANCER, *BACKENDS)
OPEN_FILES = 65536
LIMIT_S = 20.0
"""How long the servers may take until all of them answer."""
DISKS_FOLDER = Path("/var/lib/intop-lab")
"""A folder for each lab that writes to a disk. /run is in memory, where no write waits for it."""
PRIVILEGE_FOLDER = Path("/run/sshd")
"""sshd insists on this empty folder; a machine without a running sshd may lack it."""


@dataclass(frozen=True)
class Folders:
    """Where things are below a lab's state directory."""

    root: Path

    @property
    def keys(self) -> Path:
        """The client's key, the hosts' keys, and who is known by them."""
        return self.root / "keys"

    @property
    def client_key(self) -> Path:
        """The key that opens every host of the lab."""
        return self.keys / "client"

    @property
    def known_hosts(self) -> Path:
        """The hosts' keys, for the client."""
        return self.keys / "known_hosts"

    @property
    def sudo_password(self) -> Path:
        """What sudo asks for on a machine, in one line."""
        return self.keys / "sudo-password"

    @property
    def content(self) -> Path:
        """The static files, which the backends share."""
        return self.root / "content"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The lab's hosts: each has a folder."""
        return tuple(host for host in network.NUMBERS if self.host(host).is_dir())

    def host(self, host: str) -> Path:
        """Configurations, logs and sockets of one host's servers."""
        return self.root / f"host-{host}"

    def host_state(self, host: str) -> Path:
        """What a host keeps of its own; the namespaces share the machine's file system."""
        return self.host(host) / "state"

    def config_root(self, host: str) -> Path:
        """What stands for / where a host's persistent configuration is: never the machine's own."""
        return self.host(host) / "root"

    @property
    def slow_disk(self) -> Path:
        """On a disk, outside of the state directory; with disk_iops each write waits for it."""
        return DISKS_FOLDER / self.root.name

    def restart_script(self, host: str) -> Path:
        """The program that (re)starts a host's nginx, or the server in its place."""
        return self.host(host) / "server-restart"


# -- writing -------------------------------------------------------------------------------------


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """Write a file that never, not for a moment, has wider permissions than `mode`."""
    file.unlink(missing_ok=True)
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(text)
    file.chmod(mode)


def web_user() -> tuple[str, str]:
    """An account without rights for nginx's workers and the application, and its group."""
    for user in ("www-data", "nginx", "nobody"):
        try:
            return user, grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
        except KeyError:
            continue
    raise LabError("none of the users www-data, nginx, nobody exists: adduser --system www-data")


def open_files_limit() -> int:
    """What nginx's workers may open: root in a container can't go beyond the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)


def make_keys(folders: Folders, subnet: IPv4Network, lab: str, hosts: Collection[str]) -> None:
    """One key for the client, one for each host, and the files that make them known."""
    own_folders.make(folders.keys, 0o700)
    for name in ("client", *(f"host-{host}" for host in hosts)):
        key = ["-t", "ed25519", "-N", "", "-C", f"intop-{lab}-{name}", "-f", name]
        run(["ssh-keygen", "-q", *key[:-1], str(folders.keys / name)])
    write(folders.keys / "authorized_keys", (folders.keys / "client.pub").read_text())
    known = (
        texts.known_hosts_line(
            network.address(subnet, host), (folders.keys / f"host-{host}.pub").read_text()
        )
        for host in hosts
    )
    write(folders.known_hosts, "".join(known))


def prepare(
    lab: str,
    folders: Folders,
    subnet: IPv4Network,
    guests: Collection[str] = (),
    count: int = 1,
    balancing: Balancing = texts.USUAL,
) -> None:
    """Write keys, content and configurations of a lab with `count` load generators.

    Workers may pass through, only root may list.
    A guest has all of its own inside it, and here only a folder.
    """
    own_folders.make(folders.root, 0o711)
    make_keys(folders, subnet, lab, network.hosts(count))
    content.write_static_files(folders.content)
    try:
        use_pam = texts.password_is_locked(Path("/etc/shadow").read_text())
    except OSError:
        use_pam = False
    user = " ".join(web_user())
    files = open_files_limit()
    for host in network.hosts(count):
        folder = folders.host(host)
        own_folders.make(folder, 0o711)
        if host in guests:
            continue
        own_folders.make(folders.host_state(host), 0o700)
        own_folders.make(folders.config_root(host), 0o700)
        own_folders.make(folder / "home", 0o700)
        address = network.address(subnet, host)
        sshd = texts.sshd_config(address, folder, folders.keys, host, use_pam=use_pam)
        write(folder / "sshd.conf", sshd)
    for host in (host for host in WEB_HOSTS if host not in guests):
        folder = folders.host(host)
        starting = texts.nginx_start(find_program("nginx") or "nginx")
        if host != BALANCER:
            text = texts.backend_config(folder, user, folders.content, open_files=files)
            write(folder / "nginx.conf", text)
        elif balancing.server == NGINX.name:
            backends = [network.address(subnet, backend) for backend in BACKENDS]
            _make_disk_and_certificate(folders, balancing)
            text = texts.balancer_config(
                *(folder, user, backends),
                open_files=files,
                balancing=balancing,
                files=folders.content if balancing.serves_files else None,
            )
            write(folder / "nginx.conf", text)
            if balancing.disk_iops:
                slow_disk.limit(lab, folders.slow_disk, balancing.disk_iops)
        else:
            starting = _other_server(folders, subnet, balancing)
        write(folders.restart_script(host), texts.restart_script(starting, folder), 0o700)


def _other_server(folders: Folders, subnet: IPv4Network, balancing: Balancing) -> texts.Start:
    """Write the configuration of the balancer's server; how that is started."""
    user, group = web_user()
    site = other_servers.Site(
        folder=folders.host(BALANCER),
        user=user,
        group=group,
        backends=[network.address(subnet, backend) for backend in backends_of(balancing)],
        files=folders.content if balancing.serves_files else None,
        workers=balancing.workers,
        backlog=balancing.backlog,
        open_files=open_files_limit(),
    )
    server, recipe = SERVERS[balancing.server], other_servers.RECIPES[balancing.server]
    # intop reads it with the rights of the server's user.
    write(site.conf, recipe.conf(site), 0o644)
    return texts.foreground_start(server.title, server.programs, recipe.command(site))


def backends_of(balancing: Balancing) -> tuple[str, ...]:
    """The backends that the balancer passes requests on to."""
    return BACKENDS[: other_servers.H2O_BACKENDS] if balancing.server == "h2o" else BACKENDS


def _make_disk_and_certificate(folders: Folders, balancing: Balancing) -> None:
    """What the balancer's nginx is badly set with beside its configuration.

    Raises LabError where the file system has no attribute for writes that wait for the disk, where
    no tmpfs can be mounted, and for processors that the machine doesn't have.
    """
    if balancing.tls_key_bits:
        write(folders.host(BALANCER) / texts.CERTIFICATE, self_signed(balancing.tls_key_bits))
    mine = os.sched_getaffinity(0)
    if others := [str(n) for n in cpus_of(balancing.server_cpus) if n not in mine]:
        raise LabError(f"server_cpus: this machine has no processors {', '.join(others)}")
    if balancing.access_log == "memory":
        try:
            own_folders.mount_memory(folders.host(BALANCER) / texts.MEMORY_FOLDER, 0o711)
        except LabError as error:
            raise LabError(f'access_log = "memory" needs a tmpfs of its own: {error}') from error
    if balancing.disk_iops or balancing.access_log == "disk":
        disk = folders.slow_disk
        own_folders.make(disk, 0o711)
        (folders.host(BALANCER) / texts.SYNC_FOLDER).symlink_to(disk)
    if balancing.disk_iops:
        try:
            # Files inherit it.
            run(["chattr", "+S", str(disk)])
        except LabError as error:
            raise LabError(
                f"disk_iops needs a file system with attributes, such as ext4, at {disk}: {error}"
            ) from error


def discard_disk(folders: Folders) -> None:
    """Remove what the lab has on the disk, and its limit, if there is any."""
    slow_disk.discard(folders.root.name)
    own_folders.remove(folders.slow_disk)
    with suppress(OSError):  # another lab's is there, or there was none
        DISKS_FOLDER.rmdir()


# -- starting ------------------------------------------------------------------------------------


def start_all(lab: str, folders: Folders, guests: Collection[str] = ()) -> None:
    """Start all servers of the namespaces, detached from this process."""
    user, _ = web_user()
    for host in BACKENDS:  # Python takes longest to start
        folder = folders.host(host)
        program = [sys.executable, "-m", "intop.lab.app"]
        options = ["--socket", str(folder / "app.sock"), "--user", user]
        start(
            network.inside(lab, host, "setsid", "--fork", *program, *options),
            log=folder / "app.log",
            folder=str(Path(__file__).resolve().parents[2]),
        )
    if entering := slow_disk.entering(lab):
        folder = folders.host(BALANCER)
        busy = slow_disk.neighbour(folder / texts.SYNC_FOLDER / "neighbour")
        start([*entering, *network.inside(lab, BALANCER, *busy)], log=folder / "neighbour.log")
    sshd = find_program("sshd") or "sshd"  # sshd starts itself again and wants its full path
    for host in (host for host in folders.hosts if host not in guests):
        folder = folders.host(host)
        options = ["-f", str(folder / "sshd.conf"), "-E", str(folder / "sshd.log")]
        # Who logs in and restarts nginx has the slow disk, too.
        before = entering if host == BALANCER else []
        start([*before, *network.inside(lab, host, sshd, *options)], log=folder / "sshd.log")
    for host in (host for host in WEB_HOSTS if host not in guests):
        script = network.inside(lab, host, "sh", str(folders.restart_script(host)))
        before = entering if host == BALANCER else []
        start([*before, *script], log=folders.host(host) / "server-restart.log")


def wait_for_all(folders: Folders, subnet: IPv4Network, *, limit_s: float = LIMIT_S) -> None:
    """Wait until each server answers. Raises LabError with what the last one lacks."""
    wait_until(lambda: first_problem(folders, subnet), limit_s=limit_s)


def first_problem(folders: Folders, subnet: IPv4Network) -> str | None:
    """None when everything answers."""
    return next(iter(problems(folders, subnet)), None)


def problems(folders: Folders, subnet: IPv4Network) -> list[str]:
    """What does not answer, each with the last lines of its log."""
    found = []
    for host in BACKENDS:
        web = network.address(subnet, host)
        if said := _http_problem(web, f"{app.PATH}?r=1"):
            log = last_lines(folders.host(host) / "app.log")
            found.append(f"{host}: the application {said}{log}")
    for host in WEB_HOSTS:
        if said := _http_problem(network.address(subnet, host), content.static_paths()[0]):
            is_nginx = (folders.host(host) / "nginx.conf").exists()
            log = last_lines(folders.host(host) / ("nginx.log" if is_nginx else "server.log"))
            found.append(f"{host}: {'nginx' if is_nginx else 'its server'} {said}{log}")
    for host in folders.hosts:
        if said := ssh_problem(network.address(subnet, host)):
            log = last_lines(folders.host(host) / "sshd.log")
            found.append(f"{host}: sshd {said}{log}")
    return found


def _http_problem(address: str, path: str) -> str | None:
    connection = http.client.HTTPConnection(address, 80, timeout=2)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException) as problem:
        return f"does not answer at http://{address}{path}: {problem}"
    finally:
        connection.close()
    return None if answer.status == 200 else f"answers {answer.status} at http://{address}{path}"


def ssh_problem(address: str) -> str | None:
    """Why sshd does not greet whoever comes; None when it does."""
    try:
        with socket.create_connection((address, 22), timeout=2) as connection:
            greeting = connection.recv(64)
    except OSError as problem:
        return f"does not answer at {address}: {problem}"
    return None if greeting.startswith(b"SSH-") else f"says {greeting!r} at {address}"


# -- sshd's folder -------------------------------------------------------------------------------


def make_privilege_folder(marker: Path) -> None:
    """Make /run/sshd when it is missing, and remember that it is ours to remove."""
    if PRIVILEGE_FOLDER.is_dir():
        return
    own_folders.check(PRIVILEGE_FOLDER)
    write(marker, "made by intop lab up\n")
    PRIVILEGE_FOLDER.mkdir(mode=0o755)


def remove_privilege_folder(marker: Path, *, sshd_runs: bool) -> None:
    """Undo it, unless an sshd was started on the machine meanwhile and needs it now."""
    if not marker.exists():
        return
    if not sshd_runs and PRIVILEGE_FOLDER.is_dir() and not any(PRIVILEGE_FOLDER.iterdir()):
        PRIVILEGE_FOLDER.rmdir()
    marker.unlink()
