"""Hosts with users of their own: sshd and sudo in a mount namespace, on loopback.

The accounts and what sudo allows them are files of the namespace only, laid over those in /etc:
this machine never has them, and they are gone with the sshd, which dies with the test run.
"""

import ctypes
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from intop.domain.cluster import HostAddress

UID = 61_000
SHELLS = {
    "noisy": "echo Welcome\nexec /bin/sh",
    "gateway": "echo no login >&2; exit 1 #",
    "codes": 'PATH="${0%/*}/fake:$PATH" exec /bin/sh',
    "bare": 'PATH="${0%/*}/without" exec /bin/sh',
    "german": 'PATH="${0%/*}/abroad:${0%/*}/without" exec /bin/sh',
    "traced": "exec /bin/sh -x",
    "permitted": 'PATH="${0%/*}/fake:$PATH" exec /bin/sh',
}
FAKE_SUDO = "#!/bin/sh\nprintf 'Verification code: ' >&2\nread code\n"
"""With a second factor, as PAM asks for it; a real one would be a package of its own."""
FAKE_DOAS = """#!/bin/sh
[ "$1 $2" = "-n --" ] || exit
shift 2
[ "$(id -un)" = permitted ] && exec /usr/bin/sudo -n -- "$@"
echo 'doas: Operation not permitted' >&2
exit 1
"""
"""By sudo, with the words that doas takes. A real one is in few distributions' base."""
FAKE_ENV = "#!/bin/sh\necho 'env: »sudo«: Datei oder Verzeichnis nicht gefunden' >&2; exit 127\n"
"""That of a host whose language is another one."""

USERS = ("asks", "remembers", "free", "plain", "terminal", "some", "few", *SHELLS)
"""What sudo makes of them is in SUDOERS."""

SUDOERS = """\
Defaults use_pty, timestampdir={0}/ts, lecture_status_dir={0}/lectured, logfile={0}/sudo.log
Defaults secure_path=/usr/sbin:/usr/bin:/sbin:/bin
Defaults:asks timestamp_timeout=0
Defaults:remembers timestamp_type=global
Defaults:terminal requiretty
Defaults:traced timestamp_timeout=0
asks,remembers,terminal,traced ALL=(root) ALL
free,permitted ALL=(root) NOPASSWD: ALL
some ALL=(root) NOPASSWD: /usr/bin/id, /usr/sbin/nginx
few ALL=(root) /usr/bin/id
"""

# HOME: the dot files of this machine's users may take long.
# MaxSessions: a command that was given up on keeps its session until it ends.
SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/hostkey
PidFile none
AuthorizedKeysFile {folder}/authorized/%u
TrustedUserCAKeys {folder}/authorized/ca.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
MaxAuthTries 4
MaxSessions 40
SetEnv HOME={folder}
"""

START = """
for file in passwd shadow group sudoers; do mount --bind "$0/etc/$file" "/etc/$file" || exit; done
exec setpriv --pdeathsig KILL /usr/sbin/sshd -D -e -f "$0/sshd_config"
"""


@dataclass(frozen=True)
class Machine:
    """One sshd with users. `key` opens all of them, and `password` is everybody's for sudo."""

    folder: Path
    port: int
    password: str

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def address(self, user: str, **others: object) -> HostAddress:
        """With everything said, and nothing taken from this machine's OpenSSH."""
        output = {
            "name": f"the-{user}",
            "role": "load-balancer",
            "hostname": "127.0.0.1",
            "port": self.port,
            "user": user,
            "key_file": str(self.key),
            "known_hosts": str(self.known_hosts),
            "ssh_config": "none",
        }
        return HostAddress(**{**output, **others})  # type: ignore[arg-type]

    def sudo_log(self) -> str:
        log = self.folder / "sudo.log"
        return log.read_text() if log.exists() else ""


def new_key(file: Path, *words: str, passphrase: str = "") -> Path:
    """A new key pair; the path of the private one."""
    kind = [] if "-t" in words else ["-t", "ed25519"]
    words = ("ssh-keygen", "-q", *kind, *words, "-N", passphrase, "-C", file.name, "-f", str(file))
    subprocess.run(words, check=True)
    return file


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    yield from _machine()


