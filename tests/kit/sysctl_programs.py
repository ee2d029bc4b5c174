"""systemd-sysctl and procps' sysctl on made-up files, in namespaces of their own.

There, nothing but these files is below /etc, /run, /usr/local/lib and /usr/lib/sysctl.d, and all
keys that the files name are the network namespace's.
"""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SYSTEMD = ("/usr/lib/systemd/systemd-sysctl",)
PROCPS = ("sysctl", "--system")
FOLDERS = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d")
KEYS = (
    "net.core.somaxconn",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
)
INSIDE = r"""
for folder in /etc /run /usr/local/lib; do mount -t tmpfs none "$folder" || exit 9; done
for folder in $FOLDERS; do
    mkdir -p "/$folder" && mount --bind "$0/$folder" "/$folder" || exit 9
done
ln -s "$0/etc/sysctl.conf" /etc/sysctl.conf
cd /proc/sys || exit 9
number=0
for key in $KEYS; do
    read -r line <<-EOT
	$(cat "$key")
	EOT
    eval "own$number=\$line"
    number=$((number + 1))
done
while read -r _; do
    number=0
    for key in $KEYS; do
        eval "printf '%s\n' \"\$own$number\"" > "$key"
        number=$((number + 1))
    done
    "$@" >/dev/null 2>&1
    cat $KEYS
done
"""


class Program:
    """A program that loads the files below a root, again and again.

    The keys' `own` values are back before each time.
    """

    def __init__(self, process: "subprocess.Popen[str]", root: Path) -> None:
        self.root = root
        self._process = process
        self.own = self.values({})

    def values(self, files: Mapping[str, str | None]) -> dict[str, str]:
        """What the keys are after it has loaded these files.

        None is a link to nothing; "folder" and "null" are a folder, and a link to /dev/null.
        """
        for folder in FOLDERS:
            for entry in (self.root / folder).iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        (self.root / "etc/sysctl.conf").unlink(missing_ok=True)
        for name, text in files.items():
            path = self.root / name
            if text is None:
                path.symlink_to("nowhere")
            elif text == "null":
                path.symlink_to("/dev/null")
            elif text == "folder":
                path.mkdir()
            else:
                path.write_bytes(text.encode())
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        lines = [self._process.stdout.readline() for _ in KEYS]
        assert all(lines), "the program's namespace is gone"
        return {key: " ".join(line.split()) for key, line in zip(KEYS, lines, strict=True)}


@contextmanager
def program(root: Path, words: tuple[str, ...]) -> Iterator[Program]:
    """One of the programs, below a root of its own. Where systemd loads, it runs there."""
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    if words == SYSTEMD:
        (root / "run/systemd/system").mkdir(parents=True)
    environment = {
        "FOLDERS": " ".join(FOLDERS),
        "KEYS": " ".join(key.replace(".", "/") for key in KEYS),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }
    process = subprocess.Popen(
        ["unshare", "--mount", "--net", "sh", "-c", INSIDE, root, *words],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Program(process, root)
    finally:
        process.communicate(timeout=30)
