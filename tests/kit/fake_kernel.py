"""A host whose /proc/sys is a folder of ours, so that guard.sh can be tried out without a kernel's.

It has mounts, a network and processes of its own. Its watchdogs sleep until they are called, and
its commands can be killed at their n-th program.
"""

import base64
import hashlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from intop.domain.cluster import HostAddress
from intop.hosts.guard import script as guard_script
from intop.hosts.host import Completed
from kit.namespace_host import NamespaceHost, wait_until

OWN = {"net/core/somaxconn": "100", "net/ipv4/tcp_fin_timeout": "60", "vm/swappiness": "30"}
RMEM = "net/ipv4/tcp_rmem"
"""A key of the real kernel. It refuses a value for its last number, and has taken the others."""
MAIN, SITE = "nginx.conf", "sites-available/site"
FILES = (MAIN, "sites-enabled/site")
"""As nginx names them; the second one is a link to SITE."""
CONF = """\
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    add_header Main own;
    include sites-enabled/*;
}}
"""
SERVER = """\
server {{
    listen unix:{folder}/s;
    return 200 own;
}}
"""
RESTART = """\
if read -r pid < {folder}/nginx.pid; then
    kill "$pid"
    while [ -e {folder}/nginx.pid ]; do /bin/sleep 0.01; done
fi 2>/dev/null
echo >> {folder}/restarts
exec nginx -p {folder} -e {folder}/error.log -c {folder}/nginx.conf
"""
FOLDERS = ("a", "b")
LEASE = "30"

SETUP = """
set -e
mount -t tmpfs -o mode=755 none /run
mount --bind /proc/sys/{rmem} {folder}/sys/{rmem}
mount --rbind {folder}/sys /proc/sys
mkdir -p {folder}/a {folder}/b
# Room for guard.sh, a session and a record of what stays, with a file in each page.
mount -t tmpfs -o size=512k,mode=700 none {folder}/a
echo ready
exec sleep 100000
"""
SLEEPS = """#!/bin/sh
case $1 in 1 | 60) exec /bin/sleep 100000 ;; esac
exec /bin/sleep 0.02
"""
"""A watchdog of the background looks once and never again."""
AWAKE = """#!/bin/sh
case $1 in 1 | 60) ;; *) exec /bin/sleep 0.02 ;; esac
echo >> {folder}/slept
n=0
while read -r _; do n=$((n + 1)); done < {folder}/slept
[ "$n" -le 3 ]
"""
"""One that is called looks a few times, and then fails to sleep."""
MORTAL = """#!/bin/sh
echo >> {folder}/calls
read -r fatal < {folder}/fatal
while read -r _; do fatal=$((fatal - 1)); done < {folder}/calls
if [ "$fatal" -le 0 ]; then read -r group < {folder}/group; kill -9 -"$group"; fi
exec {program} "$@"
"""
CHANGING = ("mv", "rm", "mkdir", "cat", "sed", "grep", "cp", "sha256sum", "base64")
"""What a command is killed at; what the shell writes itself stands between two of them."""


