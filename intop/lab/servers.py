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
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network
from pathlib import Path

from intop.domain.balancing import Balancing, cpus_of
from intop.domain.cluster import LabSpec
from intop.domain.server import NGINX, SERVERS
from intop.errors import LabError
from intop.lab import app, content, network, other_servers, own_folders, slow_disk, state, texts
from intop.lab.commands import find_program, last_lines, run, start, wait_until
from intop.lab.network import BACKENDS, BALANCER
from intop.lab.own_folders import write
from intop.lab.state import Folders, folders_of

WEB_HOSTS = (BALANCER, *BACKENDS)
OPEN_FILES = 65536
LIMIT_S = 20.0
"""Seconds until all servers answer, at most."""
CERTIFICATE_DAYS = 3650
PRIVILEGE_FOLDER = Path("/run/sshd")
"""sshd insists on this empty folder; a machine without a running sshd may lack it."""


# -- writing -------------------------------------------------------------------------------------


def web_user() -> tuple[str, str]:
    """Return an account without rights for nginx's workers and the application, and its group."""
    for user in ("www-data", "nginx", "nobody"):
        try:
            return user, grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
        except KeyError:
            continue
    raise LabError("none of the users www-data, nginx, nobody exists: adduser --system www-data")


def open_files_limit() -> int:
    """Return how many files nginx's workers may open, within the hard limit of a container."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)


def make_keys(folders: Folders, subnet: IPv4Network, lab: str, hosts: Collection[str]) -> None:
    """Make one key for the client, one for each host, and the files that make them known."""
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


def prepare(spec: LabSpec, subnet: IPv4Network) -> None:
    """Write keys, content and configurations of a lab.

    Workers may pass through, only root may list.
    A guest has all of its own inside it, and here only a folder.
    """
    folders, guests = folders_of(spec.name), network.guests_of(spec)
    hosts = network.hosts(len(spec.client_links))
    own_folders.make(folders.root, 0o711)
    make_keys(folders, subnet, spec.name, hosts)
    content.write_static_files(folders.content, spec.files, spec.waits)
    for host in hosts:
        own_folders.make(folders.host(host), 0o711)
    inside = [host for host in hosts if host not in guests]
    _prepare_sshd(folders, subnet, inside)
    for host in (host for host in WEB_HOSTS if host in inside):
        is_backend = host in BACKENDS
        starting = _backend(spec, folders, host) if is_backend else _balancer(spec, folders, subnet)
        script = texts.restart_script(starting, folders.host(host))
        write(folders.restart_script(host), script, 0o700)


def _prepare_sshd(folders: Folders, subnet: IPv4Network, hosts: Collection[str]) -> None:
    try:
        use_pam = texts.password_is_locked(Path("/etc/shadow").read_text())
    except OSError:
        use_pam = False
    for host in hosts:
        folder = folders.host(host)
        own_folders.make(folders.host_state(host), 0o700)
        own_folders.make(folders.config_root(host), 0o700)
        own_folders.make(folder / "home", 0o700)
        address = network.address(subnet, host)
        sshd = texts.sshd_config(address, folder, folders.keys, host, use_pam=use_pam)
        write(folder / "sshd.conf", sshd)


def _nginx() -> texts.Start:
    return texts.nginx_start(find_program("nginx") or "nginx")


def _backend(spec: LabSpec, folders: Folders, host: str) -> texts.Start:
    """Write a backend's configuration; return how its server is started."""
    folder, user = folders.host(host), " ".join(web_user())
    text = texts.backend_config(
        folder,
        user,
        folders.content,
        open_files=open_files_limit(),
        has_more=bool(spec.files),
        has_waits=bool(spec.waits),
    )
    write(folder / "nginx.conf", text)
    return _nginx()


