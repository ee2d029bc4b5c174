"""What programs take for a machine of their own, as far as sysctls go.

A network namespace, in which only its own keys can be written: all of /proc/sys but net is
read-only. What configures sysctls and TuneD is in a folder of the test's, and so is /run.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

OWN = (
    *("/etc/sysctl.d", "/etc/tuned", "/run", "/usr/lib/sysctl.d", "/usr/local/lib/sysctl.d"),
    *("/usr/lib/tuned", "/var/lib/tuned", "/var/log/tuned"),
)
LIMIT_S = 60.0
PREPARE = """
set -e
root=$1
shift
for folder in /proc/sys/*; do
    case $folder in */net) ;; *) mount --bind -o ro "$folder" "$folder" ;; esac
done
for folder in $OWN; do [ ! -d "$folder" ] || mount --bind "$root$folder" "$folder"; done
[ ! -e /etc/sysctl.conf ] || mount --bind /dev/null /etc/sysctl.conf
exec "$@"
"""


@dataclass(frozen=True)
class OwnMachine:
    """The namespace, and the folder that has its files."""

    namespace: str
    root: Path

    def run(self, *words: str, **environment: str) -> str:
        """What a program says that must succeed. All that it started is ended with it."""
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command = [*inside, "sh", "-c", PREPARE, "sh", str(self.root), *words]
        done = subprocess.run(
            ["ip", "netns", "exec", self.namespace, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, "OWN": " ".join(OWN), **environment},
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def path(self, name: str) -> Path:
        """Where a file of the machine really is."""
        return self.root / name.removeprefix("/")

    def listed(self, folder: str) -> list[str]:
        """The names in a folder of the machine."""
        return sorted(path.name for path in self.path(folder).iterdir())

    def values(self, keys: Mapping[str, str]) -> dict[str, str]:
        """What keys are, as the kernel says."""
        paths = [f"/proc/sys/{key.replace('.', '/')}" for key in keys]
        lines = self.run("cat", *paths).splitlines()
        return {key: " ".join(line.split()) for key, line in zip(keys, lines, strict=True)}


@contextmanager
def own_machine(root: Path) -> Iterator[OwnMachine]:
    """A new one, whose files are in `root`."""
    name = f"t-own-{os.getpid()}"
    for folder in OWN:
        (root / folder.removeprefix("/")).mkdir(parents=True)
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        yield OwnMachine(name, root)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