class FakeKernelHost(NamespaceHost):
    """guard.sh with the state folders a, on a disk that can be filled, and b."""

    def __init__(self, folder: Path, inner: int) -> None:
        self._folder, self._inner = folder, inner
        self.seen: list[str] = []
        self.restart_command = f"sh {self.nginx}/restart"
        self._reader: subprocess.Popen[str] | None = None
        self._impostors: list[subprocess.Popen[bytes]] = []
        self.use("a")

    def use(self, name: str) -> None:
        """The folder that a controller works with from now on."""
        self.address = HostAddress(
            name="lb",
            role="load-balancer",
            hostname="192.0.2.1",
            state_dir=str(self._folder / name),
        )

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        return self.by("calm", command, stdin=stdin, timeout_s=timeout_s)

    def by(
        self, programs: str, command: str, *, stdin: str = "", timeout_s: float = 30.0
    ) -> Completed:
        """With these programs in place of the host's."""
        inside = ["nsenter", "-t", str(self._inner), "-m", "-n", "-p", "sh", "-c"]
        path = f"PATH={self._folder}/{programs}:{self._folder}/calm:$PATH; export PATH; {command}"
        try:
            done = subprocess.run(
                [*inside, path], input=stdin, capture_output=True, text=True, timeout=timeout_s
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"no end of: {command}\n{self.state()}") from error
        return Completed(done.returncode, done.stdout, done.stderr)

    def state(self) -> str:
        """What goes on, for whoever looks into a failure."""
        looks = (
            "ps -eo pid,ppid,pgid,stat,etimes,wchan:20,args",
            f"ls -lR --time-style=full-iso {self._folder}/a {self._folder}/b {self.nginx}",
            f"head -v -n 3 {self._folder}/?/*/[a-z]* {self.nginx}/nginx.pid",
            f"tail -n 20 {self.nginx}/error.log",
        )
        inside = ["nsenter", "-t", str(self._inner), "-m", "-n", "-p", "sh", "-c", "; ".join(looks)]
        return subprocess.run(inside, capture_output=True, text=True, timeout=30).stdout

    def guard(self, name: str, *words: str, stdin: str = "", fatal: int = 0) -> Completed:
        """A verb in folder `name`; at its `fatal`-th program it is killed with all of its own."""
        state = self._folder / name
        command = f"sh {state}/{guard_script.name()} {state} {' '.join(words)}"
        if not fatal:
            return self.by("awake" if words[0] == "watch" else "calm", command, stdin=stdin)
        (self._folder / "calls").write_text("")
        (self._folder / "fatal").write_text(f"{fatal}\n")
        alone = f"echo $$ > {self._folder}/group; exec {command}"
        programs = f"mortal:{self._folder}/awake" if words[0] == "watch" else "mortal"
        return self.by(programs, f"exec setsid -w sh -c {shlex.quote(alone)}", stdin=stdin)

    def watch(self, name: str, token: str, fatal: int = 0) -> int:
        """The exit code of a watchdog that looks a few times."""
        (self._folder / "slept").write_text("")
        return self.guard(name, "watch", token, fatal=fatal).exit_code

    def begin_in(self, name: str, token: str, fatal: int = 0) -> Completed:
        """Of all keys; and of nginx's files, where it runs."""
        paths = "".join(f"{path}\n" for path in (*OWN, RMEM))
        words = ["begin", token, LEASE, "me", "own"]
        if self.nginx.exists():
            paths += "".join(f"{self.nginx / name}\n" for name in FILES)
            words.append(shlex.quote(self.restart_command))
        return self.guard(name, *words, stdin=paths, fatal=fatal)

    # nginx

    @property
    def nginx(self) -> Path:
        """The folder of a real nginx with two files."""
        return self._folder / "nginx"

    def start_nginx(self) -> None:
        """It listens on a socket of the file system, since the network has no address."""
        for name in ("sites-available", "sites-enabled"):
            (self.nginx / name).mkdir(parents=True)
        (self.nginx / FILES[1]).symlink_to("../sites-available/site")
        for name, text in self.own_texts().items():
            (self.nginx / name).write_text(text)
        (self.nginx / SITE).chmod(0o640)
        os.chown(self.nginx / SITE, 0, 33)
        (self.nginx / "restart").write_text(RESTART.format(folder=self.nginx))
        assert self.run(f"sh {self.nginx}/restart > /dev/null 2>&1").exit_code == 0
        wait_until((self.nginx / "nginx.pid").exists, "nginx starts")
        # Its first process may have no title yet, by which the guard knows it. A
        # worker answers later.
        self.serves()

    def own_texts(self) -> dict[str, str]:
        """Of its files, by the names that they have themselves."""
        return {
            MAIN: CONF.format(folder=self.nginx),
            SITE: SERVER.format(folder=self.nginx),
        }

    def texts(self, word: str) -> dict[str, str]:
        """The same with another word that nginx says."""
        return {name: text.replace("own;", f"{word};") for name, text in self.own_texts().items()}

    def files(self) -> dict[str, tuple[str, int, int, int]]:
        """Text, mode and owner of each."""
        result = {}
        for name in (MAIN, SITE):
            path, stat = self.nginx / name, (self.nginx / name).stat()
            result[name] = (path.read_text(), stat.st_mode & 0o7777, stat.st_uid, stat.st_gid)
        return result

    def is_guarded(self, name: str) -> bool:
        """Whether a session, or what is left of one, has this file in its snapshot."""
        line = f"  {self.nginx / name}\n"
        return any(
            (folder / "token").exists() and line in (folder / "files").read_text()
            for state in FOLDERS
            for folder in (self.folder(state) / pending for pending in self.pending(state))
            if (folder / "files").exists()
        )

    def beside(self) -> list[str]:
        """What of ours lies in nginx's folders."""
        return sorted(str(p) for p in self.nginx.rglob(".intop*"))

    def serves(self) -> tuple[str, str]:
        """What nginx says: the word of its first file, and that of the second one."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.nginx / "s"))
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(4096), b"")).decode()
        head, _, body = answer.partition("\r\n\r\n")
        (word,) = [
            line.partition(" ")[2] for line in head.split("\r\n") if line.startswith("Main: ")
        ]
        return word, body

    def write_files(
        self,
        name: str,
        token: str,
        texts: Mapping[str, str | None],
        *,
        keys: str = "",
        by: str = "reload",
        fatal: int = 0,
    ) -> Completed:
        """Give files texts, or None: their own."""
        stdin = keys
        for file, text in texts.items():
            stdin += f"/{(MAIN, SITE).index(file) + 1} {'own' if text is None else sent(text)}\n"
        return self.guard(name, "write", token, by, "2", stdin=stdin, fatal=fatal)

    def folder(self, name: str) -> Path:
        """A state folder, as it is seen from here."""
        return Path(f"/proc/{self._inner}/root{self._folder}/{name}")

    def now(self) -> dict[str, str]:
        """All keys."""
        return {path: (self._folder / "sys" / path).read_text().strip() for path in OWN}

    def rmem(self) -> str:
        """The value of RMEM, which only a process of the host can read."""
        if self._reader is None:
            loop = f"while read -r _; do cat /proc/sys/{RMEM}; done"
            inside = ["nsenter", "-t", str(self._inner), "-m", "-n", "sh", "-c", loop]
            pipe = subprocess.PIPE
            self._reader = subprocess.Popen(inside, stdin=pipe, stdout=pipe, text=True)
        assert self._reader.stdin is not None
        assert self._reader.stdout is not None
        self._reader.stdin.write("\n")
        self._reader.stdin.flush()
        return self._reader.stdout.readline().rstrip("\n")

    def impostor(self, title: str) -> None:
        """A process of a user without rights that is called nginx and has this title."""
        program = self._folder / "impostor/nginx"
        if not program.exists():
            self._folder.chmod(0o755)
            program.parent.mkdir(mode=0o777)
            shutil.copy("/usr/bin/cat", program)
            os.chown(program, 65534, 65534)
        inside = ["nsenter", "-t", str(self._inner), "-m", "-n", "-p"]
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        command = f"exec -a {shlex.quote(title)} {program}"
        self._impostors.append(
            subprocess.Popen([*inside, *user, "bash", "-c", command], stdin=subprocess.PIPE)
        )
        count = len(self._impostors)
        wait_until(lambda: self._count_of(65534) == count, "an impostor shows its title")

    def _count_of(self, user: int) -> int:
        """How many processes called nginx a user has."""
        processes = Path(f"/proc/{self._inner}/root/proc").glob("[0-9]*")
        return sum(
            f"\nUid:\t{user}\t" in text and text.startswith("Name:\tnginx\n")
            for text in ((process / "status").read_text() for process in processes)
        )

    def nginx_title(self) -> str:
        """The title of its first process, which anybody can read."""
        for process in Path(f"/proc/{self._inner}/root/proc").glob("[0-9]*/cmdline"):
            title = process.read_bytes().rstrip(b"\0 ").decode()
            if title.startswith("nginx: master process "):
                return title
        return "nginx: master process nginx"

    def close(self) -> None:
        """End what runs for the host on this machine."""
        for process in (*self._impostors, *filter(None, [self._reader])):
            process.kill()
            process.communicate()

    def set(self, values: Mapping[str, str]) -> None:
        for path, value in values.items():
            (self._folder / "sys" / path).write_text(f"{value}\n")

    def pending(self, name: str) -> list[str]:
        """What in a state folder is still to be restored or given back."""
        there = (path.name for path in self.folder(name).iterdir())
        return [n for n in there if n.startswith(("lock", "restoring.", "unrestored."))]

    def applied(self, name: str) -> list[str]:
        return sorted(path.name for path in self.folder(name).glob("applied.*"))

    def lapse(self, name: str, lease: str = "0") -> None:
        """A lock whose maker died early has no lease yet, and a full disk no room for one."""
        file = self.folder(name) / "lock" / "lease"
        if file.exists() and file.stat().st_size:
            file.write_text(f"{lease}\n")

    def fill(self) -> None:
        self.run(f"cat /dev/zero > {self._folder}/a/full")

    def free(self) -> None:
        (self.folder("a") / "full").unlink(missing_ok=True)

    def processes(self) -> list[int]:
        """Those that nobody waits for, by their numbers here."""
        children = Path(f"/proc/{self._inner}/task/{self._inner}/children")
        pids = [pid for pid in children.read_text().split() if _lives(pid)]
        return [int(p) for p in pids if Path(f"/proc/{p}/comm").read_text() != "nginx\n"]

    def kill_all(self) -> None:
        while pids := self.processes():
            for pid in pids:
                os.kill(pid, signal.SIGKILL)


def sent(text: str) -> str:
    """A text of a file as guard.sh reads it."""
    raw = text.encode()
    return f"{hashlib.sha256(raw).hexdigest()} {base64.b64encode(raw).decode()}"


def _lives(pid: str) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"


@contextmanager
def fake_kernel_host(folder: Path) -> Iterator[FakeKernelHost]:
    """A host in a folder; with its first process all others end."""
    for path, value in {**OWN, RMEM: "", "kernel/random/boot_id": "this-boot"}.items():
        file = folder / "sys" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    _programs(folder / "calm", {"sleep": SLEEPS, "sync": "#!/bin/sh\n"})
    _programs(folder / "awake", {"sleep": AWAKE.format(folder=folder)})
    mortals = {n: MORTAL.format(folder=folder, program=f"/usr/bin/{n}") for n in CHANGING}
    _programs(folder / "mortal", mortals)
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    outer = subprocess.Popen(
        [*words, "sh", "-c", SETUP.format(folder=folder, rmem=RMEM)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert outer.stdout is not None
        assert outer.stdout.readline() == "ready\n"
        (inner,) = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        host = FakeKernelHost(folder, int(inner))
        for name in FOLDERS:
            host.use(name)
            guard_script.install(host)
        try:
            yield host
        finally:
            host.close()
    finally:
        outer.kill()
        outer.wait()


def _programs(folder: Path, texts: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
