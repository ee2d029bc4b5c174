"""Our order beside that of the real procps and systemd, which read the same files.

They run in mount and network namespaces of their own, where nothing but these files is below /etc,
/run, /usr/local/lib and /usr/lib/sysctl.d, and where all keys are the network namespace's.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.persistent import Persistent
from intop.hosts.persistent import read_persistent
from kit.commands import ran
from kit.local_host import LocalHost

KEYS = ["tcp_fin_timeout", "tcp_keepalive_time", "tcp_keepalive_intvl", "tcp_keepalive_probes"]
KEYS += ["tcp_syn_retries", "tcp_reordering", "tcp_orphan_retries", "tcp_retries2", "tcp_retries1"]
KEYS += ["conf/lo/tag", "conf/all/tag", "conf/default/tag"]
FILES = {
    "usr/lib/sysctl.d/50-vendor.conf": "net.ipv4.tcp_fin_timeout = 11\n",
    "etc/sysctl.d/60-own.conf": "net/ipv4/tcp_fin_timeout=12\n# net.ipv4.tcp_fin_timeout = 13\n",
    "usr/lib/sysctl.d/70-hidden.conf": "net.ipv4.tcp_keepalive_time = 21\n",
    "run/sysctl.d/70-hidden.conf": "net.ipv4.tcp_keepalive_intvl = 22\n",
    "usr/lib/sysctl.d/80-null.conf": "net.ipv4.tcp_keepalive_probes = 23\n",
    "usr/lib/sysctl.d/81-empty.conf": "net.ipv4.tcp_syn_retries = 24\n",
    "etc/sysctl.d/81-empty.conf": "",
    "usr/local/lib/sysctl.d/90-local.conf": "-net.ipv4.tcp_reordering = 25\n;\n",
    "etc/sysctl.d/90-local": "net.ipv4.tcp_reordering = 26\n",
    "etc/sysctl.d/91-late.conf": "net.ipv4.tcp_orphan_retries = 5\n",
    "etc/sysctl.d/91-a.conf": "net.ipv4.tcp_orphan_retries = 6\n",
    "etc/sysctl.d/99-zz-intop.conf": "net.ipv4.tcp_retries2 = 9\nnet.ipv4.tcp_retries1 = 4\n",
    "etc/sysctl.d/99-zz.conf": "net.ipv4.tcp_retries1 = 5\n",
    "etc/sysctl.conf": "net.ipv4.tcp_retries2 = 10\n",
    "etc/sysctl.d/10-tag.conf": "net.ipv4.conf.lo.tag = 31\n-net.ipv4.conf.all.tag\n",
    "etc/sysctl.d/20-tag.conf": "net.ipv4.conf.*.tag = 32\n",
}
INSIDE = """
for folder in /etc /run /usr/local/lib /usr/lib/sysctl.d; do
    mount -t tmpfs none "$folder" || exit 9
    [ ! -d "$0$folder" ] || cp -a "$0$folder/." "$folder/" || exit 9
done
cd /proc/sys/net/ipv4 && grep '' $KEYS
"$@" >/dev/null
echo after
grep '' $KEYS
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "etc/sysctl.d/80-null.conf").symlink_to("/dev/null")
    return tmp_path


def carried_out(root: Path, *words: str) -> dict[str, str]:
    """What the keys are that a real program has changed."""
    environment = {"KEYS": " ".join(KEYS), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    inside = ["unshare", "--mount", "--net", "sh", "-c", INSIDE, root]
    done = ran(*inside, *words, env=environment, timeout=30)
    before, _, after = done.stdout.partition("after\n")
    assert before, done.stderr
    changed = set(after.split()) - set(before.split())
    return {path: value for path, _, value in (line.partition(":") for line in changed)}


def foretold(result: Persistent) -> dict[str, str]:
    winners = {path: result.winner(f"net.ipv4.{path.replace('/', '.')}") for path in KEYS}
    return {path: winner.value for path, winner in winners.items() if winner is not None}


def read(root: Path) -> Persistent:
    host = LocalHost()
    host.address = replace(host.address, config_root=str(root))
    return read_persistent(host)


def test_procps_makes_what_we_foretell(root: Path) -> None:
    assert carried_out(root, "sysctl", "--system") == foretold(read(root))
    assert foretold(read(root))["tcp_retries2"] == "10"


def test_systemd_makes_what_we_foretell(root: Path) -> None:
    (root / "run/systemd/system").mkdir(parents=True)
    assert carried_out(root, "/usr/lib/systemd/systemd-sysctl") == foretold(read(root))
    assert foretold(read(root))["tcp_retries2"] == "9"
    assert read(root).on_reload[0].value == "10"