def _balancer(spec: LabSpec, folders: Folders, subnet: IPv4Network) -> texts.Start:
    """Write the load balancer's configuration; return how its server is started."""
    balancing = spec.balancing
    if balancing.server != NGINX.name:
        return _other_server(folders, subnet, balancing)
    _make_disk_and_certificate(folders, balancing)
    text = texts.balancer_config(
        folders.host(BALANCER),
        " ".join(web_user()),
        network.addresses(subnet),
        open_files=open_files_limit(),
        balancing=balancing,
        files=folders.content if balancing.serves_files else None,
    )
    write(folders.host(BALANCER) / "nginx.conf", text)
    if balancing.disk_iops:
        slow_disk.limit(spec.name, folders.slow_disk, balancing.disk_iops)
    return _nginx()


def _other_server(folders: Folders, subnet: IPv4Network, balancing: Balancing) -> texts.Start:
    """Write the configuration of another server than nginx; return how it is started."""
    user, group = web_user()
    site = other_servers.Site(
        folder=folders.host(BALANCER),
        user=user,
        group=group,
        backends=network.addresses(subnet, backends_of(balancing)),
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
    """Return the backends that the balancer passes requests on to."""
    return BACKENDS[: other_servers.H2O_BACKENDS] if balancing.server == "h2o" else BACKENDS


def _make_disk_and_certificate(folders: Folders, balancing: Balancing) -> None:
    """Make what the balancer's nginx needs beside its configuration: disk, memory, certificate.

    Raises LabError where the file system has no attribute for writes that wait for the disk, where
    no tmpfs can be mounted, and for processors that the machine doesn't have.
    """
    if balancing.tls_key_bits:
        write(folders.host(BALANCER) / texts.CERTIFICATE, self_signed(balancing.tls_key_bits))
    mine = os.sched_getaffinity(0)
    if missing := [str(n) for n in cpus_of(balancing.server_cpus) if n not in mine]:
        raise LabError(f"server_cpus: this machine has no processors {', '.join(missing)}")
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


def discard_disk(lab: str) -> None:
    """Remove what the lab has on the disk, and its limit, if there is any."""
    slow_disk.discard(lab)
    own_folders.remove(folders_of(lab).slow_disk)
    with suppress(OSError):  # another lab's is there, or there was none
        state.DISKS_FOLDER.rmdir()


def self_signed(bits: int) -> str:
    """Return an RSA key of so many bits and a certificate that nobody trusts, as one PEM text."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import NameOID

    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "intop lab")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=CERTIFICATE_DAYS))
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return (certificate.public_bytes(serialization.Encoding.PEM) + secret).decode()


# -- starting ------------------------------------------------------------------------------------


def start_all(spec: LabSpec) -> None:
    """Start all servers of the namespaces, detached from this process."""
    lab, folders, guests = spec.name, folders_of(spec.name), network.guests_of(spec)
    user, _ = web_user()
    for host in BACKENDS:  # Python takes longest to start
        folder = folders.host(host)
        program = [sys.executable, "-m", "intop.lab.app"]
        options = ["--socket", str(folder / "app.sock"), "--user", user]
        options += ["--pages", str(folders.content)] if spec.waits else []
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


def wait_for_all(lab: str, subnet: IPv4Network, *, limit_s: float = LIMIT_S) -> None:
    """Wait until each server answers. Raises LabError with what the last one lacks."""
    wait_until(lambda: next(problems(lab, subnet), None), limit_s=limit_s)


def problems(lab: str, subnet: IPv4Network) -> Iterator[str]:
    """Yield what does not answer, each with the last lines of its log."""
    folders = folders_of(lab)
    for host in BACKENDS:
        if problem := _http_problem(network.address(subnet, host), f"{app.PATH}?r=1"):
            log = last_lines(folders.host(host) / "app.log")
            yield f"{host}: the application {problem}{log}"
    for host in WEB_HOSTS:
        if problem := _http_problem(network.address(subnet, host), content.static_paths()[0]):
            is_nginx = (folders.host(host) / "nginx.conf").exists()
            log = last_lines(folders.host(host) / ("nginx.log" if is_nginx else "server.log"))
            yield f"{host}: {'nginx' if is_nginx else 'its server'} {problem}{log}"
    for host in folders.hosts:
        if problem := ssh_problem(network.address(subnet, host)):
            log = last_lines(folders.host(host) / "sshd.log")
            yield f"{host}: sshd {problem}{log}"


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
    """Return why sshd does not greet; None when it does."""
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
