"""A user without rights on a host: the processes that he can start there, and what they leave.

His processes are called as a server's are, with titles, users and mount namespaces of his choice.
What of his ever runs says as whom, in a file that anybody may write.
"""

import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from kit.namespace_host import wait_until

USER = 65534
NAMES = ("nginx", "haproxy", "apache2", "lighttpd", "varnishd", "caddy", "h2o")
EVIL = "#!/bin/sh\nid -ru >> {folder}/witness\nid -u >> {folder}/witness\necho\n"
MODULE_CONF = """\
load_module {folder}/evil.so;
pid {folder}/pid;
error_log {folder}/log;
events {{}}
"""
HAPROXY_CONF = "global\n    external-check\nprogram evil\n    command {folder}/evil\n"
LIGHTTPD_CONF = 'include_shell "{folder}/evil"\nserver.document-root = "/"\n'
MASTER, WORKER = "nginx: master process ", "nginx: worker process"

PROGRAMS = ("a copy of cat", "a copy of sh", "a link to cat", "a link to su", "a link to sudo")
"""What is called nginx. The last two are root's own, and have root's rights in part or wholly."""
TITLES = ("a program of his", "options of his", "nginx's own title", "a worker's title")
SPACES = ("none", "a user namespace", "user and mount namespaces")


@dataclass(frozen=True)
class Disguise:
    """How a process looks: the program behind the name, its title, and its own namespaces."""

    program: str
    title: str
    space: str = "none"

    def __str__(self) -> str:
        return f"{self.program}, {self.title}, {self.space}"


DISGUISES = tuple(
    Disguise(*words)
    for words in product(PROGRAMS, TITLES, SPACES)
    # In a user namespace of his own they ask for no password, and become something else.
    if "su" not in words[0] or words[2] == "none"
)


@dataclass
class LocalUser:
    """He is on a host: `inside` are the words that start a command there, by root."""

    folder: Path
    inside: Sequence[str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def evil(self) -> Path:
        """His program, which says as whom it runs."""
        return self.folder / "evil"

    def ran_as(self) -> set[str]:
        """The ids of the users as whom his program has run."""
        return set((self.folder / "witness").read_text().split())

    def put_on(self, disguise: Disguise, real_title: str, name: str = "nginx") -> None:
        """Start a process that looks so, and wait until it does."""
        title = {
            "a program of his": f"{MASTER}{self.evil}",
            "options of his": f"{MASTER}/usr/sbin/nginx -c {self.folder}/evil.conf",
            "nginx's own title": real_title,
            "a worker's title": WORKER,
        }[disguise.title]
        # Each waits for what nobody types. Words of its own would be a part of the title.
        words = "-S true" if disguise.program.endswith("sudo") else ""
        program = self.program(disguise.program, name)
        self.start(f"exec -a {shlex.quote(title)} {program} {words}", disguise)
        wait_until(lambda: self._shows(name, title), f"{disguise} is there")

    def program(self, what: str, name: str) -> Path:
        """A file that is called as the server is."""
        file = self.folder / what.replace(" ", "-") / name
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            kind, _, source = what.rpartition(" ")
            result = shutil.which(source)
            assert result, f"apt-get install {source}"
            if kind.startswith("a copy"):
                shutil.copy(result, file)
                os.chown(file, USER, USER)
            else:
                file.symlink_to(result)
            os.chown(file.parent, USER, USER)
        return file

    def start(self, command: str, disguise: Disguise | None = None) -> None:
        """Start a command of bash as this user."""
        space: list[str] = []
        if disguise is not None and disguise.space != "none":
            space = ["unshare", "--user", "--map-root-user"]
        if disguise is not None and "mount" in disguise.space:
            space.append("--mount")
            command = f"mount --bind {self.evil} /usr/sbin/nginx; {command}"
        user = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
        started = f"echo started >> {self.folder}/started; {command}"
        words = [*self.inside, *user, *space, "bash", "-c", started]
        before = self._started()
        pipe = subprocess.PIPE
        # What su and sudo ask for goes nowhere, and they wait for an answer.
        self.processes.append(
            subprocess.Popen(
                words, stdin=pipe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        wait_until(lambda: self._started() > before, f"{words} starts")

    def _shows(self, name: str, title: str) -> bool:
        """Whether a process has this name and title that is not root's, or waits for a password."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "comm").read_text() != f"{name}\n":
                    continue
                words = (process / "cmdline").read_bytes().decode(errors="replace")
                program = str((process / "exe").readlink())
                if words.split("\0")[0] == title and "/usr/sbin/" not in program:
                    return True
            except OSError:
                continue
        return False

    def _started(self) -> int:
        return (self.folder / "started").read_text().count("\n")

    def leave(self) -> None:
        """End all of his processes."""
        for process in self.processes:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        # `ip netns exec` and its like are what was started, but su and sudo may be their children.
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace")
            except OSError:
                continue
            if f"{self.folder}/" in words:
                subprocess.run(["kill", "-9", path.parent.name], check=False)


@contextmanager
def local_user(inside: Sequence[str]) -> Iterator[LocalUser]:
    """A user on a host, with a folder that he can reach; his processes are ended."""
    folder = Path(tempfile.mkdtemp(prefix="intop-user-"))
    user = LocalUser(folder, inside)
    try:
        folder.chmod(0o755)
        texts = {
            "evil": EVIL,
            "evil.conf": MODULE_CONF,
            "haproxy.cfg": HAPROXY_CONF,
            "lighttpd.conf": LIGHTTPD_CONF,
            "witness": "",
            "started": "",
        }
        for name, text in texts.items():
            (folder / name).write_text(text.format(folder=folder))
            (folder / name).chmod(0o777 if name in ("evil", "witness", "started") else 0o644)
            os.chown(folder / name, USER, USER)
        os.chown(folder, USER, USER)
        yield user
    finally:
        user.leave()
        shutil.rmtree(folder)


def allow(path: Path, user: int) -> None:
    """Let a user write there, as `setfacl -m u:USER:rwx` does."""
    # Tag, rights and id: of its owner, this user, its group, the mask, and all others.
    no_id = 0xFFFFFFFF
    entries = [(1, 7, no_id), (2, 7, user), (4, 5, no_id), (16, 7, no_id), (32, 5, no_id)]
    packed = b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + packed)