@pytest.fixture(scope="session")
def gateway() -> Iterator[Machine]:
    """Another one, with a host key of its own."""
    yield from _machine()


def _machine() -> Iterator[Machine]:
    folder = Path(tempfile.mkdtemp(prefix="intop-sshd-"))
    folder.chmod(0o755)  # sshd looks for authorized keys as the user
    made = Machine(folder, _free_port(), secrets.token_hex(12))
    try:
        _write(made)
        process = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "sh", "-c", START, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "sshd.log").open("wb"),
            start_new_session=True,
        )
        try:
            _wait(made)
            yield made
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder)


def _write(made: Machine) -> None:
    folder = made.folder
    for name in ("etc", "authorized", "ts", "lectured", "home", "fake", "without", "abroad"):
        (folder / name).mkdir()
    new_key(folder / "hostkey")
    new_key(made.key)
    new_key(folder / "ca")
    shutil.copy(folder / "ca.pub", folder / "authorized" / "ca.pub")
    programs = {name: f'#!/bin/sh\n{script} "$@"\n' for name, script in SHELLS.items()}
    for name in ("env", "sh"):
        (folder / "without" / name).symlink_to(f"/usr/bin/{name}")
    fakes = {"fake/sudo": FAKE_SUDO, "fake/doas": FAKE_DOAS, "abroad/env": FAKE_ENV}
    for name, script in {**programs, **fakes}.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    own = {name: Path("/etc", name).read_text() for name in ("passwd", "shadow", "group")}
    for number, user in enumerate(USERS, UID):
        shell = folder / user if user in SHELLS else Path("/bin/sh")
        own["passwd"] += f"{user}:x:{number}:{UID}::{folder}/home:{shell}\n"
        own["shadow"] += f"{user}:{_hash(made.password)}:19000:0:99999:7:::\n"
        shutil.copy(f"{made.key}.pub", folder / "authorized" / user)
    own["group"] += f"people:x:{UID}:\n"
    own["sudoers"] = SUDOERS.format(folder)
    for name, text in own.items():
        file = folder / "etc" / name
        file.touch(mode=0o600)
        file.write_text(text)
        file.chmod(0o440 if name == "sudoers" else 0o600 if name == "shadow" else 0o644)
    (folder / "sshd_config").write_text(SSHD.format(folder=folder, port=made.port))
    public = " ".join((folder / "hostkey.pub").read_text().split()[:2])
    made.known_hosts.write_text(f"[127.0.0.1]:{made.port} {public}\n")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def _hash(password: str) -> str:
    """As in /etc/shadow, by the library that PAM checks it with."""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    made: bytes = library.crypt(password.encode(), b"$6$rounds=1000$intop")
    return made.decode()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _wait(made: Machine) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            with socket.create_connection(("127.0.0.1", made.port), timeout=2) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            pass
        log = (made.folder / "sshd.log").read_text()
        assert time.monotonic() < deadline, f"sshd does not start: {log}"
        time.sleep(0.05)


def all_processes() -> Iterator[tuple[str, bytes]]:
    """What `ps` could show of every process: its name, words and environment."""
    for process in Path("/proc").glob("[0-9]*"):
        for part in ("cmdline", "environ"):
            try:
                yield str(process), (process / part).read_bytes()
            except OSError:
                continue


@pytest.fixture(scope="session")
def keygen() -> Callable[..., Path]:
    return new_key


@pytest.fixture(scope="session")
def add() -> Callable[[Path, Path], None]:
    return add_to_agent


@pytest.fixture
def everything() -> Callable[[], Iterator[tuple[str, bytes]]]:
    return all_processes


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An agent without keys, which the environment names; its socket."""
    sock = tmp_path / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not sock.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(sock))
        yield sock
    finally:
        process.kill()
        process.wait()


def add_to_agent(sock: Path, key: Path) -> None:
    environment = {**os.environ, "SSH_AUTH_SOCK": str(sock)}
    subprocess.run(["ssh-add", "-q", str(key)], check=True, env=environment)
